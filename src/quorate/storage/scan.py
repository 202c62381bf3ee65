"""Reads segments and snapshots batch by batch, verifying every checksum, in bounded memory."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import (
    HEADER_SIZE,
    BatchView,
    control_records,
    iter_batches,
    read_batch,
    whole_batches_size,
)
from quorate.formats.control import ControlRecord
from quorate.formats.errors import (
    BatchError,
    FormatError,
    IncompleteBatchError,
    NewerBatchError,
)
from quorate.formats.snapshot import SnapshotReader
from quorate.raft.values import ControlState, KRaftVersion, LeaderChange, Voters
from quorate.storage.api import SnapshotInfo
from quorate.storage.disk import File
from quorate.storage.segment import Segment

CHUNK: Final = 4 * 1024 * 1024
MAX_BATCH_ENDS: Final = 65_536
"""The core looks at the newest borders only; a huge log must not fill the memory with them."""
_MAGIC_AT: Final = 16
_LIKE_A_BATCH: Final = re.compile(rb"\x02(?<=\x00\x00[\s\S]{6}\x00[\s\S]{7}\x02)")
"""Found by the format byte, looking back at a base offset < 2**48 and a length < 16 MiB."""


class DamageError(Exception):
    """What is wrong and where: a byte position in the file, and the offset of the batch there."""

    def __init__(
        self, what: str, position: int, offset: int, *, torn: bool = False, newer: bool = False
    ) -> None:
        super().__init__(what)
        self.what = what
        self.position = position
        self.offset = offset
        self.torn = torn
        """An interrupted write may look so: the bytes are cut or their checksum is wrong."""
        self.newer = newer
        """The bytes are sound, and of a release that this one does not know."""


def batches(file: File, size: int, start: int = 0, chunk: int = CHUNK) -> Iterator[BatchView]:
    """Every batch from byte `start` to `size`; raises BatchError where the sound ones end.

    Reads `chunk` bytes at a time, more where a batch is larger.
    """
    position, rest, want = start, b"", chunk
    while position < size:
        begin = position + len(rest)
        data = file.read_at(begin, min(want, size - begin))
        if not data:
            raise IncompleteBatchError(f"the file ends at byte {begin} of {size}", position)
        buf = rest + data if rest else data
        whole = _whole(buf)
        if whole:
            yield from iter_batches(memoryview(buf)[:whole], position)
        if whole < len(buf):
            _check_rest(buf, whole, position, size)
        rest = buf[whole:]
        want = chunk if whole else len(buf) * 2
        position += whole


def _whole(buf: bytes) -> int:
    """Bytes of whole batches, up to the first impossible length."""
    try:
        return whole_batches_size(buf)
    except BatchError as error:
        return error.position


def _check_rest(buf: bytes, start: int, origin: int, size: int) -> None:
    """Raise what is wrong with the batch at `start` unless more of the file may complete it."""
    try:
        read_batch(buf, start, origin)
    except IncompleteBatchError:
        if origin + len(buf) == size:
            raise


def find_sound_batch(file: File, start: int, size: int, min_offset: int) -> int | None:
    """The byte position, from `start` on, of the first sound batch with base offset >= `min_offset`.

    None: there is none, so that what precedes is a torn tail. A torn batch has no trustworthy
    length. So the search looks for the format byte of a batch header everywhere, and verifies the
    checksum of each candidate. Windows overlap by one CHUNK, so that a header that crosses the
    border of two is found.
    """
    position = start
    while size - position >= HEADER_SIZE:
        window = file.read_at(position, min(2 * CHUNK, size - position))
        last = position + len(window) >= size
        for match in _LIKE_A_BATCH.finditer(window):
            at = match.start() - _MAGIC_AT
            if not last and at >= CHUNK:
                break
            if _sound(file, window, position, at, size, min_offset):
                return position + at
        if last:
            return None
        position += CHUNK
    return None


def _sound(file: File, window: bytes, origin: int, at: int, size: int, min_offset: int) -> bool:
    base_offset = int.from_bytes(window[at : at + 8])
    length = 12 + int.from_bytes(window[at + 8 : at + 12])
    if base_offset < min_offset or origin + at + length > size:
        return False
    data = window[at : at + length]
    if len(data) < length:
        data = file.read_at(origin + at, length)
    try:
        read_batch(data, 0).verify()
    except BatchError:
        return False
    return True


def _is_sealed(file: File, position: int, size: int) -> bool:
    """Is there a whole batch whose checksum is right, but which is refused for another reason?"""
    head = file.read_at(position, HEADER_SIZE)
    length = 12 + int.from_bytes(head[8:12])
    if len(head) < HEADER_SIZE or position + length > size:
        return False
    try:
        view = read_batch(file.read_at(position, length), 0)
    except BatchError:
        return False
    return view.magic == 2 and view.crc_matches


def epoch_at(epochs: list[tuple[int, int]], offset: int) -> int:
    """The epoch of the batch that holds `offset`; of the first for what is before.

    `epochs`: (epoch, start offset), ascending, at least one.
    """
    if offset >= epochs[-1][1]:
        return epochs[-1][0]
    index = bisect_right(epochs, offset, key=lambda entry: entry[1]) - 1
    return epochs[max(index, 0)][0]


@dataclass(slots=True)
class LogScan:
    """What the batches of a log say, gathered while they pass by."""

    end_offset: int
    epochs: list[tuple[int, int]] = field(default_factory=list)
    unannounced: list[tuple[int, int, str, int]] = field(default_factory=list)
    """(epoch, start offset, file, position) of epochs that do not begin with a LeaderChange."""
    control: list[tuple[int, KRaftVersion | Voters]] = field(default_factory=list)
    batch_ends: deque[int] = field(default_factory=lambda: deque(maxlen=MAX_BATCH_ENDS))

    _epoch: int = -1

    @property
    def last_epoch(self) -> int:
        """0 while there is no batch."""
        return max(self._epoch, 0)

    def run(self, segment: Segment, size: int) -> None:
        """Take in one segment file; `segment` then ends behind its last sound batch.

        Raises Damage, with all before it taken in.
        """
        try:
            for view in batches(segment.file, size):
                self._take(segment, view)
        except BatchError as error:
            torn = not _is_sealed(segment.file, error.position, size)
            raise DamageError(str(error), error.position, self.end_offset, torn=torn) from None

    def _take(self, segment: Segment, view: BatchView) -> None:
        base = view.base_offset
        if base != self.end_offset:
            what = f"the batch says base offset {base}, expected {self.end_offset}"
            raise DamageError(what, view.position, self.end_offset)
        if view.epoch != self._epoch or view.is_control:
            self._take_notable(segment, view)
        last = base + view.last_offset_delta
        self.end_offset = last + 1
        self.batch_ends.append(last + 1)
        segment.add(last, len(view.data), view.max_timestamp)

    def _take_notable(self, segment: Segment, view: BatchView) -> None:
        """A batch that begins an epoch, or holds control records."""
        if view.epoch < self._epoch:
            what = f"the batch says epoch {view.epoch} after epoch {self._epoch}"
            raise DamageError(what, view.position, self.end_offset)
        records = self._control_of(view) if view.is_control else []
        if view.epoch > self._epoch:
            if self.epochs and not (records and isinstance(records[0], LeaderChange)):
                start = (view.epoch, view.base_offset, segment.file.name, view.position)
                self.unannounced.append(start)
            self.epochs.append((view.epoch, view.base_offset))
            self._epoch = view.epoch
        for offset, record in enumerate(records, view.base_offset):
            if isinstance(record, KRaftVersion | Voters):
                self.control.append((offset, record))

    def _control_of(self, view: BatchView) -> list[ControlRecord]:
        try:
            return control_records(view)
        except FormatError as error:
            newer = isinstance(error, NewerBatchError)
            raise DamageError(str(error), view.position, self.end_offset, newer=newer) from None


def scan_snapshot(file: File, snapshot_id: OffsetAndEpoch) -> tuple[SnapshotInfo, ControlState]:
    """Read a snapshot from header to footer; raises Damage when it is not whole and sound."""
    size, end_offset = file.size(), 0
    reader = SnapshotReader()
    try:
        for view in batches(file, size):
            reader.add(view)
            end_offset = view.end_offset
        reader.finish(snapshot_id)
    except BatchError as error:
        newer = isinstance(error, NewerBatchError)
        raise DamageError(str(error), error.position, end_offset, newer=newer) from None
    assert reader.header is not None  # `finish` requires it
    timestamp = reader.header.last_contained_log_timestamp
    return SnapshotInfo(snapshot_id, size, timestamp), reader.control
