"""Log matching: the same offset and epoch must be the same batch in every replica."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from quorate.spark.audit.chain import Part, fingerprints
from quorate.spark.audit.model import Mismatch, Spot
from quorate.spark.files.scan import Read, Run, runs


def differ(parts: Iterable[Part]) -> bool:
    """True when the replicas that have this block do not plainly hold the same of it."""
    contents: dict[str, list[tuple[int, int, int, int]]] = {}
    for part in parts:
        contents.setdefault(part.path, []).append(part.content)
    return len({tuple(sorted(content)) for content in contents.values()}) > 1


def compare(parts: Sequence[Part], reader: Callable[[Part], Read]) -> Mismatch | None:
    """Look at the batches of one block of one epoch; None when no two contradict each other.

    That one replica has more of them than another is no contradiction.
    """
    held: dict[int, dict[int, list[tuple[Part, int]]]] = {}
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


def _batches(part: Part, read: Read) -> list[tuple[int, int, int]]:
    """(base offset, fingerprint, position) of the batches of a part."""
    found: list[tuple[int, int, int]] = []
    for run in runs(read, part.stop, part.start):
        if isinstance(run, Run):
            bases = run.heads["base_offset"].astype(np.int64)
            positions = run.starts + run.origin
            columns = (bases.tolist(), fingerprints(run.heads).tolist(), positions.tolist())
            found += zip(*columns, strict=True)
    return found


def first_of(one: Mismatch, other: Mismatch) -> Mismatch:
    """The one with the lower offset, which then counts both."""
    low, high = sorted((one, other), key=lambda found: found.offset)
    return Mismatch(low.offset, low.epoch, low.versions, low.count + high.count)
