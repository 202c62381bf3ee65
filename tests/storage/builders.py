"""Batches, snapshots and places to keep them, for the storage tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fastcrc.crc32 import iscsi as crc32c

from quorate.base.ids import Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import BatchView, encode_batch, encode_control_batch, values
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import (
    ControlRecord,
    ControlState,
    KRaftVersion,
    LeaderChange,
    Voter,
    Voters,
)
from quorate.storage.api import AppendedBatch, Recovered, Storage
from quorate.storage.disk_storage import DiskStorage, FileStorage
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk, MemoryStorage

ALL = 1 << 40
SMALL = LogOptions(segment_bytes=1000, index_interval=200)
"""Segments of a few batches: every path is walked by small tests."""

VOTER = Voter(ReplicaKey(1, Uuid(bytes(range(16)))), (Listener("CONTROLLER", "h", 9093),), 0, 1)
CONTROL = ControlState(1, (VOTER,))


def data(base: int, epoch: int = 1, count: int = 1, size: int = 20) -> AppendedBatch:
    """A batch of `count` records whose bytes identify their offsets."""
    records = [f"{base + i}/{epoch}:".encode().ljust(size, b"v") for i in range(count)]
    encoded = encode_batch(base, epoch, 1000 + base, records)
    return AppendedBatch(base, base + count - 1, epoch, encoded)


def claiming(batch: AppendedBatch, count: int) -> AppendedBatch:
    """The same bytes, said to be `count` records: the header of a batch that nobody could write."""
    whole = bytearray(batch.data)
    whole[23:27] = (count - 1).to_bytes(4, "big")
    whole[57:61] = count.to_bytes(4, "big")
    whole[17:21] = crc32c(bytes(whole[21:])).to_bytes(4, "big")
    return AppendedBatch(
        batch.base_offset, batch.base_offset + count - 1, batch.epoch, bytes(whole)
    )


def is_as_built(view: BatchView) -> bool:
    """Does every record say the offset and epoch of the batch that it is in?"""
    if view.is_control:
        return True
    return all(
        value.startswith(f"{offset}/{view.epoch}:".encode())
        for offset, value in enumerate(values(view), view.base_offset)
    )


def control(base: int, epoch: int, *records: ControlRecord) -> AppendedBatch:
    encoded = encode_control_batch(base, epoch, 1000 + base, records)
    return AppendedBatch(base, base + len(records) - 1, epoch, encoded)


def leader_change(base: int, epoch: int) -> AppendedBatch:
    """What begins an epoch in every real log."""
    return control(base, epoch, LeaderChange(1, (1,), (1,)))


def bootstrap(base: int, epoch: int) -> AppendedBatch:
    records = (LeaderChange(1, (1,), (1,)), KRaftVersion(1), Voters((VOTER,)))
    return control(base, epoch, *records)


def log_of(count: int, epoch: int = 1, base: int = 0, size: int = 20) -> list[AppendedBatch]:
    """A LeaderChange and `count` - 1 data batches of one record each."""
    rest = [data(offset, epoch, size=size) for offset in range(base + 1, base + count)]
    return [leader_change(base, epoch), *rest]


def joined(batches: Sequence[AppendedBatch]) -> bytes:
    return b"".join(batch.data for batch in batches)


def snapshot_bytes(id: OffsetAndEpoch, records: Sequence[bytes] = (b"one", b"two")) -> bytes:
    return b"".join(encode_snapshot(id, CONTROL, 5000 + id.offset, records, 9000))


def write_snapshot(storage: Storage, id: OffsetAndEpoch) -> bytes:
    """Our own snapshot; its bytes."""
    whole = snapshot_bytes(id)
    writer = storage.create_snapshot(id)
    writer.append(whole)
    writer.freeze()
    return whole


def download(storage: Storage, id: OffsetAndEpoch, whole: bytes, step: int = 100) -> None:
    for position in range(0, len(whole), step):
        storage.write_chunk(id, position, whole[position : position + step])


class Place:
    """Where a storage lives; opened again after a close, or after the process died."""

    def __init__(self, make: Callable[[], DiskStorage]) -> None:
        self._make = make
        self.storage = make()

    def open(self) -> Recovered:
        return self.storage.open()

    def reopen(self) -> Recovered:
        self.storage.close()
        self.storage = self._make()
        return self.storage.open()


def file_place(directory: Path, options: LogOptions = SMALL) -> Place:
    return Place(lambda: FileStorage(directory, options))


def memory_place(options: LogOptions = SMALL) -> Place:
    disk = MemoryDisk()
    return Place(lambda: MemoryStorage(disk, options))


def read_all(storage: Storage) -> bytes:
    return storage.read(storage.start_offset, ALL, ALL)
