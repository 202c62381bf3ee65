"""The functions that compare logs and scan segments, without files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrow import not_none
from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.spark.audit import segment_scan
from quorate.spark.audit.committed import (
    ReplicaLog,
    agreed_end,
    divergence_offset,
    find_committed,
    is_voter,
    majority_end,
)
from quorate.spark.audit.log_matching import blocks_differ, find_mismatch, first_of
from quorate.spark.audit.model import EpochRange, Mismatch, ReplicaFiles
from quorate.spark.audit.segment_scan import SegmentScanner
from quorate.spark.files.scan import BatchRun, runs
from spark.replica_dirs import data, elected, key

VOTERS = tuple(ReplicaKey(number) for number in (1, 2, 3))


def log(node, *spans, start=0, snapshots=(), voters=VOTERS):
    """A chain of (epoch, end) spans."""
    made, at = [], start
    for epoch, end in spans:
        made.append(EpochRange(epoch, at, end))
        at = end
    return ReplicaLog(
        ReplicaFiles("c", node, f"node{node}"),
        start,
        at,
        tuple(made),
        snapshots=tuple(OffsetAndEpoch(*found) for found in snapshots),
        voter_sets=((0, voters),),
    )


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        (log(1, (1, 10)), log(2, (1, 10)), None),
        (log(1, (1, 10)), log(2, (1, 5)), None),
        (log(1, (1, 10)), log(2, (1, 5), (2, 8)), 5),
        (log(1, (1, 5), (3, 9)), log(2, (1, 5), (2, 8)), 5),
        (log(1, (1, 5), (3, 9)), log(2, (1, 7)), 5),
        (log(1, (3, 20), start=12), log(2, (1, 10)), None),
        (log(1, (3, 20), start=8), log(2, (1, 10)), 8),
        (log(1), log(2, (1, 10)), None),
    ],
)
def test_logs_diverge_where_their_epochs_do(one, other, where):
    assert divergence_offset(one, other) == divergence_offset(other, one) == where


@given(
    common=st.lists(st.integers(1, 4), max_size=4),
    tails=st.tuples(*[st.lists(st.integers(1, 4), max_size=3)] * 2),
)
def test_the_divergence_is_the_first_offset_of_another_epoch(common, tails):
    def made(node, tail, first_epoch):
        spans, at, epoch = [], 0, 0
        for size in common:
            at, epoch = at + size, epoch + 1
            spans.append((epoch, at))
        for epoch, size in enumerate(tail, first_epoch):
            at += size
            spans.append((epoch, at))
        return log(node, *spans)

    one, other = made(1, tails[0], 10), made(2, tails[1], 20)
    expected = sum(common) if all(tails) else None
    assert divergence_offset(one, other) == expected
    assert agreed_end(one, other) == (sum(common) if all(tails) else min(one.end, other.end))


def test_a_majority_holds_what_the_second_longest_of_three_holds():
    three = [log(1, (1, 10)), log(2, (1, 7)), log(3, (1, 4))]
    assert [majority_end(one, three) for one in three] == [7, 7, 4]
    assert majority_end(three[0], three[:1]) is None


def test_observers_count_for_no_majority():
    group = [log(1, (1, 4)), log(2, (1, 4)), log(3, (1, 4)), log(11, (1, 9)), log(12, (1, 9))]
    assert not_none(find_committed(group)).end == 4


def test_a_voter_has_its_directory_id():
    known = ReplicaFiles("c", 1, "node1", key(1).directory_id)
    assert is_voter(known, key(1))
    assert is_voter(known, ReplicaKey(1))
    assert not is_voter(known, ReplicaKey(1, key(2).directory_id))
    assert not is_voter(known, key(2))


def test_an_old_epoch_on_a_majority_is_not_committed_while_a_later_one_may_replace_it():
    """Figure 8 of the Raft paper."""
    group = [log(1, (1, 1), (2, 3)), log(2, (1, 1), (2, 3)), log(3, (1, 1), (3, 3))]
    assert not_none(find_committed(group)).end == 1
    group[0].snapshots = (OffsetAndEpoch(3, 2),)
    assert not_none(find_committed(group)).end == 3, "a snapshot says that it was"


def test_two_majorities_are_reported():
    one, two = VOTERS, tuple(ReplicaKey(number) for number in (4, 5, 6))
    group = [log(n, (1, 5), (2, 9)) for n in (1, 2)]
    group += [log(n, (1, 5), (3, 9), voters=two) for n in (4, 5)]
    found = not_none(find_committed(group))
    assert found.main.replica.node_id in (4, 5)
    assert set(found.contested_by) == {"node1", "node2"}
    assert found.voters == two
    assert one != two


def facts_of(found, base=0, next_base=None):
    """The parts and facts of a segment's bytes."""
    data = b"".join(found)
    reader = SegmentScanner("path", "file", base, next_base)
    parts = [
        part
        for item in runs(lambda position, size: data[position : position + size], len(data))
        for part in reader.feed(item)
    ]
    facts, rest = reader.finish(len(data))
    return [*parts, *rest], facts


