"""A cluster of real cores over disks and a network that live in memory and do as they are told.

Nothing happens by itself: the test persists writes, delivers messages and moves the clock, or
lets `settle` and `run` do all three as fast as they can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from quorate.base.ids import Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.raft.core import RaftCore
from quorate.raft.inputs import (
    Answered,
    Event,
    Failure,
    InstallFailed,
    Persisted,
    Propose,
    Received,
    SendFailed,
    SnapshotCreated,
    SnapshotInstalled,
)
from quorate.raft.messages import FetchResponse, FetchSnapshotResponse, ReadChunk, Request, Response
from quorate.raft.ready import (
    Accepted,
    InstallSnapshot,
    Ready,
    Refused,
    SaveElection,
    Write,
)
from quorate.raft.values import (
    ControlState,
    RaftConfig,
    Voter,
)
from raft.disk import Log

CLUSTER_ID = "cluster"
SNAPSHOT_SIZE = 2500


def directory(node_id: int, disk: int = 0) -> Uuid:
    """The directory id of a node's n-th disk."""
    return Uuid(bytes([disk]) + node_id.to_bytes(15, "big"))


def key(node_id: int, disk: int = 0) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id, disk))


def listeners(node_id: int) -> tuple[Listener, ...]:
    return (Listener("CONTROLLER", f"host{node_id}", 9000 + node_id),)


def voter(node_id: int, *, known: bool = True) -> Voter:
    """An entry of a dynamic voter set; `known=False`: of a static one."""
    if known:
        return Voter(key(node_id), listeners(node_id), 0, 1)
    return Voter(ReplicaKey(node_id), listeners(node_id), 0, 0)


@dataclass
class Message:
    """In flight; `correlation` is the asker's."""

    source: int
    to: int
    correlation: int
    body: Request | Response
    response: bool

    def __str__(self) -> str:
        kind = type(self.body).__name__
        return f"{self.source}->{self.to} {kind}"


