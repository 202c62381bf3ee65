"""The small parts of a replica, each for itself: tail, snapshot policy, proposals, registration."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from conformance.marker import kafka_guarantee, kafka_scenario
from narrow import not_none
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, Listener, OffsetAndEpoch, Uuid
from quorate.formats.batch import MAX_BATCH_SIZE, iter_batches, values
from quorate.formats.versions import MetadataVersion
from quorate.metadata.image import Cluster, Controller, Features, Image
from quorate.node.registration import (
    BACKOFF_MS,
    MAX_BACKOFF_MS,
    Registrant,
    Registration,
)
from quorate.raft.inputs import Propose, UpgradeKRaftVersion
from quorate.raft.ready import Accepted, Refused
from quorate.replica.proposals import (
    BATCHING_DELAY_MS,
    BatchingDelay,
    Committed,
    Proposals,
    Submit,
)
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.replica.state_machine import Now
from quorate.replica.tail import Tail
from quorate.storage.api import AppendedBatch, SnapshotInfo


# -- tail -------------------------------------------------------------------------------------
def batch(base, count=1, size=10):
    return AppendedBatch(base, base + count - 1, 1, bytes([base % 256]) * size)


class ModelTail:
    """The reference model: a list that drops nothing."""

    def __init__(self):
        self.batches = []

    @property
    def end(self):
        return self.batches[-1].last_offset + 1 if self.batches else 0

    def read(self, offset, end, max_bytes):
        found: list[Any] = []
        for item in self.batches:
            if item.last_offset < offset:
                continue
            if item.last_offset >= end or (
                found and sum(map(len, found)) + len(item.data) > max_bytes
            ):
                break
            found.append(item.data)
        return b"".join(found)


actions = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(1, 60)),
        st.tuples(st.just("truncate"), st.integers(0, 40)),
        st.tuples(st.just("read"), st.integers(0, 40), st.integers(0, 40), st.integers(1, 150)),
    ),
    max_size=60,
)


@given(actions)
def test_a_tail_reads_the_logs_batches_or_nothing(actions):
    tail, model = Tail(0, limit=200), ModelTail()
    for action, *args in actions:
        if action == "append":
            item = batch(model.end, *args)
            model.batches.append(item)
            tail.append([item])
        elif action == "truncate":
            model.batches = [b for b in model.batches if b.last_offset < args[0]]
            tail.truncate(args[0])
            if tail.end_offset != model.end:  # the whole tail went: it starts anew at the log's end
                assert tail.start_offset == tail.end_offset
                tail.restart(model.end)
        else:
            got = tail.read(*args)
            if got is not None:
                assert got == model.read(*args)
            else:
                assert args[0] < tail.start_offset
        assert tail.end_offset == model.end


def test_a_tail_keeps_no_more_than_its_limit():
    tail = Tail(0, limit=1000)
    for base in range(1000):
        tail.append([batch(base, size=100)])
    kept = not_none(tail.read(tail.start_offset, 1000, 1 << 20))
    assert 500 <= len(kept) <= 1000


# -- snapshots --------------------------------------------------------------------------------
def infos(*rows):
    return [SnapshotInfo(OffsetAndEpoch(end, 1), size, written) for end, size, written in rows]


@kafka_scenario("SnapshotGeneratorTest", "createSnapshot", "timeBasedSnapshots")
@pytest.mark.parametrize(
    ("applied", "age", "due"),
    [(0, 10**9, False), (99, 0, False), (100, 0, True), (1, 49, False), (1, 50, True)],
)
def test_a_snapshot_is_due_by_bytes_or_by_age(applied, age, due):
    assert SnapshotPolicy(max_bytes=100, max_interval_ms=50).is_due(applied, age) is due


@pytest.mark.parametrize(
    ("applied", "last_size", "due"), [(99, 0, False), (100, 99, True), (100, 101, False)]
)
def test_the_snapshot_interval_is_proportional_to_the_last_snapshot(applied, last_size, due):
    policy = SnapshotPolicy(max_bytes=100, max_interval_ms=50, in_proportion=True)
    assert policy.is_due(applied, 0, last_size) is due
    assert policy.is_due(applied, 50, last_size)
    assert SnapshotPolicy(max_bytes=100).is_due(applied, 0, last_size) is (applied >= 100)


def test_age_does_not_count_when_it_is_off():
    assert not SnapshotPolicy(max_bytes=100, max_interval_ms=0).is_due(1, 10**12)


@kafka_scenario("KafkaRaftLogTest", "deleteSnapshots")
def test_retention_by_time_drops_old_snapshots_except_the_newest():
    policy = SnapshotPolicy(retention_ms=1000, retention_bytes=-1)
    old = infos((10, 1, 0), (20, 1, 100), (30, 1, 5000))
    assert policy.clean_to(1, old, 6000) == OffsetAndEpoch(30, 1)
    assert policy.clean_to(1, old, 10**9) == OffsetAndEpoch(30, 1)
    assert policy.clean_to(1, old, 900) is None
    assert policy.clean_to(1, infos((10, 1, 0)), 10**9) is None


@kafka_scenario("KafkaRaftLogTest", "softRetentionLimit")
def test_retention_by_size_drops_one_snapshot_at_a_time():
    policy = SnapshotPolicy(retention_ms=-1, retention_bytes=100)
    three = infos((10, 40, 0), (20, 40, 0), (30, 40, 0))
    assert policy.clean_to(50, three, 0) == OffsetAndEpoch(20, 1)
    assert policy.clean_to(50, three[2:], 0) is None
    assert policy.clean_to(20, three[1:], 0) is None


# -- proposals --------------------------------------------------------------------------------
def propose(proposals, end=10):
    outcomes: list[Any] = []
    return list(proposals.propose(3, 1000, end, outcomes)), outcomes


def of_machine(proposals, own, epoch):
    """The events of the machine's own batches."""
    events = list(proposals.of_machine(own, epoch, 1000))
    assert all(isinstance(event, Propose) for event in events)
    return events


