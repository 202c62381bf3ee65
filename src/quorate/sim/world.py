"""A simulated world: its clock, its nodes, its network, and everybody who looks on.

What happens is a heap of (time in microseconds, number, what, with what). Nothing but the plan
decides what happens.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, Final

from quorate.base.ids import Address, ReplicaKey
from quorate.node.replica import Effects, Input
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
from quorate.raft.values import Voter
from quorate.sim.chance import Chance
from quorate.sim.clients import Clients
from quorate.sim.content import of_medium, of_message, of_writes
from quorate.sim.exam import examine
from quorate.sim.faults import Faults
from quorate.sim.halt import HALT
from quorate.sim.healing import Healing
from quorate.sim.ledger import Ledger
from quorate.sim.network import Network
from quorate.sim.observe import ClientOp, Observer, Violation
from quorate.sim.operators import Operators
from quorate.sim.plan import Plan, check_plan
from quorate.sim.process import Process
from quorate.sim.scenarios import check_scenario, play
from quorate.sim.trace import TraceHash
from quorate.storage.api import Recovered

_ROLES: Final[dict[type[Role], int]] = {
    Unattached: 0,
    Prospective: 1,
    Candidate: 2,
    Follower: 3,
    Leader: 4,
    Resigned: 5,
}
_MOVES_BY: Final = 100
"""In ports."""
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
) = range(1, 16)


class World:
    """`run` once. Raises Violation where a check or the world itself objects."""

    def __init__(self, plan: Plan, observers: Sequence[Observer] = ()) -> None:
        check_plan(plan)
        if plan.scenario:
            check_scenario(plan)
        self.plan = plan
        self.now_us = 0
        self.events = 0
        """Calls of observers so far, made or left out because nobody watches."""
        self.trace = TraceHash()
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._pushed = 0
        self._observers = observers
        self._watch(observers)
        self.addresses: dict[Address, int] = {}
        self.static_voters: tuple[Voter, ...] = ()
        self._stays_static = plan.static and not plan.upgrades
        self.ledger = Ledger(self)
        self.network = Network(self)
        self.clients = Clients(self)
        self.operators = Operators(self)
        self.faults = Faults(self)
        self.healing: Healing | None = None
        self.processes: dict[int, Process] = {}
        self._populate()

    def _populate(self) -> None:
        plan = self.plan
        for node_id in range(1, plan.voters + plan.observers + 1):
            process = Process(self, node_id, voter=node_id <= plan.voters)
            self.processes[node_id] = process
            self.addresses[process.address] = node_id
        founders = [self.processes[i] for i in range(1, plan.voters + 1)]
        if plan.static:
            self.static_voters = tuple(_static(process) for process in founders)
            return
        voters = tuple(Voter(p.key, p.listeners, 0, 1) for p in founders)
        for process in founders:
            process.format(voters)

    # -- what is where ------------------------------------------------------------------------
    @property
    def running(self) -> list[Process]:
        return [p for p in self.processes.values() if p.replica is not None]

    @property
    def is_healing(self) -> bool:
        """Are all faults off?"""
        return self.healing is not None

    def leader(self) -> Process | None:
        """Who leads in the newest epoch."""
        found = None
        for process in self.processes.values():
            if process.leads and (found is None or process.core.epoch > found.core.epoch):
                found = process
        return found

    def bootstrap_servers(self, without: int) -> tuple[tuple[str, int], ...]:
        """None in a quorum that stays static: there the voters are asked."""
        if self._stays_static:
            return ()
        return tuple(a for a, node_id in self.addresses.items() if node_id != without)

    def move(self, process: Process) -> None:
        """The process listens at another address from its next start on."""
        del self.addresses[process.address]
        process.outside_port += _MOVES_BY
        process.listen(process.port + _MOVES_BY)
        process.has_moved = True
        self.addresses[process.address] = process.id

    def move_outside(self, process: Process) -> None:
        """Its second listener is at another port from its next start on."""
        process.outside_port += _MOVES_BY
        process.listen(process.port)

    def glance(self, key: int, luck: Chance) -> int | None:
        """What somebody believes to be the value of a key."""
        process = self.processes[1 + luck.below(len(self.processes))]
        return process.machine.values.get(key)

    # -- time ---------------------------------------------------------------------------------
    def push(self, at_us: int, deed: Callable[..., None], *args: Any) -> None:
        """Let `deed(*args)` happen then."""
        self._pushed += 1
        heapq.heappush(self._heap, (at_us, self._pushed, deed, args))

    def run(self) -> None:
        """From the beginning to the end of the healing."""
        for observer in self._observers:
            observer.began(self)
        for process in self.processes.values():
            self.faults.start(process)
        self.clients.begin()
        self.faults.begin()
        if self.plan.scenario:
            play(self)
        else:
            self.run_until(self.plan.duration_ms * 1000)
        self.healing = Healing(self)
        self.healing.run()
        for observer in self._observers:
            observer.finished(self)
        examine(self)

    def run_until(self, end_us: int) -> None:
        """Everything that happens before this time."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] < end_us:
            if HALT.wanted:
                raise KeyboardInterrupt
            self.now_us, _, deed, args = pop(heap)
            deed(*args)
        self.now_us = end_us

    # -- what is seen -------------------------------------------------------------------------
    def _watch(self, observers: Sequence[Observer]) -> None:
        def those(name: str) -> list[Callable[..., None]]:
            plain = getattr(Observer, name)
            return [getattr(o, name) for o in observers if getattr(type(o), name) is not plain]

        self._on_started = those("started")
        self._on_refused = those("refused")
        self._on_stepped = those("stepped")
        self._on_durable = those("durable")
        self._on_crashed = those("crashed")
        self._on_wiped = those("wiped")
        self._on_restored = those("restored")
        self._on_sent = those("sent")
        self._on_delivered = those("delivered")
        self._on_invoked = those("invoked")
        self._on_answered = those("answered")
        self._on_fault = those("fault")
        self._on_healed = those("healed")

    def started(self, process: Process, recovered: Recovered) -> None:
        self.events += 1
        log = recovered.log
        self.trace.add(_STARTED, self.now_us, process.id, log.start_offset, log.end_offset)
        self.trace.add(_FOUND, self.now_us, process.id, of_medium(process.drive.memory.medium()))
        for see in self._on_started:
            see(process, recovered)

    def refused(self, process: Process, reason: str) -> None:
        self.events += 1
        self.trace.add(_REFUSED, self.now_us, process.id)
        for see in self._on_refused:
            see(process, reason)

    def stepped(self, process: Process, happened: Sequence[Input], effects: Effects) -> None:
        self.events += 1
        replica = process.replica
        assert replica is not None
        state = replica.core._state
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

    def durable(self, process: Process, seq: int) -> None:
        self.events += 1
        self.trace.add(_DURABLE, self.now_us, process.id, seq, process.durable.end_offset)
        for see in self._on_durable:
            see(process, seq)

    def crashed(self, process: Process) -> None:
        self.events += 1
        self.trace.add(_CRASHED, self.now_us, process.id)
        for see in self._on_crashed:
            see(process)

    def wiped(self, process: Process) -> None:
        self.events += 1
        self.trace.add(_WIPED, self.now_us, process.id)
        for see in self._on_wiped:
            see(process)

    def restored(self, process: Process) -> None:
        self.events += 1
        self.trace.add(_RESTORED, self.now_us, process.id)
        for see in self._on_restored:
            see(process)

    def sent(self, process: Process, send: Send) -> None:
        self.events += 1
        content = of_message(send.request)
        self.trace.add(_SENT, self.now_us, process.id, send.correlation, send.to, content)
        for see in self._on_sent:
            see(process, send)

    def delivered(self, source: int, to: Process, message: Received | Answered) -> None:
        self.events += 1
        if isinstance(message, Answered):
            content = of_message(message.response)
        else:  # of a replica's request the trace has told when it was sent
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

    def healed(self) -> None:
        self.events += 1
        self.trace.add(_HEALED, self.now_us, 0)
        for see in self._on_healed:
            see()


def _static(process: Process) -> Voter:
    """As `controller.quorum.voters` names it: by one address."""
    return Voter(ReplicaKey(process.id), process.place)


__all__ = ["Violation", "World"]
