"""Which replica's log counts, what is missing, and what stands in for it; no Spark needed."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.spark.tables.ingest import _wanted_snapshots
from quorate.spark.tables.lineage import (
    CHUNK,
    Group,
    Span,
    after_holes,
    covered,
    floors,
    intake,
    join_spans,
    lineage,
    superseded,
    union,
    without,
)
from quorate.spark.tables.stretches import Stretch, ahead, bounds_of, stretches, up_to_open
from quorate.spark.tables.survey import SnapshotFile, Survey


def groups(replica, *spans):
    """(epoch, start, end) of a replica's log, in one chunk."""
    return [Group(replica, epoch, 0, start, end - 1, end) for epoch, start, end in spans]


def test_the_latest_epoch_rules_and_older_tails_were_never_committed():
    dead = groups("dead", (1, 0, 10), (4, 10, 30))
    alive = groups("alive", (1, 0, 10), (4, 10, 20), (6, 20, 25))
    for order in (dead + alive, alive + dead):
        ruling = lineage([], order)
        assert ruling.spans == (Span(1, 0, 10), Span(4, 10, 20), Span(6, 20, 25))
    assert ruling.epoch_at(20) == 6 and ruling.epoch_at(25) is None
    assert superseded([Span(1, 0, 10), Span(4, 10, 30)], ruling) == (20, 30)
    assert superseded([Span(1, 0, 10), Span(4, 10, 20)], ruling) is None


def test_of_one_epoch_the_longest_log_counts():
    ruling = lineage([], groups("a", (2, 0, 5)) + groups("b", (2, 0, 9)))
    assert ruling.spans == (Span(2, 0, 9),)


def test_a_log_that_lost_its_beginning_gets_it_from_another():
    short = groups("short", (3, 50, 60), (5, 60, 80))
    old = groups("old", (1, 0, 40), (3, 40, 55), (4, 55, 58))
    ruling = lineage([], short + old)
    assert ruling.spans == (Span(1, 0, 40), Span(3, 40, 60), Span(5, 60, 80))
    assert ruling.part(4, 55, 58) == (55, 55)


def test_what_is_known_counts_as_a_replica():
    known = [Span(1, 0, 100, 0, 70)]
    one = intake("c", known, groups("late", (1, 90, 120)))
    assert one.known == ((0, 100),) and one.chunks == {0: 70}
    assert intake("c", known, groups("late", (1, 0, 100))).chunks == {}
    foreign = intake("c", [Span(2, 0, 100)], groups("dead", (1, 90, 120)))
    assert foreign.chunks == {0: 0} and foreign.ruling.spans == (Span(2, 0, 100),)


def test_each_chunk_knows_the_latest_time_before_it():
    logs = [Group("a", 1, n, n * CHUNK, (n + 1) * CHUNK - 1, t) for n, t in enumerate((9, 4, 20))]
    assert intake("c", [], logs).chunks == {0: 0, 1: 9, 2: 9}


def test_the_state_follows_the_log_and_leaps_over_a_hole_by_a_snapshot():
    assert stretches(None, [(0, 10)], []) == ([Stretch(0, 10)], None)
    assert stretches(10, [(0, 10)], []) == ([], None)
    assert stretches(10, [(0, 30)], [(20, 1)]) == ([Stretch(10, 30)], None)
    assert stretches(None, [(5, 30)], [(4, 1), (8, 1), (20, 2)]) == ([Stretch(8, 30, (8, 1))], None)
    found, problem = stretches(10, [(0, 15), (20, 30)], [(4, 1), (31, 2)])
    assert found == [Stretch(10, 15)]
    assert problem is not None and problem.startswith("offsets 15 to 19 are missing: bring")
    assert "a snapshot that ends between 20 and 30" in problem
    assert stretches(None, [(5, 8)], [(8, 1)]) == ([Stretch(8, 8, (8, 1))], None)


def test_where_the_clock_of_a_leader_was_behind_what_came_before_time_stands_still():
    spans = [Span(1, 0, 10, 60, 69), Span(2, 10, 20, 10, 19), Span(3, 20, 30, 19, 80)]
    assert floors(spans) == [(10, 30, 69)]
    assert floors([*spans, Span(4, 30, 40, 75, 90), Span(5, 50, 60, 90, 95)]) == [
        (10, 30, 69),
        (30, 40, 80),
    ]
    assert floors(spans[:1]) == floors([]) == []


