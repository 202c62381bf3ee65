"""What a program passes, checked where it comes in.

Whoever embeds this may not check types, and JSON has others: a value of a wrong type is a
TypeError, one that cannot be is a QuorateError, and both say what it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.ids import ZERO_UUID, Address, ReplicaKey
from quorate.node.host_port import parse_host_port

_MAX_ID: Final = 2**31 - 1


def whole_number(name: str, value: object) -> int:
    """`value`. Raises TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}")
    return value


def text(name: str, value: object) -> str:
    """`value`. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is text, not {value!r}")
    return value


def member_id(value: object) -> int:
    """`value`. Raises TypeError, QuorateError."""
    node_id = whole_number("the id of a member", value)
    if not 0 <= node_id <= _MAX_ID:
        raise QuorateError(f"{node_id} is not the id of a member: those are 0 to {_MAX_ID}")
    return node_id


def member_key(value: object) -> ReplicaKey:
    """A key, or the text of one. Raises TypeError, QuorateError."""
    key = ReplicaKey.from_text(value) if isinstance(value, str) else value
    if not isinstance(key, ReplicaKey):
        raise TypeError(f"a member's key is a ReplicaKey or its text, not {value!r}")
    member_id(key.id)
    directory_id = key.directory_id
    if not isinstance(directory_id, bytes):
        raise TypeError(f"the directory id of a member's key is 16 bytes, not {directory_id!r}")
    if len(directory_id) != len(ZERO_UUID) or directory_id == ZERO_UUID:
        raise QuorateError(f"{value!r} is not the key of a member: it has no directory id")
    return key


def directory_path(value: object) -> Path:
    """The path of a member's directory. Raises TypeError, QuorateError."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"a directory is a path or its text, not {value!r}")
    name = os.fspath(value)
    try:
        if not name or b"\0" in os.fsencode(name):
            raise QuorateError(f"{name!r} cannot be the name of a directory")
    except UnicodeEncodeError:
        raise QuorateError(f"{name!r} cannot be the name of a directory") from None
    return Path(name)


def parse_address(value: object) -> Address:
    """`host:port`. Raises TypeError, QuorateError."""
    if not isinstance(value, str):
        raise TypeError(f"an address is the text host:port, not {value!r}")
    address = parse_host_port(value)
    if address is None or "://" in value or not _is_name(address.host):
        raise QuorateError(f"'{value}' is not an address: write host:port")
    return address


def address_for_others(value: object) -> Address:
    """`host:port` to connect to: it goes into the voter set. Raises TypeError, QuorateError."""
    address = parse_address(value)
    if address.port == 0 or _is_everywhere(address.host):
        raise QuorateError(f"'{value}' is not an address to connect to: name one host and its port")
    return address


def addresses(name: str, value: object) -> tuple[str, ...]:
    """Texts of addresses. Raises TypeError, QuorateError."""
    if not isinstance(value, tuple | list):
        raise TypeError(f"{name} is a tuple of addresses, not {value!r}")
    for each in value:
        parse_address(each)
    return tuple(value)


def pairs(name: str, value: object) -> Iterable[tuple[object, object]]:
    """The keys and values of a mapping, in order. Raises TypeError."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a mapping, not {value!r}")
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
