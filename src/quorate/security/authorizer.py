"""Whether a principal may do something, by the access control entries of an image. Pure.

1. A super user may do everything.
2. The entries of the resource are looked at: those of its name, of `*`, and of each prefix of its name.
3. One that denies wins. Else one that allows decides.
4. A resource that has entries, none of which matches, is denied. One without any follows
   `allow.everyone.if.no.acl.found`.

The costs do not grow with the number of entries of other resources.

Source: `StandardAuthorizer`, `StandardAuthorizerData.findAclRule`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from quorate.metadata.image import Acl, AclPattern, Image
from quorate.security.acl import AclOperation, AclResource
from quorate.security.cidr import is_in_range

LITERAL: Final = 3
PREFIXED: Final = 4
DENY: Final = 2
ALLOW: Final = 3
ALL_OPERATIONS: Final = 2
WILDCARD: Final = "*"
WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"

_IMPLIES_DESCRIBE: Final = frozenset(
    {
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    }
)
_IMPLIES_DESCRIBE_CONFIGS: Final = frozenset(
    {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
)


@dataclass(frozen=True, slots=True)
class AuthorizerConfig:
    """The keys of `StandardAuthorizer`."""

    super_users: frozenset[str] = frozenset()
    """`super.users`, as `type:name`."""
    allow_without_acls: bool = False
    """`allow.everyone.if.no.acl.found`"""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks, and from where."""

    principal: str
    """`type:name`"""
    host: str
    """The client's address as text."""


def authorize(
    image: Image,
    config: AuthorizerConfig,
    requester: Requester,
    operation: AclOperation,
    resource: AclResource,
    name: str = CLUSTER_NAME,
) -> bool:
    """Whether the operation on the resource of this name is allowed."""
    if requester.principal in config.super_users:
        return True
    has_entries = is_allowed = False
    for acl in _entries(image, resource, name):
        has_entries = True
        if not _matches(acl, requester, operation):
            continue
        if acl.permission_type == DENY:
            return False
        is_allowed = True
    return is_allowed or (not has_entries and config.allow_without_acls)


def _entries(image: Image, resource: AclResource, name: str) -> Iterator[Acl]:
    """Every entry whose pattern fits the resource."""
    patterns = image.acls_by_pattern
    if not patterns:
        return
    kind = int(resource)
    for pattern in (AclPattern(kind, LITERAL, name), AclPattern(kind, LITERAL, WILDCARD)):
        yield from patterns.get(pattern, _NO_ENTRIES).values()
    for length in range(len(name), 0, -1):
        entries = patterns.get(AclPattern(kind, PREFIXED, name[:length]))
        if entries is not None:
            yield from entries.values()


_NO_ENTRIES: Final[dict[bytes, Acl]] = {}


def _matches(acl: Acl, requester: Requester, operation: AclOperation) -> bool:
    if acl.principal not in (requester.principal, WILDCARD_PRINCIPAL):
        return False
    if acl.host not in (WILDCARD, requester.host) and not (
        "/" in acl.host and is_in_range(requester.host, acl.host)
    ):
        return False
    if acl.operation in (ALL_OPERATIONS, operation):
        return True
    if acl.permission_type != ALLOW:
        return False
    # Who may read may describe; but who may not read may still describe.
    if operation == AclOperation.DESCRIBE:
        return acl.operation in _IMPLIES_DESCRIBE
    return operation == AclOperation.DESCRIBE_CONFIGS and acl.operation in _IMPLIES_DESCRIBE_CONFIGS
