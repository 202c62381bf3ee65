"""Runs of the real core whose traces are held against the specification."""

from __future__ import annotations

from random import Random

from narrow import not_none
from quorate.base.ids import ReplicaKey
from quorate.raft.core import RaftCore
from quorate.raft.messages import AddVoterRequest, RemoveVoterRequest
from quorate.raft.ready import Ready
from quorate.raft.values import ElectionState
from quorate.sim.plan.plan import LEADER, ClientPlan, FaultEvent, NetworkPlan, Plan
from quorate.sim.render.tla import Recorder, Tape
from quorate.sim.run.run import run_plan
from quorate.sim.scenario.cluster import CoreCluster
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners
from quorate.sim.scenario.node import CoreNode


def taped(cluster: CoreCluster, *voters: int) -> Tape:
    """A tape of everything that the nodes of this cluster do from now on."""
    tape = Tape(key(i) for i in voters)
    lives: dict[ReplicaKey, RaftCore] = {}

    def observe(node: CoreNode, ready: Ready) -> None:
        replica, core = ReplicaKey(node.id, node.config.directory_id), node.running
        if lives.get(replica) is not core:
            lives[replica] = core
            tape.started(replica, node.durable.election or ElectionState(), node.durable.end)
        if ready.faulted is None:
            if ready.seq is not None:
                tape.wrote(replica, ready.seq, ready.writes)
            tape.stepped(replica, core)

    cluster.observe = observe
    return tape


def takeover() -> Tape:
    """A disconnected leader appends, crashes, and truncates to the log of the next leader."""
    cluster = CoreCluster(Random(1).random).dynamic(1, 2, 3)
    tape = taped(cluster, 1, 2, 3)
    cluster.start()
    old = cluster.elect()
    cluster.leading.propose("one")
    cluster.run(50)
    others = [i for i in (1, 2, 3) if i != old]
    cluster.partition([old], others)
    node = cluster.nodes[old]
    node.propose("lost")
    node.persist()
    node.propose("not even written")
    node.crash()
    cluster.run_until(lambda: cluster.leader in others)
    cluster.leading.propose("two")
    cluster.run(50)
    cluster.heal()
    node.start()
    cluster.run(1500)
    assert cluster[old].log_end == cluster[cluster.leader].log_end
    return tape


def change_of_voters() -> Tape:
    """A fourth voter comes, the leader is removed, and hands over."""
    cluster = CoreCluster(Random(2).random).dynamic(1, 2, 3)
    cluster.observer(4, 1, 2, 3)
    tape = taped(cluster, 1, 2, 3)
    cluster.start()
    old = cluster.elect()
    cluster.run(1000)
    cluster.ask(old, AddVoterRequest(CLUSTER_ID, key(4), listeners(4)))
    cluster.run(200)
    assert len(not_none(cluster[old].voters.voters)) == 4
    cluster.ask(old, RemoveVoterRequest(CLUSTER_ID, key(old)))
    cluster.run_until(lambda: cluster.leader not in (0, old))
    cluster.leading.propose("after")
    cluster.run(100)
    return tape


def simulated(seed: int = 1) -> Tape:
    """A world of the simulator: power cuts, a partition, voters added and removed."""
    fault_events = (
        FaultEvent(900, "add", (4,)),
        FaultEvent(1300, "power", (2, 300)),
        FaultEvent(2200, "partition", (0b0010, 2500)),
        FaultEvent(2500, "power", (3, 200)),
        FaultEvent(5200, "remove", (1,)),
    )
    plan = Plan(
        seed=seed,
        observers=1,
        duration_ms=6000,
        clients=ClientPlan(count=1, think_ms=1500),
        network=NetworkPlan(loss=0.02, duplicate=0.02, reorder=0.1),
        fault_events=fault_events,
    )
    recorder = Recorder()
    outcome = run_plan(plan, [recorder])
    assert outcome.failure is None and recorder.left_out is None, (outcome, recorder.left_out)
    return recorder.tape


def moved(seed: int, power_ms: int) -> Tape:
    """A voter comes back with other endpoints, and the leader is gone as soon: the set is said
    again, with the same replicas."""
    fault_events = (
        FaultEvent(1500, "move", (2, 200)),
        FaultEvent(power_ms, "power", (LEADER, 1500)),
    )
    plan = Plan(seed=seed, duration_ms=4000, clients=ClientPlan(count=0), fault_events=fault_events)
    recorder = Recorder()
    outcome = run_plan(plan, [recorder])
    assert outcome.failure is None and recorder.left_out is None, (outcome, recorder.left_out)
    return recorder.tape


def updated() -> Tape:
    """The leader writes the update (UpdateRaftVoter)."""
    tape = moved(4, 1705)
    assert (False, True) in _said_again(tape)
    return tape


def updated_by_itself() -> Tape:
    """Who has moved leads before anybody knows where it is, and begins with that."""
    tape = moved(2, 1705)
    assert (True, True) in _said_again(tape)
    return tape


def _said_again(tape: Tape) -> set[tuple[bool, bool]]:
    """Of batches behind the first with a voter set: (first of its epoch?, the same set?)."""
    return {
        (before.epoch < entry.epoch, entry.voters == line.log[0].voters)
        for line in tape.lines
        for before, entry in zip(line.log, line.log[1:], strict=False)
        if entry.voters
    }
