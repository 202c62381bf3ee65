"""The additions of plan format 8: sizes that just fit, and events that cross.

Other draws reach these situations in less than one of a thousand worlds. `EDGES` of
`coverage_of_edges` counts them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.sim.plan.draw_faults import in_order
from quorate.sim.plan.plan import LEADER, OPERATIONS, FaultEvent, Plan, TimingPlan
from quorate.sim.plan.with_controllers import with_controllers
from quorate.sim.prng import Prng

_USUAL_INTERVAL: Final = 4096
_RESET: Final = OPERATIONS.index("reset")
_CHANCE: Final = 0.05
"""Of each of the rarer situations in a world."""
_OBSERVERS: Final = 5
_MANY: Final = 1500
"""Records of a cut-off leader: more than all others write meanwhile."""


def since_format_8(seed: int, plan: Plan) -> Plan:
    """Each addition draws from its own stream, so the rest of a plan is as in format 7."""
    plan = _index_entries(Prng(seed, "index"), plan)
    plan = _full_chunks(Prng(seed, "full chunks"), plan)
    plan = _cut_beside_reads(Prng(seed, "cut beside reads"), plan)
    plan = _late_versions(Prng(seed, "late versions"), plan)
    plan = _cut_over_a_tail(Prng(seed, "cut over a tail"), plan)
    plan = _replaced_then_upgraded(Prng(seed, "replaced at 0"), plan)
    return _late_registrations(seed, Prng(seed, "late registrations"), plan)


def _with(plan: Plan, *found: FaultEvent) -> Plan:
    within = [fault_event for fault_event in found if fault_event.at_ms < plan.duration_ms]
    return replace(plan, fault_events=in_order([*plan.fault_events, *within]))


def _begins(rng: Prng, plan: Plan) -> int:
    return rng.between(plan.duration_ms // 5, plan.duration_ms // 2)


def _quick(rng: Prng, plan: Plan) -> TimingPlan:
    """Timeouts that a world of a few seconds can reach often."""
    fetch = rng.between(250, 400)
    return replace(
        plan.timing,
        election_timeout_ms=200,
        fetch_timeout_ms=fetch,
        election_backoff_max_ms=200,
        request_timeout_ms=2 * fetch,
        fetch_max_wait_ms=50,
    )


def _index_entries(rng: Prng, plan: Plan) -> Plan:
    """Set an index entry for each batch, or one every few batches."""
    interval = rng.pick((_USUAL_INTERVAL, _USUAL_INTERVAL, 1, 100))
    return replace(plan, disk=replace(plan.disk, index_interval=interval))


def _full_chunks(rng: Prng, plan: Plan) -> Plan:
    """Snapshots are fetched in chunks of a few bytes: a size is often a multiple of that."""
    if not rng.happens(_CHANCE) or plan.voters < 3:
        return plan
    small = replace(
        plan.disk, segment_bytes=300, snapshot_bytes=400, retention_bytes=400, clean_ms=200
    )
    found = (
        FaultEvent(_begins(rng, plan), "kill", (1 + rng.below(plan.voters), rng.between(500, 2000)))
        for _ in range(4)
    )
    return _with(
        replace(
            plan,
            timing=replace(plan.timing, snapshot_max_bytes=rng.between(8, 25)),
            network=replace(plan.network, delay_us=50, jitter_us=20, loss=0.0),
            disk=small,
            clients=replace(plan.clients, count=2, think_ms=60, padding=0),
        ),
        *found,
    )


def _cut_beside_reads(rng: Prng, plan: Plan) -> Plan:
    """A leader with a slow disk writes more than its tail in memory holds, is cut off, and returns.

    Its peers' reads are still waiting when it truncates: a network without delay is faster.
    """
    if not rng.happens(_CHANCE) or plan.voters < 3:
        return plan
    at, timing = _begins(rng, plan), _quick(rng, plan)
    away = 3 * timing.fetch_timeout_ms
    plan = replace(
        plan,
        observers=_OBSERVERS,
        timing=timing,
        network=replace(plan.network, delay_us=0, jitter_us=0),
        disk=replace(plan.disk, sync_us=500, tail_bytes=1, slice_bytes=100),
    )
    return _with(
        plan,
        FaultEvent(at, "slow-disk", (LEADER, away - rng.between(50, 150), 6 * away)),
        FaultEvent(at + 100, "churn", (LEADER, 60, 5000, 1)),
        FaultEvent(at + 110, "isolate", (LEADER, away)),
    )


def _late_versions(rng: Prng, plan: Plan) -> Plan:
    """An observer is to become a voter. It answers so slowly that the leader that asked has resigned."""
    if not rng.happens(_CHANCE) or not plan.observers or plan.static:
        return plan
    at, newcomer = _begins(rng, plan), plan.voters + 1
    # The answer to a request that timed out is dropped with its connection.
    delay = (plan.timing.request_timeout_ms - rng.between(1, 50)) // 2
    links = [(node, newcomer) for node in range(1, plan.voters + 1)]
    links += [(to, source) for source, to in links]
    found = [FaultEvent(at, "slow-link", (*link, max(delay, 1), 5000)) for link in links]
    for _ in range(6):
        at += rng.between(200, 700)
        found.append(FaultEvent(at, "add", (newcomer,)))
        found.append(FaultEvent(at + rng.between(delay, 2 * delay + 1), "resign", (LEADER,)))
    return _with(plan, *found)


def _cut_over_a_tail(rng: Prng, plan: Plan) -> Plan:
    """A cut-off leader writes more than the others do, who clean the log meanwhile. It must install
    their snapshot over its tail, and the power fails within that."""
    if not rng.happens(_CHANCE) or plan.voters < 3:
        return plan
    at, timing = _begins(rng, plan), _quick(rng, plan)
    disk = replace(
        plan.disk,
        sync_us=500,
        segment_bytes=300,
        snapshot_bytes=300,
        retention_bytes=300,
        clean_ms=100,
    )
    nodes = range(1, plan.voters + 1)
    return _with(
        replace(
            plan,
            duration_ms=max(plan.duration_ms, at + 6000),
            timing=timing,
            network=replace(plan.network, delay_us=300, jitter_us=400),
            disk=disk,
            clients=replace(plan.clients, count=3, think_ms=60, padding=0),
        ),
        *(FaultEvent(at, "crash-inside", (node, _RESET, rng.between(1, 3))) for node in nodes),
        FaultEvent(at + 500, "fork", (LEADER, 0, _MANY, 0, 8 * timing.fetch_timeout_ms)),
    )


def _replaced_then_upgraded(rng: Prng, plan: Plan) -> Plan:
    """Static voters get empty disks and keep their ids; then the quorum is upgraded."""
    first = next((event for event in plan.fault_events if event.kind == "insist"), None)
    if first is None or not rng.happens(0.5):
        return plan
    found = []
    for _ in range(rng.between(1, 3)):
        node, down_ms = 1 + rng.below(plan.voters), rng.between(10, 1000)
        found.append(FaultEvent(rng.below(1 + first.at_ms), "exchange", (node, down_ms)))
    return _with(plan, *found)


def _late_registrations(seed: int, rng: Prng, plan: Plan) -> Plan:
    """Whole controllers whose links are slow: a leader resigns before it answers a registration."""
    if not rng.happens(_CHANCE / 2) or plan.voters < 3:
        return plan
    plan, nodes = with_controllers(seed, plan), range(1, plan.voters + 1)
    delay, period = rng.between(150, 250), rng.between(300, 600)
    until = plan.duration_ms
    slow = (
        FaultEvent(10, "slow-link", (source, to, delay, until))
        for source in nodes
        for to in nodes
        if source != to
    )
    resigns = (FaultEvent(at, "resign", (LEADER,)) for at in range(3000, until, period))
    return _with(replace(plan, timing=TimingPlan()), *slow, *resigns)
