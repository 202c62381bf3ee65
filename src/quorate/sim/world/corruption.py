"""Damage to durable bytes: bit flips, misdirected writes and lost files.

Only where a reader of Kafka's formats can detect it. These cases are left out:

- damage to the last batch of the log, which looks like a torn write that recovery may truncate;
- the loss of the last segment, which looks like a segment that was never created;
- quorum-state, which has no checksum;
- a snapshot that is about to replace the log: the log's records may already be removed for it;
- a misdirected block that leaves a batch intact except its base offset, which no checksum covers;
- a whole batch or sector of one snapshot at the same position of another: only the name
  distinguishes two snapshots.

A batch's checksum does not cover its epoch. Recovery compares the epoch with its neighbours.
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
from quorate.sim.prng import Prng
from quorate.storage.memory import MemoryDisk

_BLOCK: Final = 64
_EPOCH_AT: Final = 12
"""Position of the epoch in a batch: 4 bytes."""


def corrupt_bytes(disk: MemoryDisk, rng: Prng) -> str | None:
    """Flip one bit. Returns a description; None where no detectable place exists."""
    found = _places(disk)
    if not found:
        return None
    name, size, data = rng.pick(found)
    position = rng.below(size)
    if name.endswith(LOG_SUFFIX) and _is_epoch(data, position):
        return None
    disk.overwrite(name, position, bytes([data[position] ^ 1 << rng.below(8)]))
    return f"a bit of {name} at byte {position}"


def misdirect(disk: MemoryDisk, rng: Prng) -> str | None:
    """Copy a block of one place over another place."""
    found = _places(disk)
    if not found:
        return None
    name, size, data = rng.pick(found)
    source = rng.pick(found)[2]
    position = rng.below(size)
    start = rng.below(len(source))
    block = source[start : start + min(_BLOCK, size - position)]
    damaged = data[:position] + block + data[position + len(block) :]
    if damaged == data or _looks_whole(name, damaged[:size], data[:size]):
        return None
    disk.overwrite(name, position, block)
    return f"{len(block)} bytes of {name} at byte {position}"


def misplace(disk: MemoryDisk, rng: Prng, size: int) -> str | None:
    """Copy a whole batch, or with `size` a whole sector, over another place. Its checksums stay
    valid."""
    found = [place for place in _places(disk) if place[0].endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX))]
    logs = [place for place in found if place[0].endswith(LOG_SUFFIX)]
    if not logs:
        return None
    name, room, data = rng.pick(found)
    source_name, _, source = rng.pick(logs)
    targets = [at for at in (range(0, room, size) if size else _boundaries(data)) if at < room]
    sources = list(range(0, len(source), size) if size else _boundaries(source))
    if not targets or not sources:
        return None
    at, start = rng.pick(targets), rng.pick(sources)
    end = start + size if size else _batch_end(source, start)
    block = source[start:end][: room - at]
    if data[at : at + len(block)] == block:
        return None
    disk.overwrite(name, at, block)
    what = f"a sector of {len(block)} bytes" if size else f"a batch of {len(block)} bytes"
    return f"{what} of {source_name} at byte {start} over {name} at byte {at}"


def corrupt_epoch(disk: MemoryDisk, rng: Prng) -> str | None:
    """Flip a bit of a batch's epoch, mostly a low one, where leader-epoch-checkpoint has it."""
    if LEADER_EPOCH_CHECKPOINT not in disk.medium():
        return None
    return _rot_number(disk, rng, "epoch", _EPOCH_AT, 32)


def corrupt_offset(disk: MemoryDisk, rng: Prng) -> str | None:
    """Flip a bit of a batch's base offset, mostly a low one."""
    return _rot_number(disk, rng, "base offset", 0, 64)


def corrupt_live(disk: MemoryDisk, rng: Prng) -> str | None:
    """Flip a bit of bytes that recovery has read: in a base offset, or anywhere."""
    return corrupt_offset(disk, rng) if rng.happens(0.25) else corrupt_bytes(disk, rng)