def test_blocks_are_cut_by_offset_and_epoch(monkeypatch):
    monkeypatch.setattr(segment_scan, "BLOCK", 4)
    batches = [elected(0, 1, 1), data(1, 1, 2), data(3, 1, 3), data(6, 1), elected(7, 2, 2)]
    parts, facts = facts_of(batches)
    assert [(one.epoch, one.block, one.first, one.end, one.count) for one in parts] == [
        *((1, 0, 0, 6, 3), (1, 1, 6, 7, 1), (2, 1, 7, 8, 1))
    ]
    assert [(one.start, one.stop) for one in parts] == [
        (0, sum(map(len, batches[:3]))),
        (sum(map(len, batches[:3])), sum(map(len, batches[:4]))),
        (sum(map(len, batches[:4])), sum(map(len, batches))),
    ]
    assert facts.spans == (EpochRange(1, 0, 7), EpochRange(2, 7, 8))
    assert (facts.findings, facts.broken_at, facts.end) == ((), None, 8)


def test_a_segment_that_ends_where_the_next_begins_is_whole():
    batches = [elected(0, 1, 1), data(1, 1, 4)]
    assert facts_of(batches, next_base=5)[1].findings == ()
    (found,) = facts_of(batches, next_base=7)[1].findings
    assert "offsets 5 to 6 are missing" in found.what
    assert found.spot.position == sum(map(len, batches))


def test_damage_is_counted_when_there_is_much_of_it(monkeypatch):
    monkeypatch.setattr(segment_scan, "MOST_FINDINGS", 2)
    batches = [elected(0, 1, 1), *(data(offset, 1) for offset in range(2, 20, 2))]
    found = facts_of(batches)[1].findings
    assert [one.more for one in found] == [0, 7]


def seen(parts):
    """The offsets that are compared with other replicas."""
    return sorted({offset for one in parts for offset in range(one.first, one.end)})


LINE = [elected(0, 1, 1), *(data(offset, 1) for offset in range(1, 12))]
"""A batch for each of twelve offsets."""


@pytest.mark.parametrize("at", range(4, 13))
@pytest.mark.parametrize("again", [slice(1, 2), slice(1, 4), slice(0, 1)])
def test_repeated_batches_are_one_finding_and_the_rest_is_scanned(at, again):
    parts, facts = facts_of([*LINE[:at], *LINE[again], *LINE[at:]], next_base=12)
    found = [one.what for one in facts.findings]
    assert found == [f"offset {again.start} comes next in place of {at}: offsets go back"]
    assert (facts.broken_at, facts.end) == (at, 12)
    assert seen(parts) == list(range(12))


def test_a_wrong_epoch_in_a_header_is_one_finding():
    """A checksum does not cover it."""
    parts, facts = facts_of([*LINE[:5], data(5, 99), *LINE[6:]], next_base=12)
    (found,) = facts.findings
    assert "epoch 99 begins without the LeaderChange" in found.what
    assert seen(parts) == [*range(5), *range(6, 12)]


BOOTSTRAP = [data(0, 1), data(1, 1), elected(2, 1, 1), data(3, 1), elected(4, 2, 2), data(5, 2)]


@pytest.mark.parametrize("cut", [slice(None), slice(1, None), slice(4)])
def test_bootstrap_records_may_precede_the_first_leader_change(cut):
    """Kafka 3.3 to 3.7 could write them so."""
    log_ = [data(0, 1, 2), *BOOTSTRAP[2:]] if cut.start else BOOTSTRAP[cut]
    parts, facts = facts_of(log_)
    assert (facts.findings, facts.broken_at, facts.spans[0]) == ((), None, EpochRange(1, 0, 4))
    assert seen(parts) == list(range(facts.end))


