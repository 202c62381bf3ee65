"""Deeds since plan format 6: situations that the other families hardly ever bring about."""

from __future__ import annotations

from quorate.sim.chance import Chance
from quorate.sim.plan import LEADER, Deed, Plan


def rare_deeds(luck: Chance, plan: Plan, times: int) -> list[Deed]:
    """Those of so many worlds."""
    found: list[Deed] = []
    for _ in range(times):
        if luck.happens(0.2):
            found += _strangers(luck, plan)
        if luck.happens(0.15):
            found += _removed_while_cut_off(luck, plan)
        if luck.happens(0.15):
            found += _dark_behind_a_kill(luck, plan)
    return [deed for deed in found if deed.at_ms < plan.duration_ms]


def _count(plan: Plan) -> int:
    return plan.voters + plan.observers


def _strangers(luck: Chance, plan: Plan) -> list[Deed]:
    """Somebody of another cluster believes to know a node."""
    source, to = 1 + luck.below(_count(plan)), 1 + luck.below(_count(plan))
    args = (source, to, luck.pick((50, 300, 1000)), luck.between(1, 30))
    return [Deed(luck.below(plan.duration_ms), "stranger", args)]


def _removed_while_cut_off(luck: Chance, plan: Plan) -> list[Deed]:
    """A leader writes a voter set that it cannot commit, and everybody a snapshot: it ends where
    that record begins, when nobody has written anything meanwhile. Then the record is cut off."""
    at = luck.between(plan.duration_ms // 5, 2 * plan.duration_ms // 3)
    away = luck.between(2, 3) * plan.timing.fetch_timeout_ms
    node = 1 + luck.below(_count(plan))
    return [
        Deed(at, "isolate", (LEADER, away)),
        Deed(at + 1, luck.pick(("remove", "remove", "add")), (node,)),
        *everybody_writes_snapshots(plan, at + luck.between(20, 200)),
    ]


def everybody_writes_snapshots(plan: Plan, at_ms: int) -> list[Deed]:
    return [Deed(at_ms, "snapshot", (node,)) for node in range(1, _count(plan) + 1)]


def _dark_behind_a_kill(luck: Chance, plan: Plan) -> list[Deed]:
    """A disk is slow, and what its node has written waits in the system's cache when the node is
    killed. It comes back to that, and soon afterwards the power goes."""
    node, at = 1 + luck.below(_count(plan)), luck.below(plan.duration_ms)
    found = [Deed(at, "slow-disk", (node, luck.pick((100, 300)), 5000))]
    for _ in range(luck.between(1, 3)):
        at += luck.between(300, 1200)
        found.append(Deed(at, "kill", (node, 20)))
        at += 20 + luck.between(10, 250)
        found.append(Deed(at, "power", (node, luck.between(10, 600))))
    return found