def accept(proposals, base):
    """Everything that was submitted gets its place from `base` on; the end offset."""
    outcomes: list[Any] = []
    (event,), _ = propose(proposals, base)
    proposals.settle(Accepted(event.token, base, base + event.count), outcomes)
    return base + event.count


def submit(proposals, count):
    for token in range(count):
        proposals.submit(Submit(token, [b"x"]))


def commit(proposals, base, count):
    """One round of `count` writers; the end offset."""
    submit(proposals, count)
    end = accept(proposals, base)
    proposals.release(end, [])
    return end


def test_a_lone_writer_never_waits():
    proposals = Proposals()
    end = 0
    for now in range(5):
        proposals.submit(Submit(now, [b"x"] * (5 - now)))
        assert proposals.is_due(now)
        end = accept(proposals, end)
        proposals.release(end, [])
    assert proposals.wake_at_ms is None


def test_submissions_during_a_round_form_the_next_round():
    proposals = Proposals()
    submit(proposals, 1)
    end = accept(proposals, 0)
    submit(proposals, 3)
    assert not proposals.is_due(0) and not proposals.is_due(1000)
    assert proposals.wake_at_ms is None
    proposals.release(end, [])
    submit(proposals, 1)
    assert proposals.is_due(1000)


def test_as_much_as_a_fetch_carries_waits_for_no_round():
    proposals = Proposals()
    submit(proposals, 1)
    accept(proposals, 0)
    proposals.submit(Submit(9, [bytes(1024 * 1024)]))
    assert proposals.is_due(0)


@kafka_scenario("BatchAccumulatorTest", "lingerBeginsOnFirstWrite")
@kafka_guarantee("BatchAccumulatorTest", "forceDrain")
def test_the_first_of_several_writers_waits_only_until_the_others_arrive():
    proposals = Proposals()
    end = commit(proposals, 0, 4)
    submit(proposals, 3)
    assert not proposals.is_due(100)
    assert proposals.wake_at_ms == 100 + BATCHING_DELAY_MS
    submit(proposals, 1)
    assert proposals.is_due(100)
    assert proposals.wake_at_ms is None
    end = accept(proposals, end)
    proposals.release(end, [])
    submit(proposals, 3)
    assert not proposals.is_due(200)
    assert not proposals.is_due(200 + BATCHING_DELAY_MS - 1)
    assert proposals.is_due(200 + BATCHING_DELAY_MS)
    assert proposals.wake_at_ms is None


def test_as_many_records_in_fewer_submissions_do_not_wait():
    proposals = Proposals()
    commit(proposals, 0, 4)
    proposals.submit(Submit(1, [b"x"] * 4))
    assert proposals.is_due(0)


