"""Which replica's log counts, what is missing, and which snapshot replaces it; no Spark needed."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.spark.tables.bronze_run import wanted_snapshots
from quorate.spark.tables.lineage import (
    CHUNK,
    EpochGroup,
    EpochSpan,
    committed_lineage,
    covered,
    join_spans,
    least_times,
    offsets_after_gaps,
    plan_intake,
    superseded_range,
    uncovered,
    union,
)
from quorate.spark.tables.offset_ranges import (
    OffsetRange,
    before_open_transaction,
    ranges_to_apply,
    snapshot_to_keep,
    time_bounds,
)
from quorate.spark.tables.survey import InputSurvey, SnapshotFile


def groups(replica, *spans):
    """(epoch, start, end) of a replica's log, in one chunk."""
    return [EpochGroup(replica, epoch, 0, start, end - 1, end) for epoch, start, end in spans]


def test_the_latest_epoch_rules_and_older_tails_were_never_committed():
    dead = groups("dead", (1, 0, 10), (4, 10, 30))
    alive = groups("alive", (1, 0, 10), (4, 10, 20), (6, 20, 25))
    for order in (dead + alive, alive + dead):
        lineage = committed_lineage([], order)
        assert lineage.spans == (EpochSpan(1, 0, 10), EpochSpan(4, 10, 20), EpochSpan(6, 20, 25))
    assert lineage.epoch_at(20) == 6 and lineage.epoch_at(25) is None
    assert superseded_range([EpochSpan(1, 0, 10), EpochSpan(4, 10, 30)], lineage) == (20, 30)
    assert superseded_range([EpochSpan(1, 0, 10), EpochSpan(4, 10, 20)], lineage) is None


def test_of_one_epoch_the_longest_log_counts():
    lineage = committed_lineage([], groups("a", (2, 0, 5)) + groups("b", (2, 0, 9)))
    assert lineage.spans == (EpochSpan(2, 0, 9),)


def test_a_log_that_lost_its_beginning_gets_it_from_another():
    short = groups("short", (3, 50, 60), (5, 60, 80))
    old = groups("old", (1, 0, 40), (3, 40, 55), (4, 55, 58))
    lineage = committed_lineage([], short + old)
    assert lineage.spans == (EpochSpan(1, 0, 40), EpochSpan(3, 40, 60), EpochSpan(5, 60, 80))
    assert lineage.part(4, 55, 58) == (55, 55)


def test_what_is_known_counts_as_a_replica():
    known = [EpochSpan(1, 0, 100, 0, 70)]
    one = plan_intake("c", known, groups("late", (1, 90, 120)))
    assert one.known == ((0, 100),) and one.chunks == {0: 70}
    assert plan_intake("c", known, groups("late", (1, 0, 100))).chunks == {}
    foreign = plan_intake("c", [EpochSpan(2, 0, 100)], groups("dead", (1, 90, 120)))
    assert foreign.chunks == {0: 0} and foreign.lineage.spans == (EpochSpan(2, 0, 100),)


def test_each_chunk_knows_the_latest_time_before_it():
    logs = [
        EpochGroup("a", 1, n, n * CHUNK, (n + 1) * CHUNK - 1, t) for n, t in enumerate((9, 4, 20))
    ]
    assert plan_intake("c", [], logs).chunks == {0: 0, 1: 9, 2: 9}


def test_the_state_follows_the_log_and_crosses_a_gap_by_a_snapshot():
    assert ranges_to_apply(None, [(0, 10)], []) == ([OffsetRange(0, 10)], None)
    assert ranges_to_apply(10, [(0, 10)], []) == ([], None)
    assert ranges_to_apply(10, [(0, 30)], [(20, 1)]) == ([OffsetRange(10, 30)], None)
    assert ranges_to_apply(None, [(5, 30)], [(4, 1), (8, 1), (20, 2)]) == (
        [OffsetRange(8, 30, (8, 1))],
        None,
    )
    found, problem = ranges_to_apply(10, [(0, 15), (20, 30)], [(4, 1), (31, 2)])
    assert found == [OffsetRange(10, 15)]
    assert problem is not None and problem.startswith("offsets 15 to 19 are missing: ingest")
    assert "a snapshot that ends between 20 and 30" in problem
    assert ranges_to_apply(None, [(5, 8)], [(8, 1)]) == ([OffsetRange(8, 8, (8, 1))], None)


def test_where_the_clock_of_a_leader_was_behind_what_came_before_time_stands_still():
    spans = [
        EpochSpan(1, 0, 10, 60, 69),
        EpochSpan(2, 10, 20, 10, 19),
        EpochSpan(3, 20, 30, 19, 80),
    ]
    assert least_times(spans) == [(10, 30, 69)]
    assert least_times([*spans, EpochSpan(4, 30, 40, 75, 90), EpochSpan(5, 50, 60, 90, 95)]) == [
        (10, 30, 69),
        (30, 40, 80),
    ]
    assert least_times(spans[:1]) == least_times([]) == []


def test_parts_of_an_epoch_are_joined_only_where_time_ascends():
    """Its beginning was held up to the time before it; its end came earlier, as it was written."""
    held, early, later = (
        EpochSpan(2, 10, 20, 60, 60),
        EpochSpan(2, 20, 30, 15, 25),
        EpochSpan(2, 30, 40, 25, 70),
    )
    spans = join_spans([later, held, EpochSpan(1, 0, 10, 50, 60), early])
    assert spans == [EpochSpan(1, 0, 10, 50, 60), held, EpochSpan(2, 20, 40, 15, 70)]
    assert least_times(spans) == [(20, 40, 60)]


