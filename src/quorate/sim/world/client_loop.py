"""The loop of a simulated client: pause, send an operation, and pause again when it has ended."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from quorate.sim.prng import Prng
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.network import Network

RETRY_US: Final = 20_000
"""The pause before a client sends a refused operation again."""
MAX_PATIENCE: Final = 4
"""The longest wait for a response, in timeouts: a node that stays down never responds."""


class LoopClient:
    """The state of one client. `attempt` numbers its requests, so that it ignores old responses."""

    def __init__(self, client_id: int, rng: Prng, target: int) -> None:
        self.id = client_id
        self.rng = rng
        self.target = target
        """The node that it takes for the leader or the active controller."""
        self.attempt = 0
        self.patience = 1
        """How many timeouts it waits for a response now."""


C = TypeVar("C", bound=LoopClient)


class ClientLoop(Generic[C]):
    """All clients of one kind. Each has at most one operation at a time."""

    def __init__(self, world: SimulatedCluster, network: Network, clients: Sequence[C]) -> None:
        self._world = world
        self._network = network
        self._plan = world.plan.clients
        self._nodes = world.plan.voters + world.plan.observers
        self._all = clients
        self._may_begin = True

    def begin(self) -> None:
        for client in self._all:
            self._think(client)

    def stop(self) -> None:
        """Let no client begin an operation or abandon one any more."""
        self._may_begin = False

    def _think(self, client: C) -> None:
        pause = int(client.rng.random() * 2 * self._plan.think_ms * 1000)
        self._world.push(self._world.now_us + 1 + pause, self._invoke, client)

    @abstractmethod
    def _invoke(self, client: C) -> None:
        """Begin an operation, unless the loop has been stopped."""
