"""OAUTHBEARER (RFC 7628, KIP-255, KIP-768): signed tokens, checked with the keys of a JWKS."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from quorate.security.sasl.mechanism import SaslError, shown_error

NAME: Final = "OAUTHBEARER"
_KVSEP: Final = "\x01"
_INITIAL: Final = re.compile(
    r"n,(?:a=(?P<authzid>[^,\x01]+))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]+\x01)+)\x01", re.DOTALL
)
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519"),
)
"""Signatures with public keys. An HMAC key of a JWKS would be a shared secret in a public file."""


@dataclass(frozen=True, slots=True)
class Token:
    """A validated token."""

    principal: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must have (`sasl.oauthbearer.*`)."""

    audience: tuple[str, ...] = ()
    """`expected.audience`: one of them; empty: any."""
    issuer: str | None = None
    clock_skew_s: int = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"


Validator = Callable[[str], Token]
"""Checks the text of a token; raises SaslError. It may take milliseconds."""


class OAuthBearerServer:
    """The server's side (`OAuthBearerSaslServer`)."""

    name = NAME

    def __init__(self, validate: Validator) -> None:
        self.principal: str | None = None
        self.expires_at_ms: int | None = None
        self.by_token = False
        self._validate = validate
        self._refusal: str | None = None

    def is_slow(self, response: bytes) -> bool:
        return True

    def evaluate(self, response: bytes) -> bytes:
        if self._refusal is not None and response == b"\x01":
            raise shown_error(self._refusal)
        try:
            text = response.decode()
        except UnicodeDecodeError:
            raise SaslError("Invalid OAUTHBEARER client first message") from None
        found = _INITIAL.fullmatch(text)
        pairs = dict(
            pair.split("=", 1) for pair in (found["pairs"] if found else "").split(_KVSEP) if pair
        )
        scheme, _, encoded = pairs.get("auth", "").partition(" ")
        if found is None or scheme.lower() != "bearer" or not encoded:
            raise SaslError("Invalid OAUTHBEARER client first message")
        try:
            token = self._validate(encoded)
        except SaslError:
            # RFC 7628, section 3.2.3: the client gets the status, sends one byte, and is refused.
            self._refusal = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            return self._refusal.encode()
        if found["authzid"] and found["authzid"] != token.principal:
            raise shown_error(
                "Authentication failed: Client requested an authorization id that is different "
                "from the token's principal name"
            )
        self.principal, self.expires_at_ms = token.principal, token.expires_at_ms
        return b""


class OAuthBearerClient:
    """The client's side; `token` gives the current token."""

    name = NAME

    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    def first(self) -> bytes:
        return f"n,,\x01auth=Bearer {self._token()}\x01\x01".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The server sends its reason as a challenge, and waits for one byte."""
        return b"\x01" if challenge else None


def check_claims(claims: Mapping[str, Any], rules: TokenRules, now_s: float | None = None) -> Token:
    """The token of these claims. Raises SaslError.

    Kafka's `BrokerJwtValidator`: `exp` and the subject are required, `iat`, `nbf`, audience and issuer
    are checked where they are expected.
    """
    now = time.time() if now_s is None else now_s
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise SaslError(f"the token has no claim {rules.subject_claim}")
    expires = claims.get("exp")
    if not isinstance(expires, int | float) or isinstance(expires, bool):
        raise SaslError("the token has no claim exp")
    if expires + rules.clock_skew_s <= now:
        raise SaslError("the token has expired")
    for name in ("nbf", "iat"):
        begins = claims.get(name)
        if isinstance(begins, int | float) and begins - rules.clock_skew_s > now:
            raise SaslError(f"the token is not valid yet (claim {name}): compare the clocks")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise SaslError("the token has another issuer than sasl.oauthbearer.expected.issuer")
    if rules.audience:
        audience = claims.get("aud")
        given = [audience] if isinstance(audience, str) else audience
        if not isinstance(given, list) or not set(rules.audience) & set(map(str, given)):
            raise SaslError("the token is for another audience: sasl.oauthbearer.expected.audience")
    return Token(subject.strip(), int(expires * 1000))


def signed_validator(keys: Callable[[str | None], Any], rules: TokenRules) -> Validator:
    """Checks signature and claims. `keys` gives joserfc's KeySet; its argument is the wanted `kid`."""

    def validate(encoded: str) -> Token:
        from joserfc import jws, jwt
        from joserfc.errors import JoseError

        try:
            kid = jws.extract_compact(encoded.encode()).headers().get("kid")
            token = jwt.decode(encoded, keys(kid), algorithms=list(ALGORITHMS))
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise SaslError(f"the token is not valid: {type(error).__name__}") from None
        return check_claims(token.claims, rules)

    return validate


def unsecured_validator(rules: TokenRules) -> Validator:
    """Accepts tokens without a signature (`alg: none`): for trials only."""

    def validate(encoded: str) -> Token:
        from base64 import urlsafe_b64decode

        try:
            header, payload, signature = encoded.split(".")
            parsed = [
                json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
                for part in (header, payload)
            ]
        except ValueError:
            raise SaslError("the token is not an unsecured JSON web token") from None
        if signature or not all(isinstance(part, dict) for part in parsed):
            raise SaslError("the token is signed, but unsecured tokens are expected")
        if parsed[0].get("alg") != "none":
            raise SaslError("the token is not an unsecured JSON web token")
        return check_claims(parsed[1], rules)

    return validate
