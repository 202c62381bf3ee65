"""The secrets of delegation tokens by token id, and the token ids by secret.

No record and no image holds a secret, its HMAC: it is computed from the id with the key of the cluster.
That takes microseconds, and a client may ask for any secret. So each is computed once and kept, and a
token is found by one lookup.

Source: `DelegationTokenCache.tokenForHmac`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from itertools import islice
from typing import Final

from immutables import Map

from quorate.controller.building import LOOKED_AT, Building, parts
from quorate.formats.records import DelegationTokenRecord
from quorate.metadata.image import DelegationToken

Tokens = Map[str, DelegationToken]

COMPUTED: Final = 250
"""Secrets that are computed in one step, at most: some milliseconds of work."""
_SPARE: Final = 1_000
"""Secrets of removed tokens that are kept, besides as many as there are tokens."""
_NONE: Final[Tokens] = Map()


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """The secret of a token: HMAC-SHA-512 of its id."""
    return hmac.digest(secret_key.encode(), token_id.encode(), hashlib.sha512)


class TokenSecrets:
    """Beside a head. It computes what is missing in steps, when a secret is looked up.

    A secret depends on its id alone: none becomes wrong when the head goes back. It may be that of a
    token that is gone, so who finds an id looks for it in the image.
    """

    def __init__(self) -> None:
        self._secret_key = ""
        self._secrets: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        self._known: Tokens = _NONE
        """Of each of these tokens the secret is in `_secrets`, or the id in `_waiting`."""
        self._waiting: list[str] = []

    def follow(self, before: Tokens, after: Tokens, records: Iterable[object]) -> None:
        """These records changed the tokens of the head."""
        if before is not self._known:
            return  # another leader's records came between: the next lookup looks through all tokens
        self._waiting += [r.token_id for r in records if type(r) is DelegationTokenRecord]
        self._known = after
        self.trim(after)

    def trim(self, tokens: Tokens) -> None:
        """Forget all when most are of tokens that are gone."""
        if len(self._secrets) + len(self._waiting) > 2 * len(tokens) + _SPARE:
            self._forget()

    def of(self, secret_key: str, token_id: str) -> bytes:
        """The secret of a token. secret_key: `delegation.token.secret.key`."""
        self._use(secret_key)
        secret = self._secrets.get(token_id)
        if secret is None:
            secret = self._secrets[token_id] = token_hmac(secret_key, token_id)
            self._ids[secret] = token_id
        return secret

    def find(self, tokens: Tokens, secret_key: str, secret: bytes) -> Building[str | None]:
        """Return the id of the token with this secret. None, or an id that is not in `tokens`: no such
        token. A decision calls it: the head does not change meanwhile."""
        self._use(secret_key)
        if tokens is not self._known:
            yield from self._look_through(tokens)
        while self._waiting:
            for token_id in islice(reversed(self._waiting), COMPUTED):
                self.of(secret_key, token_id)
            del self._waiting[-COMPUTED:]
            if self._waiting:
                yield None
        return self._ids.get(secret)

    def _look_through(self, tokens: Tokens) -> Building[None]:
        """Find the tokens whose secret is not known."""
        missing: list[str] = []
        for part in parts(tokens, LOOKED_AT):
            missing += [token_id for token_id in part if token_id not in self._secrets]
            yield None
        self._waiting, self._known = missing, tokens

    def _use(self, secret_key: str) -> None:
        """Forget what another key gave."""
        if secret_key != self._secret_key:
            self._forget()
            self._secret_key = secret_key

    def _forget(self) -> None:
        self._secrets, self._ids, self._waiting, self._known = {}, {}, [], _NONE
