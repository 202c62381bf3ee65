"""What a bad medium does to bytes that it had promised to keep.

Only where Kafka's formats can tell:

- the last batch of the log looks like a torn write when it is damaged, which recovery rightly cuts
  off, and the last segment like one that was not yet begun when its file is gone;
- quorum-state has no checksum at all;
- a snapshot that is about to take the log's place may be all that knows of the records that were
  dropped for it;
- a block may bring a batch whole but for its base offset, which no checksum covers;
- of two snapshots nothing but a name says which is which, so that a whole batch of one, or a whole
  sector, may stand in the other in the same place;
- an epoch is not covered by a batch's checksum: recovery holds it against what is around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import iter_batches, read_batch, whole_batches_size
from quorate.formats.errors import BatchError
from quorate.formats.files import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    QUORUM_STATE,
    SNAPSHOT_SUFFIX,
    decode_leader_epochs,
    decode_quorum_state,
    parse_segment_name,
    parse_snapshot_name,
)
from quorate.sim.chance import Chance
from quorate.storage.memory import MemoryDisk

_BLOCK: Final = 64
_EPOCH_AT: Final = 12
"""Where in a batch its epoch is: 4 bytes."""


def rot(disk: MemoryDisk, luck: Chance) -> str | None:
    """Flip one bit; says where, or None when nothing that can be told is on the medium."""
    found = _places(disk)
    if not found:
        return None
    name, size, data = luck.pick(found)
    position = luck.below(size)
    if name.endswith(LOG_SUFFIX) and _is_epoch(data, position):
        return None
    disk.overwrite(name, position, bytes([data[position] ^ 1 << luck.below(8)]))
    return f"a bit of {name} at byte {position}"


def misdirect(disk: MemoryDisk, luck: Chance) -> str | None:
    """Write a block of one place over another place."""
    found = _places(disk)
    if not found:
        return None
    name, size, data = luck.pick(found)
    source = luck.pick(found)[2]
    position = luck.below(size)
    start = luck.below(len(source))
    block = source[start : start + min(_BLOCK, size - position)]
    spoiled = data[:position] + block + data[position + len(block) :]
    if spoiled == data or _looks_whole(name, spoiled[:size], data[:size]):
        return None
    disk.overwrite(name, position, block)
    return f"{len(block)} bytes of {name} at byte {position}"


def misplace(disk: MemoryDisk, luck: Chance, size: int) -> str | None:
    """Write a whole batch, or with `size` a whole sector, with checksums that are right, over
    another place."""
    found = [place for place in _places(disk) if place[0].endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX))]
    logs = [place for place in found if place[0].endswith(LOG_SUFFIX)]
    if not logs:
        return None
    name, room, data = luck.pick(found)
    source_name, _, source = luck.pick(logs)
    targets = [at for at in (range(0, room, size) if size else _borders(data)) if at < room]
    sources = list(range(0, len(source), size) if size else _borders(source))
    if not targets or not sources:
        return None
    at, start = luck.pick(targets), luck.pick(sources)
    end = start + size if size else _batch_end(source, start)
    block = source[start:end][: room - at]
    if data[at : at + len(block)] == block:
        return None
    disk.overwrite(name, at, block)
    what = f"a sector of {len(block)} bytes" if size else f"a batch of {len(block)} bytes"
    return f"{what} of {source_name} at byte {start} over {name} at byte {at}"


def rot_epoch(disk: MemoryDisk, luck: Chance) -> str | None:
    """Flip a bit of a batch's epoch, mostly a low one, where leader-epoch-checkpoint knows it."""
    if LEADER_EPOCH_CHECKPOINT not in disk.medium():
        return None
    return _rot_number(disk, luck, "epoch", _EPOCH_AT, 32)


def rot_offset(disk: MemoryDisk, luck: Chance) -> str | None:
    """Flip a bit of a batch's base offset, mostly a low one."""
    return _rot_number(disk, luck, "base offset", 0, 64)


def rot_live(disk: MemoryDisk, luck: Chance) -> str | None:
    """Of bytes that were read before: in a base offset, which has no checksum, or anywhere."""
    return rot_offset(disk, luck) if luck.happens(0.25) else rot(disk, luck)


