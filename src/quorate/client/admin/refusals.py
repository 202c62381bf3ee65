"""What a call lacks that an authorizer refused: who refused it, and what an ACL must allow for whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.admin.pool import ClientConfig
from quorate.client.connection import principal_of
from quorate.client.results import RequestFailedError
from quorate.security.acl import AclOperation

_NEEDED: Final[Mapping[AclOperation, frozenset[int]]] = {
    AclOperation.ALTER: frozenset((30, 31, 34, 37, 43, 45, 51, 57, 60, 64, 80, 81, 94)),
    AclOperation.ALTER_CONFIGS: frozenset((33, 44, 49)),
    AclOperation.CREATE: frozenset((19,)),
    AclOperation.CREATE_TOKENS: frozenset((38,)),
    AclOperation.DELETE: frozenset((20,)),
    AclOperation.DESCRIBE: frozenset((3, 16, 29, 35, 41, 46, 50, 55, 75)),
    AclOperation.DESCRIBE_CONFIGS: frozenset((32, 48, 74)),
}
"""The API keys of the calls that need an operation (`ControllerApis`, `KafkaApis`)."""
_RESOURCES: Final[Mapping[ErrorCode, tuple[str, str]]] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ("Cluster", "--cluster"),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ("Topic", "--topic"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ("Group", "--group"),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: ("DelegationToken", "--delegation-token"),
}
"""The kind of the resource, and its option of `quorate acls`."""
_CREATE_TOKEN: Final = 38
_USERS: Final = ("User", "--user-principal")


def operation_of(key: int) -> AclOperation | None:
    """What a call needs, by API key; None: it is not known."""
    return next((needed for needed, keys in _NEEDED.items() if key in keys), None)


def explained(
    error: RequestFailedError, item: object, asked: tuple[Address, int], config: ClientConfig
) -> str:
    """One line that names the node, the principal where it is known, and the ACL that is missing.

    asked: the node that refused, and the API key. `config` says who logged in.
    """
    node, key = asked
    kind, option = _USERS if key == _CREATE_TOKEN else _RESOURCES[error.code]
    needed = operation_of(key)
    operation = "OPERATION" if needed is None else needed.name.title().replace("_", "")
    name = _name_of(item) if kind in ("Topic", "Group") else ""
    resource = f"{kind} {name}".rstrip()
    value = "" if kind == "Cluster" else f" {name or 'NAME'}"
    user, note = principal_of(config.security)
    who = user or "the principal of this login"
    what = f"{operation} on {resource}" if needed else f"a permission on {resource}"
    return (
        f"Refused by {node}: {who} needs {what}{note}. quorate acls --add --allow-principal "
        f"{user or 'User:NAME'} --operation {operation} {option}{value} allows it, if no entry denies "
        "it: quorate acls --list shows those."
    )


def _name_of(item: object) -> str:
    name = item if isinstance(item, str) else getattr(item, "name", "")
    return name if isinstance(name, str) and name.isprintable() else ""
