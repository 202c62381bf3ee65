"""Validate the arguments that a program passes.

The program may not use a type checker, and values may come from JSON. A wrong type raises TypeError, a
wrong value QuorateError; both messages show the value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import ZERO_UUID, Address, ReplicaKey
from quorate.config.host_port import parse_host_port

_MAX_ID: Final = 2**31 - 1


def whole_number(name: str, value: object) -> int:
    """Return `value` as an int. Raises TypeError; a bool is not a number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    return value


def text(name: str, value: object) -> str:
    """Return `value` as a str. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {value!r}")
    return value


def member_id(value: object) -> int:
    """Return `value` as a member's id. Raises TypeError, QuorateError."""
    node_id = whole_number("the id of a member", value)
    if not 0 <= node_id <= _MAX_ID:
        raise QuorateError(f"{node_id} is not a member's id: the range is 0 to {_MAX_ID}")
    return node_id


def member_key(value: object) -> ReplicaKey:
    """Return the key; accepts its text. Raises TypeError, QuorateError."""
    key = ReplicaKey.from_text(value) if isinstance(value, str) else value
    if not isinstance(key, ReplicaKey):
        raise TypeError(f"a member's key must be a ReplicaKey or its text, not {value!r}")
    member_id(key.id)
    directory_id = key.directory_id
    if not isinstance(directory_id, bytes):
        raise TypeError(
            f"the directory id of a member's key must be 16 bytes, not {directory_id!r}"
        )
    if len(directory_id) != len(ZERO_UUID) or directory_id == ZERO_UUID:
        raise QuorateError(f"{value!r} is not the key of a member: it has no directory id")
    return key


def directory_path(value: object) -> Path:
    """Return the path of a member's directory. Raises TypeError, QuorateError."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"a directory must be a path or a string, not {value!r}")
    name = os.fspath(value)
    try:
        if not name or b"\0" in os.fsencode(name):
            raise QuorateError(f"{name!r} cannot be the name of a directory")
    except UnicodeEncodeError:
        raise QuorateError(f"{name!r} cannot be the name of a directory") from None
    return Path(name)


def parse_address(value: object) -> Address:
    """Parse `host:port`. Raises TypeError, QuorateError."""
    if not isinstance(value, str):
        raise TypeError(f"an address must be a string host:port, not {value!r}")
    address = parse_host_port(value)
    if address is None or "://" in value or not _is_name(address.host):
        raise QuorateError(f"'{value}' is not an address: write host:port")
    return address


def address_for_others(value: object) -> Address:
    """Parse a `host:port` to which others can connect; it becomes part of the voter set.

    Raises TypeError, QuorateError.
    """
    address = parse_address(value)
    if address.port == 0 or _is_everywhere(address.host):
        raise QuorateError(
            f"'{value}' is not an address to connect to: write one host and its port"
        )
    return address


def addresses(name: str, value: object) -> tuple[str, ...]:
    """Check a tuple or list of addresses. Raises TypeError, QuorateError."""
    if not isinstance(value, tuple | list):
        raise TypeError(f"{name} must be a tuple of addresses, not {value!r}")
    for each in value:
        parse_address(each)
    return tuple(value)


def pairs(name: str, value: object) -> Iterable[tuple[object, object]]:
    """Return the items of a mapping. Raises TypeError."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {value!r}")
    return value.items()


def _is_name(host: str) -> bool:
    try:
        return bool(host.encode("idna"))
    except UnicodeError:  # an empty label, or one that is too long
        return False


def _is_everywhere(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
