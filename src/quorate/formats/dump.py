"""Batches and records as the lines that Kafka's dump-log prints (`DumpLogSegments`).

Damaged batches are printed as far as they can be read, as Kafka does; `DumpError` ends the dump
where Kafka's tool dies of an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from quorate.formats.batch import BatchView, values
from quorate.formats.batch_view import compression_name
from quorate.formats.control import (
    ControlType,
    control_type,
    decode_end_transaction,
    decode_message,
)
from quorate.formats.dump_contents import (
    TEXT_DECODERS,
    Contents,
    LogKind,
    MetadataContents,
    TextDecoder,
    UndecodableError,
    contents_of,
)
from quorate.formats.errors import BatchError, RecordError
from quorate.formats.json_text import text, to_json
from quorate.formats.legacy_batch import FIRST_MAGIC, LegacyBatch, LegacyFormatError
from quorate.formats.loose_records import (
    CutLineError,
    DumpError,
    LooseRecord,
    loose_records,
    unreadable_codec,
)

_CONTROL_WORDS: Final = {
    "LeaderChangeMessage": "LeaderChange:",
    "SnapshotHeaderRecord": "SnapshotHeader",
    "SnapshotFooterRecord": "SnapshotFooter",
    "KRaftVersionRecord": "KRaftVersion",
    "VotersRecord": "KRaftVoters",
}
_END_TRANSACTION: Final = (ControlType.ABORT, ControlType.COMMIT)
_PIECE_RECORDS: Final = 1000
_MAX_INT32: Final = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class DumpOptions:
    kind: LogKind = LogKind.METADATA
    print_data: bool = True
    skip_record_metadata: bool = False
    decoders: tuple[TextDecoder, TextDecoder] = TEXT_DECODERS
    """Of keys and of values as text."""

    def contents(self) -> Contents:
        """Return what prints the records."""
        return contents_of(self.kind, self.decoders)


def batch_line(view: BatchView) -> str:
    """The line of a batch. Raises CutLineError where Kafka's tool fails within the line."""
    if view.magic < FIRST_MAGIC:
        return _legacy_line(view)
    delete_horizon = f"OptionalLong[{view.base_timestamp}]" if view.attributes & 0x40 else ""
    sequence = view.base_sequence
    last = -1 if sequence == -1 else _sequence(sequence, view.last_offset_delta)
    start = (
        f"baseOffset: {view.base_offset} lastOffset: {view.last_offset} count: {view.count} "
        f"baseSequence: {sequence} lastSequence: {last} producerId: {view.producer_id} "
        f"producerEpoch: {view.producer_epoch} partitionLeaderEpoch: {view.epoch} "
        f"isTransactional: {_bool(view.attributes & 0x10)} isControl: {_bool(view.is_control)} "
        f"deleteHorizonMs: {delete_horizon or 'OptionalLong.empty'}"
    )
    if compression_name(view.attributes) is None:
        raise CutLineError(unreadable_codec(view), start)
    return (
        f"{start} position: {view.position} "
        f"{_time_word(view)}: {view.max_timestamp} size: {view.size} magic: {view.magic} "
        f"compresscodec: {view.compression} crc: {view.crc} isvalid: {_bool(view.crc_matches)}"
    )


def _legacy_line(view: BatchView) -> str:
    start = f"offset: {view.base_offset}"
    try:
        batch = LegacyBatch.of(view)
        return (
            f"{start} position: {batch.position} {batch.time_word}: {batch.timestamp} "
            f"size: {batch.size} magic: {batch.magic} compresscodec: {batch.compression} "
            f"crc: {batch.crc} isvalid: {_bool(batch.crc_matches)}"
        )
    except LegacyFormatError as error:
        raise CutLineError(_damaged_format(view, str(error)), start) from None


def _damaged_format(view: BatchView, why: str) -> str:
    return (
        f"batch at byte {view.position} has format {view.magic}, but a metadata log has format 2 "
        f"only: {why}"
    )


def batch_json(view: BatchView) -> str:
    """The facts of a batch as a JSON object. Raises DumpError for a format before 2."""
    if view.magic < FIRST_MAGIC:
        raise DumpError(_damaged_format(view, "--json does not print it"))
    return (
        f'{{"kind":"batch","baseOffset":{view.base_offset},"lastOffset":{view.last_offset},'
        f'"count":{view.count},"partitionLeaderEpoch":{view.epoch},'
        f'"isControl":{_bool(view.is_control)},"position":{view.position},'
        f'"timestamp":{view.max_timestamp},"size":{view.size},"magic":{view.magic},'
        f'"compression":"{view.compression}","crc":{view.crc},'
        f'"valid":{_bool(view.crc_matches)}}}'
    )


