"""The nodes of a simulated world: which run, which one leads, and their addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quorate.base.ids import ReplicaKey
from quorate.raft.values import Voter
from quorate.sim.plan.plan import Plan
from quorate.sim.prng import Prng
from quorate.sim.world.controller_process import ControllerProcess
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.sim.world.process import Process, ProcessEnvironment
from quorate.sim.world.security_requests import SecurityRequests
from quorate.sim.world.transactions import MetadataTransactions

_MOVES_BY: Final = 100
"""In ports."""


class SimulatedCluster(ProcessEnvironment):
    """The state that network, clients, operators and faults share."""

    def __init__(self, plan: Plan, observers: Sequence[Observer]) -> None:
        super().__init__(plan, observers)
        self.static_voters = ()
        self.transactions = MetadataTransactions(plan.seed)
        self.security = SecurityRequests()
        self.processes: dict[int, Process] = {}
        # The clients of controllers set kraft.version too.
        self._stays_static = plan.static and not plan.upgrades and not plan.controllers
        kind = ControllerProcess if plan.controllers else Process
        for node_id in range(1, plan.voters + plan.observers + 1):
            process = kind(self, node_id, voter=node_id <= plan.voters)
            self.processes[node_id] = process
            self.addresses[process.address] = node_id
        founders = [self.processes[i] for i in range(1, plan.voters + 1)]
        if plan.static:
            self.static_voters = tuple(_static(process) for process in founders)
            return
        voters = tuple(Voter(p.key, p.listeners, 0, 1) for p in founders)
        for process in founders:
            process.format(voters)

    @property
    def nodes(self) -> Mapping[int, SimulatedNode]:
        return self.processes

    @property
    def running(self) -> list[Process]:
        return [p for p in self.processes.values() if p.replica is not None]

    def leader(self) -> Process | None:
        """The leader in the newest epoch."""
        found = None
        for process in self.processes.values():
            if process.leads and (found is None or process.core.epoch > found.core.epoch):
                found = process
        return found

    def bootstrap_servers(self, without: int) -> tuple[tuple[str, int], ...]:
        """Empty in a quorum that stays static: there the configured voters are the servers."""
        if self._stays_static:
            return ()
        return tuple(a for a, node_id in self.addresses.items() if node_id != without)

    def move(self, process: Process) -> None:
        """Change the address of the process from its next start on."""
        del self.addresses[process.address]
        process.outside_port += _MOVES_BY
        process.listen(process.port + _MOVES_BY)
        process.has_moved = True
        self.addresses[process.address] = process.id

    def move_outside(self, process: Process) -> None:
        """Change the port of its second listener from its next start on."""
        process.outside_port += _MOVES_BY
        process.listen(process.port)

    def read_any(self, key: int, rng: Prng) -> int | None:
        """The value of a key at a random node."""
        process = self.processes[1 + rng.below(len(self.processes))]
        return process.machine.values.get(key)


def _static(process: Process) -> Voter:
    """The voter as `controller.quorum.voters` has it: with one address."""
    return Voter(ReplicaKey(process.id), process.place)
