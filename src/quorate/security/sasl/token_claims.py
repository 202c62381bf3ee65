"""What the claims of a token of OAUTHBEARER must say. Pure.

Sources: `BrokerJwtValidator` with jose4j's validators (KIP-768), and `OAuthBearerValidationUtils` for
tokens without a signature (KIP-255).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from quorate.security.sasl.mechanism import SaslError

_MOST_SECONDS: Final = (2**63 - 1) // 1000
"""Kafka keeps the times of a token as milliseconds in 64 bits."""


@dataclass(frozen=True, slots=True)
class Token:
    """A validated token."""

    principal: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must have (`sasl.oauthbearer.*`, or the options of the unsecured validator)."""

    audience: tuple[str, ...] = ()
    """`expected.audience`: one of them; empty: a signed token must have none."""
    issuer: str | None = None
    clock_skew_s: float = 30
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    """Scopes that an unsecured token must all have."""
    is_unsecured: bool = False
    """The token has no signature: `iat` is not needed, and an audience that is not expected is allowed."""


def check_claims(claims: Mapping[str, Any], rules: TokenRules, now_s: float | None = None) -> Token:
    """The token of these claims. Raises SaslError, whose text names the claim and not its value."""
    now = time.time() if now_s is None else now_s
    subject = _subject(claims, rules.subject_claim)
    expires = _check_times(claims, rules, now)
    for name in ("iss", "sub", "jti"):
        if not isinstance(claims.get(name, ""), str | None):
            raise SaslError(f"the claim {name} of the token is not a text")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise SaslError("the token has another issuer than sasl.oauthbearer.expected.issuer")
    _check_audience(claims.get("aud"), rules)
    _check_scope(claims.get(rules.scope_claim), rules)
    return Token(subject, int(expires * 1000))


def json_object(text: bytes | str) -> dict[str, Any]:
    """The JSON object of a text from the network. Raises ValueError for every other text."""
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _subject(claims: Mapping[str, Any], name: str) -> str:
    subject = claims.get(name)
    if not isinstance(subject, str) or not subject.strip():
        raise SaslError(f"the token has no claim {name}")
    try:
        subject.encode()
    except UnicodeEncodeError:
        raise SaslError(f"the claim {name} of the token is not Unicode") from None
    return subject.strip()


def _check_times(claims: Mapping[str, Any], rules: TokenRules, now: float) -> int | float:
    """The value of `exp`, in seconds since 1970."""
    expires, issued, begins = (_seconds(claims, name, rules) for name in ("exp", "iat", "nbf"))
    if expires is None:
        raise SaslError("the token has no claim exp")
    if issued is None and not rules.is_unsecured:
        raise SaslError("the token has no claim iat")
    if expires <= now - rules.clock_skew_s:
        raise SaslError("the token has expired")
    for name, value in (("nbf", begins), ("iat", issued)):
        if value is None:
            continue
        # jose4j allows a signed token that was issued in the future.
        is_checked = name == "nbf" or rules.is_unsecured
        if is_checked and value > now + rules.clock_skew_s:
            raise SaslError(f"the token is not valid yet (claim {name}): compare the clocks")
        if expires < value or (rules.is_unsecured and expires == value):
            raise SaslError(f"the token expires before its claim {name}")
    return expires


def _seconds(claims: Mapping[str, Any], name: str, rules: TokenRules) -> int | float | None:
    """The time of a claim. jose4j cuts its fraction off."""
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not _is_time(value):
        raise SaslError(f"the claim {name} of the token is not a time in seconds")
    return value if rules.is_unsecured else int(value)


def _is_time(value: int | float) -> bool:
    # A large integer is not converted to a float, which would raise OverflowError.
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return 0 <= value <= _MOST_SECONDS


def _check_audience(audience: object, rules: TokenRules) -> None:
    """jose4j's `AudValidator` refuses an audience that nobody expects, too."""
    if not rules.audience:
        if audience is not None and not rules.is_unsecured:
            raise SaslError(
                "the token is for an audience, and sasl.oauthbearer.expected.audience is not set"
            )
        return
    given = [audience] if isinstance(audience, str) else audience
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise SaslError("the token has no claim aud with texts")
    if not set(rules.audience) & set(given):
        raise SaslError("the token is for another audience: sasl.oauthbearer.expected.audience")


def _check_scope(scope: object, rules: TokenRules) -> None:
    scopes = scope if isinstance(scope, list) else [scope] if isinstance(scope, str) else []
    if not rules.is_unsecured:
        texts = [each.strip() if isinstance(each, str) else "" for each in scopes]
        if "" in texts or len(set(texts)) < len(texts):
            raise SaslError(
                f"the claim {rules.scope_claim} of the token is empty or has duplicates"
            )
        return
    if isinstance(scope, str):
        scopes = scope.split()
    has = {each.strip() for each in scopes if isinstance(each, str)}
    missing = [each for each in rules.required_scope if each not in has]
    if missing:
        raise SaslError(f"the token does not have the scope {missing[0]}")
