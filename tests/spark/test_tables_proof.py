"""Which offsets are known to be committed, by logs, voters and snapshots; no Spark needed."""

from __future__ import annotations

from quorate.spark.tables.lineage import EpochGroup, EpochSpan, committed_lineage, plan_intake
from quorate.spark.tables.proof import (
    CommitEvidence,
    NamedVoters,
    proven_spans,
    unproven,
    voters_in,
)

THREE = frozenset((1, 2, 3))


def log(node, *spans):
    """(epoch, start, end) of a node's log, in one chunk."""
    return [
        EpochGroup(f"node{node}", epoch, 0, start, end - 1, end, node)
        for epoch, start, end in spans
    ]


def left(groups, **evidence):
    known = evidence.get("known", ())
    return unproven(committed_lineage(known, groups), groups, CommitEvidence(**evidence))


def test_of_a_lone_log_nothing_is_known():
    assert left(log(1, (1, 0, 10))) == ((0, 10),)
    assert left(log(1, (1, 0, 10)), voters=frozenset((1,))) == ()


def test_what_a_majority_has_of_the_newest_epoch_is_committed_and_all_before_it():
    logs = log(1, (1, 0, 10), (2, 10, 20)) + log(2, (1, 0, 10), (2, 10, 15))
    assert left(logs, voters=THREE) == ((15, 20),)
    assert left(log(11, (1, 0, 10)) + log(12, (1, 0, 10)), voters=THREE) == ((0, 10),)


def test_an_old_epoch_on_a_majority_is_not_while_a_later_one_may_replace_it():
    """Figure 8 of the Raft paper."""
    logs = (
        log(1, (1, 0, 1), (2, 1, 3)) + log(2, (1, 0, 1), (2, 1, 3)) + log(3, (1, 0, 1), (3, 1, 3))
    )
    assert left(logs, voters=THREE) == ((0, 3),)
    assert left(logs, voters=THREE, snapshots=frozenset([(2, 3)])) == ((2, 3),)


def test_snapshots_confirm_what_is_below_their_end_and_of_their_epoch():
    logs = log(4, (3, 228, 284), (4, 284, 317))
    assert left(logs, snapshots=frozenset([(228, 3)])) == ((228, 317),)
    assert left(logs, snapshots=frozenset([(290, 4)])) == ((290, 317),)
    assert left(logs, snapshots=frozenset([(290, 3)])) == ((284, 317),)


def test_a_tail_before_a_gap_is_not_confirmed_by_the_log_behind_it():
    late = log(1, (6, 342, 360))
    tail = log(4, (3, 228, 284), (4, 284, 317))
    shown = {"voters": frozenset((1,)), "snapshots": frozenset([(228, 3), (342, 6)])}
    assert left(late + tail, **shown) == ((228, 317),)
    linked = log(2, (4, 290, 307), (6, 307, 343))
    assert left(late + tail + linked, **shown) == ()
    touching = log(1, (6, 317, 360))
    assert left(touching + tail, **shown) == ((228, 317),), "no log has both sides"


def test_what_was_known_before_stays_known():
    known = proven_spans([EpochSpan(1, 0, 10), EpochSpan(2, 10, 20)], ((15, 20),))
    assert [(span.start, span.end) for span in known] == [(0, 10), (10, 15)]
    spans = (EpochSpan(1, 0, 10), EpochSpan(2, 10, 20))
    lineage = committed_lineage(spans, log(9, (2, 10, 25)))
    assert unproven(lineage, log(9, (2, 10, 25)), CommitEvidence(known=known)) == ((15, 25),)


def test_a_quorum_gives_only_what_is_committed():
    assert left(log(1, (1, 0, 10), (2, 10, 20)), given=True) == ()


def test_the_voters_are_those_named_last_in_the_ruling_log():
    named = NamedVoters()
    named.in_logs["c"] = [(0, 1, THREE), (5, 1, frozenset((1, 2))), (9, 4, frozenset((7,)))]
    lineage = committed_lineage([], log(1, (1, 0, 9), (6, 9, 12)))
    assert named.at_end("c", lineage) == {1, 2}
    named.in_snapshots["c"] = [(12, 6, frozenset((1, 2, 4)))]
    assert named.at_end("c", lineage) == {1, 2, 4}
    assert named.at_end("d", lineage) == frozenset()


def test_what_is_to_be_left_out_makes_no_work():
    logs = log(1, (1, 0, 10))
    assert plan_intake("c", [], logs, ((0, 10),)).chunks == {}
    assert plan_intake("c", [], logs, ((4, 10),)).chunks == {0: 0}


def test_voters_behind_a_record_of_a_later_release_are_not_known():
    in_record = voters_in("KRaftVoters", '{"voters":[{"voterId":4},{"voterId":2}]}')
    assert in_record == frozenset((2, 4))
    assert voters_in("KRaftVoters", None) == frozenset()
    assert voters_in("unknown-control-9", None) == frozenset()
    assert voters_in("LeaderChange", None) is None
    named = NamedVoters({"c": [(0, 1, THREE), (5, 1, frozenset())]})
    assert named.at_end("c", committed_lineage([], log(1, (1, 0, 9)))) == frozenset()
    assert left(log(1, (1, 0, 9)) + log(2, (1, 0, 9)), voters=frozenset()) == ((0, 9),)
