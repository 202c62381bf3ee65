"""A random walk over a cluster, and what must hold at every step of it (Raft, figure 3).

Messages are delivered out of order, lost and repeated never; disks fall behind and lose what was
not synced; nodes crash, restart, join and leave; snapshots are made and logs cleaned.
"""

from __future__ import annotations

from random import Random

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.inputs import (
    CleanTo,
    ConnectionLost,
    Propose,
    Resign,
    StorageFailed,
    UpgradeKRaftVersion,
)
from quorate.raft.messages import AddVoterRequest, RemoveVoterRequest
from quorate.raft.ready import Ready
from quorate.raft.values import Batch
from quorate.sim.scenario.cluster import CoreCluster
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners
from quorate.sim.scenario.node import CoreNode


class Invariants:
    """Remembers leaders and committed records; objects when history changes."""

    def __init__(self, cluster: CoreCluster) -> None:
        self.cluster = cluster
        self.leaders: dict[int, tuple[int, object]] = {}
        self.committed: dict[int, Batch] = {}
        self.end = 0
        self.spoke: dict[int, int] = {}
        """The last epoch in which a node may have announced that it leads."""
        self.written: dict[tuple[int, int], tuple[Batch, int]] = {}
        cluster.observe = self.observe

    def observe(self, node: CoreNode, ready: Ready) -> None:
        core = node.core
        assert core is not None
        if ready.faulted == "storage failed: full":
            assert ready.writes == () and core.role != "leader"
            return
        assert ready.faulted is None, f"{node.id}: {ready.faulted}"
        me = (node.id, core.epoch)
        says = any(getattr(reply.response, "leader", None) == me for reply in ready.replies)
        if core.role == "leader" and (node.election_is_durable or ready.sends or says):
            self.spoke[node.id] = core.epoch
            self._election_safety(node)
        if core.role != "leader" or self.spoke.get(node.id) == core.epoch:
            self._log_matching(node)
        if ready.high_watermark is not None:
            self._commit(node, ready.high_watermark)

    def _election_safety(self, node: CoreNode) -> None:
        """One leader an epoch, in one incarnation only; it has everything that is committed."""
        core = node.core
        assert core is not None
        known = self.leaders.get(core.epoch)
        if known is None:
            self.leaders[core.epoch] = (node.id, core)
            assert core.log_end.offset >= self.end, f"{node.id} leads without all committed"
            self._compare(node)
        else:
            assert known == (node.id, core), f"two leaders in epoch {core.epoch}"

    def _log_matching(self, node: CoreNode) -> None:
        """The same offset and epoch: the same batch, after the same epoch."""
        batches = node.live.batches
        for i in range(max(0, len(batches) - 3), len(batches)):
            batch = batches[i]
            if i == 0:
                continue
            entry = (batch, batches[i - 1].epoch)
            found = self.written.setdefault((batch.base_offset, batch.epoch), entry)
            assert found == entry, f"{node.id}: {entry} is not {found}"

    def _commit(self, node: CoreNode, high_watermark: int) -> None:
        for batch in reversed(node.live.batches):
            if batch.end_offset > high_watermark:
                continue
            known = self.committed.setdefault(batch.base_offset, batch)
            assert known == batch, f"{node.id} commits {batch}, committed was {known}"
            if known is batch and batch.end_offset <= self.end:
                break
        self.end = max(self.end, high_watermark)

    def _compare(self, node: CoreNode) -> None:
        for batch in node.live.batches:
            known = self.committed.get(batch.base_offset)
            assert known is None or known == batch, f"{node.id} has {batch}, committed {known}"


