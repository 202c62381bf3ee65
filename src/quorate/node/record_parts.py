"""The records of a decision as bytes, in parts that fit a batch.

Source: `QuorumController.appendRecords`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quorate.base.errors import ErrorCode
from quorate.controller.result import MAX_RECORDS, ApiError
from quorate.formats.records import (
    BrokerRegistrationChangeRecord,
    change_version,
    encode_record,
)
from quorate.formats.versions import MetadataVersion, record_version
from quorate.replica.proposals import size_in_batch
from quorate.wire.schema import Message


def part_ends(name: str, atomic: bool, values: Sequence[bytes], room: int) -> list[int]:
    """The end (exclusive) of each part of the values, for an operation of this name.

    room: bytes of a batch, as `size_in_batch` counts. The last part is never empty: an empty append
    ends a leadership of Kafka's when the records are exactly a multiple of MAX_RECORDS. Raises
    ApiError where the records fit no batch, ValueError where an atomic result has too many.
    """
    if atomic and len(values) > MAX_RECORDS:
        raise ValueError(
            f"{name} attempted to write {len(values)} records atomically, "
            f"at most {MAX_RECORDS} are possible"
        )
    whole = size_in_batch(values)
    is_cut = not atomic and whole > room
    # What must not be cut is a record, so the longest one must fit.
    size = max(size_in_batch((value,)) for value in values) if is_cut else whole
    if size > room:
        text = f"{size} bytes of records do not fit one batch of {room}"
        raise ApiError(ErrorCode.RECORD_LIST_TOO_LARGE, text)
    return [len(values)] if atomic else list(_split(values, room))


def encode(record: Message, version: MetadataVersion | None) -> bytes:
    """The record's bytes in the log, in the version that fits metadata.version."""
    if isinstance(record, BrokerRegistrationChangeRecord):
        return encode_record(record, change_version(record))
    if version is None:
        return encode_record(record, 0)
    return encode_record(record, record_version(type(record).__name__, version))


def _split(values: Sequence[bytes], room: int) -> Iterator[int]:
    """The end of each part of a result that is not atomic ends: MAX_RECORDS and one batch at most."""
    first = size = 0
    for index, value in enumerate(values):
        more = size_in_batch((value,))
        if index > first and (index - first == MAX_RECORDS or size + more > room):
            yield index
            first, size = index, 0
        size += more
    yield len(values)
