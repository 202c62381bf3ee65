"""Worlds that seeds reach rarely or never: each is fixed, reaches its situation, and passes every check.

A world that no longer reaches its situation fails: then it tests nothing, and needs other settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from quorate.sim.coverage.coverage_of_edges import (
    CUT_BESIDE_A_READ,
    CUT_OVER_A_TAIL,
    DENSE_INDEX,
    EDGES,
    FULL_LAST_CHUNK,
    LATE_VERSIONS,
    REPLACED_THEN_UPGRADED,
    EdgeCoverage,
)
from quorate.sim.plan.plan import (
    LEADER,
    OPERATIONS,
    ClientPlan,
    DiskPlan,
    FaultEvent,
    NetworkPlan,
    Plan,
    TimingPlan,
)
from quorate.sim.run.run import checked, run_world
from quorate.sim.world.controller import SimulatedController
from quorate.sim.world.observer import Observer
from quorate.sim.world.process import Process
from quorate.sim.world.world import World

TIMING = TimingPlan(
    election_timeout_ms=200,
    fetch_timeout_ms=300,
    election_backoff_max_ms=200,
    request_timeout_ms=600,
    fetch_max_wait_ms=50,
)
CLIENTS = ClientPlan(count=2, think_ms=60, timeout_ms=1000)
BASE = Plan(duration_ms=4000, thorough=True, timing=TIMING, clients=CLIENTS)
SMALL = DiskPlan(segment_bytes=300, snapshot_bytes=400, retention_bytes=400, clean_ms=200)


def plan(*events: tuple[Any, ...], **settings: Any) -> Plan:
    """Each event: (ms, kind, arguments...)."""
    found = tuple(FaultEvent(at, kind, tuple(args)) for at, kind, *args in events)
    return replace(BASE, fault_events=found, **settings)


def full_last_chunk() -> Plan:
    """Seven chunks of 77 bytes are a snapshot of 539."""
    return plan(
        (1500, "isolate", 2, 1500),
        seed=1,
        timing=replace(TIMING, snapshot_max_bytes=77),
        clients=replace(CLIENTS, keys=5),
        disk=SMALL,
    )


def dense_index() -> Plan:
    """An index entry for each batch. A truncation and reads go through the index."""
    return plan(
        (1000, "fork", LEADER, 0, 20, 0, 900),
        (2500, "power", 1, 100),
        (2500, "power", 2, 100),
        (3000, "kill", 3, 100),
        seed=1,
        disk=DiskPlan(segment_bytes=3000, tail_bytes=100, index_interval=1),
    )


def cut_beside_a_read(seed: int) -> Plan:
    """A leader with a slow disk writes more than its tail in memory holds, is cut off, and returns.

    Its peers' reads are still waiting when it truncates: a network without delay is faster.
    """
    return plan(
        (1000, "slow-disk", LEADER, 800, 6000),
        (1100, "churn", LEADER, 60, 5000, 1),
        (1110, "isolate", LEADER, 900),
        seed=seed,
        observers=5,
        network=NetworkPlan(delay_us=0, jitter_us=0),
        disk=DiskPlan(tail_bytes=1, slice_bytes=100),
    )


def late_versions() -> Plan:
    """The newcomer answers so slowly that the leader that asked has resigned."""
    slow = [
        (1000, "slow-link", *link, 580, 3000)
        for node in (1, 2, 3)
        for link in ((node, 4), (4, node))
    ]
    adds = [(at, "add", 4) for at in range(1500, 4000, 500)]
    resigns = [(at, "resign", LEADER) for at in range(1700, 4000, 400)]
    return plan(*slow, *adds, *resigns, seed=1, observers=1)


def cut_over_a_tail(step: int) -> Plan:
    """A cut-off leader writes more than the others do, who clean the log meanwhile. It must install
    their snapshot over its tail, and the power fails at this step of the reset."""
    reset = OPERATIONS.index("reset")
    armed = [(1000, "crash-inside", node, reset, step) for node in (1, 2, 3)]
    return plan(
        *armed,
        (1500, "fork", LEADER, 0, 1500, 0, 2500),
        seed=1,
        duration_ms=6000,
        disk=replace(SMALL, snapshot_bytes=300, retention_bytes=300, clean_ms=100),
    )


WORLDS: list[tuple[str, Plan]] = [
    (FULL_LAST_CHUNK, full_last_chunk()),
    (DENSE_INDEX, dense_index()),
    *((CUT_BESIDE_A_READ, cut_beside_a_read(seed)) for seed in (1, 2)),
    (LATE_VERSIONS, late_versions()),
    *((CUT_OVER_A_TAIL, cut_over_a_tail(step)) for step in (1, 2, 3)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "one"), WORLDS, ids=[point for point, _ in WORLDS])
def test_a_world_at_the_edge(point: str, one: Plan) -> None:
    edges = EdgeCoverage()
    run_world(World(one, [edges, *checked()]))
    assert edges.coverage[point]


def test_every_edge_has_a_world() -> None:
    assert {*EDGES} == {point for point, _ in WORLDS} | {REPLACED_THEN_UPGRADED}


# -- a disk that is replaced at kraft.version 0 ------------------------------------------------
def looks(world: World, until_ms: int, act: Callable[[], bool]) -> None:
    """Call `act` every 20 ms from 1500 ms on, until it returns True."""

    def look() -> None:
        if not act() and world.now_us < until_ms * 1000:
            world.push(world.now_us + 20_000, look)

    world.push(1_500_000, look)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_disk_is_replaced_at_kraft_version_0_then_the_quorum_upgrades(seed: int) -> None:
    """A static voter gets an empty disk and keeps its id and its configuration. The budget allows it
    where all others have as much. The upgrade must write the directory id of the new disk."""
    events = [(2500, "insist", 20, 100), (3000, "kill", 1, 100)]
    edges = EdgeCoverage()
    world = World(plan(*events, seed=seed, static=True), [edges, *checked()])
    victim = world.processes[1 + seed % 3]
    old = victim.directory_id

    def replaces() -> bool:
        if victim.replica is None or not world.budget.may_forget(victim):
            return False
        world.faults.kill(victim)
        victim.wipe()
        victim.static = True
        world.wiped(victim)
        world.faults.start_later(victim, 50)
        return True

    looks(world, 2400, replaces)
    run_world(world)
    assert edges.coverage[REPLACED_THEN_UPGRADED]
    leader = world.leader()
    assert leader is not None
    voters = leader.core.voters.voters or ()
    keys = {voter.key for voter in voters}
    assert victim.key in keys and old not in {key.directory_id for key in keys}
    assert leader.core.voters.kraft_version == 1


# -- a majority that is put back on old disks ----------------------------------------------------
class Losses(Observer):
    """The warnings that a loss must not lack."""

    def __init__(self) -> None:
        self.warnings: list[tuple[int, str]] = []

    def stepped(self, process: Any, happened: object, effects: Any) -> None:
        self.warnings += [(process.id, note) for note in effects.notes if is_report(note)]


def is_report(note: str) -> bool:
    """A leader reports a voter with less than before; a follower refuses to drop what is committed,
    or warns of what it drops."""
    return (
        "an older copy of its directory was restored" in note
        or "below what is committed" in note
        or "does not have the rest" in note
        or "run on copies of the directory" in note
    )


@pytest.mark.slow
@pytest.mark.parametrize("restarts", [False, True], ids=["third runs", "all restart"])
@pytest.mark.parametrize("seed", [0, 2, 5])
def test_a_majority_put_back_on_old_disks_is_never_silent(seed: int, restarts: bool) -> None:
    """Two of three disks are copied, and put back later: the quorum has lost committed records.

    1. The third voter runs on: it never drops what it knows to be committed.
    2. It restarts too, and knows no high watermark: what it drops is reported.
    """
    losses = Losses()
    world = World(plan(seed=seed), [losses])
    copies: dict[int, dict[str, bytes]] = {}
    old = [world.processes[1 + (seed + i) % 3] for i in range(2)]
    third = next(process for process in world.processes.values() if process not in old)
    acknowledged = b""

    def copy() -> None:
        for process in old:
            copies[process.id] = dict(process.disk.memory.medium())

    def put_back() -> None:
        nonlocal acknowledged
        acknowledged = log_to(third, third.core.high_watermark)
        for process in old:
            world.faults.kill(process)
            process.forget(copies[process.id])
            world.faults.start_later(process, 50)
        if restarts:
            world.faults.kill(third)
            world.faults.start_later(third, 600)

    world.push(1_000_000, copy)
    world.push(2_000_000, put_back)
    world.begin()
    world.run_until(12_000_000)
    assert len(acknowledged) > 1000, "nothing was committed"
    leader = world.leader()
    assert leader is not None
    if not restarts and all(log_to(one, None).startswith(acknowledged) for one in (leader, third)):
        return  # nothing is lost: the third was elected
    assert losses.warnings
    if restarts or not log_to(third, None).startswith(acknowledged):
        assert restarts, "a running voter dropped what it knew to be committed"
        reports = [note for node, note in losses.warnings if node == third.id]
        assert any("does not have the rest" in note for note in reports)


def log_to(process: Process, end: int | None) -> bytes:
    """The bytes of its log from offset 0 to `end`; None: all of it."""
    storage = process.storage
    return storage.read(0, storage.end_offset if end is None else end, 1 << 40)


# -- a registration that is answered late --------------------------------------------------------
@pytest.mark.slow
@pytest.mark.interpreted
def test_a_registration_is_answered_after_another_controller_is_active(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer of the former active controller neither counts as one of the new nor blocks it."""
    asked: dict[int, list[int]] = {}
    late: list[int] = []
    register, registered = World.register, SimulatedController.registered

    def note_register(self: World, process: Process, registration: Any) -> None:
        asked.setdefault(process.id, []).append(registration.to)
        register(self, process, registration)

    def note_registered(self: SimulatedController, response: Any) -> None:
        active = self.node.active_peer
        to = asked[self.node.node_id][-1]
        if response is not None and (active is None or active[0] != to):
            late.append(self.node.node_id)
        registered(self, response)

    monkeypatch.setattr(World, "register", note_register)
    monkeypatch.setattr(SimulatedController, "registered", note_registered)
    ends = range(3000, 20_000, 400)
    slow = [(10, "slow-link", a, b, 250, 20_000) for a in (1, 2, 3) for b in (1, 2, 3) if a != b]
    resigns = [(at, "resign", LEADER) for at in ends]
    settings = {"seed": 5, "controllers": True, "duration_ms": 20_000, "timing": TimingPlan()}
    world = World(plan(*slow, *resigns, **settings), checked())
    run_world(world)
    assert late
    world.run_until(world.now_us + 20_000_000)
    for process in world.processes.values():
        controller = process.controller
        assert controller is not None
        assert {*controller.node.image.cluster.controllers} == {1, 2, 3}