def _rot_number(disk: MemoryDisk, luck: Chance, what: str, place: int, bits: int) -> str | None:
    places = [
        (name, at)
        for name, size, data in _places(disk)
        if name.endswith(LOG_SUFFIX)
        for at in _borders(data)
        if at < size
    ]
    if not places:
        return None
    name, at = luck.pick(places)
    bit = luck.skewed(0, bits - 1)
    position = at + place + (bits - 1 - bit) // 8
    old = disk.content(name)[position]
    disk.overwrite(name, position, bytes([old ^ 1 << bit % 8]))
    return f"a bit of the {what} of the batch at byte {at} of {name}"


def lose(disk: MemoryDisk, luck: Chance, what: str) -> str | None:
    """A file is gone; `log`: every segment. Only where somebody can know that it was there."""
    medium = disk.medium()
    logs = sorted(name for name in medium if name.endswith(LOG_SUFFIX))
    gone: list[str] = []
    if what == "segment":
        gone = [luck.pick(logs[:-1])] if len(logs) > 1 else []
    elif what == "log":
        gone = logs if _is_missed(medium) else []
    elif what == "snapshot":
        end = _log_end(medium, logs)
        ids = {name: parse_snapshot_name(name) for name in medium}
        found = sorted(name for name, known in ids.items() if known and known.offset <= end)
        gone = [luck.pick(found)] if found else []
    elif what == "vote":
        has_log = any(medium[name] for name in logs)
        gone = [QUORUM_STATE] if has_log and QUORUM_STATE in medium else []
    elif LEADER_EPOCH_CHECKPOINT in medium:
        gone = [LEADER_EPOCH_CHECKPOINT]
    for name in gone:
        disk.lose(name)
    return f"lost: {', '.join(gone)}" if gone else None


def _log_end(medium: Mapping[str, bytes], logs: Sequence[str]) -> int:
    """Exclusive; 0 without a log."""
    for name in reversed(logs):
        if borders := _borders(medium[name]):
            return read_batch(medium[name], borders[-1]).end_offset
    return (logs and parse_segment_name(logs[-1])) or 0


def _is_missed(medium: Mapping[str, bytes]) -> bool:
    """Does another file say that there was more log than the newest snapshot has?"""
    newest = max(filter(None, map(parse_snapshot_name, medium)), default=OffsetAndEpoch(0, 0))
    epochs = decode_leader_epochs(medium.get(LEADER_EPOCH_CHECKPOINT, b"0\n0\n"))
    if any(epoch > newest.epoch for epoch, _ in epochs):
        return True
    if newest.offset > 0 or QUORUM_STATE not in medium:
        return False
    return decode_quorum_state(medium[QUORUM_STATE], QUORUM_STATE).election.epoch > 0


def _borders(data: bytes) -> list[int]:
    """Where each whole batch begins."""
    whole, at, found = whole_batches_size(data), 0, []
    while at < whole:
        found.append(at)
        at = _batch_end(data, at)
    return found


def _batch_end(data: bytes, at: int) -> int:
    return at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")


def _places(disk: MemoryDisk) -> list[tuple[str, int, bytes]]:
    """(file, so many of its first bytes, all of its bytes) that are durable and told apart."""
    medium = disk.medium()
    found = []
    logs = sorted(name for name in medium if name.endswith(LOG_SUFFIX))
    for name in sorted(medium):
        data = medium[name]
        size = len(data)
        if name.endswith(LOG_SUFFIX):
            size = _before_last_batch(data) if name == logs[-1] else size
        elif name == QUORUM_STATE:
            size = min(size, 1)
        elif not name.endswith(SNAPSHOT_SUFFIX) and name not in (
            PARTITION_METADATA,
            LEADER_EPOCH_CHECKPOINT,
        ):
            continue
        if size > 0:
            found.append((name, size, data))
    return found


def _before_last_batch(data: bytes) -> int:
    """Where the last whole batch begins; 0 where there is none."""
    return max(_borders(data), default=0)


def _looks_whole(name: str, spoiled: bytes, data: bytes) -> bool:
    """Are all batches what their checksums say, where batches were?"""
    if not name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)):
        return False
    try:
        return [view.base_offset for view in iter_batches(spoiled)] == [
            view.base_offset for view in iter_batches(data)
        ]
    except BatchError:
        return False


def _is_epoch(data: bytes, position: int) -> bool:
    """Is it a byte of a batch's epoch? No checksum covers that: a reader cannot tell."""
    start, whole = 0, whole_batches_size(data)
    while start < whole:
        end = start + 12 + int.from_bytes(data[start + 8 : start + 12], "big")
        if position < end:
            return 12 <= position - start < 16
        start = end
    return False
