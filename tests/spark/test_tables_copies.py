"""Copies of a quorum's logs, taken at any moment, brought in any order: one log comes of them.

A small model of Raft makes the copies; the decisions are those of `ingest`, without Spark.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pytest

from quorate.spark.tables.continuity import contradicting_replicas
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.lineage import (
    EpochGroup,
    EpochSpan,
    committed_lineage,
    covered,
    overlap,
    uncovered,
)
from quorate.spark.tables.proof import CommitEvidence, proven_spans, unproven
from quorate.spark.tables.rewind import _cut_spans
from quorate.spark.tables.survey import InputSurvey, SnapshotFile
from quorate.spark.tables.take_back import superseded_ranges

VOTERS, OBSERVERS = (1, 2, 3), (11, 12)


class Copy(NamedTuple):
    """A replica as it was: the epoch of each record, where its log begins, and its snapshots."""

    name: str
    node: int
    start: int
    log: list[int]
    snapshots: frozenset[tuple[int, int]]

    def groups(self) -> list[EpochGroup]:
        ends: dict[int, tuple[int, int]] = {}
        for offset in range(self.start, len(self.log)):
            first, _ = ends.get(self.log[offset], (offset, offset))
            ends[self.log[offset]] = first, offset
        return [
            EpochGroup(self.name, e, 0, low, high, 0, self.node) for e, (low, high) in ends.items()
        ]


def agreeing(one: list[int], other: list[int]) -> int:
    """Up to where two logs are the same: the same epoch at an offset, the same log to there."""
    return next(
        (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


@dataclass
class Quorum:
    """Three voters and two observers; what a majority has of its leader's epoch is committed."""

    rng: random.Random
    logs: dict[int, list[int]] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    snapshots: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    promised: dict[int, int] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    epoch: int = 0
    leader: int | None = None

    def __post_init__(self) -> None:
        for node in (*VOTERS, *OBSERVERS):
            self.logs[node], self.starts[node] = [], 0
            self.snapshots[node], self.promised[node] = set(), 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            step = self.rng.choices((self.elect, self.write, self.fetch), (2, 4, 4))[0]
            step()
            if self.rng.random() < 0.15:
                self.clean()
            if self.rng.random() < 0.3:
                self.copy(self.rng.choice((*VOTERS, *OBSERVERS)))
        for node in (*VOTERS, *OBSERVERS):
            self.copy(node)

    def elect(self) -> None:
        self.epoch += self.rng.randint(1, 2)
        candidate = self.rng.choice(VOTERS)
        voter = self.rng.choice([node for node in VOTERS if node != candidate])
        self.promised[candidate] = self.promised[voter] = self.epoch
        self.leader = None
        if self.rank(voter) <= self.rank(candidate):
            self.leader = candidate
            self.logs[candidate] = [*self.logs[candidate], self.epoch]

    def rank(self, node: int) -> tuple[int, int]:
        log = self.logs[node]
        return (log[-1] if log else 0), len(log)

    def write(self) -> None:
        if self.leader is not None:
            more = [self.epoch] * self.rng.randint(1, 4)
            self.logs[self.leader] = self.logs[self.leader] + more

    def fetch(self) -> None:
        node = self.rng.choice([n for n in (*VOTERS, *OBSERVERS) if n != self.leader])
        if self.leader is None or self.promised[node] > self.epoch:
            return
        self.promised[node] = self.epoch
        ours, theirs = self.logs[node], self.logs[self.leader]
        same = agreeing(ours, theirs)
        own = theirs.index(self.epoch) + 1  # see the last paragraph of `proof`
        end = min(len(theirs), max(same + self.rng.randint(0, 6), own))
        self.logs[node] = theirs[:end]
        self.starts[node] = min(self.starts[node], end)
        if node in VOTERS and end > len(self.committed) and theirs[end - 1] == self.epoch:
            assert theirs[: len(self.committed)] == self.committed
            self.committed = theirs[:end]

    def clean(self) -> None:
        node = self.rng.choice((*VOTERS, *OBSERVERS))
        log, start = self.logs[node], self.starts[node]
        end = agreeing(log, self.committed)
        if end > start + 1:
            offset = self.rng.randint(start + 1, end)
            self.snapshots[node].add((offset, log[offset - 1]))
            if self.rng.random() < 0.5:
                self.starts[node] = self.rng.randint(start, offset)

    def copy(self, node: int) -> None:
        log, start = list(self.logs[node]), self.starts[node]
        kept = frozenset(one for one in self.snapshots[node] if start <= one[0] <= len(log))
        self.copies.append(Copy(f"{node}-{len(self.copies)}", node, start, log, kept))


