"""The write path of the active controller: from a request to records, from their commit to the
response.

1. `add` takes a write. One that asks for nothing is answered at once, by any node, and so is one
   whose time is up already: Kafka's queue looks at deadlines first. Where this node is not active it
   is refused. What it names is authorized (`Authorizations`), and a write of which nothing is left is
   answered. Where another decision holds the queue it waits (`WaitingWrites`).
2. The operation decides on the head image. A decision in steps (a generator) holds the queue and
   goes on with each `resume`: one step for each step of the node, so that raft requests and reads
   are answered in between. After it, each `resume` decides a few of the writes that it held up.
   A decision that takes turns (`Turn`) lets them in after each part, until that is committed.
3. The records are encoded, applied to the head and submitted to the replica, in one part or several.
   Many records take several steps, and the write holds the queue until its last one. Then what the
   decision changes of the brokers' liveness is applied.
4. `settle` takes the outcome of each part, in the order of the log. The commit of the last part
   releases the response. A result without records waits for the newest part that it may have read.
5. Leadership is lost: every write fails with NOT_CONTROLLER, and the head is the committed image
   again. What was submitted may or may not commit.

Source: `QuorumController.ControllerWriteEvent`, `DeferredEventQueue`, `EventHandlerExceptionInfo`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.controller.context import Context
from quorate.controller.counts import ControllerCounts
from quorate.controller.head import Head
from quorate.controller.heartbeats import BROKER_HEARTBEAT
from quorate.controller.liveness import Liveness
from quorate.controller.result import (
    ApiError,
    KRaftVersionChange,
    Part,
    Result,
    Turn,
    WriteOperation,
)
from quorate.node.authorizations import Authorizations
from quorate.node.decision_faults import after_fault
from quorate.node.queued_write import (
    NO_CONTROLLER,
    SHUTTING_DOWN,
    QueuedWrite,
    WriteInWork,
    wrong_controller,
)
from quorate.node.record_writer import RecordWriter
from quorate.node.requests import Call
from quorate.node.waiting_writes import WaitingWrites, added_ms
from quorate.node.write_results import NOTHING_COMMITTED, WriteResults
from quorate.raft import inputs
from quorate.raft.ready import Refused
from quorate.replica.proposals import Committed, Submit
from quorate.wire.schema import Message

QUEUED_DECISIONS: Final = 16
"""At most so many queued writes are decided in one step of the node."""
QUEUED_RECORDS: Final = 1_000
"""With so many records, or more, of queued writes a step of the node decides no further one."""
_LOST: Final = (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER)


class WriteQueue:
    """Decides one write at a time. After each call, take what is in `inputs` and `out`.

    All times are monotonic, ms.
    """

    def __init__(
        self,
        head: Head,
        liveness: Liveness,
        batch_room: int,
        context: Callable[[Call | None], Context],
        leader_id: Callable[[], int],
        counts: ControllerCounts | None = None,
        clock: Callable[[], int] = int,
    ) -> None:
        """liveness: gets the changes that decisions result in; batch_room: bytes of records that fit one
        batch, as `size_in_batch` counts; leader_id: of the leader that the replica knows, -1 for none;
        clock: measures decisions, in ns."""
        self._clock = clock
        self.head = head
        self._liveness = liveness
        self.counts = ControllerCounts() if counts is None else counts
        self.out = WriteResults(self.counts.durations, clock)
        self.queued_ms: list[int] = []
        """How long each write that was decided had waited in the queue."""
        self._now_ms = 0
        self._writer = RecordWriter(head, batch_room)
        self._context = context
        self.inputs: list[Submit | inputs.UpgradeKRaftVersion | inputs.Resign] = []
        """For the replica."""
        self.committed_offset = NOTHING_COMMITTED
        """End (exclusive) of the newest write that was committed in this leadership."""
        self._epoch: int | None = None
        """The epoch in which this node is the active controller."""
        self._resigned: int | None = None
        """The epoch that this node gives up; the replica may still lead in it."""
        self._leader_id = leader_id
        self._token = 0
        self._deciding: WriteInWork | None = None
        self._resting: deque[WriteInWork] = deque()
        """Decisions that let other writes in between; the first one goes on next."""
        self._parts: dict[int, QueuedWrite] = {}
        """The write of each part that is submitted and not committed, by its token."""
        self._committed_token = 0
        """Of the newest part that is committed."""
        self._submitted_token = 0
        """Of the newest part that was submitted in this leadership; 0: none."""
        self._raft_token = 0
        """Of the request to the raft layer that the present decision waits for; 0: none."""
        self._authorizations = Authorizations(context, clock)
        self._queued = WaitingWrites()
        self._pending: deque[QueuedWrite] = deque()
        """Decided and not committed, in the order of their tokens."""
        self._was_refused = False
        self._is_shutting_down = False

    @property
    def has_output(self) -> bool:
        """There is something in `inputs` or `out`."""
        return bool(self.inputs) or self.out.has_any

    @property
    def unsubmitted_records(self) -> int:
        """How many records in `inputs` the replica has not got yet."""
        return sum(len(item.values) for item in self.inputs if isinstance(item, Submit))

    @property
    def is_active(self) -> bool:
        """This node is the active controller."""
        return self._epoch is not None

    @property
    def is_deciding(self) -> bool:
        """A decision in steps is under way: other writes wait."""
        return self._deciding is not None

    def wake_at_ms(self, now_ms: int) -> int | None:
        """When to call `resume` at the latest; None: no time decides.

        At once while there is something to decide, or a response to build. While a decision waits for
        the raft layer, a queued write may time out.
        """
        if self.out.failing or self._authorizations:
            return now_ms
        if not self._raft_token:
            return now_ms if self.is_deciding or self._queued or self._may_go_on else None
        return self._queued.next_deadline_ms()

    @property
    def _may_go_on(self) -> bool:
        """The last part of the next decision in turns is committed: no other write waits for many."""
        return bool(self._resting) and self._resting[0].write.token <= self._committed_token

    @property
    def unanswered(self) -> int:
        """How many writes have no response yet."""
        in_work = len(self._resting) + (self._deciding is not None)
        waiting = len(self._authorizations) + len(self._queued)
        return waiting + len(self._pending) + in_work + self.out.failing

    # -- 1. in ----------------------------------------------------------------------------------
    def add(
        self,
        operation: WriteOperation[Any, Any],
        request: Any,
        call: Call | None,
        now_ms: int,
        timeout_ms: int | None = None,
    ) -> None:
        """Take a write: decide it now, or when its turn comes.

        timeout_ms: how long it may wait; None: what the operation says.
        """
        self._now_ms = now_ms
        self.counts.operations_started += 1
        if timeout_ms is None:
            timeout_ms = operation.timeout_ms(request)
        deadline_ms = None if timeout_ms is None else now_ms + timeout_ms
        write = QueuedWrite(operation, request, call, deadline_ms, now_ms, asked=request)
        write.response = operation.empty(request)
        if write.response is not None:
            self.out.answered(write, ErrorCode.NONE, NOTHING_COMMITTED)
        elif deadline_ms is not None and deadline_ms <= now_ms:
            self._time_out(write)
        elif not self.is_active:
            self.out.failed(write, ErrorCode.NOT_CONTROLLER, wrong_controller(self._leader_id()))
        elif self._is_shutting_down:
            self.out.failed(write, ErrorCode.REQUEST_TIMED_OUT, SHUTTING_DOWN)
        elif self._authorizations.admit(write):
            is_free = self._deciding is None and not self._queued
            self._enter(write)
            if is_free and self._queued:
                self._decide(self._queued.take())

    def _enter(self, write: QueuedWrite) -> None:
        """The write is authorized: it waits for its turn, unless there is nothing to decide."""
        if write.refused is not None:
            self.out.refused(write, write.refused)
        elif write.response is not None:
            self.out.answered(write, ErrorCode.NONE, self.committed_offset)
        else:
            self._queued.add(write)

    def resume(self, now_ms: int) -> None:
        """Called once in each step of the node, before its replica steps.

        Queued writes whose deadline has passed fail with REQUEST_TIMED_OUT. An authorization takes a
        step, and so does the decision that holds the queue. Without one, the next queued writes are
        decided, and then a decision that has let them in between goes on.
        """
        self._now_ms = now_ms
        self.out.go_on()
        for write in (*self._authorizations.take_late(now_ms), *self._queued.take_late(now_ms)):
            self._time_out(write)
        for write in self._authorizations.go_on():
            self._enter(write)
        if self._raft_token:
            return
        if self._deciding is not None:
            self._advance(None)
            return
        submitted = self.unsubmitted_records
        for _ in range(QUEUED_DECISIONS):
            is_full = self.unsubmitted_records - submitted >= QUEUED_RECORDS
            # By the property: mypy takes the field for None here, and mypyc casts each read to that.
            if is_full or not self._queued or self.is_deciding:
                break
            self._decide(self._queued.take())
        if self._may_go_on and not self.is_deciding:
            self._deciding = self._resting.popleft()
            self._advance(None)

    def _time_out(self, write: QueuedWrite) -> None:
        self.counts.operations_timed_out += 1
        self.counts.heartbeats_timed_out += write.operation is BROKER_HEARTBEAT
        self._liveness.written(write.operation.expired(self.head, write.request))
        self.out.failed(write, ErrorCode.REQUEST_TIMED_OUT, None)

    def shut_down(self) -> None:
        """The node begins to shut down: writes that are not decided yet fail, and so do new ones.

        What is decided is answered by its commit, or when the leadership ends.
        """
        self._is_shutting_down = True
        for write in self._take_all_queued():
            self.out.failed(write, ErrorCode.REQUEST_TIMED_OUT, SHUTTING_DOWN)

    def _take_all_queued(self) -> list[QueuedWrite]:
        """All that is not decided, in the order in which it came."""
        found = [*self._queued.take_all(), *self._authorizations.take_all()]
        return sorted(found, key=added_ms)

    # -- 2. decide ------------------------------------------------------------------------------
    def _decide(self, write: QueuedWrite) -> None:
        self.queued_ms.append(self._now_ms - write.added_ms)
        write.began_ns = self._clock()
        self._queued.begun(write)
        self._deciding = WriteInWork(write, self._steps(write))
        self._advance(None)

    def _steps(self, write: QueuedWrite) -> Generator[Any, None, None]:
        """The decision and the writing of its result, with the pauses of both."""
        context = self._context(write.call)
        write.last_offset = context.next_offset - 1
        decision = write.operation.decide(self.head, write.asked, context)
        result = decision if isinstance(decision, Result) else (yield from decision)
        if result.records:
            yield from self._submitted(write, result.records, result.atomic)
        self._written(write, result)

    def _written(self, write: QueuedWrite, result: Result[Any]) -> None:
        """The records are submitted, if there are any: the response waits for the commit."""
        write.response = result.response
        self.out.notes.extend(result.notes)
        write.changes = result.liveness
        self._liveness.written(result.liveness)
        # Also without records the response waits: the decision has read what is not committed.
        write.token = self._submitted_token
        if write.token > self._committed_token:
            self._pending.append(write)
        else:
            self._succeed(write, self.committed_offset)

    def _advance(self, refused: ApiError | None) -> None:
        """Run the steps of the write that is decided, up to the next pause or the end."""
        work = self._deciding
        assert work is not None
        write = work.write
        try:
            wanted = work.advance(refused, self._clock)
        except StopIteration:
            self._deciding = None
        except Exception as error:
            self._ended_by(write, error)
        else:
            if isinstance(wanted, KRaftVersionChange):
                self._raft_token = self._next_token()
                asked = wanted.version, wanted.validate_only
                self.inputs.append(inputs.UpgradeKRaftVersion(self._raft_token, *asked))
            elif isinstance(wanted, Part):
                if wanted.records:
                    self._write_part(write, wanted)
                # By the property, as in `resume`: the part may have ended the decision.
                if isinstance(wanted, Turn) and self.is_deciding:
                    self._liveness.written(wanted.liveness)
                    self._resting.append(work)
                    self._deciding = None

    def _write_part(self, write: QueuedWrite, part: Part) -> None:
        try:
            for _ in self._submitted(write, part.records, False):
                pass  # a part is small
        except Exception as error:
            self._ended_by(write, error)

    def _ended_by(self, write: QueuedWrite, error: Exception) -> None:
        """The decision refuses the request, or fails. Once a part is written it may not refuse."""
        self._deciding = None
        if isinstance(error, ApiError) and not write.token:
            self.out.failed(write, error.error, str(error))
        else:
            self._fault(write, error)

    # -- 3. write -------------------------------------------------------------------------------
    def _submitted(
        self, write: QueuedWrite, records: Sequence[Message], atomic: bool
    ) -> Generator[None, None, None]:
        """Submit the records in parts.

        Raises ApiError where they fit no batch, ValueError where they are too many.
        """
        done = 0
        for part in self._writer.parts(write.operation.name, records, atomic):
            if part is None:
                yield None
                continue
            write.token = self._submitted_token = self._next_token()
            self._parts[write.token] = write
            self.inputs.append(Submit(write.token, part))
            if self.out.audited is not None:
                self.out.submitted(write, records[done : done + len(part)])
                done += len(part)

    # -- 4. out ---------------------------------------------------------------------------------
    def settle(self, outcome: Committed | Refused) -> None:
        """The replica committed a part, or refused it; or answers a request to the raft layer."""
        if outcome.token == self._raft_token:
            self._settle_raft_request(outcome)
        elif isinstance(outcome, Refused):
            self._was_refused = True  # `leadership_changed` says whether the leadership is lost
        else:
            self._committed(outcome)

    def _committed(self, outcome: Committed) -> None:
        self.committed_offset = outcome.end_offset
        self._committed_token = outcome.token
        write = self._parts.pop(outcome.token, None)
        if write is None:
            return  # a leadership was lost and the write has failed
        write.last_offset = outcome.end_offset - 1
        if write.facts is not None:
            write.facts.committed(outcome.base_offset, outcome.end_offset)
        while self._pending and self._pending[0].token <= outcome.token:
            self._succeed(self._pending.popleft(), outcome.end_offset)
        self.out.part_committed(write)

    def _settle_raft_request(self, outcome: Committed | Refused) -> None:
        self._raft_token = 0
        if isinstance(outcome, Refused):
            if outcome.error in _LOST:
                self._was_refused = True
            else:
                self._advance(ApiError(outcome.error, outcome.message))
            return
        # Of an upgrade that changes nothing, base and end are those of the record in force: far below,
        # or of an older leadership.
        if outcome.end_offset > outcome.base_offset:
            self.committed_offset = outcome.end_offset
        self._advance(None)

    # -- 5. leadership --------------------------------------------------------------------------
    def leadership_changed(self, epoch: int | None) -> bool:
        """Called after each step of the replica with the epoch in which it leads (None: it does not).

        True: this node has just become the active controller.
        """
        if epoch == self._epoch and not self._was_refused:
            return False
        was_refused, self._was_refused = self._was_refused, False
        if epoch is not None and epoch == self._resigned:
            return False
        if epoch == self._epoch:
            if was_refused and epoch is not None:
                # A part is missing in the log, and all that follows was decided on it.
                self._resign()
            return False
        if self._epoch is not None:
            self._lose()
        self._epoch = epoch
        self._submitted_token = 0
        self.head.revert()
        self.committed_offset = NOTHING_COMMITTED
        return epoch is not None

    def _resign(self) -> None:
        """Give up the leadership (`QuorumController.renounce`)."""
        assert self._epoch is not None
        self.inputs.append(inputs.Resign(self._epoch))
        self._resigned, self._epoch = self._epoch, None
        self._lose()

    def _lose(self) -> None:
        """Fail every write, in the order in which they came, and revert the head."""
        self._epoch = None
        writes = [*self._pending]
        self._pending.clear()
        self._parts.clear()
        self._raft_token = 0
        in_work = [*self._resting]
        self._resting.clear()
        if self._deciding is not None:
            in_work.append(self._deciding)
            self._deciding = None
        for work in in_work:
            self._close(work)
            writes.append(work.write)
        for write in writes:
            self.out.failed(write, ErrorCode.NOT_CONTROLLER, NO_CONTROLLER)
        for write in self._take_all_queued():
            self.out.failed(write, ErrorCode.NOT_CONTROLLER, wrong_controller(self._leader_id()))
        self.head.revert()

    # -- failures -------------------------------------------------------------------------------
    def _fault(self, write: QueuedWrite, error: Exception) -> None:
        """An unexpected exception of a decision."""
        is_to_resign, then = after_fault(write, error)
        self.out.fault(write, error, then)
        self.out.failed(write, ErrorCode.UNKNOWN_SERVER_ERROR, None)
        if is_to_resign:
            self._resign()

    def _close(self, work: WriteInWork) -> None:
        """End a decision in steps early. Its clean-up may fail; its write fails anyway."""
        try:
            work.steps.close()
        except Exception as error:
            self.out.fault(work.write, error, "its leadership has ended")

    def _succeed(self, write: QueuedWrite, offset: int) -> None:
        """Everything that the write depends on is committed."""
        self._liveness.committed(write.changes, write.last_offset)
        self.out.answered(write, ErrorCode.NONE, offset)

    def _next_token(self) -> int:
        self._token += 1
        return self._token