@dataclass(slots=True)
class Trail:
    """The offsets of records in the order in which they were met."""

    first: int | None = None
    last: int | None = None
    gaps: dict[int, int] = field(default_factory=dict)
    """Where offsets do not follow one another: the one before, and the one after."""

    def follow(self, first: int, last: int) -> None:
        """Go on with the offsets from `first` to `last` (inclusive)."""
        if self.last is None:
            self.first = first
        elif first != self.last + 1:
            self.gaps[self.last] = first
        self.last = last

    def join(self, other: Trail) -> None:
        """Go on with everything that `other` met."""
        if other.first is not None and other.last is not None:
            self.follow(other.first, other.first)
            self.gaps.update(other.gaps)
            self.last = other.last


class RecordDump:
    """Prints the records of batches, and notes their offsets in `trail`."""

    def __init__(self, options: DumpOptions, contents: Contents) -> None:
        self.trail = Trail()
        self._options = options
        self._contents = contents

    def lines(self, view: BatchView) -> Iterator[list[str]]:
        """A line for each record, in pieces; raises DumpError at the first that cannot be read."""
        if view.magic < FIRST_MAGIC:
            yield [self._legacy_line(view)]
            return
        contents = self._contents
        found = sound_values(view) if isinstance(contents, MetadataContents) else None
        if found is None or not isinstance(contents, MetadataContents):
            for record in loose_records(view):
                self.trail.follow(record.offset, record.offset)
                yield [self._line(view, record)]
            return
        self.trail.follow(view.base_offset, view.last_offset)
        for start in range(0, len(found), _PIECE_RECORDS):
            piece = found[start : start + _PIECE_RECORDS]
            yield self._sound_lines(view, start, piece, contents)

    def json_lines(self, view: BatchView) -> Iterator[list[str]]:
        """A JSON object for each record, in pieces; raises DumpError as lines does."""
        for record in loose_records(view):
            self.trail.follow(record.offset, record.offset)
            head = f'{{"kind":"record","offset":{record.offset},"timestamp":{record.timestamp},'
            yield [head + self._json_members(view, record) + "}"]

    def _sound_lines(
        self, view: BatchView, start: int, found: list[bytes], contents: MetadataContents
    ) -> list[str]:
        """The quick way for metadata records of a data batch as Kafka writes it."""
        offset = view.base_offset + start
        payloads = [""] * len(found)
        if self._options.print_data:
            payloads = contents.payloads(offset, found)
            if self._options.skip_record_metadata:
                return ["| payload: " + "\n| payload: ".join(payloads)]
            payloads = [f" payload: {payload}" for payload in payloads]
        if self._options.skip_record_metadata:
            return payloads
        time = f"{_time_word(view)}: {view.base_timestamp}"
        return [
            f"| offset: {offset + index} {time} keySize: -1 valueSize: {len(value)} "
            f"sequence: -1 headerKeys: []{payloads[index]}"
            for index, value in enumerate(found)
        ]

    def _json_members(self, view: BatchView, record: LooseRecord) -> str:
        if not view.is_control:
            return self._contents.members(record)
        try:
            type_id = control_type(record.key)
            if type_id in _END_TRANSACTION:
                data = f'{{"coordinatorEpoch":{decode_end_transaction(record.value)}}}'
            else:
                data = to_json(decode_message(record.key, record.value, as_java=True), 0)
            return f'"type":"{ControlType(type_id).name}","version":0,"data":{data}'
        except RecordError as error:
            return f'"error":{text(str(error))}'

    def _line(self, view: BatchView, record: LooseRecord) -> str:
        line = ""
        if not self._options.skip_record_metadata:
            line = _metadata(view, record)
            if view.is_control:
                try:
                    return f"{line} {_control_text(record)}"
                except RecordError as error:
                    raise CutLineError(f"batch at byte {view.position}: {error}", line) from None
        if self._options.print_data and not view.is_control:
            try:
                line = _with_contents(line, *self._contents.texts(record))
            except UndecodableError as error:
                raise CutLineError(str(error), line) from None
        return line

    def _legacy_line(self, view: BatchView) -> str:
        """The line of the one record of a batch of format 0 or 1."""
        self.trail.follow(view.base_offset, view.base_offset)
        line = ""
        try:
            batch = legacy_record(view)
            if not self._options.skip_record_metadata:
                line = (
                    f"| offset: {batch.offset} {batch.time_word}: {batch.timestamp} "
                    f"keySize: {batch.key_size} valueSize: {batch.value_size} "
                    f"isValid: {_bool(batch.crc_matches)} crc: {batch.crc}"
                )
            if self._options.print_data:
                line = _with_contents(line, *self._legacy_texts(batch))
        except LegacyFormatError as error:
            raise CutLineError(_damaged_format(view, str(error)), line) from None
        except UndecodableError as error:
            raise CutLineError(str(error), line) from None
        return line

    def _legacy_texts(self, batch: LegacyBatch) -> tuple[str | None, str | None]:
        if not isinstance(self._contents, MetadataContents):
            return self._contents.texts(
                LooseRecord(batch.offset, batch.timestamp, batch.key, batch.value)
            )
        try:
            return self._contents.texts(
                LooseRecord(batch.offset, batch.timestamp, None, batch.value)
            )
        except LegacyFormatError as error:
            return None, f"Error at {batch.offset}, skipping. {error.java}"