def taken(known: ClusterProgress, copies: list[Copy]) -> ClusterProgress:
    """What a job makes of these copies, with what is known already."""
    found = [group for one in copies for group in one.groups()]
    if not found:
        return known
    snapshots = [SnapshotFile("c", *id, f"{one.name}/x") for one in copies for id in one.snapshots]
    survey, progress = InputSurvey({"c": found}, snapshots), {"c": known}
    assert list(contradicting_replicas(survey, progress)) == [], (
        "a replica of this cluster counts as foreign"
    )
    for start, end in superseded_ranges(survey, progress).values():
        open_ = (
            piece for low, high in known.unproven for piece in uncovered([(start, end)], low, high)
        )
        spans = tuple(_cut_spans(known, start, end, 0))
        known = replace(known, spans=spans, unproven=tuple(open_))
    lineage = committed_lineage(known.spans, found)
    ids = frozenset(id for one in copies for id in one.snapshots)
    proven = proven_spans(known.spans, known.unproven)
    open_ends = unproven(lineage, found, CommitEvidence(frozenset(VOTERS), ids, proven))
    here = covered(known.spans)
    fresh = [
        EpochSpan(span.epoch, low, high)
        for group in found
        for span in [
            EpochSpan(group.epoch, *lineage.part(group.epoch, group.first, group.last + 1))
        ]
        if span.start < span.end
        for low, high in uncovered(here, span.start, span.end)
    ]
    for span in sorted(fresh, key=lambda one: one.start):
        for low, high in uncovered(covered(known.spans), span.start, span.end):
            known = known.with_spans([EpochSpan(span.epoch, low, high)])
    log = covered(known.spans)
    open_ = (piece for start, end in open_ends for piece in overlap(log, start, end))
    return replace(known, unproven=tuple(open_))


@pytest.mark.parametrize("seed", range(150))
def test_copies_in_any_order_give_the_committed_log(seed: int) -> None:
    rng = random.Random(seed)
    quorum = Quorum(rng)
    quorum.run(40)
    copies, committed = quorum.copies, quorum.committed
    if rng.random() < 0.5:
        rng.shuffle(copies)
    known, left = ClusterProgress("c"), list(copies)
    while left:
        many = rng.randint(1, 3)
        known, left = taken(known, left[:many]), left[many:]
        for span in proven_spans(known.spans, known.unproven):
            assert committed[span.start : span.end] == [span.epoch] * (span.end - span.start)
    log = {offset: span.epoch for span in known.spans for offset in range(span.start, span.end)}
    for one in copies:
        for offset in range(one.start, agreeing(one.log, committed)):
            assert log.get(offset) == committed[offset], (offset, one.name)


def test_a_tail_before_a_gap_is_replaced_by_the_committed_log() -> None:
    """As node 4 of the sample d-divergent: its tail from 307 on, then voters that were cleaned."""
    dead = Copy("dead", 4, 0, [3] * 284 + [4] * 33, frozenset())
    true = [3] * 284 + [4] * 23 + [6] * 60
    cleaned = [Copy(f"{n}", n, 342, true[:363], frozenset({(342, 6)})) for n in (2, 3)]
    known = taken(ClusterProgress("c"), [dead, *cleaned])
    assert [span[:3] for span in known.spans] == [(3, 0, 284), (4, 284, 317), (6, 342, 363)]
    for late in (Copy("old", 1, 0, true[:350], frozenset()), Copy("new", 1, 0, true, frozenset())):
        spans = taken(known, [late]).spans
        end = max(363, len(late.log))
        assert [span[:3] for span in spans] == [(3, 0, 284), (4, 284, 307), (6, 307, end)], (
            late.name
        )
