"""One node of a world of controllers: a process whose replica is part of a ControllerNode."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.base.notes import Fault
from quorate.formats.versions import LATEST_PRODUCTION, MINIMUM
from quorate.node.raft_rpc_outbound import response_from_wire
from quorate.raft.values import RaftConfig
from quorate.replica.replica import Answer, Effects, Input, Replica
from quorate.replica.state_machine import Now
from quorate.sim.prng import Prng
from quorate.sim.world.controller import (
    ControllerMachine,
    ControllerResponse,
    ObservedReplica,
    SimulatedController,
)
from quorate.sim.world.observable import LISTENER
from quorate.sim.world.observer import ViolationError, defect
from quorate.sim.world.process import Process
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.storage.api import Recovered


class ControllerProcess(Process):
    """`controller` is None while the process is down."""

    def create_replica(
        self, config: RaftConfig, recovered: Recovered, idle_ms: int
    ) -> tuple[KeyValueMachine, Replica]:
        """The replica, as a part of a new controller."""
        machine = ControllerMachine()
        replica = ObservedReplica(
            config,
            recovered,
            machine,
            self.rng.random,
            self.policy,
            self.memory,
            self._replica_stepped,
        )
        seed = self.world.plan.seed
        rng = Prng(seed, "controller", self.id, self.turn)
        # One level for all nodes of a world, so that the records do not depend on who leads first.
        level = Prng(seed, "metadata.version").between(int(MINIMUM), int(LATEST_PRODUCTION))
        self.controller = SimulatedController(replica, machine, self.listeners, rng, level, idle_ms)
        self.world.transactions.add_to(self.controller.node)
        return machine, replica

    def request_of(self, reply_to: int) -> tuple[int, int, int] | None:
        """Return None: the controller renumbers the requests that it passes to its replica."""
        return None

    def _replica_stepped(self, happened: Sequence[Input], effects: Effects) -> None:
        """A step of the replica within a step of the controller."""
        self.world.stepped(self, happened, effects)

    def take(self, happened: Sequence[Input], now: Now) -> None:
        """Step the controller with these inputs and carry out its effects."""
        world, controller = self.world, self.controller
        assert controller is not None
        try:
            effects = controller.step(happened, now)
        except ViolationError:
            raise  # from a check that observed the step of the replica
        except Exception as error:
            raise defect(self.id, error) from error
        self.spend(len(happened))
        responses = controller.responses(effects)
        world.node_stepped(self, effects, responses)
        if effects.errors:
            faults = (str(note) for note in effects.notes if isinstance(note, Fault))
            raise ViolationError("defect", f"node {self.id}: {'; '.join(faults)}")
        if effects.closed:
            said = f"node {self.id} closes a connection: {effects.closed[0].reason}"
            raise ViolationError("defect", said)
        for response in responses:
            self._respond(response)
        for send in effects.sends:
            world.send(self, send)
        for registration in effects.registrations:
            world.register(self, registration)
        if effects.jobs:
            self.disk.submit(effects.jobs)
        self.after_step(effects.faulted, effects.wake_at_ms, stopped=effects.stopped)

    def _respond(self, response: ControllerResponse) -> None:
        """Send it to a peer (the network numbers requests from 1), or to a client."""
        if response.token > 0:
            found = response_from_wire(response.response, LISTENER)
            self.world.answer(self, Answer(response.token, found, b""))
        else:
            self.world.respond(self, response)