def test_submissions_that_wait_at_a_commit_count_in_the_next_round():
    proposals = Proposals()
    submit(proposals, 2)
    end = accept(proposals, 0)
    submit(proposals, 2)
    proposals.release(end, [])
    assert not proposals.is_due(0)
    submit(proposals, 2)
    assert proposals.is_due(0)


def test_an_unsuccessful_batching_delay_is_repeated_less_often_until_one_succeeds():
    delay = BatchingDelay()
    now, tries = 0, []
    for number in range(200):
        delay.round_ended(4, 4)
        now += 10
        if delay.is_to_wait(3, 3, now):
            tries.append(number)
            now += BATCHING_DELAY_MS
            assert not delay.is_to_wait(3, 3, now)
    assert [later - sooner for sooner, later in pairwise(tries)] == [2, 4, 8, 16, 32, 64, 64]
    while not delay.is_to_wait(3, 3, now):
        delay.round_ended(4, 4)
    assert not delay.is_to_wait(4, 4, now)
    delay.round_ended(4, 4)
    assert delay.is_to_wait(3, 3, now)


def test_leadership_lost_during_a_batching_delay_drops_its_submissions():
    proposals = Proposals()
    commit(proposals, 0, 4)
    submit(proposals, 1)
    assert not proposals.is_due(0)
    outcomes: list[Any] = []
    proposals.lose(outcomes)
    assert [(o.error, o.in_doubt) for o in outcomes] == [(ErrorCode.NOT_CONTROLLER, False)]
    assert not proposals.is_due(1000) and proposals.wake_at_ms is None


@kafka_scenario("BatchAccumulatorTest", "singleBatchAccumulation")
def test_everything_submitted_in_a_step_is_one_batch_and_each_gets_its_offsets():
    proposals = Proposals()
    proposals.submit(Submit(1, [b"a", b"b"]))
    proposals.submit(Submit(2, [b"c"]))
    (event,), _ = propose(proposals)
    (view,) = iter_batches(event.payload)
    assert values(view) == [b"a", b"b", b"c"] and (event.count, event.epoch) == (3, 3)
    outcomes: list[Any] = []
    proposals.settle(Accepted(event.token, 10, 13), outcomes)
    proposals.release(12, outcomes)
    assert outcomes == [Committed(1, 10, 12)]
    proposals.release(13, outcomes)
    assert outcomes[1:] == [Committed(2, 12, 13)]


def test_the_state_machines_own_batches_have_no_outcome():
    proposals = Proposals()
    events = of_machine(proposals, [[b"x"], [b"y", b"z"]], 3)
    assert [event.count for event in events] == [1, 2]
    outcomes: list[Any] = []
    proposals.settle(Accepted(events[0].token, 10, 11), outcomes)
    proposals.settle(Refused(events[1].token, ErrorCode.NOT_CONTROLLER, ""), outcomes)
    proposals.release(99, outcomes)
    assert outcomes == []


def test_a_submission_without_records_waits_for_the_current_log_end():
    proposals = Proposals()
    proposals.submit(Submit(1, []))
    events, outcomes = propose(proposals, end=10)
    proposals.release(9, outcomes)
    assert (events, outcomes) == ([], [])
    proposals.release(10, outcomes)
    assert outcomes == [Committed(1, 10, 10)]


@kafka_scenario("BatchAccumulatorTest", "multipleBatchAccumulation")
def test_no_batch_exceeds_kafkas_limit():
    proposals = Proposals()
    for token in range(3):
        proposals.submit(Submit(token, [bytes(3 * 1024 * 1024)]))
    events, outcomes = propose(proposals)
    assert [event.count for event in events] == [2, 1] and outcomes == []
    assert all(event.size <= MAX_BATCH_SIZE for event in events)


@kafka_guarantee("BatchAccumulatorTest", "maxNumberOfBatches")
def test_an_oversize_submission_is_refused_without_effect_on_others():
    proposals = Proposals()
    proposals.submit(Submit(1, [bytes(MAX_BATCH_SIZE)]))
    proposals.submit(Submit(2, [b"fits"]))
    events, outcomes = propose(proposals)
    assert [event.count for event in events] == [1]
    assert [(o.token, o.error) for o in outcomes] == [(1, ErrorCode.RECORD_LIST_TOO_LARGE)]


