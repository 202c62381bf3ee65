"""Decisions that take turns: the write queue lets other writes in between, and loses no order."""

import random

import pytest

from node.made_up_api import records_of
from node.test_write_queue import Queue, writes
from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.controller.activation import NO_OP
from quorate.controller.context import Context, ControllerConfig
from quorate.controller.head import Head
from quorate.controller.heartbeats import BROKER_HEARTBEAT
from quorate.controller.liveness import LeavingBegan, Liveness
from quorate.controller.result import OnException, Result, Turn
from quorate.formats.records import (
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from quorate.formats.versions import METADATA_VERSION
from quorate.metadata.image import NO_LEADER
from quorate.node.queued_write import NO_CONTROLLER
from quorate.node.record_parts import encode
from quorate.node.write_queue import WriteQueue
from quorate.raft.values import ControlState
from quorate.replica.proposals import Committed, Submit
from quorate.wire.messages import BrokerHeartbeatRequest

PARTITIONS = 100_000
TOPICS = 10
PART = 250


def in_turns(*counts, rest, liveness=()):
    def decide(head):
        for number, count in enumerate(counts):
            yield Turn(records_of(f"turn{number}", count), liveness)
        return Result(records_of("rest", rest), "long", atomic=False)

    return decide


def go_on(queue):
    """One step of the node, and the commit of what is submitted: the sizes of the parts."""
    queue.queue.resume(0)
    parts = queue.inputs
    for part in parts:
        queue.commit(part)
    return [len(part.values) for part in parts]


def test_writes_are_decided_between_the_turns_of_another():
    queue = Queue()
    long = queue.add(in_turns(2, 3, rest=1))
    short = queue.add(writes(4))
    assert go_on(queue) == [2, 4]
    assert [one[0] for one in queue.responses] == [short]
    later = queue.add(writes(5))
    assert go_on(queue) == [5, 3]
    assert [one[0] for one in queue.responses] == [later] and queue.queue.unanswered == 1
    assert go_on(queue) == [1]
    assert [one[0] for one in queue.responses] == [long] and queue.queue.unanswered == 0


def test_a_decision_in_turns_goes_on_when_its_last_part_is_committed():
    """Else a write would wait for the commit of all the parts that are decided before it comes."""
    queue = Queue()
    queue.add(in_turns(2, 3, rest=1))
    queue.queue.resume(0)
    assert not queue.queue.is_deciding and queue.queue.wake_at_ms(7) is None
    [part] = queue.inputs
    assert len(part.values) == 2
    queue.commit(part)
    assert queue.queue.wake_at_ms(7) == 7


def test_a_turn_comes_after_the_writes_that_wait():
    queue = Queue()
    queue.add(in_turns(1, rest=1))

    def holds_the_queue(head):
        yield None
        return Result((), "slow")

    queue.add(holds_the_queue)
    waiting = [queue.add(writes(count)) for count in (3, 4)]
    assert [go_on(queue) for _ in range(3)] == [[1], [3, 4, 1], []]
    assert [one[0] for one in queue.responses][1:3] == waiting


def test_a_read_waits_for_the_turn_that_it_has_seen():
    """It is decided behind a write that commits before."""
    queue = Queue()
    queue.add(writes(1))
    queue.add(in_turns(1, rest=1))
    queue.add(lambda head: Result((), "read"))
    first, turn = queue.inputs
    queue.commit(first)
    assert [one[1] for one in queue.responses] == ["written"]
    queue.commit(turn)
    assert [one[1] for one in queue.responses] == ["read"]


def test_two_decisions_in_turns_alternate_and_end_without_records():
    queue = Queue()
    tokens = [queue.add(in_turns(1, 1, rest=0)), queue.add(in_turns(2, 2, rest=0))]
    assert [go_on(queue) for _ in range(4)] == [[1, 2], [1], [2], []]
    assert go_on(queue) == []
    assert [one[0] for one in queue.responses] == tokens
    assert queue.queue.unanswered == 0


def test_what_a_turn_says_of_a_broker_holds_for_the_next_write():
    queue = Queue()
    queue.add(in_turns(1, rest=1, liveness=(LeavingBegan(3),)))
    seen = []

    def see(head):
        seen.append(queue.liveness.is_leaving(3))
        return Result((), None)

    queue.add(see)
    assert seen == [True]


def test_a_turn_without_records_lets_others_in_and_writes_nothing():
    queue = Queue()
    queue.add(in_turns(0, 0, rest=0))
    queue.add(writes(2))
    queue.queue.resume(0)
    queue.queue.resume(0)
    [part] = queue.inputs
    assert len(part.values) == 2
    queue.commit(part)
    assert [one[1] for one in queue.responses] == ["written", "long"]


def test_a_lost_leadership_fails_a_write_between_its_turns():
    queue = Queue()
    closed = []

    def decide(head):
        try:
            yield Turn(records_of("t", 1))
        finally:
            closed.append(True)

    token = queue.add(decide)
    [part] = queue.inputs
    queue.queue.leadership_changed(None)
    assert [one[:2] for one in queue.responses] == [(token, NO_CONTROLLER)]
    assert closed == [True] and queue.queue.unanswered == 0
    assert queue.queue.head.outstanding == 0
    queue.queue.leadership_changed(6)
    queue.commit(part)  # late
    queue.queue.resume(0)
    assert queue.responses == [] and queue.inputs == []


def test_a_failure_after_a_turn_fails_the_write():
    queue = Queue()

    def decide(head):
        yield Turn(records_of("t", 1))
        raise KeyError("planned")

    queue.add(decide, on_exception=OnException.TRY_AGAIN)
    assert [go_on(queue), go_on(queue)] == [[1], []]
    assert [one[2] for one in queue.responses] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert queue.queue.is_active and queue.queue.unanswered == 0


def test_the_audit_has_the_offsets_of_writes_that_alternate():
    queue = Queue()
    queue.queue.out.audited = []
    queue.add(in_turns(2, rest=3))
    queue.add(writes(4))
    assert [go_on(queue), go_on(queue)] == [[2, 4], [3]]
    audited = [facts for _, facts, _ in queue.queue.out.audited]
    found = [(facts.first_offset, facts.records, facts.end_offset) for facts in audited]
    assert found == [(10, 2, 12), (12, 4, 16), (16, 3, 19)]


# -- 100,000 partitions --------------------------------------------------------------------------
class Large:
    """The write queue of a cluster with two brokers, which have all partitions."""

    def __init__(self, leader, isr, *, fenced=()):
        """fenced: ids of brokers."""
        self.head, self.liveness, self.end = Head(), Liveness(9_000), 10
        self.write([FeatureLevelRecord(name=METADATA_VERSION, feature_level=30)])
        self.write([registration(broker_id, broker_id in fenced) for broker_id in (1, 2)])
        for number in range(TOPICS):
            topic_id = Uuid((number + 1).to_bytes(16, "big"))
            self.write([TopicRecord(name=f"topic{number}", topic_id=topic_id)])
            each = PARTITIONS // TOPICS
            self.write([partition(topic_id, index, leader, isr) for index in range(each)])
        image = self.head.image
        self.head.set_committed(image, image, None, None)
        self.liveness.activate(self.head.image.cluster, {}, 0)
        self.queue = WriteQueue(self.head, self.liveness, 1 << 20, self.context, lambda: 3000)
        assert self.queue.leadership_changed(5)

    def write(self, records):
        level = self.head.image.features.metadata_version
        values = [encode(record, level) for record in records]
        self.head.apply(records, values)

    def context(self, call):
        config = ControllerConfig(3000, "cluster", part_records=PART)
        control = ControlState(1, ())
        return Context(config, control, 0, random.Random(1), self.liveness)

    def heartbeat(self, broker_id, **fields):
        """The response, the records of each turn, and how many other writes were decided between."""
        request = BrokerHeartbeatRequest(
            broker_id=broker_id, broker_epoch=8, current_metadata_offset=1 << 40, **fields
        )
        return self.ask(BROKER_HEARTBEAT, request)

    def ask(self, operation, request):
        queue = self.queue
        queue.add(operation, request, None, 0)
        sizes, others = [self.commit()], 0
        while not queue.out.own_results:
            queue.add(NO_OP, None, None, 0)
            assert self.commit() == 1
            [(written, _)] = queue.out.own_results
            assert written is NO_OP
            queue.out.own_results.clear()
            others += 1
            queue.resume(0)
            sizes.append(self.commit())
        [(_, response)] = queue.out.own_results
        return response, sizes, others

    def commit(self):
        """Commits what is submitted; returns the count of its records."""
        size = 0
        for part in self.queue.inputs:
            assert isinstance(part, Submit)
            size += len(part.values)
            base, self.end = self.end, self.end + len(part.values)
            self.queue.settle(Committed(part.token, base, self.end))
        self.queue.inputs.clear()
        return size


def registration(broker_id, fenced):
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=Uuid(broker_id.to_bytes(16, "big")),
        broker_epoch=8,
        fenced=fenced,
    )