class Node:
    """One replica: a core, what its disk holds for sure, and what is on its way there."""

    def __init__(self, cluster: Cluster, config: RaftConfig, durable: Log) -> None:
        self.cluster = cluster
        self.config = config
        self.durable = durable
        self.live = durable.copy()
        self.core: RaftCore | None = None
        self.pending: list[tuple[int, tuple[Write, ...]]] = []
        self.inbound: dict[int, tuple[int, int]] = {}
        self.wake: int | None = None
        self.last = Ready()
        self.damage_next = False
        """The next snapshot that is installed turns out to be damaged."""

    @property
    def id(self) -> int:
        return self.config.node_id

    def start(self) -> None:
        self.live = self.durable.copy()
        self.pending = []
        self.inbound = {}
        self.core = RaftCore(
            self.config,
            self.durable.election,
            self.durable.recovered(),
            self.cluster.chance(self.id),
        )
        self.step()

    def crash(self, kept: int = 0) -> None:
        """Stop dead; of the writes on their way, `kept` reached the disk all the same."""
        for _, writes in self.pending[:kept]:
            for write in writes:
                self.durable.apply(write, self.cluster.contents)
        self.core = None
        self.pending = []
        self.wake = None
        network = self.cluster.network
        network[:] = [m for m in network if not (m.response and m.to == self.id)]

    @property
    def spoken(self) -> bool:
        """Is its epoch durable, so that it may have told anybody?"""
        writes = [write for _, writes in self.pending for write in writes]
        return not any(isinstance(write, SaveElection) for write in writes)

    def step(self, *events: Event) -> Ready:
        assert self.core is not None, f"{self.id} is down"
        ready = self.core.step(events, self.cluster.now)
        self.absorb(ready)
        self.cluster.observe(self, ready)
        return ready

    def absorb(self, ready: Ready) -> None:
        if ready.seq is not None:
            self.pending.append((ready.seq, ready.writes))
            for write in ready.writes:
                if not isinstance(write, InstallSnapshot):
                    self.live.apply(write, self.cluster.contents)
        for send in ready.sends:
            to = self.cluster.node_at(send.address.port)
            message = Message(self.id, to, send.correlation, send.request, False)
            self.cluster.post(message)
        for reply in ready.replies:
            to, correlation = self.inbound.pop(reply.reply_to)
            body = self._fill(reply.response)
            self.cluster.post(Message(self.id, to, correlation, body, True))
        self.wake = ready.wake_at_ms
        self.last = ready

    def _fill(self, response: Response) -> Response:
        """What a driver adds: records from the log, bytes from the snapshot."""
        if isinstance(response, FetchResponse) and response.records is not None:
            wanted = response.records
            batches = self.live.read(wanted.offset, wanted.end, wanted.max_bytes)
            return replace(response, records=None, batches=batches)
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.chunk, ReadChunk):
            chunk = response.chunk
            data = bytes(SNAPSHOT_SIZE)[chunk.position : chunk.position + chunk.max_bytes]
            return replace(response, size=SNAPSHOT_SIZE, chunk=data)
        return response

    def receive(self, source: int, correlation: int, request: Request) -> None:
        self.cluster.replies += 1
        self.inbound[self.cluster.replies] = (source, correlation)
        self.step(Received(self.cluster.replies, request))

    def persist(self, count: int | None = None, *, damaged: bool = False) -> bool:
        """The disk finished `count` writes (all): tell the core. True when there were any."""
        installs = any(isinstance(w, InstallSnapshot) for _, ws in self.pending for w in ws)
        if installs and self.damage_next:
            damaged, self.damage_next = True, False
        done, self.pending = self.pending[:count], self.pending[len(self.pending[:count]) :]
        events: list[Event] = []
        for seq, writes in done:
            install = None
            for write in writes:
                if isinstance(write, InstallSnapshot):
                    install = write.snapshot_id
                if not (damaged and isinstance(write, InstallSnapshot)):
                    self.durable.apply(write, self.cluster.contents)
            if install is None:
                events.append(Persisted(seq))
            elif damaged:
                events.append(InstallFailed(seq, install, "bad checksum"))
            else:
                control = self.cluster.contents[install]
                self.live = self.durable.copy()
                events.append(SnapshotInstalled(seq, install, control))
        if events:
            self.step(*events)
        return bool(events)

    def propose(self, *values: str) -> Ready:
        assert self.core is not None
        events = [
            Propose(i, self.core.epoch, 1, len(value), value) for i, value in enumerate(values)
        ]
        return self.step(*events)

    def snapshot(self, offset: int) -> None:
        """Write a snapshot of everything before `offset`."""
        assert self.core is not None
        before = [b for b in self.live.batches if b.end_offset <= offset]
        snapshot_id = OffsetAndEpoch(offset, before[-1].epoch)
        control = self.core.control_at(offset)
        self.cluster.contents[snapshot_id] = control
        for log in (self.live, self.durable):
            log.snapshots[snapshot_id] = control
        self.step(SnapshotCreated(snapshot_id))

    @property
    def values(self) -> list[str]:
        return [str(b.payload) for b in self.live.batches if b.payload is not None]


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

    # -- building ----------------------------------------------------------------------------
    def add(
        self, node_id: int, durable: Log | None = None, *, disk: int = 0, **config: object
    ) -> Node:
        """A node that is not running yet."""
        defaults: dict[str, object] = {
            "cluster_id": CLUSTER_ID,
            "node_id": node_id,
            "directory_id": directory(node_id, disk),
            "listeners": listeners(node_id),
        }
        node = Node(self, RaftConfig(**(defaults | config)), durable or Log())  # type: ignore[arg-type]
        self.nodes[node_id] = node
        return node

    def dynamic(self, *ids: int, **config: object) -> Cluster:
        """Voters whose set stands in the bootstrap snapshot (kraft.version 1)."""
        bootstrap = OffsetAndEpoch(0, 0)
        control = ControlState(1, tuple(voter(i) for i in ids))
        for node_id in ids:
            self.add(node_id, Log(snapshots={bootstrap: control}), **config)
        return self

    def static(self, *ids: int, **config: object) -> Cluster:
        """Voters by configuration (kraft.version 0)."""
        static_voters = tuple(voter(i, known=False) for i in ids)
        for node_id in ids:
            self.add(node_id, static_voters=static_voters, **config)
        return self

    def observer(self, node_id: int, *known: int, disk: int = 0, **config: object) -> Node:
        """A node with an empty disk that knows where some others are."""
        servers = tuple((f"host{i}", 9000 + i) for i in known)
        return self.add(node_id, disk=disk, bootstrap_servers=servers, **config)

    def start(self, *ids: int) -> Cluster:
        for node_id in ids or sorted(self.nodes):
            self.nodes[node_id].start()
        return self

    def node_at(self, port: int) -> int:
        return port - 9000

    def chance(self, node_id: int) -> Callable[[], float]:
        """The source of randomness of one node."""
        return self.random

    def __getitem__(self, node_id: int) -> RaftCore:
        core = self.nodes[node_id].core
        assert core is not None, f"{node_id} is down"
        return core

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
        if message.to == 0:
            assert not isinstance(message.body, Request)
            self.answers.append((message.source, message.body))
        else:
            self.network.append(message)

    def ask(self, node_id: int, request: Request) -> Response | None:
        """A client asks; its answer where it came at once."""
        before = len(self.answers)
        self.nodes[node_id].receive(0, 0, request)
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
        self.cut = set()

    def deliver(self, choose: Callable[[Message], bool] = lambda message: True) -> bool:
        """Deliver the first message that may pass and is chosen; what cannot pass is lost."""
        for message in list(self.network):
            if not choose(message):
                continue
            self.network.remove(message)
            target = self.nodes.get(message.to)
            if (message.source, message.to) in self.cut:
                continue
            if target is None or target.core is None:
                self._refuse(message)
            elif message.response:
                target.step(Answered(message.correlation, message.body))  # type: ignore[arg-type]
            else:
                target.receive(message.source, message.correlation, message.body)  # type: ignore[arg-type]
            return True
        return False

    def _refuse(self, message: Message) -> None:
        """Nobody listens there: the asker hears of it at once."""
        asker = self.nodes[message.source]
        if not message.response and asker.core is not None:
            asker.step(SendFailed(message.correlation, Failure.DISCONNECTED))

    # -- letting things happen -----------------------------------------------------------------
    def persist(self) -> bool:
        done = [node.persist() for node in self.running]
        return any(done)

    def settle(self) -> Cluster:
        """Persist and deliver until nothing moves; the clock stands still."""
        for _ in range(10_000):
            if not (self.persist() or self.deliver()):
                return self
        raise AssertionError(f"never comes to rest: {[str(m) for m in self.network]}")

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
        until = self.now + limit_ms
        self.settle()
        while not condition():
            assert self.now < until, f"not within {limit_ms} ms: {self.summary()}"
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
        return self.nodes[self.leader]

    def summary(self) -> list[str]:
        return [
            f"{n.id} {n.core.role} epoch {n.core.epoch} leader {n.core.leader.leader_id} "
            f"end {n.core.log_end.offset} hw {n.core.high_watermark}"
            for n in self.running
            if n.core is not None
        ]


def accepted(ready: Ready) -> Accepted:
    """The only proposal of a step, accepted."""
    (proposal,) = ready.proposals
    assert isinstance(proposal, Accepted), proposal
    return proposal


def refused(ready: Ready) -> Refused:
    (proposal,) = ready.proposals
    assert isinstance(proposal, Refused), proposal
    return proposal
