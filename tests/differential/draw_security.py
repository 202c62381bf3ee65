"""Requests about ACLs and SCRAM credentials."""

from __future__ import annotations

from typing import Any

from differential.draw import TOPICS, USERS, Draft, Draw
from quorate.wire.messages import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
)

_RESOURCES = (2, 2, 2, 3, 4, 5, 6, 7)
"""Topic, group, cluster, transactional id, token, user."""
# Codes that an entry cannot have are left out: Kafka closes the connection, or answers
# UNKNOWN_SERVER_ERROR to the whole request (decision 7).
_OPERATIONS = tuple(range(2, 16))


def create_acls(draw: Draw) -> Draft:
    cls = CreateAclsRequest
    rows = []
    for _ in range(draw.rng.randint(0 if draw.chance(0.05) else 1, 3)):
        kind = draw.one(_RESOURCES)
        name = {
            2: draw.one((*TOPICS[:6], "t", "*")),
            4: "kafka-cluster",
            7: f"User:{draw.one(USERS)}",
        }.get(kind, "g1")
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
