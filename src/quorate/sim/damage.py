"""What a bad medium does to bytes that it had promised to keep.

Only where Kafka's formats can tell: the last batch of the log looks like a torn write when it is
damaged, which recovery rightly cuts off, and quorum-state has no checksum at all.
"""

from __future__ import annotations

from typing import Final

from quorate.formats.batch import whole_batches_size
from quorate.formats.files import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    QUORUM_STATE,
    SNAPSHOT_SUFFIX,
)
from quorate.sim.chance import Chance
from quorate.storage.memory import MemoryDisk

_BLOCK: Final = 64


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
    if data[position : position + len(block)] == block:
        return None
    disk.overwrite(name, position, block)
    return f"{len(block)} bytes of {name} at byte {position}"


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
    whole = whole_batches_size(data)
    position = last = 0
    while position < whole:
        last = position
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return last


def _is_epoch(data: bytes, position: int) -> bool:
    """Is it a byte of a batch's epoch? No checksum covers that: a reader cannot tell."""
    start, whole = 0, whole_batches_size(data)
    while start < whole:
        end = start + 12 + int.from_bytes(data[start + 8 : start + 12], "big")
        if position < end:
            return 12 <= position - start < 16
        start = end
    return False
