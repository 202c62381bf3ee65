"""Batches of the formats before 2, as far as Kafka's dump-log prints them (`LegacyRecord`).

A metadata log holds none. A damaged format byte makes a batch look like one.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from quorate.formats.batch import PREFIX_SIZE, BatchView
from quorate.formats.batch_view import compression_name

FIRST_MAGIC: Final = 2
"""The first format that is not a legacy one."""
_CRC_FROM: Final = 4
_KEY_SIZE_AT: Final = {0: 6, 1: 14}
_TIMESTAMP_AT: Final = 6
_LOG_APPEND_TIME: Final = 0x08


class LegacyFormatError(ValueError):
    """Bytes that cannot be a legacy record. `java` is the message of Java's exception."""

    def __init__(self, what: str, java: str = "null") -> None:
        super().__init__(what)
        self.java = java


@dataclass(frozen=True, slots=True)
class LegacyBatch:
    """A batch of format 0 or 1; not compressed, it is one record."""

    position: int
    """Byte in the file."""
    offset: int
    magic: int
    record: bytes
    """Everything after offset and size."""

    @classmethod
    def of(cls, view: BatchView) -> LegacyBatch:
        """The same bytes, read as a legacy batch. Raises LegacyFormatError if `magic` is negative."""
        if view.magic not in _KEY_SIZE_AT:
            raise LegacyFormatError(f"there is no batch format {view.magic}")
        return cls(view.position, view.base_offset, view.magic, view.data[PREFIX_SIZE:])

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return PREFIX_SIZE + len(self.record)

    @property
    def crc(self) -> int:
        return self._int(0) & 0xFFFFFFFF

    @property
    def crc_matches(self) -> bool:
        return zlib.crc32(self.record[_CRC_FROM:]) == self.crc

    @property
    def timestamp(self) -> int:
        """Return the timestamp in ms; -1 in format 0."""
        stamp = self.record[_TIMESTAMP_AT : _TIMESTAMP_AT + 8]
        return int.from_bytes(stamp, "big", signed=True) if self.magic else -1

    @property
    def time_word(self) -> str:
        if not self.magic:
            return "NoTimestampType"
        return "LogAppendTime" if self.record[5] & _LOG_APPEND_TIME else "CreateTime"

    @property
    def compression(self) -> str:
        """Return the name of the codec. Raises LegacyFormatError for an unknown one."""
        name = compression_name(self.record[5])
        if name is None:
            raise LegacyFormatError(f"unknown compression type {self.record[5] & 7}")
        return name

    @property
    def key_size(self) -> int:
        """Return the size that the record states, in bytes; negative: no key."""
        return self._int(_KEY_SIZE_AT[self.magic])

    @property
    def value_size(self) -> int:
        """Return the size that the record states, in bytes; negative: no value.

        Raises LegacyFormatError beyond the end.
        """
        return self._int(self._value_size_at)

    @property
    def key(self) -> bytes | None:
        """Return the key. Raises LegacyFormatError if it reaches beyond the end."""
        return self._sized(_KEY_SIZE_AT[self.magic])

    @property
    def value(self) -> bytes | None:
        """Return the value. Raises LegacyFormatError if it reaches beyond the end."""
        return self._sized(self._value_size_at)

    @property
    def _value_size_at(self) -> int:
        return _KEY_SIZE_AT[self.magic] + 4 + max(0, self.key_size)

    def _int(self, at: int) -> int:
        field = self.record[at : at + 4]
        if len(field) < 4:
            raise LegacyFormatError(f"a size at byte {at} lies beyond the {len(self.record)} bytes")
        return int.from_bytes(field, "big", signed=True)

    def _sized(self, at: int) -> bytes | None:
        size, start = self._int(at), at + 4
        room = len(self.record) - start
        if size > room:
            what = f"a field of {size} bytes passes its end"
            raise LegacyFormatError(what, f"newLimit > capacity: ({size} > {room})")
        return None if size < 0 else self.record[start : start + size]