@kafka_guarantee(
    "BatchAccumulatorTest",
    "completedBatchReleaseBuffer",
    "unflushedBuffersReleasedByClose",
    "delayedDrainAreReleased",
)
def test_losing_leadership_answers_everything():
    proposals = Proposals()
    proposals.submit(Submit(1, [b"a"]))
    (event,), outcomes = propose(proposals)
    proposals.settle(Accepted(event.token, 10, 11), outcomes)
    proposals.submit(Submit(2, [b"b"]))
    proposals.lose(outcomes)
    assert {(o.token, o.error) for o in outcomes} == {
        (1, ErrorCode.NOT_CONTROLLER),
        (2, ErrorCode.NOT_CONTROLLER),
    }
    proposals.release(99, outcomes)
    assert len(outcomes) == 2


# -- registration -----------------------------------------------------------------------------
INCARNATION = Uuid(bytes(range(16)))
LEADER = (2, Address("two", 9093))
REGISTRANT = Registrant(1, INCARNATION, (Listener("CONTROLLER", "one", 9093),))


def image(level=30, incarnation=None):
    controllers = Map() if incarnation is None else Map({1: Controller(1, incarnation)})
    version = None if level is None else MetadataVersion(level)
    return Image(features=Features(version), cluster=Cluster(controllers=controllers))


def at(ms):
    return Now(ms, ms)


def ready(registrant):
    """A registration whose leader has been active for long."""
    registration = Registration(registrant)
    assert registration.poll(image(), LEADER, at(-BACKOFF_MS)) is None
    assert registration.wake_at_ms == 0
    return registration


def test_a_new_leader_is_asked_after_a_backoff():
    registration = ready(REGISTRANT)
    other = (3, Address("three", 9093))
    assert registration.poll(image(), other, at(50)) is None
    assert registration.wake_at_ms == 50 + BACKOFF_MS
    assert registration.poll(image(), None, at(60)) is None
    assert registration.poll(image(), other, at(70)) is None
    assert registration.poll(image(), other, at(70 + BACKOFF_MS)).to == 3


def test_an_unregistered_controller_asks_the_leader_once():
    registration = ready(REGISTRANT)
    ask = registration.poll(image(), LEADER, at(0))
    assert (ask.to, ask.address) == LEADER
    assert ask.request.incarnation_id == INCARNATION
    assert [(e.name, e.host, e.port) for e in ask.request.listeners] == [
        ("CONTROLLER", "one", 9093)
    ]
    ranges = {
        f.name: (f.min_supported_version, f.max_supported_version) for f in ask.request.features
    }
    assert ranges["metadata.version"] == (7, 33) and ranges["kraft.version"] == (0, 1)
    assert registration.poll(image(), LEADER, at(1)) is None


@pytest.mark.parametrize(
    ("known", "leader"),
    [
        (image(None), LEADER),
        (image(14), LEADER),
        (image(incarnation=INCARNATION), LEADER),
        (image(), None),
    ],
)
def test_no_registration_is_needed(known, leader):
    registration = Registration(REGISTRANT)
    assert registration.poll(known, leader, at(0)) is None
    assert registration.wake_at_ms is None


def test_another_incarnation_of_us_is_replaced():
    assert ready(REGISTRANT).poll(image(incarnation=Uuid(bytes(16))), LEADER, at(0))


def test_failures_are_followed_by_longer_and_longer_waits():
    registration, now, waits = ready(REGISTRANT), 0, []
    for _ in range(14):
        assert registration.poll(image(), LEADER, at(now)) is not None
        registration.done(False, at(now))
        assert registration.poll(image(), LEADER, at(now)) is None
        waits.append(registration.wake_at_ms - now)
        now = registration.wake_at_ms
    assert waits[:3] == [100, 200, 400] and waits[-1] == MAX_BACKOFF_MS


def test_once_registered_it_asks_no_more():
    registration = ready(REGISTRANT)
    registration.poll(image(), LEADER, at(0))
    registration.done(True, at(5))
    assert registration.poll(image(incarnation=INCARNATION), LEADER, at(6)) is None
    assert registration.wake_at_ms is None


def test_the_newest_proposal_is_not_the_one_with_the_oldest_end():
    """An upgrade of kraft.version that changes nothing ends where the record in force does."""
    proposals = Proposals()
    [written] = of_machine(proposals, [[b"x"]], 1)
    proposals.settle(Accepted(written.token, 20, 21), [])
    upgrade = proposals.upgrade(UpgradeKRaftVersion(7, 1))
    proposals.settle(Accepted(upgrade.token, 1, 2), [])
    assert proposals.pending_end == 21
