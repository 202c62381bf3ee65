"""The records of any batch of format 2, as far as they can be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorate.base.errors import QuorateError
from quorate.base.java_utf8 import java_text
from quorate.formats.batch import HEADER_SIZE, BatchView
from quorate.formats.batch_view import compression_name
from quorate.formats.codecs import CodecError, decompress
from quorate.formats.varint import read_signed


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


def loose_records(view: BatchView) -> Iterator[LooseRecord]:
    """Every record as far as it can be read; raises DumpError at the first that cannot."""
    if view.count < 0:
        raise DumpError(f"batch at byte {view.position}: invalid record count {view.count}")
    data, position = _record_bytes(view), 0
    for index in range(view.count):
        try:
            record, position = _read_loose(view, data, position)
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


def _record_bytes(view: BatchView) -> bytes:
    """The records of a batch, uncompressed. Raises DumpError."""
    data = view.data[HEADER_SIZE:]
    if not view.count or view.compression == "none":
        return data
    codec = compression_name(view.attributes)
    if codec is None:
        raise DumpError(unreadable_codec(view))
    try:
        return decompress(codec, data)
    except CodecError as error:
        raise DumpError(f"batch at byte {view.position}: damaged {codec} data: {error}") from None


def _read_loose(view: BatchView, data: bytes, position: int) -> tuple[LooseRecord, int]:
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
        keys.append(plain_text(name or b""))
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


def unreadable_codec(view: BatchView) -> str:
    """Why the records of a batch with a codec that Kafka does not have are not read."""
    return f"batch at byte {view.position}: there is no codec {view.compression}"


def plain_text(value: bytes) -> str:
    """Bytes as text, as Kafka's string decoder does."""
    return java_text(value)
