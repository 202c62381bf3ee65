"""A controller without sockets, threads or clocks: Kafka's requests in, Kafka's answers out.

`step` takes calls, answers of peers and results of the disk, and says what to send, what to write
and when to call again. Driven by the server, and by a simulator just the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, LeaderAndEpoch
from quorate.base.notes import Warn
from quorate.metadata.image import Image
from quorate.metadata.settings import set_client_quota, set_feature
from quorate.node.ahead import Ahead
from quorate.node.calls import ENVELOPE, Call, envelope_error, unwrap
from quorate.node.feature_handler import update_features
from quorate.node.handlers import (
    ALTER_CLIENT_QUOTAS,
    BROKERS_ASK,
    FORWARDABLE,
    HANDLERS,
    UPDATE_FEATURES,
)
from quorate.node.host import ControllerHost, Done, ReplicaView
from quorate.node.jobs import Job
from quorate.node.machine import Now
from quorate.node.metadata_machine import MetadataMachine, Registrant
from quorate.node.quota_handler import alter_client_quotas
from quorate.node.registration import Registration
from quorate.node.replica import Answer, Committed, Input, Replica, Submit
from quorate.node.translate import response_to_wire
from quorate.raft import inputs
from quorate.raft.messages import Request
from quorate.raft.ready import Refused, Send
from quorate.wire.errors import EncodeError
from quorate.wire.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    EnvelopeResponse,
)
from quorate.wire.schema import Message


@dataclass(frozen=True, slots=True)
class Registered:
    """The answer to a RegistrationSend; None: there was none."""

    response: ControllerRegistrationResponse | None


@dataclass(frozen=True, slots=True)
class RegistrationSend:
    """Ask the active controller to write our registration, on a connection of its own."""

    to: int
    address: Address
    request: ControllerRegistrationRequest
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A call that cannot be answered: close its connection."""

    token: int
    reason: str


NodeInput = Call | Registered | Input


@dataclass(slots=True)
class NodeEffects:
    """What to do now; `jobs` in order, everything else in any order."""

    answers: list[tuple[int, bytes]] = field(default_factory=list)
    """(token of the call, frame)."""
    closed: list[Closed] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    registrations: list[RegistrationSend] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    leader: LeaderAndEpoch | None = None
    notes: list[str] = field(default_factory=list)
    wake_at_ms: int | None = None
    stopped: bool = False
    faulted: str | None = None

    def answer(self, call: Call, message: Message) -> None:
        """Answer the call; close its connection, as Kafka does, where the version that it was asked
        in cannot say this."""
        try:
            self.answers.append((call.token, call.encode(message)))
        except EncodeError as error:
            self.closed.append(Closed(call.token, f"its answer cannot be told: {error}"))


_HOLD_MS: Final = 2_000
"""A broker that is refused finds the same controller again and asks at once: no more often than it
sends heartbeats (`broker.heartbeat.interval.ms`)."""

_HANDLERS: Final[dict[int, Callable[[ControllerHost, Call], Message | None]]] = {
    **HANDLERS,
    ALTER_CLIENT_QUOTAS: alter_client_quotas,
    UPDATE_FEATURES: update_features,
}


