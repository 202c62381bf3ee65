"""A cluster of real cores with an in-memory network and disks under the control of the caller.

Nothing happens by itself: the caller persists writes, delivers messages and advances the clock, or
lets `settle` and `run` do all three as fast as possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from quorate.base.ids import Address, OffsetAndEpoch
from quorate.raft.core import RaftCore
from quorate.raft.inputs import Answered, SendFailed, SendFailure
from quorate.raft.messages import Request, Response
from quorate.raft.ready import Ready
from quorate.raft.values import ControlState, RaftConfig
from quorate.sim.scenario.errors import CommandError
from quorate.sim.scenario.log import MemoryLog
from quorate.sim.scenario.names import CLUSTER_ID, FIRST_PORT, directory, listeners, voter
from quorate.sim.scenario.node import CoreMessage, CoreNode


class CoreCluster:
    """Nodes by id, messages in flight, one clock (ms)."""

    def __init__(self, random: Callable[[], float] = lambda: 0.5) -> None:
        self.nodes: dict[int, CoreNode] = {}
        self.random = random
        self.now = 0
        self.replies = 0
        self.network: list[CoreMessage] = []
        self.cut: set[tuple[int, int]] = set()
        self.contents: dict[OffsetAndEpoch, ControlState] = {}
        self.answers: list[tuple[int, Response]] = []
        """Responses to clients (id 0): (node, response)."""
        self.observe: Callable[[CoreNode, Ready], None] = lambda node, ready: None
        """Called after every step of a node."""

    # -- building ----------------------------------------------------------------------------
    def add(
        self, node_id: int, durable: MemoryLog | None = None, *, disk: int = 0, **config: Any
    ) -> CoreNode:
        """A node that is not started; `config`: fields of RaftConfig."""
        basic = RaftConfig(
            CLUSTER_ID, node_id, directory(node_id, disk), listeners=listeners(node_id)
        )
        node = CoreNode(self, replace(basic, **config), durable or MemoryLog())
        self.nodes[node_id] = node
        return node

    def dynamic(self, *ids: int, **config: Any) -> CoreCluster:
        """Voters of the bootstrap snapshot (kraft.version 1)."""
        bootstrap = OffsetAndEpoch(0, 0)
        control = ControlState(1, tuple(voter(i) for i in ids))
        for node_id in ids:
            self.add(node_id, MemoryLog(snapshots={bootstrap: control}), **config)
        return self

    def static(self, *ids: int, **config: Any) -> CoreCluster:
        """Voters of the configuration (kraft.version 0)."""
        static_voters = tuple(voter(i, known=False) for i in ids)
        for node_id in ids:
            self.add(node_id, static_voters=static_voters, **config)
        return self

    def observer(self, node_id: int, *known: int, disk: int = 0, **config: Any) -> CoreNode:
        """A node with an empty disk whose bootstrap servers are these nodes."""
        servers = tuple((f"host{i}", FIRST_PORT + i) for i in known)
        return self.add(node_id, disk=disk, bootstrap_servers=servers, **config)

    def start(self, *ids: int) -> CoreCluster:
        """Start these nodes, or all."""
        for node_id in ids or sorted(self.nodes):
            self.node(node_id).start()
        return self

    def node(self, node_id: int) -> CoreNode:
        """The node of this id. Raises CommandError where it does not exist."""
        if node_id not in self.nodes:
            raise CommandError(f"there is no node {node_id}")
        return self.nodes[node_id]

    def node_at(self, address: Address) -> int:
        """The node that listens at the address; -1 where the node has moved."""
        node_id = address.port - FIRST_PORT
        node = self.nodes.get(node_id)
        if node is None or node.config.listeners[0].address == address:
            return node_id
        return -1

    def move(self, node_id: int, *, back: bool = False) -> None:
        """Change the node's host name; every node that starts later uses the new names as bootstrap
        servers."""
        node = self.node(node_id)
        node.config = replace(node.config, listeners=listeners(node_id, moved=not back))
        for other in self.nodes.values():
            found = [n.config.listeners[0].address for n in self.nodes.values() if n is not other]
            servers = tuple((address.host, address.port) for address in found)
            other.config = replace(other.config, bootstrap_servers=servers)

    def random_source(self, node_id: int) -> Callable[[], float]:
        """The random source of one node."""
        return self.random

    def __getitem__(self, node_id: int) -> RaftCore:
        return self.node(node_id).running

    @property
    def running(self) -> list[CoreNode]:
        return [node for _, node in sorted(self.nodes.items()) if node.core is not None]

    @property
    def leader(self) -> int:
        """The leader of the highest epoch; 0 where there is none."""
        leads = [(n.core.epoch, n.id) for n in self.running if n.core and n.core.role == "leader"]
        return max(leads)[1] if leads else 0

    # -- network -----------------------------------------------------------------------------
    def post(self, message: CoreMessage) -> None:
        """Send a message; 0 is the clients' id."""
        if message.to == 0 and not isinstance(message.body, Request):
            self.answers.append((message.source, message.body))
        else:
            self.network.append(message)

    def ask(self, node_id: int, request: Request) -> Response | None:
        """Send a client's request. Returns the response where it came at once."""
        before = len(self.answers)
        self.node(node_id).receive(0, 0, request)
        return self.answers[before][1] if len(self.answers) > before else None

    def partition(self, *groups: Iterable[int]) -> None:
        """Partition the network: messages pass only within a group."""
        sides = [frozenset(group) for group in groups]
        self.cut = {
            (a, b)
            for a in self.nodes
            for b in self.nodes
            if not any(a in side and b in side for side in sides)
        }

    def heal(self) -> None:
        """End all partitions."""
        self.cut = set()

    def deliver(self, choose: Callable[[CoreMessage], bool] = lambda message: True) -> bool:
        """Deliver the first chosen message that passes; others that do not pass are lost."""
        return any(choose(m) and self.deliver_one(m) for m in list(self.network))

    def deliver_one(self, message: CoreMessage) -> bool:
        """Deliver this message; False: it could not pass and is lost."""
        self.network[:] = [m for m in self.network if m is not message]
        target, body = self.nodes.get(message.to), message.body
        if (message.source, message.to) in self.cut:
            return False
        if target is None or target.core is None:
            self._refuse(message)
        elif not isinstance(body, Response):
            target.receive(message.source, message.correlation, body, message.incarnation)
        elif message.incarnation == target.incarnation:
            target.step(Answered(message.correlation, body))
        return True

    def fail(self, message: CoreMessage) -> None:
        """Lose this message and its connection; the sender is notified at once."""
        self.network[:] = [m for m in self.network if m is not message]
        self._notify_sender(self.nodes[message.to if message.response else message.source], message)

    def _refuse(self, message: CoreMessage) -> None:
        """The receiver is down: the sender is notified at once."""
        if not message.response:
            self._notify_sender(self.nodes[message.source], message)

    def _notify_sender(self, asker: CoreNode, message: CoreMessage) -> None:
        if asker.core is not None and asker.incarnation == message.incarnation:
            asker.step(SendFailed(message.correlation, SendFailure.DISCONNECTED))

    # -- letting things happen -----------------------------------------------------------------
    def persist(self) -> bool:
        """All disks complete all writes; True when there were any."""
        done = [node.persist() for node in self.running]
        return any(done)

    def settle(self) -> CoreCluster:
        """Persist and deliver until nothing changes; no time passes."""
        for _ in range(10_000):
            if not (self.persist() or self.deliver()):
                return self
        raise CommandError(f"does not settle: {[str(m) for m in self.network]}")

    def run(self, duration_ms: int) -> CoreCluster:
        """Settle, then advance from timer to timer until this much time has passed."""
        until = self.now + duration_ms
        self.settle()
        while True:
            alarms = [node.wake for node in self.running if node.wake is not None]
            self.now = min([until, *[max(alarm, self.now + 1) for alarm in alarms]])
            for node in self.running:
                if node.wake is not None and node.wake <= self.now:
                    node.step()
            self.settle()
            if self.now >= until:
                return self

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> CoreCluster:
        """Run until the condition holds; raises CommandError after `limit_ms` of the cluster's time."""
        until = self.now + limit_ms
        self.settle()
        while not condition():
            if self.now >= until:
                raise CommandError(f"not within {limit_ms} ms: {'; '.join(self.summary())}")
            self.run(10)
        return self

    def elect(self) -> int:
        """Run until a leader has committed a record of its epoch; its id."""
        self.run_until(lambda: bool(self.leader) and self.leading.last.epoch_start_offset >= 0)
        self.run_until(lambda: bool(self.leader) and self._committed())
        return self.leader

    def _committed(self) -> bool:
        description = self[self.leader].describe(self.now)
        return description is not None and description.high_watermark >= 0

    @property
    def leading(self) -> CoreNode:
        """The leader of the highest epoch."""
        return self.nodes[self.leader]

    def summary(self) -> list[str]:
        """One line for each node that runs."""
        return [
            f"{n.id} {n.core.role} epoch {n.core.epoch} leader {n.core.leader.leader_id} "
            f"end {n.core.log_end.offset} hw {n.core.high_watermark}"
            for n in self.running
            if n.core is not None
        ]
