"""The write queue alone: parts, sizes, the raft layer, deadlines, refusals of the replica."""

import random
from dataclasses import replace
from typing import Any

import pytest

from conformance.marker import kafka_scenario
from node.made_up_api import records_of
from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import ZERO_UUID
from quorate.controller.activation import ACTIVATION, NO_OP
from quorate.controller.context import Context, ControllerConfig
from quorate.controller.elections import ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.head import Head
from quorate.controller.heartbeats import BROKER_HEARTBEAT, FENCE_STALE_BROKER
from quorate.controller.liveness import BrokerRegistered, LeavingBegan, Liveness
from quorate.controller.result import (
    ApiError,
    KRaftVersionChange,
    OnException,
    Part,
    Result,
    WriteOperation,
)
from quorate.formats.records import ConfigRecord, FenceBrokerRecord
from quorate.metadata.image import Broker
from quorate.node.apis import ROWS
from quorate.node.queued_write import NO_CONTROLLER, SHUTTING_DOWN
from quorate.node.record_writer import STEP_RECORDS
from quorate.node.requests import LONG_REQUEST_BYTES, Call
from quorate.node.write_queue import QUEUED_DECISIONS, QUEUED_RECORDS, WriteQueue
from quorate.raft.inputs import Resign, UpgradeKRaftVersion
from quorate.raft.ready import Refused
from quorate.raft.values import ControlState
from quorate.replica.proposals import Committed, Submit, size_in_batch
from quorate.security.principal import ANONYMOUS
from quorate.wire.header import WireRequest
from quorate.wire.messages import BrokerHeartbeatRequest

ROOM = 4_000
CONTEXT = Context(
    ControllerConfig(1, "cluster"), ControlState(0, ()), 0, random.Random(1), Liveness(9_000)
)


class Queue:
    """The write queue of an active controller, and its output."""

    def __init__(self, leader_id=1, room=ROOM):
        self.liveness = Liveness(9_000)
        self.queue = WriteQueue(
            Head(), self.liveness, room, lambda call: CONTEXT, lambda: leader_id
        )
        self.calls = 0
        self.end = 10
        assert self.queue.leadership_changed(5)

    def add(  # a field of an operation or of a call each
        self,
        decide,
        timeout_ms=None,
        now_ms=0,
        on_exception=OnException.RESIGN,
        who=ANONYMOUS,
        authorize=None,
    ):
        """The token of the call. `decide` takes the head; `authorize` takes nothing, and is long."""
        self.calls += 1
        operation: WriteOperation[Any, Any] = WriteOperation(
            "Test",
            lambda head, request, context: decide(head),
            lambda request, error, message: message,
            timeout_ms=lambda request: timeout_ms,
            on_exception=on_exception,
            authorize=None if authorize is None else lambda request, context: authorize(),
        )
        request = WireRequest(0, 0, self.calls, None, None)
        size = 0 if authorize is None else LONG_REQUEST_BYTES + 1
        call = Call(self.calls, request, "L", principal=who, size=size)
        self.queue.add(operation, "request", call, now_ms)
        return self.calls

    @property
    def inputs(self):
        taken = list(self.queue.inputs)
        self.queue.inputs.clear()
        return taken

    @property
    def responses(self):
        taken = [(r.call.token, r.message, r.error, r.offset) for r in self.queue.out.responses]
        self.queue.out.responses.clear()
        return taken

    def commit(self, submit):
        base, self.end = self.end, self.end + len(submit.values)
        self.queue.settle(Committed(submit.token, base, self.end))


def writes(count, response="written", atomic=True):
    return lambda head: Result(records_of("r", count), response, atomic)


@kafka_scenario("QuorumControllerTest", "appendRecords")
def test_a_part_is_as_large_as_a_batch():
    queue = Queue()
    token = queue.add(writes(400, atomic=False))
    parts = queue.inputs
    assert len(parts) > 1 and sum(len(part.values) for part in parts) == 400
    assert all(0 < size_in_batch(part.values) <= ROOM for part in parts)
    for part in parts[:-1]:
        queue.commit(part)
        assert queue.responses == []
    queue.commit(parts[-1])
    assert queue.responses == [(token, "written", ErrorCode.NONE, 410)]


