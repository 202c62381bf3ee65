"""Notifies the observers of a world of each event, and hashes the event into the trace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final
from zlib import crc32

from quorate.node.node_io import NodeEffects
from quorate.raft.inputs import Answered, Received
from quorate.raft.ready import Send
from quorate.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.replica.disk_jobs import Job, Result
from quorate.replica.replica import Effects, Input
from quorate.sim.plan.plan import Plan
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.fingerprint import of_medium, of_message, of_writes
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.sim.world.trace import TraceHash
from quorate.storage.api import Recovered

_ROLES: Final[dict[type[Role], int]] = {
    Unattached: 0,
    Prospective: 1,
    Candidate: 2,
    Follower: 3,
    Leader: 4,
    Resigned: 5,
}
_OUTCOMES: Final[dict[str, int]] = {"pending": 0, "ok": 1, "unknown": 2, "refused": 3}
(
    _STARTED,
    _REFUSED,
    _STEPPED,
    _DURABLE,
    _CRASHED,
    _WIPED,
    _RESTORED,
    _SENT,
    _DELIVERED,
    _INVOKED,
    _ANSWERED,
    _FAULT,
    _HEALED,
    _WROTE,
    _FOUND,
    _NODE_STEPPED,
    _ROLLED_BACK,
    _REGISTERED,
) = range(1, 19)


class Dispatcher(ObservableWorld):
    """Each method is an event: it goes into the trace, then to every observer that defines it."""

    def __init__(self, plan: Plan, observers: Sequence[Observer] = ()) -> None:
        super().__init__(plan)
        self.addresses = {}
        self.events = 0
        """Events so far, also those that no observer defines."""
        self.is_rolled_back = False
        """Whether a majority of the voters was put back on old disks."""
        self.trace = TraceHash()
        self._observers = observers
        self._watch(observers)

    def began(self) -> None:
        for observer in self._observers:
            observer.began(self)

    def finished(self) -> None:
        for observer in self._observers:
            observer.finished(self)

    def _watch(self, observers: Sequence[Observer]) -> None:
        def those(name: str) -> list[Callable[..., None]]:
            plain = getattr(Observer, name)
            return [getattr(o, name) for o in observers if getattr(type(o), name) is not plain]

        self._on_started = those("started")
        self._on_refused = those("refused")
        self._on_stepped = those("stepped")
        self._on_node_stepped = those("node_stepped")
        self._on_registered = those("registered")
        self._on_durable = those("durable")
        self._on_performed = those("performed")
        self._on_crashed = those("crashed")
        self._on_wiped = those("wiped")
        self._on_restored = those("restored")
        self._on_rolled_back = those("rolled_back")
        self._on_sent = those("sent")
        self._on_delivered = those("delivered")
        self._on_invoked = those("invoked")
        self._on_answered = those("answered")
        self._on_fault = those("fault")
        self._on_liveness_began = those("liveness_began")

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        self.events += 1
        log = recovered.log
        self.trace.add(_STARTED, self.now_us, process.id, log.start_offset, log.end_offset)
        self.trace.add(_FOUND, self.now_us, process.id, of_medium(process.storage.disk.medium()))
        for see in self._on_started:
            see(process, recovered)

    def refused(self, process: SimulatedNode, reason: str) -> None:
        self.events += 1
        self.trace.add(_REFUSED, self.now_us, process.id)
        for see in self._on_refused:
            see(process, reason)

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        self.events += 1
        replica = process.replica
        assert replica is not None
        state = replica.core.state
        self.trace.add(
            _STEPPED,
            self.now_us,
            process.id,
            state.election.epoch,
            state.log.end_offset,
            state.high_watermark,
            _ROLES[type(state.role)],
        )
        if effects.jobs:
            self.trace.add(_WROTE, self.now_us, process.id, of_writes(effects.jobs))
        for see in self._on_stepped:
            see(process, happened, effects)
        if process.machine.trail:
            process.machine.trail.clear()

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        self.events += 1
        for _, frame in effects.answers:
            self.trace.add(_NODE_STEPPED, self.now_us, process.id, crc32(frame))
        for see in self._on_node_stepped:
            see(process, effects, responses)

    def registered(self, process: SimulatedNode, asked: int) -> None:
        self.events += 1
        self.trace.add(_REGISTERED, self.now_us, process.id, asked)
        for see in self._on_registered:
            see(process, asked)

    def durable(self, process: SimulatedNode, seq: int) -> None:
        self.events += 1
        self.trace.add(_DURABLE, self.now_us, process.id, seq, process.durable.end_offset)
        for see in self._on_durable:
            see(process, seq)

    def performed(
        self, process: SimulatedNode, jobs: Sequence[Job], results: Sequence[Result]
    ) -> None:
        """Not an event: `durable` is the one of its writes."""
        for see in self._on_performed:
            see(process, jobs, results)

    def crashed(self, process: SimulatedNode) -> None:
        self.events += 1
        self.trace.add(_CRASHED, self.now_us, process.id)
        for see in self._on_crashed:
            see(process)

    def wiped(self, process: SimulatedNode) -> None:
        self.events += 1
        self.trace.add(_WIPED, self.now_us, process.id)
        for see in self._on_wiped:
            see(process)

    def restored(self, process: SimulatedNode) -> None:
        self.events += 1
        self.trace.add(_RESTORED, self.now_us, process.id)
        for see in self._on_restored:
            see(process)

    def rolled_back(self, nodes: Collection[int]) -> None:
        self.events += 1
        self.trace.add(_ROLLED_BACK, self.now_us, *nodes)
        for see in self._on_rolled_back:
            see(nodes)
        self.is_rolled_back = True
        self._observers = [one for one in self._observers if one.sees_loss]
        self._watch(self._observers)

    def sent(self, process: SimulatedNode, send: Send) -> None:
        self.events += 1
        content = of_message(send.request)
        self.trace.add(_SENT, self.now_us, process.id, send.correlation, send.to, content)
        for see in self._on_sent:
            see(process, send)

    def delivered(self, source: int, to: SimulatedNode, message: Received | Answered) -> None:
        self.events += 1
        if isinstance(message, Answered):
            content = of_message(message.response)
        else:  # the trace has a replica's request since it was sent
            content = -1 if source else -2 - of_message(message.request)
        self.trace.add(_DELIVERED, self.now_us, to.id, source, content)
        for see in self._on_delivered:
            see(source, to, message)

    def invoked(self, op: ClientOp) -> None:
        self.events += 1
        value = -1 if op.value is None else op.value
        self.trace.add(_INVOKED, self.now_us, op.client, op.sequence, op.key, value)
        for see in self._on_invoked:
            see(op)

    def answered(self, op: ClientOp) -> None:
        self.events += 1
        result = -1 if op.result is None else int(op.result)
        outcome = _OUTCOMES[op.outcome]
        self.trace.add(_ANSWERED, self.now_us, op.client, op.sequence, result, outcome)
        for see in self._on_answered:
            see(op)

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        self.events += 1
        self.trace.add(_FAULT, self.now_us, 0)
        self.trace.add_text(f"{kind} {details}")
        for see in self._on_fault:
            see(kind, details)

    def liveness_began(self) -> None:
        self.events += 1
        self.trace.add(_HEALED, self.now_us, 0)
        for see in self._on_liveness_began:
            see()
