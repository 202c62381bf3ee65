"""A simulated world: its nodes, network, clients, brokers, operators and faults.

The plan alone determines every event. `run.run` runs a world from its start to its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.node.registration import RegistrationSend
from quorate.raft.ready import Refused, Send
from quorate.replica.replica import Answer, Committed
from quorate.sim.plan.plan import Plan, check_plan
from quorate.sim.world.brokers import Brokers
from quorate.sim.world.clients import Clients
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.controller_calls import ControllerCalls
from quorate.sim.world.controller_clients import ControllerClients
from quorate.sim.world.fault_budget import FaultBudget
from quorate.sim.world.faults import Faults
from quorate.sim.world.network import Network
from quorate.sim.world.observer import Observer
from quorate.sim.world.operators import Operators
from quorate.sim.world.process import Process


class World(SimulatedCluster):
    """Connects the parts, and implements the environment of the processes.

    Raises PlanError where the plan cannot be run.
    """

    def __init__(self, plan: Plan, observers: Sequence[Observer] = ()) -> None:
        check_plan(plan)
        super().__init__(plan, observers)
        self.liveness_us = 0
        """The duration of the liveness phase; 0 until it ends."""
        self.budget = FaultBudget(self)
        self.network = Network(self)
        self.operators = Operators(self, self.network, self.budget)
        self.clients = Clients(self, self.network)
        self.controller_calls = ControllerCalls(self, self.network)
        self.controller_clients = ControllerClients(self, self.network, self.controller_calls)
        self.brokers = Brokers(self, self.network, self.controller_calls)
        self.faults = Faults(self, self.network, self.operators, self.budget)

    def begin(self) -> None:
        """Start every node and every client, and schedule the faults of the plan."""
        self.began()
        for process in self.processes.values():
            self.faults.start(process)
        self.clients.begin()
        self.controller_clients.begin()
        self.brokers.begin()
        self.faults.begin()

    # -- what processes ask for -----------------------------------------------------------------
    def send(self, process: Process, send: Send) -> None:
        self.network.send(process, send)

    def answer(self, process: Process, answer: Answer) -> None:
        self.network.answer(process, answer)

    def settle(self, process: Process, outcome: Committed | Refused) -> None:
        if not self.clients.settle(process, outcome):
            self.operators.settle(outcome)

    def respond(self, process: Process, response: ControllerResponse) -> None:
        self.controller_calls.respond(process, response)

    def register(self, process: Process, registration: RegistrationSend) -> None:
        self.controller_clients.register(process, registration)

    def connections_closed(self, process: Process) -> None:
        self.network.connections_closed(process)
        self.clients.connections_closed(process)

    def ended(self, process: Process, fault: str | None) -> None:
        self.faults.ended(process, fault)

    def power_cut_inside(self, process: Process) -> None:
        self.faults.cut_power_inside(process)

    def recovered(self, process: Process) -> None:
        self.faults.recovered(process)
