"""The interface of a world and its nodes for observers.

`Process` and `World` extend these classes. Observers, checks and coverage depend on this module and
not on the world. So the world's parts can depend on the observers' interface without a circle. They
are classes and not protocols: mypyc reads an attribute of a native class without a look-up by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.base.ids import Address, ReplicaKey, Uuid
from quorate.raft.core import RaftCore
from quorate.replica.replica import Replica
from quorate.replica.state_machine import Now
from quorate.sim.world.controller import SimulatedController
from quorate.sim.world.disk_operations import WatchedStorage
from quorate.sim.world.durable_state import Durable
from quorate.sim.world.kernel import Kernel
from quorate.sim.world.security_requests import SecurityRequests
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.sim.world.transactions import MetadataTransactions

CLUSTER_ID: Final = "simulated"
LISTENER: Final = "CONTROLLER"
OUTSIDE: Final = 0
"""In place of a node id: clients and operators, which no partition affects."""


class SimulatedNode:
    """The state of one node; `replica` is None while the node is down."""

    def __init__(self, node_id: int, directory_id: Uuid) -> None:
        self.id = node_id
        self.directory_id = directory_id
        self.incarnation = 0
        """The number of successful starts."""
        self.turn = 0
        """The number of starts, failed ones included, and ends. A scheduled call of an earlier turn
        is ignored."""
        self.replica: Replica | None = None
        self.controller: SimulatedController | None = None
        """The controller of a running node where the plan has controllers. It contains `replica`."""
        self.machine = KeyValueMachine()
        self.durable_before = Durable()
        """The durable state before this incarnation, which recovery must have found."""
        self.foreign: str | None = None
        """The reason why its disk has older contents, where a copy was restored."""
        self.damage: str | None = None
        """The damage to its disk for which recovery may refuse it."""

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)

    @property
    def core(self) -> RaftCore:
        """The core of a running node."""
        assert self.replica is not None
        return self.replica.core

    @property
    def leads(self) -> bool:
        return self.replica is not None and self.replica.core.role == "leader"

    def is_running(self, turn: int) -> bool:
        """Whether the node runs and has not restarted since this turn."""
        return turn == self.turn and self.replica is not None

    @property
    def now(self) -> Now:
        """The time of its own clock, which drifts and jumps."""
        raise NotImplementedError

    @property
    def storage(self) -> WatchedStorage:
        raise NotImplementedError

    @property
    def durable(self) -> Durable:
        """The state that its disk returns after any crash."""
        raise NotImplementedError

    def request_of(self, reply_to: int) -> tuple[int, int, int] | None:
        """(node id, turn, correlation id) of the sender of an open request.

        None for a request of a client or an operator.
        """
        raise NotImplementedError


class ObservableWorld(Kernel):
    """The state of a world that observers read."""

    addresses: dict[Address, int]
    """Node ids by the address at which each node listens."""
    transactions: MetadataTransactions
    security: SecurityRequests

    @property
    def nodes(self) -> Mapping[int, SimulatedNode]:
        """The nodes by id."""
        raise NotImplementedError

    def leader(self) -> SimulatedNode | None:
        """The leader in the newest epoch."""
        raise NotImplementedError
