"""Batches and records as the lines that Kafka's dump-log prints (`DumpLogSegments`).

Damaged batches are printed as far as they can be read, as Kafka does; `DumpError` ends the dump
where Kafka's tool dies of an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from quorate.base.errors import QuorateError
from quorate.formats.batch import HEADER_SIZE, BatchView, values
from quorate.formats.batch_view import compression_name
from quorate.formats.control import ControlMessage, ControlType, control_type, decode_message
from quorate.formats.errors import BatchError, RecordError
from quorate.formats.json_text import text, to_json
from quorate.formats.legacy_batch import FIRST_MAGIC, LegacyBatch, LegacyFormatError
from quorate.formats.quick_json import RecordPrinter
from quorate.formats.varint import read_signed

_CONTROL_WORDS: Final = {
    "LeaderChangeMessage": "LeaderChange:",
    "SnapshotHeaderRecord": "SnapshotHeader",
    "SnapshotFooterRecord": "SnapshotFooter",
    "KRaftVersionRecord": "KRaftVersion",
    "VotersRecord": "KRaftVoters",
}
_UNKNOWN_TYPE: Final = "Unknown metadata id"
_PIECE_RECORDS: Final = 1000
_MAX_INT32: Final = 0x7FFFFFFF


class DumpError(QuorateError):
    """The file cannot be read on; what came before was printed."""


class CutLineError(DumpError):
    """A line that cannot be completed; `start` is what Kafka's tool prints of it."""

    def __init__(self, what: str, start: str) -> None:
        super().__init__(what, start)
        self.start = start

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(slots=True)
class LooseRecord:
    """A record of any batch, also one that a metadata log may not hold."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    header_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DumpOptions:
    decode: bool = True
    """Values are metadata records (`--cluster-metadata-decoder`), else text."""
    print_data: bool = True
    skip_record_metadata: bool = False


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
        raise CutLineError(_unknown_codec(view), start)
    return (
        f"{start} position: {view.position} "
        f"{_time_word(view)}: {view.max_timestamp} size: {view.size} magic: {view.magic} "
        f"compresscodec: {view.compression} crc: {view.crc} isvalid: {_bool(view.crc_matches)}"
    )


def _unknown_codec(view: BatchView) -> str:
    return (
        f"batch at byte {view.position}: {view.compression} compressed records are not supported: a "
        "metadata log never holds them"
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

    def __init__(self, options: DumpOptions, printer: RecordPrinter) -> None:
        self.trail = Trail()
        self._options = options
        self._print = printer.print
        self._print_all = printer.print_all

    def lines(self, view: BatchView) -> Iterator[list[str]]:
        """A line for each record, in pieces; raises DumpError at the first that cannot be read."""
        if view.magic < FIRST_MAGIC:
            yield [self._legacy_line(view)]
            return
        found = self._sound(view)
        if found is None:
            for record in loose_records(view):
                self.trail.follow(record.offset, record.offset)
                yield [self._line(view, record)]
            return
        self.trail.follow(view.base_offset, view.last_offset)
        for start in range(0, len(found), _PIECE_RECORDS):
            yield self._sound_lines(view, start, found[start : start + _PIECE_RECORDS])

    def json_lines(self, view: BatchView) -> Iterator[list[str]]:
        """A JSON object for each record, in pieces; raises DumpError as lines does."""
        found = self._sound(view)
        records = loose_records(view) if found is None else _records_of(view, found)
        for record in records:
            self.trail.follow(record.offset, record.offset)
            head = f'{{"kind":"record","offset":{record.offset},"timestamp":{record.timestamp},'
            yield [head + self._json_members(view, record) + "}"]

    def _sound(self, view: BatchView) -> list[bytes] | None:
        """The values of a data batch of metadata records as Kafka writes it, else None."""
        if view.is_control or not self._options.decode:
            return None
        return sound_values(view)

    def _sound_lines(self, view: BatchView, start: int, found: list[bytes]) -> list[str]:
        """The quick way for records of a data batch as Kafka writes it."""
        offset = view.base_offset + start
        payloads = [""] * len(found)
        if self._options.print_data:
            payloads = self._payloads(offset, found)
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

    def _payloads(self, offset: int, found: list[bytes]) -> list[str]:
        """Each value as text."""
        try:
            return self._print_all(found)
        except RecordError:
            return [
                self._payload(LooseRecord(offset + index, 0, None, value))
                for index, value in enumerate(found)
            ]

    def _json_members(self, view: BatchView, record: LooseRecord) -> str:
        try:
            if view.is_control:
                message = decode_message(record.key, record.value)
                name = ControlType(control_type(record.key)).name
                return f'"type":"{name}","version":0,"data":{to_json(message, 0)}'
            if self._options.decode:
                return self._print(record.value or b"")[1:-1]
        except RecordError as error:
            return f'"error":{text(str(error))}'
        return f'"key":{_json_or_null(record.key)},"value":{_json_or_null(record.value)}'

    def _line(self, view: BatchView, record: LooseRecord) -> str:
        line = ""
        if not self._options.skip_record_metadata:
            line = _metadata(view, record)
            if view.is_control:
                return f"{line} {_control_text(view, record)}"
        if self._options.print_data and not view.is_control:
            prefix = " " if line else "| "
            if record.key is not None and not self._options.decode:
                line += f"{prefix}key: {_plain(record.key)}"
                prefix = " "
            if self._options.decode:
                line += f"{prefix}payload: {self._payload(record)}"
            elif record.value is not None:
                line += f"{prefix}payload: {_plain(record.value)}"
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
                prefix = " " if line else "| "
                line += self._legacy_contents(batch, prefix)
        except LegacyFormatError as error:
            raise CutLineError(_damaged_format(view, str(error)), line) from None
        return line

    def _legacy_contents(self, batch: LegacyBatch, prefix: str) -> str:
        if self._options.decode:
            try:
                record = LooseRecord(batch.offset, batch.timestamp, None, batch.value)
                payload = self._payload(record)
            except LegacyFormatError as error:
                payload = f"Error at {batch.offset}, skipping. {error.java}"
            return f"{prefix}payload: {payload}"
        fields = (("key", batch.key), ("payload", batch.value))
        parts = [f"{name}: {_plain(value)}" for name, value in fields if value is not None]
        return f"{prefix}{' '.join(parts)}" if parts else ""

    def _payload(self, record: LooseRecord) -> str:
        try:
            return self._print(record.value or b"")
        except RecordError as error:
            return _in_words_of_kafka(record.offset, error)


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


def _records_of(view: BatchView, found: list[bytes]) -> Iterator[LooseRecord]:
    for index, value in enumerate(found):
        yield LooseRecord(view.base_offset + index, view.base_timestamp, None, value)


def loose_records(view: BatchView) -> Iterator[LooseRecord]:
    """Every record as far as it can be read; raises DumpError at the first that cannot."""
    if view.count < 0:
        raise DumpError(f"batch at byte {view.position}: invalid record count {view.count}")
    if view.count and view.compression != "none":
        raise DumpError(_unknown_codec(view))
    data, position = view.data, HEADER_SIZE
    for index in range(view.count):
        try:
            record, position = _read_loose(view, position)
        except (IndexError, ValueError) as error:
            raise DumpError(
                f"batch at byte {view.position}: record {index} is cut or malformed: {error}"
            ) from None
        if index == view.count - 1 and position != len(data):
            # as Kafka's iterator: before it gives out the last record
            raise DumpError(
                f"batch at byte {view.position}: {len(data) - position} bytes are left after "
                f"{view.count} records"
            )
        yield record


def _read_loose(view: BatchView, position: int) -> tuple[LooseRecord, int]:
    data = view.data
    length, position = read_signed(data, position)
    stop = position + length
    if length <= 0 or stop > len(data):
        raise ValueError(f"length {length}")
    timestamp_delta, position = read_signed(data, position + 1, 10)
    offset_delta, position = read_signed(data, position)
    key, position = _read_bytes(data, position, stop)
    value, position = _read_bytes(data, position, stop)
    count, position = read_signed(data, position)
    if not 0 <= count <= stop - position:
        raise ValueError(f"{count} headers")
    keys = []
    for _ in range(count):
        name, position = _read_bytes(data, position, stop)
        _, position = _read_bytes(data, position, stop)
        keys.append(_plain(name or b""))
    if position != stop:
        raise ValueError(f"{stop - position} bytes are left in it")
    timestamp = view.base_timestamp + timestamp_delta
    if view.attributes & 0x08:
        timestamp = view.max_timestamp
    return LooseRecord(view.base_offset + offset_delta, timestamp, key, value, tuple(keys)), stop


def _read_bytes(data: bytes, position: int, stop: int) -> tuple[bytes | None, int]:
    size, position = read_signed(data, position)
    if size < 0:
        return None, position
    if position + size > stop:
        raise ValueError(f"a field of {size} bytes passes its end")
    return data[position : position + size], position + size


def _metadata(view: BatchView, record: LooseRecord) -> str:
    sequence = -1
    if view.base_sequence >= 0:
        sequence = _sequence(view.base_sequence, record.offset - view.base_offset)
    return (
        f"| offset: {record.offset} {_time_word(view)}: {record.timestamp} "
        f"keySize: {_size(record.key)} valueSize: {_size(record.value)} "
        f"sequence: {sequence} headerKeys: [{','.join(record.header_keys)}]"
    )


def _control_text(view: BatchView, record: LooseRecord) -> str:
    """What stands behind the metadata of a control record; raises DumpError when it is damaged."""
    try:
        message: ControlMessage = decode_message(record.key, record.value)
    except RecordError as error:
        try:
            type_id = control_type(record.key)
        except RecordError:
            type_id = -1
        if type_id in ControlType.__members__.values() or type_id < 0:
            raise DumpError(f"batch at byte {view.position}: {error}") from None
        return f"controlType: UNKNOWN({type_id})"
    return f"{_CONTROL_WORDS[type(message).__name__]} {to_json(message, 0)}"


def _in_words_of_kafka(offset: int, error: RecordError) -> str:
    what = error.summary
    if what.startswith(_UNKNOWN_TYPE):
        what = f"org.apache.kafka.common.errors.UnsupportedVersionException: {what}"
    return f"Error at {offset}, skipping. {what}"


def _sequence(base: int, delta: int) -> int:
    return base + delta if base <= _MAX_INT32 - delta else base + delta - _MAX_INT32 - 1


def _time_word(view: BatchView) -> str:
    return "LogAppendTime" if view.attributes & 0x08 else "CreateTime"


def _bool(value: int) -> str:
    return "true" if value else "false"


def _size(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def _plain(value: bytes) -> str:
    return value.decode(errors="replace")


def _json_or_null(value: bytes | None) -> str:
    return "null" if value is None else text(_plain(value))