def partition(topic_id, index, leader, isr):
    directories = [Uuid(bytes(15) + b"\x01")] * 2
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=[1, 2],
        isr=isr,
        leader=leader,
        directories=directories,
    )


def check_sizes(sizes, others):
    """No turn is larger than one batch, and other writes were decided after each but the last."""
    assert PARTITIONS <= sum(sizes) <= PARTITIONS + 1
    assert max(sizes) <= PART + 1 and len(sizes) >= PARTITIONS // PART
    assert others == len(sizes) - 1


@pytest.mark.slow
def test_a_shutdown_moves_100000_leaders_in_turns():
    cluster = Large(1, [1, 2])
    response, sizes, others = cluster.heartbeat(1, want_shut_down=True)
    check_sizes(sizes, others)
    assert not response.should_shut_down
    assert (cluster.head.index.leads(1), cluster.head.index.leads(2)) == (0, PARTITIONS)


@pytest.mark.slow
def test_a_fencing_by_heartbeat_of_100000_partitions_lets_other_writes_in():
    cluster = Large(2, [2, 1])
    response, sizes, others = cluster.heartbeat(1, want_shut_down=True)
    check_sizes(sizes, others)
    assert response.should_shut_down and cluster.head.image.cluster.brokers[1].fenced


@pytest.mark.slow
def test_an_unfencing_that_elects_100000_leaders_lets_other_writes_in():
    cluster = Large(NO_LEADER, [1], fenced=(1, 2))
    response, sizes, others = cluster.heartbeat(1)
    check_sizes(sizes, others)
    assert not response.is_fenced
    assert (cluster.head.index.leads(1), cluster.head.index.leaderless) == (PARTITIONS, 0)


@pytest.mark.slow
def test_an_unfencing_that_elects_nobody_looks_at_100000_partitions_in_turns():
    cluster = Large(NO_LEADER, [1], fenced=(1, 2))
    response, sizes, others = cluster.heartbeat(2)
    assert sizes == [1, *[0] * (PARTITIONS // PART)] and others == len(sizes) - 1
    assert not response.is_fenced
