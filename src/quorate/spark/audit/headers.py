"""Epochs in headers that were damaged where nothing follows to contradict them.

A batch's checksum does not cover its epoch. But two elections never write the same LeaderChange:
its checksum covers the time too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from quorate.spark.audit.chain import RESTORE
from quorate.spark.audit.model import DAMAGE, Control, Finding, SegmentFacts


def with_damaged_epochs(segments: Iterable[SegmentFacts]) -> list[SegmentFacts]:
    """The facts, where a LeaderChange with another epoch than in most replicas is damage."""
    facts = list(segments)
    known: dict[tuple[int, int], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for segment in facts:
        for one in segment.controls:
            if one.leader is not None and one.spot.epoch is not None:
                known[one.offset, one.crc][one.spot.epoch].add(segment.path)
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


def _cut(segment: SegmentFacts, wrong: Control, epoch: int) -> SegmentFacts:
    """Sound only up to this record."""
    what = (
        f"the LeaderChange says epoch {wrong.spot.epoch}, but the same one is of epoch {epoch} in "
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