def test_an_epoch_whose_parts_came_in_disorder_is_joined_only_where_time_goes_on():
    """Its beginning was held up to the time before it; its end came earlier, as it was written."""
    held, early, later = Span(2, 10, 20, 60, 60), Span(2, 20, 30, 15, 25), Span(2, 30, 40, 25, 70)
    spans = join_spans([later, held, Span(1, 0, 10, 50, 60), early])
    assert spans == [Span(1, 0, 10, 50, 60), held, Span(2, 20, 40, 15, 70)]
    assert floors(spans) == [(20, 40, 60)]


def test_a_snapshot_ahead_of_the_log_bridges_the_hole_when_the_log_has_come_to_it():
    snapshots = [(4, 1), (25, 1), (35, 1), (45, 2)]
    assert ahead(None, [(26, 30)], snapshots) == (35, 1)
    assert ahead(10, [(0, 15), (26, 30), (33, 40)], snapshots) == (35, 1)
    assert ahead(None, [(20, 30)], snapshots) is None, "one of them serves now"
    assert ahead(None, [(26, 30)], [(4, 1)]) is None
    assert ahead(10, [(0, 30)], snapshots) is None, "no hole"
    found, problem = stretches(None, [(26, 36)], [(35, 1)])
    assert (found, problem) == ([Stretch(35, 36, (35, 1))], None)


def test_a_limited_stream_keeps_the_snapshot_that_it_is_shown_but_once():
    snapshot = SnapshotFile("c", 35, 1, "n1/00000000000000000035-0000000001.checkpoint")
    told = Survey({"c": groups("n1", (1, 20, 30))}, [snapshot])
    empty = SimpleNamespace(files=lambda table: [])
    assert _wanted_snapshots(empty, told, {}, {"c": [(20, 30)]}) == [snapshot]


ranges = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda p: (p[0], p[0] + p[1])), max_size=6
)


def points(found):
    return {n for start, end in found for n in range(start, end)}


def test_a_snapshot_that_nothing_reaches_is_a_state_by_itself():
    assert stretches(None, [], [(9, 1), (12, 1)]) == ([Stretch(12, 12, (12, 1))], None)
    leap = Stretch(12, 12, (12, 1))
    assert stretches(None, [(0, 5)], [(3, 1), (12, 1)]) == ([Stretch(0, 5), leap], None)
    assert stretches(12, [(0, 5)], [(12, 1)]) == ([], None)
    assert stretches(20, [(0, 20)], [(12, 1)]) == ([], None)


@given(ranges, st.integers(0, 20), st.integers(1, 25))
def test_ranges_are_sets_of_offsets(found, start, size):
    rest = without(found, start, start + size)
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
        spans.append(Span(epoch, at, at + size, at, at + size))
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
        ([Stretch(0, 9)], [], [Stretch(0, 9)], None),
        ([Stretch(0, 9)], [5], [Stretch(0, 5)], 5),
        ([Stretch(5, 9)], [5], [], 5),
        # the end of what begins at 2 is in a hole, and what begins at 55 has none yet
        (
            [Stretch(0, 4), Stretch(50, 60, (50, 1))],
            [2, 55],
            [Stretch(0, 2), Stretch(50, 55, (50, 1))],
            55,
        ),
        ([Stretch(2, 4), Stretch(50, 60, (50, 1))], [2], [Stretch(50, 60, (50, 1))], None),
        ([Stretch(60, 70)], [2], [Stretch(60, 70)], None),
        ([Stretch(0, 4), Stretch(9, 9, (9, 1))], [2], [Stretch(0, 2), Stretch(9, 9, (9, 1))], None),
    ],
)
def test_an_open_transaction_holds_back_what_follows_and_no_snapshot(found, begun, kept, bound):
    assert up_to_open(found, begun) == (kept, bound)


def test_a_snapshot_is_of_a_time_between_its_neighbours():
    spans = [Span(1, 0, 5, 100, 180), Span(2, 9, 12, 300, 340), Span(2, 12, 20, 350, 400)]
    assert bounds_of(9, spans) == (180, 300)
    assert bounds_of(10, spans) == (180, 350)  # the span that it is in tells nothing
    assert bounds_of(30, spans)[0] == 400 and bounds_of(0, spans) == (0, 100)


def test_after_each_hole_the_log_goes_on():
    spans = [Span(1, 0, 4), Span(1, 4, 9), Span(2, 20, 22), Span(3, 30, 31)]
    assert after_holes(spans) == (20, 30)
    assert after_holes(spans[:2]) == after_holes([]) == ()
