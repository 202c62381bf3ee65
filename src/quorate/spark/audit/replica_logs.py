"""The sound part of each replica's log, put together from what its segments and snapshots hold.

Everything that compares replicas works on these logs: nothing behind the first damage counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from quorate.spark.audit.committed import ReplicaLog, Voters
from quorate.spark.audit.model import (
    DAMAGE,
    RESTORE,
    ControlRecord,
    EpochRange,
    Finding,
    ReplicaFiles,
    SegmentFacts,
    SnapshotFacts,
)


def sound_log(
    replica: ReplicaFiles, segments: Sequence[SegmentFacts], snapshots: Iterable[SnapshotFacts]
) -> ReplicaLog:
    """The log of a replica up to its first damage; damaged snapshots are left out.

    segments: those of the replica, ascending by base offset
    """
    sound = [one for one in snapshots if one.sound]
    start = segments[0].base if segments else 0
    log = ReplicaLog(replica, start, start, snapshots=tuple(one.id for one in sound))
    spans: list[EpochRange] = []
    controls: list[ControlRecord] = []
    for segment in segments:
        for span in segment.spans:
            if spans and spans[-1].epoch == span.epoch:
                spans[-1] = replace(spans[-1], end=span.end)
            else:
                spans.append(span)
        controls += segment.controls
        log.end = segment.end if segment.broken_at is None else segment.broken_at
        if segment.broken_at is not None:
            break
    log.spans = tuple(spans)
    log.controls = tuple(sorted(controls, key=lambda one: one.offset))
    if spans:
        log.end = min(log.end, spans[-1].end)
    # a snapshot's voter set is in force at its end, so it counts as written by the record before
    sets: list[tuple[int, Voters | None]]
    sets = [(one.id.offset - 1, one.voters) for one in sound if one.voters]
    sets += [(one.offset, one.voters) for one in log.controls if one.voters or one.hides_voters]
    log.voter_sets = tuple(sorted(sets, key=lambda one: one[0]))
    return log


def mark_damaged_epochs(segments: Iterable[SegmentFacts]) -> list[SegmentFacts]:
    """The facts, with a damaged epoch in the header of a LeaderChange as damage of its segment.

    A batch's checksum does not cover its epoch, and in a last batch nothing follows to contradict
    it. Two elections never write the same LeaderChange, since its checksum covers the time: where
    the same one (by offset and checksum) has another epoch than in most replicas, it is damaged.
    """
    facts = list(segments)
    known: dict[tuple[int, int], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for segment in facts:
        for one in segment.controls:
            if one.leader is not None and one.spot.epoch is not None:
                known[one.offset, one.crc][one.spot.epoch].add(segment.path)
    # the epoch of most replicas; a tie decides nothing
    right = {
        place: max(epochs, key=lambda epoch: len(epochs[epoch]))
        for place, epochs in known.items()
        if len(epochs) > 1 and len({len(paths) for paths in epochs.values()}) > 1
    }
    return [_marked(segment, right) for segment in facts] if right else facts


def _marked(segment: SegmentFacts, right: dict[tuple[int, int], int]) -> SegmentFacts:
    for one in segment.controls:
        epoch = right.get((one.offset, one.crc))
        if one.leader is not None and epoch not in (None, one.spot.epoch):
            return _cut(segment, one, epoch or 0)
    return segment


def _cut(segment: SegmentFacts, wrong: ControlRecord, epoch: int) -> SegmentFacts:
    """The segment, sound only up to this record."""
    what = (
        f"the LeaderChange has epoch {wrong.spot.epoch}, but the same record has epoch {epoch} in "
        "the other replicas: its header is damaged"
    )
    sound_to = segment.broken_at
    spans = (replace(span, end=min(span.end, wrong.offset)) for span in segment.spans)
    return replace(
        segment,
        broken_at=wrong.offset if sound_to is None else min(sound_to, wrong.offset),
        spans=tuple(span for span in spans if span.start < span.end),
        controls=tuple(one for one in segment.controls if one is not wrong),
        findings=(*segment.findings, Finding("epochs", DAMAGE, what, RESTORE, wrong.spot)),
    )


def check_segment_boundary(before: SegmentFacts | None, segment: SegmentFacts) -> list[Finding]:
    """What is wrong between a segment and the one before it (None: it is the first).

    Missing offsets are a finding of the segment before.
    """
    if before is None or not (before.spans and segment.spans):
        return []
    was, now = before.spans[-1].epoch, segment.spans[0].epoch
    if before.broken_at is not None or now == was or (now > was and segment.begins_with_leader):
        return []
    what = f"the segment begins in epoch {now}, the one before ends in epoch {was}"
    if now > was:
        what += ", and there is no LeaderChange between them"
    spot = segment.first_spot(now)
    return [Finding("epochs", DAMAGE, what, RESTORE, spot)]
