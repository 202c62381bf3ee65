"""Requests about ACLs, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from typing import Any

from differential.draw import TOPICS, USERS, Draft, Draw
from differential.side import Side
from quorate.wire.messages import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from quorate.wire.schema import Message

_RESOURCES = (2, 2, 2, 3, 4, 5, 6, 7)
"""Topic, group, cluster, transactional id, token, user."""
# Codes that an entry cannot have are left out: Kafka closes the connection, or answers
# UNKNOWN_SERVER_ERROR to the whole request (decision 7).
_OPERATIONS = tuple(range(2, 16))
_MINUTE_MS = 60_000


def create_acls(draw: Draw) -> Draft:
    cls = CreateAclsRequest
    rows = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 3)):
        kind = draw.one(_RESOURCES)
        name = {2: draw.one((*TOPICS[:6], "t", "*")), 4: "kafka-cluster"}.get(kind, "g1")
        name = draw.usually(0.97, name, ("", "x"))
        row = cls.AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=draw.one((3, 3, 4)),
            principal=draw.usually(
                0.97, f"User:{draw.one((*USERS, '*'))}", ("alice", "", "User:", ":x", "Group:g")
            ),
            host=draw.one(("*", "127.0.0.1", "host")),
            operation=draw.one(_OPERATIONS),
            permission_type=draw.one((2, 3, 3)),
        )
        rows.append(row)
    message = cls(creations=draw.often_twice(rows))
    return Draft(lambda side: message)


def _filter(draw: Draw) -> dict[str, Any]:
    kind = draw.one((1, *_RESOURCES))
    return {
        "resource_type_filter": kind,
        "resource_name_filter": draw.one((None, None, *TOPICS[:4], "kafka-cluster", "*")),
        "pattern_type_filter": draw.one((1, 2, 3, 4)),
        "principal_filter": draw.one((None, None, *(f"User:{user}" for user in USERS))),
        "host_filter": draw.one((None, None, None, "*", "127.0.0.1")),
        "operation": draw.one((1, 1, 1, *_OPERATIONS)),
        "permission_type": draw.one((1, 1, 2, 3)),
    }


def delete_acls(draw: Draw) -> Draft:
    cls = DeleteAclsRequest
    rows = [cls.DeleteAclsFilter(**_filter(draw)) for _ in range(draw.rng.randint(0, 2))]
    message = cls(filters=draw.often_twice(rows))
    return Draft(lambda side: message)


def describe_acls(draw: Draw) -> Draft:
    message = DescribeAclsRequest(**_filter(draw))
    return Draft(lambda side: message, is_read=True)


def scram(draw: Draw) -> Draft:
    cls = AlterUserScramCredentialsRequest
    deletions = [
        cls.ScramCredentialDeletion(name=_user(draw), mechanism=_mechanism(draw))
        for _ in range(draw.rng.randint(0, 2))
    ]
    upsertions = [
        cls.ScramCredentialUpsertion(
            name=_user(draw),
            mechanism=_mechanism(draw),
            iterations=draw.usually(0.9, 4096, (8192, 16384, 4095, 16385, 0, -1)),
            salt=draw.usually(0.97, b"salt" * 4, (b"",)),
            salted_password=b"password" * 4,
        )
        for _ in range(draw.rng.randint(0, 2))
    ]
    message = cls(deletions=deletions, upsertions=upsertions)
    return Draft(lambda side: message)


def _user(draw: Draw) -> str:
    return draw.usually(0.97, draw.one((*USERS, "dave", "erin")), ("", "ü=,"))


def _mechanism(draw: Draw) -> int:
    return draw.usually(0.97, draw.one((1, 2)), (0, 3, -1))


def create_token(draw: Draw) -> Draft:
    cls = CreateDelegationTokenRequest
    version = draw.one((1, 2, 3))
    owner = draw.usually(0.6, None, USERS) if version == 3 else None
    lifetime = draw.one((-1, 0, 10 * _MINUTE_MS, 60 * _MINUTE_MS, 10**15, -2))
    message = cls(
        owner_principal_type="User" if owner else "" if draw.chance(0.3) else None,
        owner_principal_name=owner or ("" if draw.chance(0.3) else None),
        renewers=[
            cls.CreatableRenewers(
                principal_type=draw.usually(0.95, "User", ("Group", "")),
                principal_name=draw.one(USERS),
            )
            for _ in range(draw.rng.randint(0, 2))
        ],
        max_lifetime_ms=lifetime,
    )
    if version < 3:
        message = message.replace(owner_principal_type="", owner_principal_name="")
    return Draft(lambda side: message, version=version)


def renew_token(draw: Draw) -> Draft:
    period = draw.one((-1, 0, 5 * _MINUTE_MS, 30 * _MINUTE_MS, 10**15, -5))
    number = draw.rng.randrange(1 << 16)

    def build(side: Side) -> Message:
        return RenewDelegationTokenRequest(hmac=_hmac(side, number), renew_period_ms=period)

    return Draft(build)


def expire_token(draw: Draw) -> Draft:
    period = draw.one((-1, 5 * _MINUTE_MS, 30 * _MINUTE_MS, 10**15, -5))
    number = draw.rng.randrange(1 << 16)

    def build(side: Side) -> Message:
        return ExpireDelegationTokenRequest(hmac=_hmac(side, number), expiry_time_period_ms=period)

    return Draft(build)


def _hmac(side: Side, number: int) -> bytes:
    """That of one of the newest tokens, or of none. Removed ones are left out: a cache of Java's still
    knows them for a moment."""
    newest = side.live_tokens[-8:]
    if not newest or number % 16 == 0:
        return b"no token"
    return newest[number % len(newest)]
