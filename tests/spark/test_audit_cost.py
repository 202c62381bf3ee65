"""The cost of a verdict grows linearly with the number of elections."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from quorate.base.ids import ReplicaKey
from quorate.spark.audit.model import ControlRecord, EpochRange, ReplicaFiles, SegmentFacts, Spot
from quorate.spark.audit.verdict import ClusterFacts, verdict_on

LENGTH = 10
"""Offsets of an epoch."""
VOTERS = tuple(ReplicaKey(number) for number in (1, 2, 3))


def lines_run(run: Callable[[], Any]) -> int:
    """The lines of Python that a call executes: a measure that the load of the machine does not
    change."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def segment(path: str, epochs: int, voters: tuple[ReplicaKey, ...] | None) -> SegmentFacts:
    """A log with so many elections; with voters it has their set in it."""
    starts = [(epoch, (epoch - 1) * LENGTH) for epoch in range(1, epochs + 1)]
    controls = [
        ControlRecord(Spot(path, 0, start, start, epoch), 1, (1, 2, 3), (1, 2))
        for epoch, start in starts
    ]
    if voters is not None:
        controls.insert(1, ControlRecord(Spot(path, 0, 1, 1, 1), voters=voters))
    return SegmentFacts(
        *(path, 0, path, epochs * LENGTH, None, True),
        tuple(EpochRange(epoch, start, start + LENGTH) for epoch, start in starts),
        tuple(controls),
        (),
    )


@pytest.mark.parametrize("voters", [VOTERS, None], ids=["voters in the log", "static quorum"])
def test_the_cost_of_a_verdict_is_linear_in_elections(voters):
    def evidence(epochs: int) -> ClusterFacts:
        replicas = [ReplicaFiles("c", number, f"node{number}") for number in (1, 2, 3)]
        return ClusterFacts(replicas, [segment(one.path, epochs, voters) for one in replicas])

    few, many = evidence(50), evidence(400)
    assert verdict_on(many).committed_end == 400 * LENGTH
    assert lines_run(lambda: verdict_on(many)) < 10 * lines_run(lambda: verdict_on(few))
