"""One record batch: what its header says, and whether it may stand in a metadata log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from quorate.formats.errors import BatchError

MAGIC: Final = 2
CONTROL: Final = 0x20
"""The attribute of batches of control records."""
_COMPRESSION: Final = 0x07
_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_CRC_FROM: Final = 21


def compression_name(attributes: int) -> str | None:
    """The codec of a batch of any format; None for an unknown one."""
    kind = attributes & _COMPRESSION
    return _NAMES[kind] if kind < len(_NAMES) else None


@dataclass(slots=True)
class BatchView:
    """One batch: the fields of its header, and all its bytes."""

    position: int
    """Where it begins in the file or buffer it was read from."""
    data: bytes
    base_offset: int
    epoch: int
    """partitionLeaderEpoch: of the leader that wrote it, or of the snapshot's id."""
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def end_offset(self) -> int:
        """Exclusive."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL != 0

    @property
    def compression(self) -> str:
        """Return `none`, or the name of the codec, or `unknown (n)`."""
        return compression_name(self.attributes) or f"unknown ({self.attributes & _COMPRESSION})"

    @property
    def crc_matches(self) -> bool:
        return crc32c(memoryview(self.data)[_CRC_FROM:]) == self.crc

    def error(self, what: str) -> BatchError:
        """Return the error that says `what` of this batch."""
        return BatchError(f"{what}, base offset {self.base_offset}", self.position)

    def verify(self) -> None:
        """Raise BatchError unless the bytes are whole and may stand in a metadata log."""
        if self.magic != MAGIC:
            raise self.error(f"batch format {self.magic} is not supported, only 2")
        if not self.crc_matches:
            raise self.error("checksum does not match: the bytes are damaged")
        if self.attributes & ~CONTROL:
            raise self.error(self._unfit_attributes())
        if self.base_offset < 0 or self.epoch < 0:
            raise self.error(f"negative base offset or epoch {self.epoch}")
        if self.count < 1 or self.last_offset_delta != self.count - 1:
            raise self.error(
                f"{self.count} records do not fit last offset delta {self.last_offset_delta}"
            )

    def _unfit_attributes(self) -> str:
        if self.attributes & _COMPRESSION:
            return f"compression {self.compression}: batches of a metadata log are not compressed"
        return f"attributes 0x{self.attributes & 0xFFFF:04x} have no meaning in a metadata log"