@pytest.mark.parametrize("atomic", [True, False])
def test_what_fits_no_batch_is_refused_before_it_is_in_the_head(atomic):
    queue = Queue()
    record = records_of("r" * ROOM, 1)
    token = queue.add(lambda head: Result(record, "written", atomic))
    [(call, message, error, _)] = queue.responses
    assert (call, error) == (token, ErrorCode.RECORD_LIST_TOO_LARGE)
    assert f"do not fit one batch of {ROOM}" in message
    assert (queue.inputs, queue.queue.head.outstanding) == ([], 0)
    assert queue.queue.is_active


def test_responses_are_released_in_order():
    queue = Queue()
    tokens = [
        queue.add(writes(1)),
        queue.add(lambda head: Result((), "read")),
        queue.add(writes(1)),
    ]
    first, second = queue.inputs
    queue.commit(first)
    assert [one[0] for one in queue.responses] == tokens[:2]
    queue.commit(second)
    assert [one[0] for one in queue.responses] == tokens[2:]
    assert queue.queue.unanswered == 0


def in_steps(head):
    yield None
    return Result(records_of("r", 1), "in steps")


def changes_kraft_version(head):
    try:
        yield KRaftVersionChange(1, False)
    except ApiError as refused:
        return Result((), f"refused: {refused}")
    return Result(records_of("r", 1), "changed")


def test_the_raft_layer_comes_first_and_holds_the_queue():
    queue = Queue()
    queue.add(changes_kraft_version)
    queue.add(writes(1, "later"))
    [change] = queue.inputs
    assert (type(change), change.version) == (UpgradeKRaftVersion, 1)
    queue.queue.resume(0)
    assert queue.inputs == [] and queue.queue.wake_at_ms(0) is None
    queue.queue.settle(Committed(change.token, 10, 11))
    assert queue.queue.wake_at_ms(7) == 7
    queue.queue.resume(7)
    changed, later = queue.inputs
    assert queue.responses == []
    queue.commit(changed)
    queue.commit(later)
    assert [one[1] for one in queue.responses] == ["changed", "later"]


def test_a_refusal_of_the_raft_layer_is_raised_in_the_decision():
    queue = Queue()
    queue.add(changes_kraft_version)
    [change] = queue.inputs
    error = ErrorCode.INVALID_UPDATE_VERSION
    queue.queue.settle(Refused(change.token, error, "no"))
    assert [one[1:3] for one in queue.responses] == [("refused: no", ErrorCode.NONE)]
    assert queue.queue.is_active and not queue.queue.is_deciding


def test_a_raft_change_that_changes_nothing_does_not_lower_the_committed_offset():
    """Its base and end are those of the record in force, below what later responses depend on."""
    queue = Queue()
    queue.add(writes(5))
    queue.commit(*queue.inputs)
    queue.add(changes_kraft_version)
    [change] = queue.inputs
    queue.queue.settle(Committed(change.token, 2, 2))
    queue.commit(*queue.inputs)
    queue.add(changes_kraft_version)
    [change] = queue.inputs
    assert [one[3] for one in queue.responses] == [15, 16]
    queue.queue.settle(Committed(change.token, 2, 2))
    assert queue.queue.committed_offset == 16


def test_a_raft_change_that_changes_nothing_is_no_commit_of_this_leadership():
    """A write without records is answered next: it depends on more than the record in force."""
    queue = Queue()
    before = queue.queue.committed_offset
    queue.add(changes_kraft_version)
    [change] = queue.inputs
    queue.queue.settle(Committed(change.token, 19, 19))
    assert queue.queue.committed_offset == before


def test_a_queued_write_times_out_while_the_raft_layer_is_waited_for():
    queue = Queue()
    queue.add(changes_kraft_version)
    late = queue.add(writes(1), timeout_ms=50, now_ms=100)
    assert queue.queue.wake_at_ms(100) == 150
    queue.queue.resume(149)
    assert queue.responses == []
    queue.queue.resume(150)
    assert [(one[0], one[2]) for one in queue.responses] == [(late, ErrorCode.REQUEST_TIMED_OUT)]


