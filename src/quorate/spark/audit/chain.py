"""One segment as a chain: what follows on what, and digests of its blocks for comparison.

Replicas hold equal batches at equal offset and epoch. So that they can be compared without moving
them, each segment is cut into blocks by offset and epoch, and each block is told by one number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from quorate.base.ids import ReplicaKey
from quorate.formats.batch import PREFIX_SIZE, BatchView, raw_records
from quorate.formats.control import LeaderChangeMessage, VotersRecord, decode_message
from quorate.formats.errors import BatchError, RecordError
from quorate.spark.audit.model import (
    DAMAGE,
    MOST_FINDINGS,
    Control,
    Finding,
    SegmentFacts,
    Span,
    Spot,
)
from quorate.spark.decode.rows import Item
from quorate.spark.files.scan import CONTROL, TORN, Damage, Run

BLOCK: Final = 4096
"""Offsets in a block."""
Hashes = npt.NDArray[np.uint64]
_FACTORS: Final = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64
)

JOIN_ANEW: Final = (
    "let the replica join anew: an observer with an emptied directory, a voter with a new "
    "directory id ('remove-controller', 'storage format --no-initial-controllers', "
    "'add-controller'; docs/recovery.md)"
)
"""A voter that comes back empty under its old name has forgotten what it acknowledged."""
RESTORE: Final = "Restore the file as it was, or " + JOIN_ANEW


@dataclass(slots=True)
class Part:
    """Batches of one block and epoch that stand one after the other in a file."""

    path: str
    """Of the replica."""
    file: str
    segment: int
    epoch: int
    block: int
    start: int
    """Position of the first batch; `stop` is behind the last."""
    stop: int
    first: int
    """Offset; `end` is exclusive."""
    end: int
    count: int
    digest: int

    @property
    def content(self) -> tuple[int, int, int, int]:
        """Equal for equal batches."""
        return self.first, self.end, self.count, self.digest


def fingerprints(heads: npt.NDArray[Any]) -> Hashes:
    """A number for each batch: of its offset, epoch, size and checksum."""
    mixed = np.zeros(len(heads), np.uint64)
    for name, factor in zip(("base_offset", "epoch", "length", "crc"), _FACTORS, strict=True):
        mixed ^= heads[name].astype(np.int64).view(np.uint64) * factor
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))


def _stretches(run: Run) -> Iterator[tuple[int, int]]:
    """Cut where something is to be looked at: within a stretch one batch follows on the other."""
    heads = run.heads
    bases = heads["base_offset"].astype(np.int64)
    ends = bases + heads["count"]
    epochs = heads["epoch"]
    odd = (heads["attributes"] & CONTROL) != 0
    odd[0] = True
    odd[1:] |= (bases[1:] != ends[:-1]) | (epochs[1:] != epochs[:-1])
    return pairwise([*np.flatnonzero(odd).tolist(), len(bases)])


class ChainReader:
    """Follows the batches of one segment. Call `feed` for every item, then `finish`.

    `feed` gives out the blocks that are complete, `finish` the last one.
    """

    def __init__(
        self, path: str, file: str, base: int, next_base: int | None, *, is_first: bool = False
    ) -> None:
        """is_first: nothing of the log stands before this segment; path: of the replica."""
        self._path, self._file, self._base, self._next_base = path, file, base, next_base
        self._is_first = is_first
        self._expected = self._reached = base
        """Where the next batch must begin, and the end of those that are there."""
        self._perhaps: set[int] = set()
        """Where the next batch may begin too, after one that did not follow."""
        self._epoch: int | None = None
        self._begins_with_leader = False
        self._broken_at: int | None = None
        self._adrift = False
        """True after a piece that could not be read: how many offsets it had is not known."""
        self._jumped = False
        """True when batches are missing before the one that is looked at."""
        self._spans: list[Span] = []
        self._controls: list[Control] = []
        self._findings: list[Finding] = []
        self._part: Part | None = None

    def feed(self, item: Item) -> Iterator[Part]:
        """Take the next batches or damage."""
        if isinstance(item, Damage):
            yield from self._close()
            self._damage(item)
            return
        for start, stop in _stretches(item):
            follows = self._sound_from(item, start, stop)
            if follows < stop:
                yield from self._accept(item.part(slice(follows, stop)))

    def finish(self, size: int) -> tuple[SegmentFacts, list[Part]]:
        """All that was found out, of a file of `size` bytes."""
        rest = list(self._close())
        following = self._next_base
        if following is not None and not self._adrift:
            if following not in (self._expected, *self._perhaps):
                self._missing(self._expected, following, size)
            self._expected = following
        facts = SegmentFacts(
            self._path,
            self._base,
            self._file,
            self._expected,
            self._broken_at,
            self._begins_with_leader,
            tuple(self._spans),
            tuple(self._controls),
            tuple(self._findings),
        )
        return facts, rest

    def _sound_from(self, run: Run, start: int, stop: int) -> int:
        """The first batch of a stretch that belongs to the chain; `stop`: none does."""
        bases, counts = run.heads["base_offset"], run.heads["count"]
        for index in range(start, stop):
            base, count = int(bases[index]), int(counts[index])
            after = int(bases[index + 1]) if index + 1 < len(bases) else None
            spot = self._spot(run, index)
            if not self._follows(base, count, after, spot):
                continue
            is_control = bool(run.heads["attributes"][index] & CONTROL)
            if not self._in_epoch(is_control, int(run.heads["epoch"][index]), spot):
                # all of a stretch are of one epoch: told once
                self._passed(int(bases[stop - 1] + counts[stop - 1]))
                return stop
            self._passed(base + count)
            if self._control(run, index, spot):
                return index
        return stop

    def _follows(self, base: int, count: int, after: int | None, spot: Spot) -> bool:
        """Whether a batch is the next one of the log. `after`: base offset of the one behind it."""
        self._jumped = self._adrift
        if base in (self._expected, *self._perhaps) or self._adrift:
            if self._adrift:
                self._adrift, self._reached = False, base
            return True
        expected = self._expected
        if after == expected + count or (after is None and self._next_base == expected + count):
            what = f"the batch says offset {base} where {expected} must be: its header is damaged"
            self._tell("batch-chain", what, spot, expected)
            self._passed(expected + count)
            return False
        self._missing(expected, base, spot.position or 0)
        self._perhaps = {base + count, expected + count}
        if base < expected:
            return False
        # when nothing follows, it may as well be this batch's offset that is damaged
        self._expected = base + count
        if after is None:
            return False
        self._jumped = True
        return True

    def _passed(self, end: int) -> None:
        """What stands up to `end` is there; the log goes on behind all that was."""
        self._reached = self._expected = max(self._reached, end)
        self._perhaps = {end} - {self._expected}

    def _missing(self, expected: int, found: int, position: int) -> None:
        if found > expected:
            what = f"the offsets {expected} to {found - 1} are missing: offset {found} comes next"
        else:
            what = f"offset {found} comes next where {expected} must be: offsets go back"
        self._tell("batch-chain", what, Spot(self._file, self._base, position, found), expected)

    def _in_epoch(self, is_control: bool, epoch: int, spot: Spot) -> bool:
        was = self._epoch
        if epoch == was:
            return True
        if was is None and not (self._is_first and self._base == 0 and not is_control):
            self._epoch = epoch
            return True
        if was is not None and epoch < was:
            what = f"epoch {epoch} follows epoch {was}: epochs must not go back"
        elif not (is_control or self._jumped):
            what = f"epoch {epoch} begins without the LeaderChange that every leader writes first"
        else:
            self._epoch = epoch
            return True
        self._tell("epochs", f"{what}; a header is damaged", spot, spot.offset or 0)
        return False

    def _control(self, run: Run, index: int, spot: Spot) -> bool:
        if not run.heads["attributes"][index] & CONTROL:
            return True
        view = run.view(index)
        try:
            found = controls(view, spot)
        except (BatchError, RecordError) as error:
            self._tell("control-records", str(error), spot, view.base_offset)
            return True
        for control in found:
            if control.leader is None:
                continue
            if self._spans and self._spans[-1].epoch == view.epoch:
                what = f"a LeaderChange stands in the middle of epoch {view.epoch}"
                self._tell("epochs", f"{what}; its header is damaged", spot, view.base_offset)
                return False
            if view.base_offset == self._base:
                self._begins_with_leader = True
        self._controls += found
        return True

    def _accept(self, run: Run) -> Iterator[Part]:
        heads = run.heads
        bases = heads["base_offset"].astype(np.int64)
        epoch, end = int(heads["epoch"][0]), int(bases[-1] + heads["count"][-1])
        self._grow(epoch, int(bases[0]), end)
        self._passed(end)
        hashes = fingerprints(heads)
        blocks = bases // BLOCK
        cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(bases)]
        for start, stop in pairwise(cuts):
            last = stop - 1
            where = run.origin + int(run.starts[last]) + PREFIX_SIZE + int(heads["length"][last])
            yield from self._add(
                Part(
                    *(self._path, self._file, self._base, epoch, int(blocks[start])),
                    *(run.origin + int(run.starts[start]), where),
                    *(int(bases[start]), int(bases[last] + heads["count"][last])),
                    *(stop - start, int(hashes[start:stop].sum(dtype=np.uint64))),
                )
            )

    def _grow(self, epoch: int, start: int, end: int) -> None:
        if self._broken_at is not None:
            return
        if self._spans and self._spans[-1].epoch == epoch:
            self._spans[-1] = replace(self._spans[-1], end=end)
        else:
            self._spans.append(Span(epoch, start, end))

    def _add(self, part: Part) -> Iterator[Part]:
        last = self._part
        if (
            last is not None
            and (last.epoch, last.block) == (part.epoch, part.block)
            and (last.stop, last.end) == (part.start, part.first)
        ):
            last.stop, last.end = part.stop, part.end
            last.count += part.count
            last.digest = (last.digest + part.digest) % (1 << 64)
            return
        yield from self._close()
        self._part = part

    def _close(self) -> Iterator[Part]:
        if self._part is not None:
            yield self._part
            self._part = None

    def _damage(self, damage: Damage) -> None:
        torn = damage.what.startswith(TORN) and self._next_base is None
        spot = Spot(self._file, self._base, damage.position, self._expected, self._epoch)
        if torn and "next sound batch" not in damage.what:
            what = f"{damage.size} bytes at the end are no whole batch: {damage.what}"
            advice = (
                "A crash while writing leaves this, and the next start cuts it off: what the "
                "others acknowledge is fetched again. " + RESTORE + " if the node was shut down "
                "in an orderly way"
            )
            self._tell("torn-tail", what, spot, self._expected, advice)
        else:
            self._tell("checksums", damage.what, spot, self._expected)
        self._adrift = True

    def _spot(self, run: Run, index: int) -> Spot:
        return Spot(
            self._file,
            self._base,
            run.origin + int(run.starts[index]),
            int(run.heads["base_offset"][index]),
            int(run.heads["epoch"][index]),
        )

    def _tell(
        self, check: str, what: str, spot: Spot, sound_to: int, advice: str = RESTORE
    ) -> None:
        if self._broken_at is None:
            self._broken_at = sound_to
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(Finding(check, DAMAGE, what, advice, spot))
        else:
            last = self._findings[-1]
            self._findings[-1] = replace(last, more=last.more + 1)


def controls(view: BatchView, spot: Spot) -> list[Control]:
    """The leader changes and voter sets in a control batch; raises BatchError, RecordError."""
    found = []
    for index, (key, value) in enumerate(raw_records(view)):
        message = decode_message(key, value)
        here = replace(spot, offset=view.base_offset + index)
        if isinstance(message, LeaderChangeMessage):
            found.append(
                Control(
                    here,
                    message.leader_id,
                    tuple(sorted(voter.voter_id for voter in message.voters)),
                    tuple(sorted(voter.voter_id for voter in message.granting_voters)),
                    crc=view.crc,
                )
            )
        elif isinstance(message, VotersRecord):
            found.append(Control(here, voters=voter_keys(message)))
    return found


def voter_keys(record: VotersRecord) -> tuple[ReplicaKey, ...]:
    return tuple(sorted(ReplicaKey(one.voter_id, one.voter_directory_id) for one in record.voters))