class Walk:
    """Random actions from `seed`, then no faults: everything committed must still be there."""

    def __init__(self, seed: int, voters: int = 3, spare: int = 0, static: bool = False) -> None:
        self.random = Random(seed)
        cluster = CoreCluster(self.random.random)
        ids = range(1, voters + 1)
        self.cluster = cluster.static(*ids) if static else cluster.dynamic(*ids)
        for node_id in range(voters + 1, voters + spare + 1):
            self.cluster.observer(node_id, *ids, auto_join=self.random.random() < 0.5)
        self.invariants = Invariants(self.cluster)
        self.proposed = 0
        self.cluster.start()

    def go(self, steps: int) -> None:
        actions = [
            (self.deliver, 60),
            (self.persist, 30),
            (self.propose, 12),
            (self.wait, 8),
            (self.wait_long, 2),
            (self.lose, 3),
            (self.crash, 1),
            (self.fail_disk, 0.3),
            (self.restart, 2),
            (self.split, 0.5),
            (self.heal, 1),
            (self.connection_lost, 1),
            (self.change, 1.5),
            (self.snapshot, 1),
            (self.resign, 0.2),
            (self.upgrade, 0.3),
        ]
        choices, weights = zip(*actions, strict=True)
        for action in self.random.choices(choices, weights, k=steps):
            action()
        self.settle()

    def some(self) -> CoreNode | None:
        running = self.cluster.running
        return self.random.choice(running) if running else None

    def deliver(self) -> None:
        network = self.cluster.network
        if network:
            chosen = self.random.choice(network)
            self.cluster.deliver(lambda message: message is chosen)

    def lose(self) -> None:
        network = self.cluster.network
        if network:
            network.remove(self.random.choice(network))

    def persist(self) -> None:
        if node := self.some():
            damaged = self.random.random() < 0.1
            node.persist(self.random.choice([1, 1, 2, None]), damaged=damaged)

    def propose(self) -> None:
        if (node := self.some()) and node.core:
            self.proposed += 1
            count = self.random.choice([1, 1, 3])
            node.step(Propose(0, node.core.epoch, count, 100, f"v{self.proposed}"))

    def wait(self) -> None:
        self.pass_time(self.random.randrange(1, 200))

    def wait_long(self) -> None:
        self.pass_time(self.random.randrange(200, 3000))

    def pass_time(self, duration_ms: int) -> None:
        self.cluster.now += duration_ms
        for node in self.cluster.running:
            if node.wake is not None and node.wake <= self.cluster.now:
                node.step()

    def crash(self) -> None:
        if node := self.some():
            node.crash(self.random.randrange(0, len(node.pending) + 1))

    def fail_disk(self) -> None:
        """A leader ends its epoch; then the process restarts on a repaired disk."""
        if node := self.some():
            node.step(StorageFailed("full"))
            node.crash(self.random.randrange(0, len(node.pending) + 1))

    def restart(self) -> None:
        down = [node for node in self.cluster.nodes.values() if node.core is None]
        if down:
            self.random.choice(down).start()

    def split(self) -> None:
        ids = list(self.cluster.nodes)
        self.random.shuffle(ids)
        cut = self.random.randrange(1, len(ids))
        self.cluster.partition(ids[:cut], ids[cut:])

    def heal(self) -> None:
        self.cluster.heal()

    def connection_lost(self) -> None:
        if (node := self.some()) and node.core:
            node.step(ConnectionLost(node.core.leader.leader_id))

    def change(self) -> None:
        node = self.some()
        other = self.random.choice(list(self.cluster.nodes))
        if node and self.random.random() < 0.5:
            request = AddVoterRequest(CLUSTER_ID, key(other), listeners(other))
            node.receive(0, 0, request)
        elif node:
            node.receive(0, 0, RemoveVoterRequest(CLUSTER_ID, key(other)))

    def snapshot(self) -> None:
        node = self.some()
        if not node or not node.core:
            return
        committed = node.core.high_watermark
        borders = [b.end_offset for b in node.live.batches if b.end_offset <= committed]
        if borders and node.core.role != "unattached" and not self._installing(node):
            offset = self.random.choice(borders)
            before = next(b for b in node.live.batches if b.end_offset == offset)
            wanted = OffsetAndEpoch(offset, before.epoch)
            if offset <= node.durable.end and node.core.snapshot_problem(wanted) is None:
                node.snapshot(offset)
                if self.random.random() < 0.7:
                    node.step(CleanTo(wanted))

    def _installing(self, node: CoreNode) -> bool:
        return any("InstallSnapshot" in repr(writes) for _, writes in node.pending)

    def resign(self) -> None:
        if (node := self.some()) and node.core:
            node.step(Resign(node.core.epoch))

    def upgrade(self) -> None:
        if node := self.some():
            node.step(UpgradeKRaftVersion(0, 1))

    def settle(self) -> None:
        """Restart and connect all replicas: every log must hold what was committed."""
        cluster = self.cluster
        cluster.heal()
        for node in cluster.nodes.values():
            if node.core is None:
                node.start()
        cluster.run(100)
        before = self.invariants.end
        cluster.elect()
        cluster.leading.propose("end")
        cluster.run(20_000)
        assert self.invariants.end > before
        leader = cluster[cluster.leader]
        for node in cluster.running:
            assert node.core is not None
            assert node.core.log_end == leader.log_end, cluster.summary()
            assert node.core.high_watermark == self.invariants.end, cluster.summary()
            self.invariants._compare(node)