def test_a_write_whose_deadline_has_passed_is_not_decided_when_its_turn_comes():
    queue = Queue()
    queue.add(changes_kraft_version)
    late = queue.add(writes(1), timeout_ms=50, now_ms=100)
    [change] = queue.inputs
    queue.queue.settle(Committed(change.token, 10, 11))
    queue.queue.resume(10_000)
    assert [(one[0], one[2]) for one in queue.responses] == [(late, ErrorCode.REQUEST_TIMED_OUT)]
    assert [len(part.values) for part in queue.inputs] == [1]


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
@pytest.mark.parametrize("is_active", [True, False])
def test_a_write_without_any_time_is_not_decided(is_active, timeout_ms):
    queue = Queue()
    if not is_active:
        queue.queue.leadership_changed(None)
    late = queue.add(writes(1), timeout_ms=timeout_ms, now_ms=100)
    assert [(one[0], one[2]) for one in queue.responses] == [(late, ErrorCode.REQUEST_TIMED_OUT)]
    assert queue.inputs == [] and queue.queue.counts.operations_timed_out == 1


def test_a_write_times_out_in_the_step_in_which_the_decision_before_it_ends():
    queue = Queue()
    queue.add(in_steps)
    late = queue.add(writes(1), timeout_ms=50, now_ms=100)
    queue.queue.resume(150)
    assert [(one[0], one[2]) for one in queue.responses] == [(late, ErrorCode.REQUEST_TIMED_OUT)]
    assert not queue.queue.is_deciding and queue.queue.wake_at_ms(150) is None


@kafka_scenario("ControllerExceptionsTest", "timeoutExceptionIsTimeoutException")
@kafka_scenario("EventHandlerExceptionInfoTest", "isTimeoutException", "isNotTimeoutException")
@kafka_scenario("QuorumControllerMetricsIntegrationTest", "timeoutMetrics")
@pytest.mark.parametrize(("operation", "heartbeats"), [(BROKER_HEARTBEAT, 1), (NO_OP, 0)])
def test_writes_that_time_out_are_counted(operation, heartbeats):
    queue = Queue()
    queue.add(in_steps)
    request = BrokerHeartbeatRequest() if heartbeats else None
    queue.queue.add(operation, request, None, 100, timeout_ms=50)
    queue.queue.resume(149)
    assert queue.queue.counts.operations_timed_out == 0
    queue.queue.resume(150)
    counts = queue.queue.counts
    assert (counts.operations_timed_out, counts.heartbeats_timed_out) == (1, heartbeats)


def test_what_counts_of_a_write_that_times_out_is_known_at_once():
    queue = Queue()
    queue.add(in_steps)
    operation = replace(NO_OP, expired=lambda head, request: (LeavingBegan(7),))
    queue.queue.add(operation, None, None, 0, timeout_ms=50)
    assert not queue.liveness.is_leaving(7)
    queue.queue.resume(50)
    assert queue.liveness.is_leaving(7)


def test_a_step_of_the_node_decides_a_bounded_number_of_queued_writes():
    queue = Queue()
    queue.add(in_steps)
    for _ in range(QUEUED_DECISIONS + 1):
        queue.add(writes(1))
    queue.queue.resume(1)
    queue.inputs.clear()
    queue.queue.resume(2)
    assert queue.queue.wake_at_ms(2) == 2
    queue.add(writes(1, "newest"))
    assert len(queue.inputs) == QUEUED_DECISIONS
    queue.queue.resume(3)
    assert len(queue.inputs) == 2 and queue.queue.wake_at_ms(3) is None


