"""The delegation tokens of a side: their names, their secrets, and what the controller knows of them."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.controller.token_secrets import token_hmac
from quorate.formats.metadata_records import DelegationTokenRecord
from quorate.metadata.image import DelegationToken
from quorate.wire.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse

SECRET_KEY: Final = "the key of both controllers"
OUTSIDER: Final = "User:nobody"
"""Neither owns nor renews a token."""
PROBE_VERSION: Final = 2


class Token(NamedTuple):
    token_id: str
    secret: bytes
    """Its HMAC."""


class Tokens:
    """Each token that was created, in this order, removed or not."""

    def __init__(self) -> None:
        self.all: list[Token] = []
        self.names: dict[str, str] = {}
        """Token id -> what it is called: the same on both sides."""
        self._secret_names: dict[bytes, str] = {}

    def note(self, record: DelegationTokenRecord) -> None:
        if record.token_id in self.names:
            return
        number = len(self.all) + 1
        token = Token(record.token_id, token_hmac(SECRET_KEY, record.token_id))
        self.all.append(token)
        self.names[token.token_id] = f"<token #{number}>"
        self._secret_names[token.secret] = f"<hmac #{number}>"

    def secret_name(self, secret: bytes) -> str:
        """What the secret of a token is called; other bytes in hexadecimal."""
        return self._secret_names.get(secret, secret.hex())


def is_expired(token: DelegationToken) -> bool:
    now_ms = time.time() * 1000
    return token.max_timestamp < now_ms or token.expiration_timestamp < now_ms


def probe(token: Token) -> RenewDelegationTokenRequest:
    """Asked by the outsider, it changes nothing: its error says what a controller knows of the token."""
    return RenewDelegationTokenRequest(hmac=token.secret, renew_period_ms=-1)


def is_known(answer: RenewDelegationTokenResponse, token: DelegationToken | None) -> bool:
    """The answer to a probe says what the log says of the token. None: it was removed."""
    if token is None:
        return answer.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    if is_expired(token):
        return answer.error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    return answer.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