def _rot_number(disk: MemoryDisk, rng: Prng, what: str, place: int, bits: int) -> str | None:
    places = [
        (name, at)
        for name, size, data in _places(disk)
        if name.endswith(LOG_SUFFIX)
        for at in _boundaries(data)
        if at < size
    ]
    if not places:
        return None
    name, at = rng.pick(places)
    bit = rng.skewed(0, bits - 1)
    position = at + place + (bits - 1 - bit) // 8
    old = disk.content(name)[position]
    disk.overwrite(name, position, bytes([old ^ 1 << bit % 8]))
    return f"a bit of the {what} of the batch at byte {at} of {name}"


def lose(disk: MemoryDisk, rng: Prng, what: str) -> str | None:
    """Remove a file; `log`: every segment. Only where another file proves that it existed."""
    medium = disk.medium()
    logs = sorted(name for name in medium if name.endswith(LOG_SUFFIX))
    gone: list[str] = []
    if what == "segment":
        gone = [rng.pick(logs[:-1])] if len(logs) > 1 else []
    elif what == "log":
        gone = logs if _is_missed(medium) else []
    elif what == "snapshot":
        end = _log_end(medium, logs)
        ids = {name: parse_snapshot_name(name) for name in medium}
        found = sorted(name for name, known in ids.items() if known and known.offset <= end)
        gone = [rng.pick(found)] if found else []
    elif what == "vote":
        has_log = any(medium[name] for name in logs)
        gone = [QUORUM_STATE] if has_log and QUORUM_STATE in medium else []
    elif LEADER_EPOCH_CHECKPOINT in medium:
        gone = [LEADER_EPOCH_CHECKPOINT]
    for name in gone:
        disk.lose(name)
    return f"lost: {', '.join(gone)}" if gone else None


def _log_end(medium: Mapping[str, bytes], logs: Sequence[str]) -> int:
    """The log end offset (exclusive); 0 without a log."""
    for name in reversed(logs):
        if boundaries := _boundaries(medium[name]):
            return read_batch(medium[name], boundaries[-1]).end_offset
    return (logs and parse_segment_name(logs[-1])) or 0


def _is_missed(medium: Mapping[str, bytes]) -> bool:
    """Whether another file proves a longer log than the newest snapshot."""
    newest = max(filter(None, map(parse_snapshot_name, medium)), default=OffsetAndEpoch(0, 0))
    epochs = decode_leader_epochs(medium.get(LEADER_EPOCH_CHECKPOINT, b"0\n0\n"))
    if any(epoch > newest.epoch for epoch, _ in epochs):
        return True
    if newest.offset > 0 or QUORUM_STATE not in medium:
        return False
    return decode_quorum_state(medium[QUORUM_STATE], QUORUM_STATE).election.epoch > 0


def _boundaries(data: bytes) -> list[int]:
    """The position of each whole batch."""
    whole, at, found = whole_batches_size(data), 0, []
    while at < whole:
        found.append(at)
        at = _batch_end(data, at)
    return found


def _batch_end(data: bytes, at: int) -> int:
    return at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")


def _places(disk: MemoryDisk) -> list[tuple[str, int, bytes]]:
    """(file, length of the usable prefix, all bytes) of durable and distinguishable places."""
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
    """The position of the last whole batch; 0 where there is none."""
    return max(_boundaries(data), default=0)


def _looks_whole(name: str, damaged: bytes, data: bytes) -> bool:
    """Whether all batches still pass their checksums at the same positions."""
    if not name.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)):
        return False
    try:
        return [view.base_offset for view in iter_batches(damaged)] == [
            view.base_offset for view in iter_batches(data)
        ]
    except BatchError:
        return False


def _is_epoch(data: bytes, position: int) -> bool:
    """Whether the byte belongs to a batch's epoch, which no checksum covers."""
    start, whole = 0, whole_batches_size(data)
    while start < whole:
        end = start + 12 + int.from_bytes(data[start + 8 : start + 12], "big")
        if position < end:
            return 12 <= position - start < 16
        start = end
    return False
