"""A cluster of real cores over disks and a network that live in memory and do as they are told.

Nothing happens by itself: the caller persists writes, delivers messages and moves the clock, or
lets `settle` and `run` do all three as fast as they can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from quorate.base.ids import Address, OffsetAndEpoch
from quorate.raft.core import RaftCore
from quorate.raft.inputs import Answered, Failure, SendFailed
from quorate.raft.messages import Request, Response
from quorate.raft.ready import Ready
from quorate.raft.values import ControlState, RaftConfig
from quorate.sim.story.errors import CannotDo
from quorate.sim.story.log import Log
from quorate.sim.story.names import CLUSTER_ID, FIRST_PORT, directory, listeners, voter
from quorate.sim.story.node import Message, Node


class Cluster:
    """Nodes by id, messages in flight, one clock (ms)."""

    def __init__(self, random: Callable[[], float] = lambda: 0.5) -> None:
        self.nodes: dict[int, Node] = {}
        self.random = random
        self.now = 0
        self.replies = 0
        self.network: list[Message] = []
        self.cut: set[tuple[int, int]] = set()
        self.contents: dict[OffsetAndEpoch, ControlState] = {}
        self.answers: list[tuple[int, Response]] = []
        """What clients (id 0) were told: (by node, answer)."""
        self.observe: Callable[[Node, Ready], None] = lambda node, ready: None
        """Called after every step of a node."""

    # -- building ----------------------------------------------------------------------------
    def add(
        self, node_id: int, durable: Log | None = None, *, disk: int = 0, **config: Any
    ) -> Node:
        """A node that is not running yet; `config`: fields of RaftConfig."""
        basic = RaftConfig(
            CLUSTER_ID, node_id, directory(node_id, disk), listeners=listeners(node_id)
        )
        node = Node(self, replace(basic, **config), durable or Log())
        self.nodes[node_id] = node
        return node

    def dynamic(self, *ids: int, **config: Any) -> Cluster:
        """Voters whose set stands in the bootstrap snapshot (kraft.version 1)."""
        bootstrap = OffsetAndEpoch(0, 0)
        control = ControlState(1, tuple(voter(i) for i in ids))
        for node_id in ids:
            self.add(node_id, Log(snapshots={bootstrap: control}), **config)
        return self

    def static(self, *ids: int, **config: Any) -> Cluster:
        """Voters by configuration (kraft.version 0)."""
        static_voters = tuple(voter(i, known=False) for i in ids)
        for node_id in ids:
            self.add(node_id, static_voters=static_voters, **config)
        return self

    def observer(self, node_id: int, *known: int, disk: int = 0, **config: Any) -> Node:
        """A node with an empty disk that knows where some others are."""
        servers = tuple((f"host{i}", FIRST_PORT + i) for i in known)
        return self.add(node_id, disk=disk, bootstrap_servers=servers, **config)

    def start(self, *ids: int) -> Cluster:
        """Start these nodes, or all."""
        for node_id in ids or sorted(self.nodes):
            self.node(node_id).start()
        return self

    def node(self, node_id: int) -> Node:
        """Raises CannotDo where there is none of this id."""
        if node_id not in self.nodes:
            raise CannotDo(f"there is no node {node_id}")
        return self.nodes[node_id]

    def node_at(self, address: Address) -> int:
        """Who listens there; -1: nobody, for that node has moved."""
        node_id = address.port - FIRST_PORT
        node = self.nodes.get(node_id)
        if node is None or node.config.listeners[0].address == address:
            return node_id
        return -1

    def move(self, node_id: int, *, back: bool = False) -> None:
        """Its host gets another name; all know the names of now when they are next started."""
        node = self.node(node_id)
        node.config = replace(node.config, listeners=listeners(node_id, moved=not back))
        for other in self.nodes.values():
            found = [n.config.listeners[0].address for n in self.nodes.values() if n is not other]
            servers = tuple((address.host, address.port) for address in found)
            other.config = replace(other.config, bootstrap_servers=servers)

    def chance(self, node_id: int) -> Callable[[], float]:
        """The source of randomness of one node."""
        return self.random

    def __getitem__(self, node_id: int) -> RaftCore:
        return self.node(node_id).running

    @property
    def running(self) -> list[Node]:
        return [node for _, node in sorted(self.nodes.items()) if node.core is not None]

    @property
    def leader(self) -> int:
        """The leader of the highest epoch; 0 where there is none."""
        leads = [(n.core.epoch, n.id) for n in self.running if n.core and n.core.role == "leader"]
        return max(leads)[1] if leads else 0

    # -- network -----------------------------------------------------------------------------
    def post(self, message: Message) -> None:
        """Put a message on its way; 0 is the clients' id."""
        if message.to == 0 and not isinstance(message.body, Request):
            self.answers.append((message.source, message.body))
        else:
            self.network.append(message)

    def ask(self, node_id: int, request: Request) -> Response | None:
        """A client asks; its answer where it came at once."""
        before = len(self.answers)
        self.node(node_id).receive(0, 0, request)
        return self.answers[before][1] if len(self.answers) > before else None

    def partition(self, *groups: Iterable[int]) -> None:
        """Messages pass only within a group."""
        sides = [frozenset(group) for group in groups]
        self.cut = {
            (a, b)
            for a in self.nodes
            for b in self.nodes
            if not any(a in side and b in side for side in sides)
        }

    def heal(self) -> None:
        """All messages pass again."""
        self.cut = set()

    def deliver(self, choose: Callable[[Message], bool] = lambda message: True) -> bool:
        """Deliver the first message that may pass and is chosen; what cannot pass is lost."""
        return any(choose(m) and self.deliver_one(m) for m in list(self.network))

    def deliver_one(self, message: Message) -> bool:
        """Deliver this message in flight; False: it could not pass and is lost."""
        self.network[:] = [m for m in self.network if m is not message]
        target, body = self.nodes.get(message.to), message.body
        if (message.source, message.to) in self.cut:
            return False
        if target is None or target.core is None:
            self._refuse(message)
        elif not isinstance(body, Response):
            target.receive(message.source, message.correlation, body, message.life)
        elif message.life == target.life:
            target.step(Answered(message.correlation, body))
        return True

    def fail(self, message: Message) -> None:
        """This message in flight is lost with its connection; the asker hears of it at once."""
        self.network[:] = [m for m in self.network if m is not message]
        self._tell(self.nodes[message.to if message.response else message.source], message)

    def _refuse(self, message: Message) -> None:
        """Nobody listens there: the asker hears of it at once."""
        if not message.response:
            self._tell(self.nodes[message.source], message)

    def _tell(self, asker: Node, message: Message) -> None:
        if asker.core is not None and asker.life == message.life:
            asker.step(SendFailed(message.correlation, Failure.DISCONNECTED))

    # -- letting things happen -----------------------------------------------------------------
    def persist(self) -> bool:
        """All disks finish all writes; True when there were any."""
        done = [node.persist() for node in self.running]
        return any(done)

    def settle(self) -> Cluster:
        """Persist and deliver until nothing moves; the clock stands still."""
        for _ in range(10_000):
            if not (self.persist() or self.deliver()):
                return self
        raise CannotDo(f"never comes to rest: {[str(m) for m in self.network]}")

    def run(self, duration_ms: int) -> Cluster:
        """Settle, then go from alarm to alarm until this much time has passed."""
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

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 60_000) -> Cluster:
        """Run until the condition holds; raises CannotDo after `limit_ms` of the cluster's time."""
        until = self.now + limit_ms
        self.settle()
        while not condition():
            if self.now >= until:
                raise CannotDo(f"not within {limit_ms} ms: {'; '.join(self.summary())}")
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
    def leading(self) -> Node:
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
