"""RaftEventSimulationTest: clusters with chance in messages and timers, and what must come of it.

Our random walks (raft.walk) do all of this at once; here each scenario by its name.
"""

from __future__ import annotations

from random import Random

import pytest

from effort import QUICK
from quorate.raft.inputs import Propose, Shutdown
from quorate.sim.story.cluster import Cluster
from quorate.sim.story.log import Log
from raft.walk import Law

SEEDS = range(1 if QUICK else 3)


class Simulation:
    """A cluster of voters 1.. and observers, held to Raft's laws; every step gets new work."""

    def __init__(self, seed: int, voters: int, observers: int = 0, *, lawful: bool = True) -> None:
        self.random = Random(seed)
        self.cluster = Cluster(self.random.random).dynamic(*range(1, voters + 1))
        for node_id in range(voters + 1, voters + observers + 1):
            self.cluster.observer(node_id, 1, 2)
        self.voters = voters
        if lawful:
            Law(self.cluster)
        self.count = 0

    @property
    def committed(self) -> int:
        """What the leaders and followers that run have told to be committed."""
        return max(node.core.high_watermark for node in self.cluster.running)  # type: ignore[union-attr]

    def work(self) -> None:
        self.count += 1
        for node in self.cluster.running:
            assert node.core is not None
            if node.core.role == "leader":
                value = f"v{self.count}"
                node.step(Propose(self.count, node.core.epoch, 1, len(value), value))
        self.cluster.run(10 + int(self.random.random() * 20))

    def until(self, condition) -> None:  # type: ignore[no-untyped-def]
        for _ in range(3000):
            if condition():
                return
            self.work()
        raise AssertionError(self.cluster.summary())

    def all_reach(self, high_watermark: int, *ids: int) -> None:
        nodes = [self.cluster.nodes[i] for i in ids] if ids else self.cluster.running
        self.until(lambda: all(n.core.high_watermark >= high_watermark for n in nodes))  # type: ignore[union-attr]

    def begin(self) -> int:
        """Started, with ten records committed; the leader."""
        self.cluster.start()
        self.all_reach(10)
        return self.cluster.leader

    def drop_requests(self, node_id: int, *to: int) -> None:
        self.cluster.cut |= {(node_id, other) for other in to}
        self.cluster.cut |= {(other, node_id) for other in to}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("voters", "observers"), [(1, 2), (3, 1), (4, 0), (5, 2)])
def test_can_elect_initial_leader(seed: int, voters: int, observers: int) -> None:
    assert Simulation(seed, voters, observers).begin() in range(1, voters + 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("graceful", [False, True])
@pytest.mark.parametrize("voters", [3, 5])
def test_can_elect_new_leader_after_old_leader_failure(
    seed: int, graceful: bool, voters: int
) -> None:
    sim = Simulation(seed, voters, 1)
    old = sim.begin()
    node = sim.cluster.nodes[old]
    if graceful:
        node.step(Shutdown(5000))
        sim.until(lambda: node.last.stopped or sim.cluster.leader not in (0, old))
    node.crash()
    sim.all_reach(sim.committed + 10)
    node.start()
    sim.all_reach(sim.committed + 10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("voters", [1, 3, 5])
def test_can_recover_after_all_nodes_killed(seed: int, voters: int) -> None:
    sim = Simulation(seed, voters, 1)
    sim.begin()
    committed = sim.committed
    for node in sim.cluster.running:
        node.crash()
    majority = range(1, voters // 2 + 2)
    sim.cluster.start(*majority)
    sim.all_reach(committed + 10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("voters", [3, 5])
def test_can_elect_new_leader_after_old_leader_partitioned_away(seed: int, voters: int) -> None:
    sim = Simulation(seed, voters, 1)
    old = sim.begin()
    others = [i for i in sim.cluster.nodes if i != old]
    sim.cluster.partition({old}, others)
    sim.all_reach(sim.committed + 10, *others)
    assert sim.cluster.leader != old
    sim.cluster.heal()
    sim.all_reach(sim.committed + 10)


@pytest.mark.parametrize("seed", SEEDS)
def test_can_make_progress_if_majority_is_reachable(seed: int) -> None:
    sim = Simulation(seed, 5)
    sim.begin()
    sim.cluster.partition({1, 2}, {3, 4, 5})
    sim.all_reach(sim.committed + 10, 3, 4, 5)
    assert sim.cluster[1].high_watermark < sim.cluster[3].high_watermark
    sim.cluster.heal()
    sim.all_reach(sim.committed + 10)


def ping_pong(sim: Simulation, a: int, b: int, c: int, d: int, e: int) -> None:
    """KIP-996: a - c, b - d, c - d, c - e, d - e; without pre-votes c and d depose each other."""
    sim.drop_requests(a, b, d, e)
    sim.drop_requests(b, a, c, e)


@pytest.mark.parametrize("seed", SEEDS)
def test_leadership_assigned_only_once_with_network_partition_if_there_exists_majority(
    seed: int,
) -> None:
    sim = Simulation(seed, 5)
    ping_pong(sim, 1, 2, 3, 4, 5)
    sim.cluster.start()
    sim.until(lambda: sim.cluster.leader and sim.committed >= 5)
    leader = sim.cluster.leader
    epoch = sim.cluster[leader].epoch
    sim.all_reach(sim.committed + 30, leader)
    assert (sim.cluster.leader, sim.cluster[leader].epoch) == (leader, epoch)


@pytest.mark.parametrize("seed", SEEDS)
def test_leadership_will_not_change_during_network_partition_if_majority_still_reachable(
    seed: int,
) -> None:
    sim = Simulation(seed, 5)
    leader = sim.begin()
    epoch = sim.cluster[leader].epoch
    a, b, d, e = (i for i in range(1, 6) if i != leader)
    ping_pong(sim, a, b, leader, d, e)
    sim.all_reach(sim.committed + 100, leader, d, e)
    assert sim.cluster.now > 10_000 or sim.count > 100
    assert (sim.cluster.leader, sim.cluster[leader].epoch) == (leader, epoch)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("voters", [3, 5])
def test_can_make_progress_after_back_to_back_leader_failures(seed: int, voters: int) -> None:
    sim = Simulation(seed, voters)
    first = sim.begin()
    ids = set(sim.cluster.nodes)
    sim.cluster.partition({first}, ids - {first})
    sim.until(lambda: sim.cluster.leader not in (0, first))
    second = sim.cluster.leader
    sim.cluster.partition({second}, ids - {second})
    sim.all_reach(sim.committed + 10, *(ids - {second}))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("voters", [3, 5])
def test_can_recover_from_single_node_committed_data_loss(seed: int, voters: int) -> None:
    """A disk is lost whole; a leader is elected by the others before the node comes back."""
    sim = Simulation(seed, voters, lawful=False)
    sim.begin()
    values = sim.cluster.leading.values[:5]
    lost = sim.cluster.nodes[1 + int(sim.random.random() * voters)]
    epoch = max(node.core.epoch for node in sim.cluster.running)  # type: ignore[union-attr]
    lost.crash()
    bootstrap = {k: v for k, v in lost.durable.snapshots.items() if k.offset == 0}
    lost.durable = Log(snapshots=bootstrap)
    sim.until(lambda: sim.cluster.leader and sim.cluster[sim.cluster.leader].epoch >= epoch)
    lost.start()
    sim.all_reach(sim.committed + 10)
    assert all(node.values[:5] == values for node in sim.cluster.running)
