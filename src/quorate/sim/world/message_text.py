"""The text of a message of the core in one line, for traces and violations."""

from __future__ import annotations

from typing import Final

from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from quorate.raft.messages import FetchResponse

_QUIET: Final = frozenset(
    {"cluster_id", "records", "leader_endpoints", "listeners", "max_wait_ms", "max_bytes"}
)


def describe_message(message: object, *, whole: bool = False) -> str:
    """The text of a message without the fields that are equal in all messages.

    Directory ids are abbreviated unless `whole` is set.
    """
    parts = []
    for name in type(message).__match_args__:  # type: ignore[attr-defined]
        value = getattr(message, name)
        if name not in _QUIET and value not in (None, (), b"", -1):
            parts.append(f"{name}={describe_value(value, whole)}")
    if isinstance(message, FetchResponse) and message.records is not None:
        parts.append(f"records={message.records.offset}..{message.records.end}")
    return f"{type(message).__name__}({', '.join(parts)})"


def describe_value(value: object, whole: bool = False) -> str:
    if isinstance(value, ReplicaKey):
        return str(value) if whole or value.directory_id == bytes(16) else str(value)[:6]
    if isinstance(value, LeaderAndEpoch):
        return f"{value.leader_id}@{value.epoch}"
    if isinstance(value, OffsetAndEpoch):
        return f"({value.offset}, {value.epoch})"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, tuple) and value and hasattr(value[0], "base_offset"):
        return f"{value[0].base_offset}..{value[-1].last_offset}"
    if isinstance(value, tuple):
        return "[" + ", ".join(describe_value(one, whole) for one in value) + "]"
    return getattr(value, "name", None) or str(value)
