"""Requests about delegation tokens, and who asks for them."""

from __future__ import annotations

from typing import Final

from differential.channel import DIRECT, LOGINS, Asker
from differential.draw import PRINCIPALS, USERS, Draft, Draw
from differential.side import Side
from differential.tokens import is_expired
from quorate.wire.messages import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from quorate.wire.schema import Message

TOKEN_APIS: Final = frozenset((38, 39, 40))
_MINUTE_MS: Final = 60_000
_NEWEST: Final = 8
"""Of so many tokens one is chosen, removed or not."""
_OTHERS: Final = ("User:carol", "User:a:b", "Group:alice", "User:")
"""Principals of an Envelope, besides those of every API."""


def create_token(draw: Draw) -> Draft:
    cls = CreateDelegationTokenRequest
    version = draw.one((1, 2, 3, 3))
    owner_type, owner = None, None
    if version == 3 and draw.chance(0.5):
        owner = draw.usually(0.9, draw.one(USERS), ("a:b", "ü", ""))
        owner_type = draw.usually(0.85, "User", ("Group", "", None))
    elif draw.chance(0.3):
        owner_type, owner = "", ""
    lifetime = draw.one((-1, 0, 1, 10 * _MINUTE_MS, 60 * _MINUTE_MS, 10**15, 2**63 - 1, -2))
    message = cls(
        owner_principal_type=owner_type,
        owner_principal_name=owner,
        renewers=[
            cls.CreatableRenewers(
                principal_type=draw.usually(0.95, "User", ("Group", "")),
                principal_name=draw.usually(0.9, draw.one(USERS), ("a:b", "", "*")),
            )
            for _ in range(draw.rng.randint(0, 3))
        ],
        max_lifetime_ms=lifetime,
    )
    if version < 3:
        message = message.replace(owner_principal_type="", owner_principal_name="")
    return Draft(lambda side: message, version=version)


def renew_token(draw: Draw) -> Draft:
    period = draw.one((-1, 0, 1, 5 * _MINUTE_MS, 30 * _MINUTE_MS, 10**15, -5))
    number = draw.rng.randrange(1 << 16)

    def build(side: Side) -> Message:
        return RenewDelegationTokenRequest(hmac=_secret(side, number), renew_period_ms=period)

    return Draft(build)


def expire_token(draw: Draw) -> Draft:
    period = draw.one((-1, -1, 0, 5 * _MINUTE_MS, 30 * _MINUTE_MS, 10**15, 2**63 - 1, -5, -(2**63)))
    number = draw.rng.randrange(1 << 16)

    def build(side: Side) -> Message:
        return ExpireDelegationTokenRequest(
            hmac=_secret(side, number), expiry_time_period_ms=period
        )

    return Draft(build)


def asker(draw: Draw, key: int, *, may_forward: bool) -> Asker:
    """Who sends a request of this API."""
    of_tokens = key in TOKEN_APIS
    kinds = ("direct", "envelope", "token envelope", "password", "token")
    weights = (4, 40, 6, 40, 10) if of_tokens else (80, 13, 1, 4, 2)
    kind = draw.rng.choices(kinds, weights)[0]
    if kind == "password":
        return Asker(user=draw.one(LOGINS))
    if kind == "token":
        number = _token_number(draw)
        return DIRECT if number is None else Asker(token=number)
    if kind == "direct" or not may_forward:
        return DIRECT
    principal = draw.one(PRINCIPALS)
    if of_tokens:
        principal = draw.usually(0.85, principal, _OTHERS)
    return Asker(principal=principal, by_token=kind == "token envelope")


def _token_number(draw: Draw) -> int | None:
    """Mostly of a token that is in force."""
    tokens, known = draw.side.tokens.all, draw.image.delegation_tokens
    in_force = [
        number
        for number, token in enumerate(tokens)
        if token.token_id in known and not is_expired(known[token.token_id])
    ]
    if in_force and draw.chance(0.9):
        return draw.one(in_force[-_NEWEST:])
    return draw.rng.randrange(len(tokens)) if tokens else None


def _secret(side: Side, number: int) -> bytes:
    """That of one of the newest tokens, or of none."""
    newest = side.tokens.all[-_NEWEST:]
    if not newest or number % 16 == 0:
        return b"" if number % 32 == 0 else b"no token"
    return newest[number % len(newest)].secret
