"""Print what a broker keeps beside a log about producers and aborted transactions.

A `.snapshot` holds a version, a checksum and the state of each producer (`ProducerStateManager`). A
`.txnindex` holds one entry of fixed size for each aborted transaction (`TransactionIndex`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from quorate.base.errors import QuorateError
from quorate.cli.java_files import absolute_text
from quorate.cli.tools.dump_index import IndexLine
from quorate.formats.loose_records import DumpError

_ABORTED: Final = struct.Struct(">bxqqqq")
"""Kafka writes the version as int16 and reads its first byte (`AbortedTxn.version`)."""
_ABORTED_FIELDS: Final = (
    "version",
    "producerId",
    "firstOffset",
    "lastOffset",
    "lastStableOffset",
)
_ABORTED_VERSION: Final = 0
_SNAPSHOT_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hIi")
_ENTRIES_AT: Final = 6
"""Where the part of a snapshot begins that its checksum covers."""
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
_MAX_SEQUENCE: Final = 0x7FFFFFFF


class CorruptSnapshotError(QuorateError):
    """A snapshot of producers that Kafka refuses, with Kafka's words; other files can be dumped."""


def _contents(path: str) -> bytes:
    with open(path, "rb") as file:  # pathlib takes 2 ms to load
        return file.read()


def dump_aborted_transactions(path: str) -> Iterator[IndexLine]:
    """Dump a transaction index; an entry that is cut at the end is ignored.

    Raises DumpError before the first line if a newer Kafka wrote an entry.
    """
    data = _contents(path)
    entries = list(_ABORTED.iter_unpack(data[: len(data) // _ABORTED.size * _ABORTED.size]))
    newer = next((entry[0] for entry in entries if entry[0] > _ABORTED_VERSION), None)
    if newer is not None:
        raise DumpError(
            f"Unexpected aborted transaction version {newer} in transaction index "
            f"{absolute_text(path)}, current version is {_ABORTED_VERSION}"
        )
    for entry in entries:
        yield _line("abortedTransaction", dict(zip(_ABORTED_FIELDS, entry, strict=True)))


def dump_producers(path: str) -> Iterator[IndexLine]:
    """Dump a snapshot of producers. Raises CorruptSnapshotError before the first line."""
    data = _contents(path)
    count = _checked_count(data)
    for at in range(_HEAD.size, _HEAD.size + count * _PRODUCER.size, _PRODUCER.size):
        id_, epoch, last, offset, delta, time, coordinator, first_offset = _PRODUCER.unpack_from(
            data, at
        )
        facts = {
            "producerId": id_,
            "producerEpoch": epoch,
            "coordinatorEpoch": coordinator,
            "currentTxnFirstOffset": first_offset if first_offset >= 0 else None,
            "lastTimestamp": time,
        }
        if offset >= 0:
            facts |= {
                "firstSequence": last - delta + (_MAX_SEQUENCE + 1 if last < delta else 0),
                "lastSequence": last,
                "lastOffset": offset,
                "offsetDelta": delta,
                "timestamp": time,
            }
        yield _line("producer", facts)


def _checked_count(data: bytes) -> int:
    """The number of entries in a sound snapshot. Raises CorruptSnapshotError."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) >= 2 and version != _SNAPSHOT_VERSION:
        raise _invalid(f"Snapshot contained an unknown file version {version}")
    if len(data) < _HEAD.size:
        raise _invalid("null")  # the message of Java's BufferUnderflowException
    crc, count = map(int, _HEAD.unpack_from(data)[1:])
    left = len(data) - _HEAD.size
    if count < 0:
        raise _invalid("non-nullable field producerEntries was serialized as null")
    if count > left:
        raise _invalid(
            f"Tried to allocate a collection of size {count}, but there are only {left} bytes "
            "remaining."
        )
    if count * _PRODUCER.size > left:
        raise _invalid("null")
    computed = crc32c(data[_ENTRIES_AT:])
    if crc != computed:
        raise CorruptSnapshotError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {crc}. "
            f"Computed crc: {computed}"
        )
    return count


def _invalid(why: str) -> CorruptSnapshotError:
    return CorruptSnapshotError(f"Snapshot failed schema validation: {why}")


def _line(kind: str, facts: dict[str, int | None]) -> IndexLine:
    words = (
        f"{name}: {_optional(value) if name == 'currentTxnFirstOffset' else value}"
        for name, value in facts.items()
    )
    return IndexLine(" ".join(words), {"kind": kind, **facts})


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
