"""Log matching: the same offset and epoch must be the same batch in every replica.

1. A scan makes a digest of each block of a segment (`BlockDigest`).
2. `blocks_differ` compares the digests of a block between replicas.
3. `find_mismatch` reads the batches of blocks that differ, and finds the first contradiction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from quorate.spark.audit.model import Mismatch, Spot
from quorate.spark.files.scan import BatchRun, Read, runs

BLOCK: Final = 4096
"""Offsets in a block: one digest for each 4096 offsets of an epoch."""
Hashes = npt.NDArray[np.uint64]
# large odd constants, as hash functions use; a digest need not resist forgery
_FACTORS: Final = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64
)


@dataclass(slots=True)
class BlockDigest:
    """The digest of consecutive batches of one block and epoch in a file."""

    path: str
    """Of the replica."""
    file: str
    segment: int
    epoch: int
    block: int
    start: int
    """Byte of the first batch; `stop` is the byte after the last one."""
    stop: int
    first: int
    """First offset; `end` is exclusive."""
    end: int
    count: int
    """Of batches."""
    digest: int
    """The sum (modulo 2^64) of the fingerprints, so that it does not depend on how the batches were
    cut into runs."""

    @property
    def content(self) -> tuple[int, int, int, int]:
        """What two replicas compare: equal for equal batches."""
        return self.first, self.end, self.count, self.digest


def fingerprints(heads: npt.NDArray[Any]) -> Hashes:
    """A number for each batch: a hash of its offset, epoch, size and checksum.

    The checksum covers the records, but neither offset nor epoch of the header.
    """
    mixed = np.zeros(len(heads), np.uint64)
    for name, factor in zip(("base_offset", "epoch", "length", "crc"), _FACTORS, strict=True):
        mixed ^= heads[name].astype(np.int64).view(np.uint64) * factor
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


def blocks_differ(parts: Iterable[BlockDigest]) -> bool:
    """True when the digests of a block differ between the replicas that hold it.

    Parts of a block may be split differently, so this is only a reason to read the batches.
    """
    contents: dict[str, list[tuple[int, int, int, int]]] = {}
    for part in parts:
        contents.setdefault(part.path, []).append(part.content)
    return len({tuple(sorted(content)) for content in contents.values()}) > 1


def find_mismatch(
    parts: Sequence[BlockDigest], reader: Callable[[BlockDigest], Read]
) -> Mismatch | None:
    """Compare the batches of one block of one epoch; None when no two contradict each other.

    A replica that lacks batches of another contradicts nothing.
    """
    held: dict[int, dict[int, list[tuple[BlockDigest, int]]]] = {}
    for part in parts:
        for base, print_, position in _batches(part, reader(part)):
            holders = held.setdefault(base, {}).setdefault(print_, [])
            if not any(part.path == other.path for other, _ in holders):
                holders.append((part, position))
    wrong = [base for base in sorted(held) if len(held[base]) > 1]
    if not wrong:
        return None
    first = wrong[0]
    versions = sorted(held[first].values(), key=lambda holders: (-len(holders), holders[0][0].path))
    epoch = parts[0].epoch
    return Mismatch(
        first,
        epoch,
        tuple(
            tuple(
                (part.path, Spot(part.file, part.segment, position, first, epoch))
                for part, position in holders
            )
            for holders in versions
        ),
        len(wrong),
    )


def _batches(part: BlockDigest, read: Read) -> list[tuple[int, int, int]]:
    """(base offset, fingerprint, position) of the batches that a digest stands for."""
    found: list[tuple[int, int, int]] = []
    for run in runs(read, part.stop, part.start):
        if isinstance(run, BatchRun):
            bases = run.heads["base_offset"].astype(np.int64)
            positions = run.starts + run.origin
            columns = (bases.tolist(), fingerprints(run.heads).tolist(), positions.tolist())
            found += zip(*columns, strict=True)
    return found


def first_of(one: Mismatch, other: Mismatch) -> Mismatch:
    """The mismatch with the lower offset, with the count of both."""
    low, high = sorted((one, other), key=lambda found: found.offset)
    return Mismatch(low.offset, low.epoch, low.versions, low.count + high.count)