class Controller(ReplicaView):
    """One node of a quorum that keeps Kafka's metadata."""

    def __init__(self, replica: Replica, machine: MetadataMachine, registrant: Registrant) -> None:
        self.replica = replica
        self.machine = machine
        self.node_id = replica.config.node_id
        self.cluster_id = replica.config.cluster_id
        self.unstable_features = registrant.unstable_features
        self.min_insync_replicas = machine.min_insync_replicas
        self.now = Now(0, 0)
        self.quotas = Ahead(set_client_quota)
        self.features = Ahead(set_feature)
        self._registration = Registration(registrant)
        self._next = 0
        self._asked: dict[int, Call] = {}
        self._waiting: dict[int, tuple[Call, Done]] = {}
        self._held: deque[tuple[int, Call]] = deque()
        """What is refused later, and when: ms, in order."""
        self._inbox: list[Input] = []

    def step(self, happened: Iterable[NodeInput], now: Now) -> NodeEffects:
        """Take everything that happened. Raises QuorateError where the machine does."""
        self.now = now
        effects = NodeEffects()
        self._take(happened, effects)
        while True:
            taken, self._inbox = self._inbox, []
            done = self.replica.step(taken, now)
            effects.sends.extend(done.sends)
            effects.jobs.extend(done.jobs)
            effects.notes.extend(done.notes)
            effects.leader = done.leader or effects.leader
            effects.stopped, effects.faulted = done.stopped, done.faulted
            self._answer(done.answers, effects)
            self._settle(done.outcomes, effects)
            if not self._inbox or effects.stopped or effects.faulted:
                break
        self._register(effects)
        self._release(effects)
        held = self._held[0][0] if self._held else None
        effects.wake_at_ms = _earliest(done.wake_at_ms, self._registration.wake_at_ms, held)
        return effects

    # -- the ways in and out ------------------------------------------------------------------
    def _take(self, happened: Iterable[NodeInput], effects: NodeEffects) -> None:
        for item in happened:
            if isinstance(item, Call):
                self._call(item, effects)
            elif isinstance(item, Registered):
                self._registered(item, effects)
            else:
                self._inbox.append(item)

    def _call(self, call: Call, effects: NodeEffects) -> None:
        if call.request.api_key in BROKERS_ASK and self._leads:
            self._held.append((self.now.monotonic_ms + _HOLD_MS, call))
            return
        if call.request.api_key == ENVELOPE:
            # Whatever is inside, also what no Quorate node serves: a broker goes on to send here
            # until it is told that this is no controller any more.
            opened = unwrap(call, FORWARDABLE) if self._leads else ErrorCode.NOT_CONTROLLER
            if isinstance(opened, ErrorCode):
                effects.answer(call, EnvelopeResponse(error_code=opened))
                return
            call = opened
        handler = _HANDLERS.get(call.request.api_key)
        if handler is None:
            reason = f"api key {call.request.api_key} is not served by this node"
            effects.closed.append(Closed(call.token, reason))
            return
        answer = handler(self, call)
        if answer is not None:
            self._reply(call, answer, effects)

    def _release(self, effects: NodeEffects) -> None:
        """Refuse what was held for long enough, or all of it to look for the next leader."""
        held, now_ms, leads = self._held, self.now.monotonic_ms, self._leads
        while held and (not leads or held[0][0] <= now_ms):
            _, call = held.popleft()
            answer = HANDLERS[call.request.api_key](self, call)
            assert answer is not None
            effects.answer(call, answer)

    @property
    def _leads(self) -> bool:
        return self.replica.core.leader.leader_id == self.node_id

    def _reply(self, call: Call, answer: Message, effects: NodeEffects) -> None:
        error = getattr(answer, "error_code", ErrorCode.NONE)
        if call.envelope is not None and error == ErrorCode.NOT_CONTROLLER:
            frame = envelope_error(call, ErrorCode.NOT_CONTROLLER)
            effects.answers.append((call.token, frame))
        else:
            effects.answer(call, answer)

    def _answer(self, answers: Sequence[Answer], effects: NodeEffects) -> None:
        for answer in answers:
            call = self._asked.pop(answer.reply_to)
            message = response_to_wire(answer.response, answer.data, call.asked)
            self._reply(call, message, effects)

    def _settle(self, outcomes: Sequence[Committed | Refused], effects: NodeEffects) -> None:
        for outcome in outcomes:
            call, done = self._waiting.pop(outcome.token)
            message = done(outcome)
            if message is not None:
                self._reply(call, message, effects)

    def _token(self) -> int:
        self._next += 1
        return self._next

    # -- registration -------------------------------------------------------------------------
    def _register(self, effects: NodeEffects) -> None:
        if self.replica.is_loading:
            return
        ask = self._registration.poll(self.image, self.active_peer, self.now)
        if ask is not None:
            effects.registrations.append(
                RegistrationSend(ask.to, ask.address, ask.request, ask.timeout_ms)
            )

    @property
    def active_peer(self) -> tuple[int, Address] | None:
        """The active controller, when it is another node."""
        core = self.replica.core
        leader_id = core.leader.leader_id
        endpoints = core.leader_endpoints
        if leader_id in (-1, self.node_id) or not endpoints:
            return None
        if self.replica.applied.epoch != core.epoch:
            return None  # nothing of its epoch is committed yet: it is not active
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

    # -- what handlers see and do (handlers.Host) ---------------------------------------------
    @property
    def image(self) -> Image:
        return self.machine.image

    @property
    def image_offset(self) -> int:
        return self.machine.provenance.offset

    @property
    def snapshots_loaded(self) -> int:
        """At the start or from a leader."""
        return self.machine.snapshots_loaded

    def ask_core(self, call: Call, request: Request) -> None:
        token = self._token()
        self._asked[token] = call
        self._inbox.append(inputs.Received(token, request))

    def submit(self, call: Call, values: list[bytes], done: Done) -> None:
        token = self._token()
        self._waiting[token] = (call, done)
        self._inbox.append(Submit(token, values))

    def upgrade_kraft_version(
        self, call: Call, version: int, validate_only: bool, done: Done
    ) -> None:
        token = self._token()
        self._waiting[token] = (call, done)
        self._inbox.append(inputs.UpgradeKRaftVersion(token, version, validate_only))


def _earliest(*times: int | None) -> int | None:
    return min((time for time in times if time is not None), default=None)
