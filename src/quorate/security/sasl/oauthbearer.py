"""OAUTHBEARER (RFC 7628, KIP-255, KIP-768): signed tokens, checked with the keys of a JWKS."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NoReturn

from quorate.security.jaas import JaasError, JaasText
from quorate.security.sasl.mechanism import SaslError, shown_error
from quorate.security.sasl.token_claims import Token, TokenRules, check_claims, json_object
from quorate.security.sasl.token_keys import Key, signed_payload

NAME: Final = "OAUTHBEARER"
_KVSEP: Final = "\x01"
_INITIAL: Final = re.compile(
    r"n,(?:a=(?P<authzid>[^,\x01]+))?,\x01(?P<pairs>(?:[A-Za-z]+=[^\x01]+\x01)+)\x01", re.DOTALL
)
_UNSECURED: Final = "unsecuredValidator"
_UNSECURED_OPTIONS: Final = (
    "PrincipalClaimName",
    "ScopeClaimName",
    "RequiredScope",
    "AllowableClockSkewMs",
)
_INT: Final = re.compile("[0-9]{1,9}", re.ASCII)

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
        self._refusal: SaslError | None = None

    def is_slow(self, response: bytes) -> bool:
        return True

    def evaluate(self, response: bytes) -> bytes:
        if self._refusal is not None and response == b"\x01":
            raise self._refusal
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
        except SaslError as error:
            # RFC 7628, section 3.2.3: the client gets the status, sends one byte, and is refused.
            status = json.dumps({"status": "invalid_token"}, separators=(",", ":"))
            self._refusal = SaslError(f"the token of OAUTHBEARER was refused: {error}", status)
            return status.encode()
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


def signed_validator(keys: Callable[[str | None], Iterable[Key]], rules: TokenRules) -> Validator:
    """Checks signature and claims. `keys` gives the keys; its argument is the wanted `kid`."""

    def validate(encoded: str) -> Token:
        payload = signed_payload(encoded, keys)
        try:
            claims = json_object(payload)
        except ValueError as error:
            raise SaslError(f"the claims of the token cannot be read: {error}") from None
        return check_claims(claims, rules)

    return validate


def unsecured_validator(rules: TokenRules) -> Validator:
    """Accepts tokens without a signature (`alg: none`): for trials only."""

    def validate(encoded: str) -> Token:
        from base64 import urlsafe_b64decode

        try:
            header, payload, signature = encoded.split(".")
            parsed = [
                json_object(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
                for part in (header, payload)
            ]
        except ValueError:
            raise SaslError("the token is not an unsecured JSON web token") from None
        if signature:
            raise SaslError("the token is signed, but unsecured tokens are expected")
        if parsed[0].get("alg") != "none":
            raise SaslError("the token is not an unsecured JSON web token")
        return check_claims(parsed[1], replace(rules, is_unsecured=True))

    return validate


def unsecured_rules(jaas: JaasText, options: Mapping[str, str], rules: TokenRules) -> TokenRules:
    """`rules` with the options of `OAuthBearerUnsecuredValidatorCallbackHandler`. Raises JaasError."""

    def refuse(name: str, why: str) -> NoReturn:
        raise JaasError(
            f"Invalid value for configuration {jaas.key}: the option {name} {why} ({jaas.where})"
        )

    for name in options:
        if name.startswith(_UNSECURED) and name.removeprefix(_UNSECURED) not in _UNSECURED_OPTIONS:
            refuse(
                name, f"is not one of {', '.join(_UNSECURED + each for each in _UNSECURED_OPTIONS)}"
            )
    subject, scope, required, skew = (
        options.get(_UNSECURED + name, "").strip() for name in _UNSECURED_OPTIONS
    )
    if skew and not _INT.fullmatch(skew):
        refuse(_UNSECURED + _UNSECURED_OPTIONS[-1], "must be a number of milliseconds, at least 0")
    return replace(
        rules,
        subject_claim=subject or "sub",
        scope_claim=scope or "scope",
        required_scope=tuple(required.split()),
        clock_skew_s=int(skew or 0) / 1000,
        is_unsecured=True,
    )