def test_a_snapshot_beyond_the_log_bridges_the_gap_once_the_log_reaches_it():
    snapshots = [(4, 1), (25, 1), (35, 1), (45, 2)]
    assert snapshot_to_keep(None, [(26, 30)], snapshots) == (35, 1)
    assert snapshot_to_keep(10, [(0, 15), (26, 30), (33, 40)], snapshots) == (35, 1)
    assert snapshot_to_keep(None, [(20, 30)], snapshots) is None, "one of them serves now"
    assert snapshot_to_keep(None, [(26, 30)], [(4, 1)]) is None
    assert snapshot_to_keep(10, [(0, 30)], snapshots) is None, "no hole"
    found, problem = ranges_to_apply(None, [(26, 36)], [(35, 1)])
    assert (found, problem) == ([OffsetRange(35, 36, (35, 1))], None)


def test_a_limited_stream_keeps_the_snapshot_that_it_is_shown_but_once():
    snapshot = SnapshotFile("c", 35, 1, "n1/00000000000000000035-0000000001.checkpoint")
    survey = InputSurvey({"c": groups("n1", (1, 20, 30))}, [snapshot])
    empty = SimpleNamespace(files=lambda table: [])
    assert wanted_snapshots(empty, survey, {}, {"c": [(20, 30)]}) == [snapshot]


ranges = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda p: (p[0], p[0] + p[1])), max_size=6
)


def points(found):
    return {n for start, end in found for n in range(start, end)}


def test_a_snapshot_that_nothing_reaches_is_a_state_by_itself():
    assert ranges_to_apply(None, [], [(9, 1), (12, 1)]) == ([OffsetRange(12, 12, (12, 1))], None)
    leap = OffsetRange(12, 12, (12, 1))
    assert ranges_to_apply(None, [(0, 5)], [(3, 1), (12, 1)]) == ([OffsetRange(0, 5), leap], None)
    assert ranges_to_apply(12, [(0, 5)], [(12, 1)]) == ([], None)
    assert ranges_to_apply(20, [(0, 20)], [(12, 1)]) == ([], None)


@given(ranges, st.integers(0, 20), st.integers(1, 25))
def test_ranges_are_sets_of_offsets(found, start, size):
    rest = uncovered(found, start, start + size)
    assert points(rest) == set(range(start, start + size)) - points(found)
    joined = union(found)
    assert points(joined) == points(found)
    assert all(one[1] < two[0] for one, two in itertools.pairwise(joined))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), min_size=1, max_size=8))
def test_neighbours_of_one_epoch_become_one_span(parts):
    spans, at, epoch = [], 0, 0
    for grows, size in parts:
        epoch += grows == 1
        at += grows == 3
        spans.append(EpochSpan(epoch, at, at + size, at, at + size))
        at += size
    joined = join_spans(reversed(spans))
    assert points(covered(joined)) == points(covered(spans))
    assert points((s.start, s.end) for s in joined) == points((s.start, s.end) for s in spans)
    for one, two in itertools.pairwise(joined):
        assert (one.epoch, one.end) != (two.epoch, two.start)
    assert all(s.first_time == s.start and s.last_time == s.end for s in joined)


@pytest.mark.parametrize(
    ("found", "begun", "kept", "bound"),
    [
        ([OffsetRange(0, 9)], [], [OffsetRange(0, 9)], None),
        ([OffsetRange(0, 9)], [5], [OffsetRange(0, 5)], 5),
        ([OffsetRange(5, 9)], [5], [], 5),
        # the end of what begins at 2 is in a hole, and what begins at 55 has none yet
        (
            [OffsetRange(0, 4), OffsetRange(50, 60, (50, 1))],
            [2, 55],
            [OffsetRange(0, 2), OffsetRange(50, 55, (50, 1))],
            55,
        ),
        (
            [OffsetRange(2, 4), OffsetRange(50, 60, (50, 1))],
            [2],
            [OffsetRange(50, 60, (50, 1))],
            None,
        ),
        ([OffsetRange(60, 70)], [2], [OffsetRange(60, 70)], None),
        (
            [OffsetRange(0, 4), OffsetRange(9, 9, (9, 1))],
            [2],
            [OffsetRange(0, 2), OffsetRange(9, 9, (9, 1))],
            None,
        ),
    ],
)
def test_an_open_transaction_holds_back_what_follows_and_no_snapshot(found, begun, kept, bound):
    assert before_open_transaction(found, begun) == (kept, bound)


def test_a_snapshot_is_of_a_time_between_its_neighbours():
    spans = [
        EpochSpan(1, 0, 5, 100, 180),
        EpochSpan(2, 9, 12, 300, 340),
        EpochSpan(2, 12, 20, 350, 400),
    ]
    assert time_bounds(9, spans) == (180, 300)
    assert time_bounds(10, spans) == (180, 350)  # the span that it is in says nothing
    assert time_bounds(30, spans)[0] == 400 and time_bounds(0, spans) == (0, 100)


def test_offsets_after_gaps():
    spans = [EpochSpan(1, 0, 4), EpochSpan(1, 4, 9), EpochSpan(2, 20, 22), EpochSpan(3, 30, 31)]
    assert offsets_after_gaps(spans) == (20, 30)
    assert offsets_after_gaps(spans[:2]) == offsets_after_gaps([]) == ()
