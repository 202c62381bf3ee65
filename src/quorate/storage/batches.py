"""The batches that a node has on its disk, read before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import BatchView, iter_batches, whole_batches_size

_PART_BYTES: Final = 1 << 20


class ReadableStorage(Protocol):
    """The readings of `api.Storage` and of `inspection.InspectedStorage`."""

    def read(self, offset: int, end: int, max_bytes: int) -> bytes: ...

    def read_snapshot(
        self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int
    ) -> bytes: ...

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None: ...


def log_parts(
    storage: ReadableStorage, start: int, end: int, *, verify: bool = True
) -> Iterator[tuple[bytes, list[BatchView]]]:
    """Parts of the log from offset `start` to `end` (exclusive): the bytes, and the batches in them.

    `verify`: check the checksums. Raises StorageError and BatchError.
    """
    offset = start
    while data := storage.read(offset, end, _PART_BYTES):
        batches = list(iter_batches(data, verify=verify))
        offset = batches[-1].end_offset
        yield data, batches


def snapshot_batches(
    storage: ReadableStorage, snapshot_id: OffsetAndEpoch, *, verify: bool = True
) -> Iterator[BatchView]:
    """The batches of a snapshot; none where there is no such snapshot.

    `verify`: check the checksums. Raises StorageError and BatchError.
    """
    size = storage.snapshot_size(snapshot_id) or 0
    position, rest = 0, b""
    while position < size:
        part = storage.read_snapshot(snapshot_id, position, _PART_BYTES)
        position += len(part)
        data = rest + part
        whole = whole_batches_size(data)
        yield from iter_batches(data[:whole], verify=verify)
        rest = data[whole:]
