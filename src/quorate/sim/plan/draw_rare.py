"""Fault events since plan format 6: situations that are rare in the other families."""

from __future__ import annotations

from quorate.sim.plan.plan import LEADER, FaultEvent, Plan
from quorate.sim.prng import Prng


def rare_fault_events(rng: Prng, plan: Plan, times: int) -> list[FaultEvent]:
    """The rare fault events of `times` worlds, for one world."""
    found: list[FaultEvent] = []
    for _ in range(times):
        if rng.happens(0.2):
            found += _foreign_clusters(rng, plan)
        if rng.happens(0.15):
            found += _removed_while_cut_off(rng, plan)
        if rng.happens(0.15):
            found += _dark_behind_a_kill(rng, plan)
    return [fault_event for fault_event in found if fault_event.at_ms < plan.duration_ms]


def _count(plan: Plan) -> int:
    return plan.voters + plan.observers


def _foreign_clusters(rng: Prng, plan: Plan) -> list[FaultEvent]:
    """A replica of a foreign cluster has the address of a node."""
    source, to = 1 + rng.below(_count(plan)), 1 + rng.below(_count(plan))
    args = (source, to, rng.pick((50, 300, 1000)), rng.between(1, 30))
    return [FaultEvent(rng.below(plan.duration_ms), "foreign-cluster", args)]


def _removed_while_cut_off(rng: Prng, plan: Plan) -> list[FaultEvent]:
    """A partitioned leader appends a voter set that it cannot commit, and every node writes a
    snapshot. Without other writes, the snapshot ends where that record begins. Then the record is
    truncated."""
    at = rng.between(plan.duration_ms // 5, 2 * plan.duration_ms // 3)
    away = rng.between(2, 3) * plan.timing.fetch_timeout_ms
    node = 1 + rng.below(_count(plan))
    return [
        FaultEvent(at, "isolate", (LEADER, away)),
        FaultEvent(at + 1, rng.pick(("remove", "remove", "add")), (node,)),
        *all_nodes_write_snapshots(plan, at + rng.between(20, 200)),
    ]


def all_nodes_write_snapshots(plan: Plan, at_ms: int) -> list[FaultEvent]:
    return [FaultEvent(at_ms, "snapshot", (node,)) for node in range(1, _count(plan) + 1)]


def _dark_behind_a_kill(rng: Prng, plan: Plan) -> list[FaultEvent]:
    """A process with a slow disk is killed while its writes are in the page cache. It restarts with
    those writes, and soon afterwards its machine loses power."""
    node, at = 1 + rng.below(_count(plan)), rng.below(plan.duration_ms)
    found = [FaultEvent(at, "slow-disk", (node, rng.pick((100, 300)), 5000))]
    for _ in range(rng.between(1, 3)):
        at += rng.between(300, 1200)
        found.append(FaultEvent(at, "kill", (node, 20)))
        at += 20 + rng.between(10, 250)
        found.append(FaultEvent(at, "power", (node, rng.between(10, 600))))
    return found
