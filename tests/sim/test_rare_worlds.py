"""Worlds that seeds reach rarely: each is fixed, reaches its situation, and passes every check.

A world that no longer reaches its situation fails: then it tests nothing, and needs other settings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from quorate.sim.coverage.coverage_of_edges import (
    CUT_BESIDE_A_READ,
    CUT_OVER_A_TAIL,
    DENSE_INDEX,
    EDGES,
    FULL_LAST_CHUNK,
    LATE_REGISTRATION,
    LATE_VERSIONS,
    REPLACED_THEN_UPGRADED,
    ROLLED_BACK,
    SNAPSHOT_AHEAD,
    EdgeCoverage,
)
from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS
from quorate.sim.plan.draw import draw
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
from quorate.sim.plan.snapshot_ahead import snapshot_ahead
from quorate.sim.prng import Prng
from quorate.sim.run.run import checked, run_plan
from quorate.storage import agreement
from quorate.storage.log import LogOptions
from quorate.storage.survey import DirectorySurvey

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


def replaced_then_upgraded(seed: int) -> Plan:
    """A static voter gets an empty disk and keeps its id and its configuration. The upgrade must
    write the directory id of the new disk: `thorough` compares. One of the two does not lead."""
    events = [
        (1000, "exchange", 1 + seed % 3, 50),
        (1000, "exchange", 1 + (seed + 1) % 3, 50),
        (2500, "insist", 20, 100),
        (3000, "kill", 1, 100),
    ]
    return plan(*events, seed=seed, static=True)


def rolled_back(seed: int, others_down_ms: int) -> Plan:
    """Two of three disks are copied, and put back later: the quorum has lost committed records.

    1. The third voter runs on: it never drops what it knows to be committed.
    2. It restarts too, and knows no high watermark: what it drops is reported.
    """
    nodes = sum(1 << 1 + (seed + i) % 3 for i in range(2))
    return plan((1000, "roll-back", nodes, 1000, 50, others_down_ms), seed=seed)


def late_registration() -> Plan:
    """The answer of the former active controller neither counts as one of the new nor blocks it."""
    slow = [(10, "slow-link", a, b, 250, 20_000) for a in (1, 2, 3) for b in (1, 2, 3) if a != b]
    resigns = [(at, "resign", LEADER) for at in range(3000, 20_000, 400)]
    settings = {"seed": 5, "controllers": True, "duration_ms": 20_000, "timing": TimingPlan()}
    return plan(*slow, *resigns, **settings)


WORLDS: list[tuple[str, Plan]] = [
    (FULL_LAST_CHUNK, full_last_chunk()),
    (DENSE_INDEX, dense_index()),
    *((CUT_BESIDE_A_READ, cut_beside_a_read(seed)) for seed in (1, 2)),
    (LATE_VERSIONS, late_versions()),
    *((CUT_OVER_A_TAIL, cut_over_a_tail(step)) for step in (1, 2, 3)),
    *((REPLACED_THEN_UPGRADED, replaced_then_upgraded(seed)) for seed in range(4)),
    *((ROLLED_BACK, rolled_back(seed, down)) for seed in (0, 2, 5) for down in (0, 600)),
    (LATE_REGISTRATION, late_registration()),
    (SNAPSHOT_AHEAD, snapshot_ahead(1, Prng(1, "ahead"))),
]


@pytest.mark.slow
@pytest.mark.parametrize(("point", "one"), WORLDS, ids=[point for point, _ in WORLDS])
def test_a_world_at_the_edge(point: str, one: Plan) -> None:
    edges = EdgeCoverage()
    outcome = run_plan(one, [edges, *checked()])
    assert outcome.failure is None
    assert edges.coverage[point]


def test_a_node_that_takes_every_former_leader_for_the_only_voter_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With other voters, such a leader has lost nothing: its snapshot has what they committed."""

    def led(found: DirectorySurvey, options: LogOptions) -> bool:
        return found.election is not None and found.election.leader_id == options.node_id

    monkeypatch.setattr(agreement, "_led_alone", led)
    failure = run_plan(snapshot_ahead(1, Prng(1, "ahead")), checked()).failure
    assert failure is not None and "refuses a disk that is sound" in failure.message


def test_every_edge_has_a_world() -> None:
    assert {*EDGES} == {point for point, _ in WORLDS}


def test_seeds_draw_the_settings_and_events_of_every_edge() -> None:
    """A campaign counts the situations themselves, and reports each one that no seed reached."""
    plans = [draw(seed) for seed in range(400)]
    assert {1, 100} < {one.disk.index_interval for one in plans}
    assert any(one.timing.snapshot_max_bytes < 30 for one in plans)
    assert any(one.controllers for one in plans)
    drawn = {event.kind for one in plans for event in one.fault_events}
    assert {"exchange", "roll-back"} < drawn
    assert {*EDGES} < {*ALL_COVERAGE_POINTS}