@pytest.mark.parametrize(
    ("log_", "what"),
    [
        ([data(0, 99), *BOOTSTRAP[1:]], "epoch 99 begins without the LeaderChange"),
        (BOOTSTRAP[:2], "epoch 1 begins without the LeaderChange"),
        ([*BOOTSTRAP[:4], elected(4, 1, 2)], "a LeaderChange in the middle of epoch 1"),
        ([*BOOTSTRAP[:4], data(4, 2), elected(5, 2, 2)], "epoch 2 begins without"),
    ],
    ids=["wrong epoch", "no LeaderChange", "two", "a later epoch"],
)
def test_only_the_first_leader_change_may_come_late(log_, what):
    assert what in facts_of(log_)[1].findings[0].what


def test_a_tail_of_another_epoch_is_one_finding():
    tail = [data(offset, 7) for offset in range(5, 12)]
    (found,) = facts_of([*LINE[:5], *tail], next_base=12)[1].findings
    assert "epoch 7 begins without the LeaderChange" in found.what


def part_of(path, *batches):
    """One replica's part, and its bytes."""
    (found,), _ = facts_of([*batches], base=batches[0][7])
    found.path = path
    return found, b"".join(batches)


def compared(*held):
    bytes_of = {part.path: data for part, data in held}

    def reader(part):
        data = bytes_of[part.path]
        return lambda position, size: data[position : position + size]

    parts = [part for part, _ in held]
    return blocks_differ(parts), find_mismatch(parts, reader)


def test_equal_blocks_do_not_differ():
    same = [data(1, 1, 2), data(3, 1)]
    assert compared(part_of("a", *same), part_of("b", *same)) == (False, None)


def test_a_longer_log_contradicts_no_replica():
    log_ = [data(1, 1, 2), data(3, 1), data(4, 1)]
    assert compared(part_of("a", *log_), part_of("b", *log_[:2])) == (True, None)


def test_the_first_batch_that_differs_is_named_and_the_most_frequent_trusted():
    log_ = [data(1, 1, 2), data(3, 1), data(4, 1)]
    odd = [log_[0], data(3, 1, salt=9), data(4, 1, salt=9)]
    differing, found = compared(part_of("a", *odd), part_of("b", *log_), part_of("c", *log_))
    assert differing
    assert (found.offset, found.epoch, found.count) == (3, 1, 2)
    assert [[path for path, _ in version] for version in found.versions] == [["b", "c"], ["a"]]
    assert found.versions[1][0][1].position == len(log_[0])


def test_a_repeated_batch_counts_once():
    log_ = [data(1, 1, 2), data(3, 1)]
    odd, twice = part_of("a", log_[0], data(3, 1, salt=9)), (part_of("a", data(3, 1, salt=9)))
    held = [odd, (replace(twice[0], start=odd[0].start), odd[1]), part_of("b", *log_)]
    _, found = compared(*held)
    assert [len(version) for version in found.versions] == [1, 1]


def test_of_many_mismatches_the_first_is_kept_and_all_are_counted():
    low, high = Mismatch(3, 1, (), 2), Mismatch(9, 1, (), 5)
    assert first_of(high, low) == first_of(low, high) == Mismatch(3, 1, (), 7)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.data())
def test_digests_do_not_depend_on_how_runs_are_cut(counts, choice):
    batches, offset = [elected(0, 1, 1)], 1
    for count in counts:
        batches.append(data(offset, 1, count))
        offset += count
    whole = b"".join(batches)
    reader = SegmentScanner("path", "file", 0, None)
    found: list[Any] = []
    for run in runs(lambda position, size: whole[position : position + size], len(whole)):
        assert isinstance(run, BatchRun)
        cut = choice.draw(st.integers(0, len(run.starts)))
        for part in (run.part(slice(0, cut)), run.part(slice(cut, None))):
            found += reader.feed(part) if len(part.starts) else ()
    found += reader.finish(len(whole))[1]
    assert [part.content for part in found] == [part.content for part in facts_of(batches)[0]]