def _with_contents(line: str, key: str | None, payload: str | None) -> str:
    """A line of a record with its key and its payload behind it."""
    prefix = " " if line else "| "
    for name, value in (("key", key), ("payload", payload)):
        if value is not None:
            line += f"{prefix}{name}: {value}"
            prefix = " "
    return line


def legacy_record(view: BatchView) -> LegacyBatch:
    """A batch of format 0 or 1 as its one record. Raises LegacyFormatError if it is compressed."""
    batch = LegacyBatch.of(view)
    if batch.compression != "none":
        raise LegacyFormatError(f"its {batch.compression} compressed records cannot be read")
    return batch


def batch_last_offset(view: BatchView) -> int:
    """The last offset of a batch of any format (inclusive)."""
    return view.base_offset if view.magic < FIRST_MAGIC else view.last_offset


def newest_timestamp(view: BatchView) -> int:
    """Return the newest timestamp of a batch of any format, in ms; -1 without records. Raises DumpError."""
    if view.magic >= FIRST_MAGIC:
        return max((record.timestamp for record in loose_records(view)), default=-1)
    try:
        return max(legacy_record(view).timestamp, -1)
    except LegacyFormatError as error:
        raise DumpError(_damaged_format(view, str(error))) from None


def sound_values(view: BatchView) -> list[bytes] | None:
    """The values of a data batch that is as it should be; None for any other."""
    if view.attributes or view.base_sequence != -1 or view.count != view.last_offset_delta + 1:
        return None
    try:
        return values(view)
    except BatchError:
        return None


def _metadata(view: BatchView, record: LooseRecord) -> str:
    sequence = -1
    if view.base_sequence >= 0:
        sequence = _sequence(view.base_sequence, record.offset - view.base_offset)
    return (
        f"| offset: {record.offset} {_time_word(view)}: {record.timestamp} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
        f"sequence: {sequence} headerKeys: [{','.join(record.header_keys)}]"
    )


def _control_text(record: LooseRecord) -> str:
    """What stands behind the metadata of a control record; raises RecordError when it is damaged."""
    type_id = control_type(record.key)
    if type_id in _END_TRANSACTION:
        epoch = decode_end_transaction(record.value)
        return f"endTxnMarker: {ControlType(type_id).name} coordinatorEpoch: {epoch}"
    if type_id >= 0 and type_id not in ControlType.__members__.values():
        return f"controlType: UNKNOWN({type_id})"
    message = decode_message(record.key, record.value, as_java=True)
    return f"{_CONTROL_WORDS[type(message).__name__]} {to_json(message, 0)}"


def _sequence(base: int, delta: int) -> int:
    return base + delta if base <= _MAX_INT32 - delta else base + delta - _MAX_INT32 - 1


def _time_word(view: BatchView) -> str:
    return "LogAppendTime" if view.attributes & 0x08 else "CreateTime"


def _bool(value: int) -> str:
    return "true" if value else "false"


def _size(value: bytes | None) -> int:
    return -1 if value is None else len(value)
