"""Requests about delegation tokens, and who asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from differential.canonical import LONG_MAX
from differential.channel import DIRECT, LOGINS, Asker
from differential.draw import PRINCIPALS, USERS, Draft, Draw
from differential.side import Side
from differential.tokens import Token, is_expired
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

    return Draft(build, related=_related(draw, number))


def expire_token(draw: Draw) -> Draft:
    period = draw.one((-1, -1, 0, 5 * _MINUTE_MS, 30 * _MINUTE_MS, 10**15, 2**63 - 1, -5, -(2**63)))
    number = draw.rng.randrange(1 << 16)

    def build(side: Side) -> Message:
        return ExpireDelegationTokenRequest(
            hmac=_secret(side, number), expiry_time_period_ms=period
        )

    return Draft(build, related=_related(draw, number))


def asker(draw: Draw, key: int, related: Sequence[str], *, may_forward: bool) -> Asker:
    """Who sends a request of this API."""
    of_tokens = key in TOKEN_APIS
    kinds = ("direct", "envelope", "token envelope", "password", "token")
    weights = (4, 40, 6, 40, 10) if of_tokens else (78, 13, 1, 4, 4)
    kind = draw.rng.choices(kinds, weights)[0]
    if kind == "token":
        number = _token_number(draw)
        return DIRECT if number is None else Asker(token=number)
    principal = draw.one(PRINCIPALS)
    if of_tokens:
        principal = draw.usually(0.85, principal, _OTHERS)
    if related and draw.chance(0.7):
        principal = draw.one(related)
    if kind == "password":
        user = principal.removeprefix("User:")
        return Asker(user=user if user in LOGINS else draw.one(LOGINS))
    if kind == "direct" or not may_forward:
        return DIRECT
    return Asker(principal=principal, by_token=kind == "token envelope")


def _token_number(draw: Draw) -> int | None:
    """Mostly of a token that is in force, and of one that its owner did not ask for.

    None that never ends: Java closes the connection (decision 7).
    """
    known = draw.image.delegation_tokens
    found = {n: known.get(token.token_id) for n, token in enumerate(draw.side.tokens.all)}
    usable = [n for n, one in found.items() if one is None or one.expiration_timestamp < LONG_MAX]
    in_force = {n: one for n in usable if (one := found[n]) is not None and not is_expired(one)}
    of_others = [n for n, one in in_force.items() if one.owner != one.requester]
    if of_others and draw.chance(0.5):
        return draw.one(of_others[-_NEWEST:])
    if in_force and draw.chance(0.9):
        return draw.one(list(in_force)[-_NEWEST:])
    return draw.one(usable) if usable else None


def _secret(side: Side, number: int) -> bytes:
    token = _token(side, number)
    if token is None:
        return b"" if number % 32 == 0 else b"no token"
    return token.secret


def _related(draw: Draw, number: int) -> tuple[str, ...]:
    """Who has to do with the token."""
    asked = _token(draw.side, number)
    token = None if asked is None else draw.image.delegation_tokens.get(asked.token_id)
    return () if token is None else (token.owner, token.requester, *token.renewers)


def _token(side: Side, number: int) -> Token | None:
    """One of the newest tokens, removed or not; now and then none."""
    newest = side.tokens.all[-_NEWEST:]
    return newest[number % len(newest)] if newest and number % 16 else None
