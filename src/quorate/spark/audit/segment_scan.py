"""The scan of one segment: continuity of its batches, and digests of its blocks.

Replicas hold equal batches at equal offset and epoch (log matching). To compare them without
moving them, a scan cuts each segment into blocks by offset and epoch, and makes one number of each
block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from quorate.base.ids import ReplicaKey
from quorate.formats.batch import PREFIX_SIZE, BatchView, raw_records
from quorate.formats.control import (
    ControlType,
    LeaderChangeMessage,
    VotersRecord,
    control_type,
    decode_message,
)
from quorate.formats.errors import BatchError, NewerRecordError, RecordError
from quorate.spark.audit.log_matching import BLOCK, BlockDigest, fingerprints
from quorate.spark.audit.model import (
    DAMAGE,
    MOST_FINDINGS,
    NEWER,
    RESTORE,
    WARNING,
    ControlRecord,
    EpochRange,
    Finding,
    SegmentFacts,
    Spot,
)
from quorate.spark.decode.rows import Item
from quorate.spark.files.scan import CONTROL, TORN, BatchRun, Damage

_WITHOUT_VOTERS: Final = (ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION)


def _uniform_ranges(run: BatchRun) -> Iterator[tuple[int, int]]:
    """(start, stop) of the ranges of a run in which every batch continues the one before it.

    A range begins at a gap, at a new epoch and at a control batch: only its first batch needs a
    look, which keeps the loop in Python short.
    """
    heads = run.heads
    bases = heads["base_offset"].astype(np.int64)
    ends = bases + heads["count"]
    epochs = heads["epoch"]
    odd = (heads["attributes"] & CONTROL) != 0
    odd[0] = True
    odd[1:] |= (bases[1:] != ends[:-1]) | (epochs[1:] != epochs[:-1])
    return pairwise([*np.flatnonzero(odd).tolist(), len(bases)])


class SegmentScanner:
    """Checks the batches of one segment. Call `feed` for every item, then `finish`.

    `feed` gives the blocks that are complete, `finish` the last one and the facts.

    What each batch goes through:

    1. `_follows`: it must begin where the one before ended. Where it does not, either offsets are
       missing, or its own offset is damaged (the checksum does not cover it); the next batch
       shows which, so both continuations are kept in `_alternatives`.
    2. `_in_epoch`: the epoch must not decrease, and a new one begins with a LeaderChange. Kafka 3.3
       to 3.7 could write the bootstrap records of a log before its first LeaderChange: they wait
       in `_bootstrap` until that shows their epoch to be right.
    3. `_control`: control records are decoded and collected.
    4. `_accept`: sound batches go into the digests, and extend the sound part until the first
       finding.
    """

    def __init__(self, path: str, file: str, base: int, next_base: int | None) -> None:
        """path: of the replica; next_base: base offset of the segment after it."""
        self._path, self._file, self._base, self._next_base = path, file, base, next_base
        self._expected = self._reached = base
        """Where the next batch must begin, and the end of the batches so far."""
        self._alternatives: set[int] = set()
        """Where the next batch may begin as well, after one that did not follow."""
        self._epoch: int | None = None
        self._begins_with_leader = False
        self._broken_at: int | None = None
        self._after_damage = False
        """True after a damaged piece: how many offsets it had is unknown, so any offset may follow."""
        self._after_gap = False
        """True when batches are missing before the current one: a LeaderChange may be among them."""
        self._spans: list[EpochRange] = []
        self._controls: list[ControlRecord] = []
        self._findings: list[Finding] = []
        self._part: BlockDigest | None = None
        self._bootstrap: list[BatchRun] = []
        """The batches at the beginning of a log that precede its first LeaderChange."""

    def feed(self, item: Item) -> Iterator[BlockDigest]:
        """Take the next run of batches, or damage; gives the blocks that are complete."""
        if isinstance(item, Damage):
            yield from self._close()
            self._refuse_bootstrap()
            self._damage(item)
            return
        for start, stop in _uniform_ranges(item):
            follows = self._first_valid(item, start, stop)
            if self._bootstrap and self._epoch is not None:
                for part in self._bootstrap:
                    yield from self._accept(part)
                self._bootstrap.clear()
            if follows < stop:
                yield from self._accept(item.part(slice(follows, stop)))

    def finish(self, size: int) -> tuple[SegmentFacts, list[BlockDigest]]:
        """The facts about a segment of `size` bytes, and the last block."""
        rest = list(self._close())
        self._refuse_bootstrap()
        following = self._next_base
        if following is not None and not self._after_damage:
            if following not in (self._expected, *self._alternatives):
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

    def _first_valid(self, run: BatchRun, start: int, stop: int) -> int:
        """The index of the first valid batch of a range; `stop` when none is."""
        bases, counts = run.heads["base_offset"], run.heads["count"]
        for index in range(start, stop):
            base, count = int(bases[index]), int(counts[index])
            after = int(bases[index + 1]) if index + 1 < len(bases) else None
            spot = self._spot(run, index)
            if not self._follows(base, count, after, spot):
                continue
            is_control = bool(run.heads["attributes"][index] & CONTROL)
            epoch = int(run.heads["epoch"][index])
            if self._may_precede_leader(is_control, epoch, base):
                self._bootstrap.append(run.part(slice(index, stop)))
                self._advance(int(bases[stop - 1] + counts[stop - 1]))
                return stop
            if not self._in_epoch(is_control, epoch, spot):
                # all batches of a range have one epoch: one finding covers them
                self._advance(int(bases[stop - 1] + counts[stop - 1]))
                return stop
            self._advance(base + count)
            if self._control(run, index, spot):
                return index
        return stop

    def _follows(self, base: int, count: int, after: int | None, spot: Spot) -> bool:
        """Whether a batch is the next one of the log.

        after: base offset of the batch after it in the run; None at the end of the run
        """
        self._after_gap = self._after_damage
        if base in (self._expected, *self._alternatives) or self._after_damage:
            if self._after_damage:
                self._after_damage, self._reached = False, base
            return True
        expected = self._expected
        # what follows continues where this batch should end: only this one's offset is wrong
        if after == expected + count or (after is None and self._next_base == expected + count):
            what = f"the batch has offset {base} in place of {expected}: its header is damaged"
            self._add_finding("batch-chain", what, spot, expected)
            self._advance(expected + count)
            return False
        self._missing(expected, base, spot.position or 0)
        self._alternatives = {base + count, expected + count}
        if base < expected:
            return False
        # when nothing follows, it may be this batch's offset that is damaged, too
        self._expected = base + count
        if after is None:
            return False
        self._after_gap = True
        return True

    def _advance(self, end: int) -> None:
        """Batches up to `end` were seen; the log continues after the highest end so far.

        A batch that repeats lower offsets ends lower: then the next may follow on it instead.
        """
        self._reached = self._expected = max(self._reached, end)
        self._alternatives = {end} - {self._expected}

    def _missing(self, expected: int, found: int, position: int) -> None:
        if found > expected:
            what = f"the offsets {expected} to {found - 1} are missing: offset {found} comes next"
        else:
            what = f"offset {found} comes next in place of {expected}: offsets go back"
        self._add_finding(
            "batch-chain", what, Spot(self._file, self._base, position, found), expected
        )

    def _may_precede_leader(self, is_control: bool, epoch: int, base: int) -> bool:
        """Whether a batch is one of the first of a log, before any LeaderChange."""
        if self._bootstrap:
            first = int(self._bootstrap[0].heads["epoch"][0])
            if not is_control and epoch == first:
                return True
            if epoch != first:
                self._refuse_bootstrap()
            return False
        begins = self._base == base == 0 and self._epoch is None
        return begins and not is_control and self._broken_at is None

    def _refuse_bootstrap(self) -> None:
        """Report the batches that no LeaderChange of their epoch follows."""
        if self._bootstrap:
            spot = self._spot(self._bootstrap[0], 0)
            self._bootstrap.clear()
            self._no_leader_change(spot.epoch or 0, spot)

    def _no_leader_change(self, epoch: int, spot: Spot) -> None:
        what = (
            f"epoch {epoch} begins without the LeaderChange that every leader writes first; a header "
            "is damaged"
        )
        self._add_finding("epochs", what, spot, spot.offset or 0)

    def _in_epoch(self, is_control: bool, epoch: int, spot: Spot) -> bool:
        """Whether the batch may have this epoch."""
        was = self._epoch
        if epoch == was:
            return True
        # a segment may begin within an epoch, but a log begins with a LeaderChange
        if was is None and (self._base > 0 or is_control):
            self._epoch = epoch
            return True
        if was is not None and epoch < was:
            what = (
                f"epoch {epoch} follows epoch {was}: epochs must not go back; a header is damaged"
            )
            self._add_finding("epochs", what, spot, spot.offset or 0)
        elif not (is_control or self._after_gap):
            self._no_leader_change(epoch, spot)
        else:
            self._epoch = epoch
            return True
        return False

    def _control(self, run: BatchRun, index: int, spot: Spot) -> bool:
        """Collect the records of a control batch; False when its epoch must be damaged."""
        if not run.heads["attributes"][index] & CONTROL:
            return True
        view = run.view(index)
        try:
            found = controls(view, spot)
        except (BatchError, RecordError) as error:
            self._add_finding("control-records", str(error), spot, view.base_offset)
            return True
        for control in found:
            if control.newer:
                finding = Finding("control-records", WARNING, control.newer, NEWER, spot)
                self._note(finding)
                self._begins_with_leader |= control.offset == self._base
            if control.leader is None:
                continue
            if self._spans and self._spans[-1].epoch == view.epoch:
                what = f"there is a LeaderChange in the middle of epoch {view.epoch}"
                self._add_finding(
                    "epochs", f"{what}; its header is damaged", spot, view.base_offset
                )
                return False
            if view.base_offset == self._base:
                self._begins_with_leader = True
        self._controls += found
        return True

    def _accept(self, run: BatchRun) -> Iterator[BlockDigest]:
        """Digest valid batches of one epoch without a gap."""
        heads = run.heads
        bases = heads["base_offset"].astype(np.int64)
        epoch, end = int(heads["epoch"][0]), int(bases[-1] + heads["count"][-1])
        self._grow(epoch, int(bases[0]), end)
        self._advance(end)
        hashes = fingerprints(heads)
        blocks = bases // BLOCK
        cuts = [0, *(np.flatnonzero(np.diff(blocks)) + 1).tolist(), len(bases)]
        for start, stop in pairwise(cuts):
            last = stop - 1
            where = run.origin + int(run.starts[last]) + PREFIX_SIZE + int(heads["length"][last])
            yield from self._add(
                BlockDigest(
                    *(self._path, self._file, self._base, epoch, int(blocks[start])),
                    *(run.origin + int(run.starts[start]), where),
                    *(int(bases[start]), int(bases[last] + heads["count"][last])),
                    *(stop - start, int(hashes[start:stop].sum(dtype=np.uint64))),
                )
            )

    def _grow(self, epoch: int, start: int, end: int) -> None:
        """Extend the sound part, which ends at the first finding."""
        if self._broken_at is not None:
            return
        if self._spans and self._spans[-1].epoch == epoch:
            self._spans[-1] = replace(self._spans[-1], end=end)
        else:
            self._spans.append(EpochRange(epoch, start, end))

    def _add(self, part: BlockDigest) -> Iterator[BlockDigest]:
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

    def _close(self) -> Iterator[BlockDigest]:
        if self._part is not None:
            yield self._part
            self._part = None

    def _damage(self, damage: Damage) -> None:
        torn = damage.what.startswith(TORN) and self._next_base is None
        spot = Spot(self._file, self._base, damage.position, self._expected, self._epoch)
        if torn and "next sound batch" not in damage.what:
            what = f"the last {damage.size} bytes are no whole batch: {damage.what}"
            advice = (
                "A crash during a write leaves such a tail, and the next start truncates it: the node "
                "fetches the rest again. " + RESTORE + " if the node was shut down cleanly"
            )
            self._add_finding("torn-tail", what, spot, self._expected, advice)
        else:
            self._add_finding("checksums", damage.what, spot, self._expected)
        self._after_damage = True

    def _spot(self, run: BatchRun, index: int) -> Spot:
        return Spot(
            self._file,
            self._base,
            run.origin + int(run.starts[index]),
            int(run.heads["base_offset"][index]),
            int(run.heads["epoch"][index]),
        )

    def _add_finding(
        self, check: str, what: str, spot: Spot, sound_to: int, advice: str = RESTORE
    ) -> None:
        """Add damage; the log is sound up to `sound_to` (exclusive) if this is the first."""
        if self._broken_at is None:
            self._broken_at = sound_to
        self._note(Finding(check, DAMAGE, what, advice, spot))

    def _note(self, finding: Finding) -> None:
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(finding)
        else:
            last = self._findings[-1]
            self._findings[-1] = replace(last, more=last.more + 1)


def controls(view: BatchView, spot: Spot) -> list[ControlRecord]:
    """The LeaderChange and KRaftVoters records of a control batch, and those that are newer.

    spot: of the batch. Raises BatchError and RecordError.
    """
    found = []
    for index, (key, value) in enumerate(raw_records(view)):
        here = replace(spot, offset=view.base_offset + index)
        try:
            message = decode_message(key, value)
        except NewerRecordError as error:
            hides = control_type(key) not in _WITHOUT_VOTERS
            found.append(ControlRecord(here, newer=str(error), hides_voters=hides))
            continue
        if isinstance(message, LeaderChangeMessage):
            found.append(
                ControlRecord(
                    here,
                    message.leader_id,
                    tuple(sorted(voter.voter_id for voter in message.voters)),
                    tuple(sorted(voter.voter_id for voter in message.granting_voters)),
                    crc=view.crc,
                )
            )
        elif isinstance(message, VotersRecord):
            found.append(ControlRecord(here, voters=voter_keys(message)))
    return found


def voter_keys(record: VotersRecord) -> tuple[ReplicaKey, ...]:
    """The voters of a KRaftVoters record, sorted."""
    return tuple(sorted(ReplicaKey(one.voter_id, one.voter_directory_id) for one in record.voters))