def test_a_step_of_the_node_decides_few_queued_writes_with_many_records():
    queue = Queue()
    queue.add(in_steps)
    for _ in range(6):
        queue.add(writes(QUEUED_RECORDS // 2, atomic=False))
    queue.queue.resume(1)
    assert [len(part.values) for part in queue.inputs] == [1]
    for step in range(3):
        queue.queue.resume(step)
        assert sum(len(part.values) for part in queue.inputs) == QUEUED_RECORDS


@kafka_scenario(
    "EventHandlerExceptionInfoTest",
    "rejectedExecutionExceptionInfo",
    "rejectedExecutionExceptionFailureMessage",
)
def test_writes_that_wait_fail_when_the_node_begins_to_shut_down():
    queue = Queue()
    held, waiting = queue.add(in_steps), queue.add(writes(1))
    queue.queue.shut_down()
    new = queue.add(writes(1))
    refused = (SHUTTING_DOWN, ErrorCode.REQUEST_TIMED_OUT)
    assert [one[:3] for one in queue.responses] == [(waiting, *refused), (new, *refused)]
    queue.queue.resume(1)
    queue.commit(*queue.inputs)
    assert [one[0] for one in queue.responses] == [held]


@kafka_scenario(
    "EventHandlerExceptionInfoTest",
    "periodicControlTaskExceptionInfo",
    "periodicControlTaskExceptionFailureMessage",
)
def test_a_periodic_task_that_fails_does_not_end_the_leadership():
    queue = Queue()
    task = replace(NO_OP, decide=lambda head, request, context: [][0])
    queue.queue.add(task, None, None, 0)
    assert queue.queue.is_active and queue.inputs == [] and queue.queue.out.faults == 1
    assert queue.queue.out.own_results == [(task, None)]
    text = "writeNoOpRecord failed: IndexError: list index out of range; it is tried again later"
    assert queue.queue.out.notes == [text]


def test_only_the_activation_ends_the_node_and_only_periodic_tasks_keep_the_leadership():
    operations = [row.operation for row in ROWS if row.operation is not None]
    assert {one.on_exception for one in operations} == {OnException.RESIGN}
    tasks = (NO_OP, FENCE_STALE_BROKER, ELECT_PREFERRED, ELECT_UNCLEAN)
    assert {one.on_exception for one in tasks} == {OnException.TRY_AGAIN}
    assert ACTIVATION.on_exception is OnException.END_NODE


@kafka_scenario(
    "EventHandlerExceptionInfoTest", "notLeaderExceptionInfo", "notLeaderExceptionFailureMessage"
)
def test_a_write_that_the_replica_refuses_ends_the_leadership():
    """A part is missing in the log, and all that follows was decided on it."""
    queue = Queue()
    first, second = queue.add(writes(1)), queue.add(writes(2))
    refused = queue.inputs[0]
    queue.queue.settle(Refused(refused.token, ErrorCode.NOT_LEADER_OR_FOLLOWER, "no"))
    assert not queue.queue.leadership_changed(5)
    assert [one[:3] for one in queue.responses] == [
        (first, NO_CONTROLLER, ErrorCode.NOT_CONTROLLER),
        (second, NO_CONTROLLER, ErrorCode.NOT_CONTROLLER),
    ]
    assert queue.inputs == [Resign(5)]
    assert not queue.queue.is_active
    assert queue.queue.head.image is queue.queue.head.committed
    assert not queue.queue.leadership_changed(5) and not queue.queue.is_active
    assert queue.queue.leadership_changed(7) and queue.queue.is_active


def fences_nobody(head):
    return Result([FenceBrokerRecord(id=9, epoch=1)], "fenced")


def test_a_client_s_record_that_no_node_could_apply_is_refused():
    """Kafka's controller ends, and the next one, which gets the same request, too."""
    queue = Queue()
    pending, refused = queue.add(writes(1)), queue.add(fences_nobody)
    assert [(one[0], one[2]) for one in queue.responses] == [
        (refused, ErrorCode.UNKNOWN_SERVER_ERROR)
    ]
    [note] = queue.queue.out.notes
    assert "no node can apply: " in str(note) and str(note).endswith("; the request is refused")
    [submit] = queue.inputs
    queue.commit(submit)
    assert queue.responses[0][:3] == (pending, "written", ErrorCode.NONE)
    assert queue.queue.is_active and queue.queue.out.faults == 1


def test_a_client_s_record_that_cannot_be_encoded_is_refused():
    queue = Queue()
    too_long = ConfigRecord(resource_type=4, resource_name="", name="n", value="\u20ac" * 30_000)
    queue.add(lambda head: Result([too_long], "set"))
    assert [one[2] for one in queue.responses] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert queue.inputs == [] and queue.queue.is_active


def test_the_node_s_own_record_that_no_node_could_apply_ends_it():
    queue = Queue()
    operation: WriteOperation[Any, Any] = WriteOperation(
        "Test", lambda head, request, context: fences_nobody(head), lambda *failed: None
    )
    with pytest.raises(QuorateError, match=r"no node can apply: .*not registered"):
        queue.queue.add(operation, "request", None, 0)
    assert queue.inputs == []


def test_after_a_part_a_record_that_no_node_could_apply_ends_the_leadership():
    queue = Queue()

    def decide(head):
        yield Part(records_of("r", 1))
        return fences_nobody(head)

    queue.add(decide)
    queue.queue.resume(1)
    assert Resign(5) in queue.inputs and not queue.queue.is_active


@kafka_scenario("EventHandlerExceptionInfoTest", "faultExceptionFailureMessage")
@kafka_scenario("QuorumControllerTest", "fatalMetadataReplayErrorOnActive")
@pytest.mark.interpreted
def test_any_exception_while_the_head_applies_records_ends_the_node(monkeypatch):
    """The other nodes would raise it too when they apply what is committed."""
    queue = Queue()

    def defective(records, values):
        raise KeyError("topic")

    monkeypatch.setattr(queue.queue.head, "apply", defective)
    with pytest.raises(QuorateError, match=r"no node can apply: KeyError\('topic'\)"):
        queue.add(writes(1))
    assert queue.inputs == [] and queue.responses == []


@kafka_scenario("ControllerExceptionsTest", "runtimeExceptionIsNotTimeoutException")
@kafka_scenario(
    "EventHandlerExceptionInfoTest",
    "nullPointerExceptionInfo",
    "nullPointerExceptionFailureMessageWhenActive",
)
def test_a_fault_fails_the_writes_before_it_and_resigns():
    queue = Queue()
    pending, broken = queue.add(writes(1)), queue.add(lambda head: [][0])
    [submit, resign] = queue.inputs
    assert isinstance(submit, Submit) and resign == Resign(5)
    assert [(one[0], one[2]) for one in queue.responses] == [
        (broken, ErrorCode.UNKNOWN_SERVER_ERROR),
        (pending, ErrorCode.NOT_CONTROLLER),
    ]
    assert queue.queue.out.faults == 1
    queue.commit(submit)  # it was appended before: nothing is answered twice
    assert queue.responses == []


def test_a_queued_decision_in_steps_holds_the_queue_when_its_turn_comes():
    queue = Queue()
    for decide in (in_steps, in_steps, writes(1, "last")):
        queue.add(decide)
    for step in range(5):
        assert len(queue.queue.inputs) == (0, 1, 1, 2, 3)[step]
        assert queue.queue.is_deciding == (step in (0, 2))
        queue.queue.resume(step)
    for submit in queue.inputs:
        queue.commit(submit)
    assert [one[1] for one in queue.responses] == ["in steps", "in steps", "last"]


def test_a_lost_leadership_closes_a_decision_in_steps():
    closed = []

    def steps(head):
        try:
            while True:
                yield None
        finally:
            closed.append(True)

    queue = Queue(leader_id=3)
    held, queued = queue.add(steps), queue.add(writes(1))
    queue.queue.leadership_changed(None)
    assert closed == [True] and queue.queue.unanswered == 0
    text = "The active controller appears to be node 3."
    assert [one[:2] for one in queue.responses] == [(held, NO_CONTROLLER), (queued, text)]


def test_a_decision_whose_clean_up_fails_is_a_fault_and_nothing_else():
    def steps(head):
        try:
            while True:
                yield None
        finally:
            raise ZeroDivisionError("in the clean-up")

    queue = Queue()
    held, queued = queue.add(steps), queue.add(writes(1))
    queue.queue.leadership_changed(None)
    assert [one[0] for one in queue.responses] == [held, queued]
    assert queue.queue.out.faults == 1 and "in the clean-up" in queue.queue.out.notes[0]
    assert queue.queue.unanswered == 0 and not queue.queue.is_active


# -- many records ----------------------------------------------------------------------------------
def many(count, as_steps):
    """A decision with so many records, made at once or after a pause."""

    def steps(head):
        yield None
        return Result(records_of("r", count), "written", True)

    return steps if as_steps else writes(count)


@pytest.mark.parametrize("as_steps", [True, False])
def test_many_records_are_written_in_steps_and_submitted_together(as_steps):
    queue = Queue(room=1 << 20)
    token, other = queue.add(many(1_200, as_steps)), queue.add(writes(1))
    steps = 0
    while not (submitted := queue.inputs):
        assert queue.responses == [] and queue.queue.is_deciding
        queue.queue.resume(0)
        steps += 1
    assert steps >= 2 * 1_200 // STEP_RECORDS
    assert [len(submit.values) for submit in submitted] == [1_200]
    queue.queue.resume(0)
    [after] = queue.inputs
    assert len(after.values) == 1
    for submit in (*submitted, after):
        queue.commit(submit)
    assert [one[0] for one in queue.responses] == [token, other]
    assert queue.queue.head.commit(submitted[0].values) is not None, "the pieces are one batch"


@pytest.mark.parametrize("at", range(4))
def test_a_leadership_lost_while_many_records_are_written_reverts_the_head(at):
    queue = Queue(room=1 << 20)
    before = queue.queue.head.image
    token = queue.add(many(1_200, as_steps=False))
    for _ in range(at):
        queue.queue.resume(0)
    queue.queue.leadership_changed(None)
    assert [one[:2] for one in queue.responses] == [(token, NO_CONTROLLER)]
    assert queue.inputs == [] and queue.queue.head.image is before
    assert queue.queue.leadership_changed(7)
    queue.add(writes(1))
    queue.commit(*queue.inputs)
    assert [one[1] for one in queue.responses] == ["written"]


def test_many_records_that_fit_no_batch_are_refused_before_they_are_in_the_head():
    queue = Queue()
    before = queue.queue.head.image
    queue.add(many(1_200, as_steps=False))
    while queue.queue.is_deciding:
        queue.queue.resume(0)
    assert [one[2] for one in queue.responses] == [ErrorCode.RECORD_LIST_TOO_LARGE]
    assert queue.inputs == [] and queue.queue.head.image is before


def in_parts(*counts, rest):
    def decide(head):
        for number, count in enumerate(counts):
            yield Part(records_of(f"part{number}", count))
        return Result(records_of("rest", rest), "done", atomic=False)

    return decide


@pytest.mark.parametrize("rest", [0, 2])
@pytest.mark.parametrize("is_late", [True, False])
def test_the_response_waits_for_the_last_part(rest, is_late):
    """Parts are submitted as they come; they may be committed before the decision ends."""
    queue = Queue()
    queue.add(in_parts(3, 4, rest=rest))
    submitted = queue.inputs
    queue.queue.resume(0)
    submitted += queue.inputs
    assert [len(submit.values) for submit in submitted] == [3, 4]
    if not is_late:
        for submit in submitted:
            queue.commit(submit)
        assert queue.responses == []
    queue.queue.resume(0)
    last = queue.inputs
    assert [len(submit.values) for submit in last] == ([rest] if rest else [])
    for submit in [*(submitted if is_late else ()), *last]:
        assert queue.responses == []
        queue.commit(submit)
    assert [one[1] for one in queue.responses] == ["done"]


def test_the_audit_counts_the_records_of_every_part():
    queue = Queue()
    queue.queue.out.audited = []
    queue.add(in_parts(3, 4, rest=2))
    queue.queue.resume(0)
    queue.queue.resume(0)
    for submit in queue.inputs:
        queue.commit(submit)
    *parts, (_, last, error) = queue.queue.out.audited
    assert sum(facts.records for _, facts, _ in parts) + last.records == 9
    assert (last.operation, last.end_offset, error) == (10, 19, ErrorCode.NONE)


def test_a_leadership_lost_between_two_parts_fails_the_write_once():
    queue = Queue()
    token = queue.add(in_parts(3, 4, rest=1))
    queue.queue.leadership_changed(None)
    assert [one[:2] for one in queue.responses] == [(token, NO_CONTROLLER)]
    assert queue.queue.head.outstanding == 0


# -- refusals after a part -----------------------------------------------------------------------
def refuses_after_a_part(head):
    yield Part(records_of("p", 1))
    raise ApiError(ErrorCode.INVALID_REQUEST, "too late")


def test_a_refusal_after_a_part_is_a_fault():
    """A part of the request is in the log: the client must not read that nothing was done."""
    queue = Queue()
    queue.add(refuses_after_a_part)
    queue.queue.resume(0)
    [(_, _, error, _)] = queue.responses
    assert error == ErrorCode.UNKNOWN_SERVER_ERROR
    assert queue.queue.out.faults == 1 and not queue.queue.is_active


def test_a_read_waits_for_a_part_whose_write_has_failed():
    queue = Queue()
    queue.add(refuses_after_a_part, on_exception=OnException.TRY_AGAIN)
    queue.queue.resume(0)
    [part] = queue.inputs
    assert [one[2] for one in queue.responses] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    queue.add(lambda head: Result((), "read"))
    queue.add(lambda head: Result((), "read after it"))
    assert queue.responses == []
    queue.commit(part)
    assert [one[1] for one in queue.responses] == ["read", "read after it"]


# -- the liveness of brokers ---------------------------------------------------------------------
def registers(head):
    yield Part(records_of("p", 2))
    return Result(records_of("r", 1), "registered", liveness=(BrokerRegistered(1, is_new=True),))


def test_the_offset_of_a_registration_is_that_of_its_committed_record():
    """The replica writes a record of its own between the two parts."""
    queue, broker = Queue(), Broker(1, 10, ZERO_UUID)
    queue.add(registers)
    queue.queue.resume(0)
    first, second = queue.inputs
    queue.commit(first)
    queue.end += 5
    assert not queue.liveness.is_caught_up(broker, 1_000)
    queue.commit(second)
    assert not queue.liveness.is_caught_up(broker, 16) and queue.liveness.is_caught_up(broker, 17)


def test_a_registration_that_fits_no_batch_changes_nothing():
    queue, broker = Queue(), Broker(1, 10, ZERO_UUID)
    change = (BrokerRegistered(1, is_new=True),)
    queue.add(lambda head: Result(records_of("r" * ROOM, 1), "registered", liveness=change))
    assert queue.liveness.is_caught_up(broker, 10)


# -- what `make guards` found ----------------------------------------------------------------------
def test_a_part_that_fits_no_batch_ends_the_decision():
    def decide(head):
        yield Part(records_of("r" * ROOM, 1))
        raise AssertionError("it goes on")

    queue = Queue()
    token = queue.add(decide)
    [(call, _, error, _)] = queue.responses
    assert (call, error) == (token, ErrorCode.RECORD_LIST_TOO_LARGE)


def test_the_first_offset_of_a_write_whose_decision_goes_on():
    """Its part commits while no write waits for its response."""

    def decide(head):
        yield Part(records_of("r", 2))
        yield None
        return Result(records_of("s", 1), "done")

    queue = Queue()
    queue.queue.out.audited = []
    queue.queue.settle(Committed(99, 5, 6))  # of an earlier leadership: nothing waits for it
    queue.add(decide)
    [part] = queue.inputs
    queue.commit(part)
    queue.queue.resume(0)
    queue.queue.resume(0)
    for rest in queue.inputs:
        queue.commit(rest)
    (_, first, _), (_, last, error) = queue.queue.out.audited
    assert (first.first_offset, first.has_more) == (10, True)
    assert (last.first_offset, last.operation, error) == (12, 10, ErrorCode.NONE)


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_the_raft_layer_of_a_former_leader_refuses(error):
    """The write is answered when the end of the leadership is known."""
    queue = Queue()
    queue.add(changes_kraft_version)
    [upgrade] = queue.inputs
    queue.queue.settle(Refused(upgrade.token, error, "not the leader"))
    assert queue.responses == []
    queue.queue.leadership_changed(None)
    [(_, _, answered, _)] = queue.responses
    assert answered == ErrorCode.NOT_CONTROLLER
