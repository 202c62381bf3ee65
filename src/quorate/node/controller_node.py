"""A controller without sockets, threads or clocks: Kafka's requests in, Kafka's responses out.

`step` takes calls, responses of peers and results of the disk. It returns what to send, what to write
and when to call again. The server and a simulator drive it the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.base.notes import Warn
from quorate.controller.activation import Bootstrap
from quorate.controller.building import Building
from quorate.controller.context import Context, ControllerConfig, Rng
from quorate.controller.counts import ControllerCounts
from quorate.controller.event_durations import EventDurations
from quorate.controller.head import Head
from quorate.controller.liveness import Liveness
from quorate.controller.partition_index import PartitionIndex
from quorate.controller.result import WriteOperation
from quorate.controller.token_config import PLAINTEXT, TokenConfig, may_ask_for_tokens
from quorate.controller.token_secrets import TokenSecrets
from quorate.metadata.image import Image
from quorate.metadata.topics import ElectionCounts
from quorate.node.answers import Answers
from quorate.node.api_row import ApiRow
from quorate.node.apis import API_TABLE, denied
from quorate.node.audit import of_write
from quorate.node.client_quotas import ClientQuotas
from quorate.node.envelope import unwrap
from quorate.node.loggers import Loggers, NoLoggers
from quorate.node.metadata_machine import MetadataMachine
from quorate.node.node_io import NodeEffects, NodeInput, Registered
from quorate.node.own_writes import OwnWrites
from quorate.node.raft_rpc_inbound import response_to_wire
from quorate.node.registration import Registrant, Registration
from quorate.node.request_context import ReplicaView
from quorate.node.requests import ENVELOPE, Call, requester_of
from quorate.node.write_queue import WriteQueue
from quorate.raft import inputs
from quorate.raft.messages import Request
from quorate.replica.proposals import Submit, batch_room
from quorate.replica.replica import Answer, Input, Replica
from quorate.replica.state_machine import Now
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import CLUSTER_NAME, KnownEntries, Verdicts, decide_when_loaded
from quorate.wire.messages import EnvelopeResponse


class ControllerNode(ReplicaView):
    """One node of a quorum that keeps Kafka's metadata. It has no socket, thread or clock.

    A checker may look at `head`, `image` and `pending_offset` after each step, and at
    `NodeEffects.committed`.
    """

    def __init__(
        self,
        replica: Replica,
        machine: MetadataMachine,
        registrant: Registrant,
        rng: Rng,
        bootstrap: Bootstrap | None = None,
        config: ControllerConfig | None = None,
        loggers: Loggers | None = None,
    ) -> None:
        """rng: for the ids that decisions give away, and for placement; config: None for Kafka's
        defaults; loggers: of the process, None for none."""
        self.replica = replica
        self.machine = machine
        self.node_id = replica.config.node_id
        self.cluster_id = replica.config.cluster_id
        self.unstable_features = registrant.unstable_features
        self.now = Now(0, 0)
        self._config = config or ControllerConfig(
            self.node_id, self.cluster_id, registrant.unstable_features
        )
        self.configs = self._config.configs
        self.loggers = loggers or NoLoggers()
        self.liveness = Liveness(self._config.session_timeout_ms)
        self._rng = rng
        self.client_quotas = ClientQuotas(self._config)
        self.counts = ControllerCounts(
            durations=EventDurations(self._config.performance_period_ms, self._config.slow_event_ms)
        )
        self._verdicts = Verdicts()
        self._writes = WriteQueue(
            machine.head,
            self.liveness,
            batch_room(replica.config.limits.batch_bytes),
            self._context,
            lambda: self.leader_id,
            self.counts,
            self.client_quotas.work_ns,
        )
        self._answers = Answers(self.client_quotas, machine, is_audited=self._config.audited)
        if self._config.audited:
            self._writes.out.audited = []
        self._own_writes = OwnWrites(registrant, bootstrap or Bootstrap(), self._config)
        self._registration = Registration(registrant)
        self._next = 0
        self._asked: dict[int, Call] = {}
        self._has_caught_up = False
        self.local_acls: Image | None = None
        """The access control entries of the cluster on the disk, while `is_behind_disk`."""
        self.disk_end = 0
        """End offset (exclusive) of the log on the disk at the start."""
        self._inbox: list[Input] = []

    def add_task(self, task: WriteOperation[None, Any], period_ms: int) -> None:
        """Run a periodic task besides Kafka's whenever this node becomes the active controller."""
        self._own_writes.add_task(task, period_ms)

    def step(self, happened: Iterable[NodeInput], now: Now) -> NodeEffects:
        """Take everything that happened. Raises QuorateError where the state machine does.

        1. Calls are answered, handed to the core, or decided; an answer and a decision in steps go on.
        2. The replica steps. Its answers and the outcomes of writes go out.
        3. A change of leadership is passed to the write queue. What that submits, and what the
           active controller writes unasked, makes another step of the replica.
        """
        self.now = now
        effects = NodeEffects()
        self._answers.begin_step(effects, now.monotonic_ms)
        self._take(happened, effects)
        writes = self._writes
        writes.resume(now.monotonic_ms)
        while True:
            if writes.has_output:
                self._drain(effects)
            taken, self._inbox = self._inbox, []
            done = self.replica.step(taken, now)
            effects.sends.extend(done.sends)
            effects.jobs.extend(done.jobs)
            effects.notes.extend(done.notes)
            effects.leader = done.leader or effects.leader
            effects.stopped, effects.faulted = done.stopped, done.faulted
            self._answer(done.answers)
            for outcome in done.outcomes:
                writes.settle(outcome)
            self._follow_leadership()
            if writes.has_output:
                self._drain(effects)
            if not self._inbox or effects.stopped or effects.faulted:
                break
        if not self._has_caught_up:
            committed = self.replica.core.leader_high_watermark
            self._has_caught_up = 0 <= committed <= self.replica.applied.offset
            if not self.is_behind_disk:
                self.local_acls = None
        self._register(effects)
        effects.queued_ms, writes.queued_ms = writes.queued_ms, []
        effects.is_answering = self._answers.is_busy or writes.out.failing > 0
        effects.wake_at_ms = now.monotonic_ms if self._answers.is_busy else done.wake_at_ms
        # What this node writes unasked waits for a decision in steps: its time may have passed.
        own_at_ms = None if writes.is_deciding else self._own_writes.wake_at_ms
        for at_ms in (
            self._registration.wake_at_ms,
            own_at_ms,
            writes.wake_at_ms(now.monotonic_ms),
        ):
            if at_ms is not None and (effects.wake_at_ms is None or at_ms < effects.wake_at_ms):
                effects.wake_at_ms = at_ms
        return effects

    # -- calls --------------------------------------------------------------------------------
    def _take(self, happened: Iterable[NodeInput], effects: NodeEffects) -> None:
        for item in happened:
            if isinstance(item, Call):
                self._call(item)
            elif isinstance(item, Registered):
                self._registered(item, effects)
            else:
                if isinstance(item, inputs.Shutdown):
                    self._writes.shut_down()
                self._inbox.append(item)

    def _call(self, call: Call) -> None:
        if call.request.api_key == ENVELOPE and self._may(API_TABLE[ENVELOPE], call):
            self._answers.in_steps(call, self._open(call))
        else:
            self._serve(call)

    def _open(self, call: Call) -> Building[None]:
        """Serve what is in an Envelope. Any node but the leader refuses it whatever is inside, also what it
        would answer itself: a broker goes on to send here until it gets NOT_CONTROLLER."""
        opened = (yield from unwrap(call)) if self._leads else ErrorCode.NOT_CONTROLLER
        if isinstance(opened, ErrorCode):
            self._answers.refuse_envelope(call, EnvelopeResponse(error_code=opened))
        elif call.too_long is not None:  # nobody knows who asks
            row = API_TABLE[opened.request.api_key]
            self._answers.refuse_long(row, opened, is_denied=False)
        else:
            self._serve(opened)

    def _serve(self, call: Call) -> None:
        row = API_TABLE.get(call.request.api_key)
        if row is None:
            reason = f"api key {call.request.api_key} is not served by this node"
            self._answers.close(call, reason)
        elif row.refused_by is not None and (refusal := row.refused_by(self)) is not None:
            self._answers.reply(call, refusal)
        elif call.too_long is not None:
            self._answers.refuse_long(row, call, is_denied=not self._may(row, call))
        elif not self._may(row, call):
            self._answers.deny(row, call, denied(row, call))
        elif row.operation is not None:
            if row.on_arrival is not None and self._writes.is_active:
                row.on_arrival(self.liveness, call.message, self.now.monotonic_ms)
            if row.prepare is None:
                self._add(row, call, call.message)
            else:
                self._answers.in_steps(call, self._prepare(row, call, row.prepare(self, call)))
        elif row.handler is not None:  # unreached: every other row has an operation or is Raft's
            began_ns = self.client_quotas.work_ns()
            answer = row.handler(self, call)
            if answer is not None:
                self._answers.reply(call, answer, self.client_quotas.work_ns() - began_ns)

    def _prepare(self, row: ApiRow, call: Call, steps: Building[Any]) -> Building[None]:
        request = yield from steps
        self._add(row, call, request)

    def _add(self, row: ApiRow, call: Call, request: Any) -> None:
        """Give a write to the queue."""
        assert row.operation is not None
        timeout_ms = None if row.timeout_ms is None else row.timeout_ms(self._config)
        self._writes.add(row.operation, request, call, self.now.monotonic_ms, timeout_ms)

    def _may(self, row: ApiRow, call: Call) -> bool:
        """Whether the requester has the permission that the API needs on the cluster. Other
        permissions are asked for by the decision, item by item."""
        rule = row.acl
        if rule is None or rule.resource is not AclResource.CLUSTER:
            return True
        return self.may(call, rule.operation, rule.resource, CLUSTER_NAME)

    @property
    def knows_entries(self) -> bool:
        """Once since the start the image has held all that is committed: the entries of everybody count."""
        return self._has_caught_up and self.image.features.metadata_version is not None

    @property
    def is_behind_disk(self) -> bool:
        """The image holds less than the disk had at the start: a snapshot at most, and nothing that is
        known to be committed after it."""
        return not self._has_caught_up and self.replica.applied.offset < self.disk_end

    def may(self, call: Call, operation: AclOperation, resource: AclResource, name: str) -> bool:
        config = self._config.authorizer
        if config is None:
            return True
        requester = requester_of(call)
        known = KnownEntries(self.image, self._has_caught_up, self.local_acls)
        asked = requester, operation, resource, name
        decision = decide_when_loaded(known, config, *asked, verdicts=self._verdicts)
        return self.counts.decided(*asked, decision)

    @property
    def _leads(self) -> bool:
        return self.replica.core.leader.leader_id == self.node_id

    def _answer(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            call = self._asked.pop(answer.reply_to)
            message = response_to_wire(answer.response, answer.data, call.asked)
            self._answers.reply(call, message)

    # -- writes -------------------------------------------------------------------------------
    def _follow_leadership(self) -> None:
        """Report to the write queue whether the replica leads; add what this node writes unasked."""
        writes, now_ms = self._writes, self.now.monotonic_ms
        if writes.leadership_changed(self.replica.leading_epoch):
            registered = self.machine.register_offsets.by_id
            self.liveness.activate(writes.head.image.cluster, registered, now_ms)
            operation, request = self._own_writes.lead(now_ms)
            writes.add(operation, request, None, now_ms)
        if not writes.is_active:
            self._own_writes.follow()
        elif not writes.is_deciding:
            for operation, request in self._own_writes.due(now_ms, writes.head.image):
                writes.add(operation, request, None, now_ms)

    def _drain(self, effects: NodeEffects) -> None:
        """Take what the write queue has: for the replica, for clients, and for the log."""
        writes, out = self._writes, self._writes.out
        self._inbox.extend(writes.inputs)
        writes.inputs.clear()
        effects.notes.extend(out.notes)
        out.notes.clear()
        for operation, result in out.own_results:
            self._own_writes.done(operation, result, self.now.monotonic_ms)
        out.own_results.clear()
        if out.audited:
            for write, facts, error in out.audited:
                name = write.operation.name
                entry = of_write(name, write.request, write.call, write.response, facts, error)
                if entry is not None:
                    effects.audit.append(entry)
            out.audited.clear()
        effects.errors, out.faults = effects.errors + out.faults, 0
        for response in out.responses:
            self._answers.write(response)
        out.responses.clear()

    def _context(self, call: Call | None) -> Context:
        # unreached: a write is decided after the replica has taken what earlier ones submitted
        in_work = sum(len(item.values) for item in self._inbox if isinstance(item, Submit))
        request = None if call is None else call.request
        return Context(
            config=self._config,
            control=self.replica.core.voters,
            time_ms=self.now.wall_ms,
            rng=self._rng,
            liveness=self.liveness,
            monotonic_ms=self.now.monotonic_ms,
            next_offset=self.replica.next_offset + in_work + self._writes.unsubmitted_records,
            version=0 if request is None else request.version,
            is_forwarded=call is not None and call.envelope is not None,
            listener="" if call is None else call.listener,
            requester=None if call is None else requester_of(call),
            mutation_quota=self.client_quotas.on_mutations(call, self.image, self.now.monotonic_ms),
            may_use_tokens=call is not None and self.may_use_tokens(call),
            counts=self.counts,
            committed=lambda: self.image,
            verdicts=self._verdicts,
        )

    @property
    def head(self) -> Head:
        """The image that the next decision sees, beside the committed one."""
        return self.machine.head

    @property
    def pending_offset(self) -> int:
        """End (exclusive) of the newest write that was proposed and is not committed; the end of
        what is applied when there is none."""
        return self.replica.pending_offset

    # -- registration -------------------------------------------------------------------------
    def _register(self, effects: NodeEffects) -> None:
        if self.replica.is_loading:
            return
        active = self.active_peer if self._may_register() else None
        ask = self._registration.poll(self.image, active, self.now)
        if ask is not None:
            effects.registrations.append(ask)

    def _may_register(self) -> bool:
        """Only a voter registers: an observer that is gone would block upgrades beyond its levels.
        Below metadata.version 33 no request removes its registration (decision 18)."""
        if self._config.register_observer:
            return True
        if not self.replica.core.is_voter:
            return False
        voters = self.replica.applied_control.voters
        return voters is None or any(voter.key.id == self.node_id for voter in voters)

    @property
    def active_peer(self) -> tuple[int, Address] | None:
        """The active controller, when it is another node."""
        core = self.replica.core
        leader_id = core.leader.leader_id
        endpoints = core.leader_endpoints
        if leader_id in (-1, self.node_id) or not endpoints:
            return None
        if self.replica.applied.epoch != core.epoch:
            return None  # nothing of its epoch is committed yet, so it is not active yet
        name = self.replica.config.listeners[0].name if self.replica.config.listeners else None
        found = next((end for end in endpoints if end.name == name), endpoints[0])
        return leader_id, found.address

    def _registered(self, item: Registered, effects: NodeEffects) -> None:
        response = item.response
        succeeded = response is not None and response.error_code == ErrorCode.NONE
        if response is not None and not succeeded:
            name = ErrorCode.of(response.error_code).name
            why = f"{name} {response.error_message or ''}".rstrip()
            effects.notes.append(Warn(f"The active controller refused our registration: {why}"))
        self._registration.done(succeeded, self.now)

    # -- what handlers see and do (request_context.NodeView) ------------------------------------------
    @property
    def image(self) -> Image:
        """Everything that is committed, without the records of an open transaction."""
        return self.machine.image

    @property
    def index(self) -> PartitionIndex:
        """The index of the partitions of the head image."""
        return self.machine.head.index

    @property
    def elections(self) -> ElectionCounts:
        """Committed elections since the start."""
        return self.machine.elections

    @property
    def tokens(self) -> TokenConfig:
        return self._config.tokens

    @property
    def token_secrets(self) -> TokenSecrets:
        return self.machine.head.token_secrets

    def may_use_tokens(self, call: Call) -> bool:
        return may_ask_for_tokens(
            call.principal,
            token_authenticated=call.token_authenticated,
            is_forwarded=call.envelope is not None,
            protocol=self._config.security_protocols.get(call.listener, PLAINTEXT),
        )

    @property
    def has_authorizer(self) -> bool:
        return self._config.authorizer is not None

    @property
    def image_offset(self) -> int:
        return self.machine.provenance.offset

    @property
    def snapshots_loaded(self) -> int:
        """How many snapshots were loaded, at the start or from a leader."""
        return self.machine.snapshots_loaded

    def ask_core(self, call: Call, request: Request) -> None:
        self._next += 1
        self._asked[self._next] = call
        self._inbox.append(inputs.Received(self._next, request))
