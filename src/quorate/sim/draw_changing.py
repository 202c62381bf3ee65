"""What plan format 7 added: nodes with two listeners, software that changes, voters that are added
without waiting for the commit, snapshots that take time by their size, and clocks that requests
outlast."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.sim.chance import Chance
from quorate.sim.draw_deeds import in_order
from quorate.sim.plan import MISTAKES, Deed, Plan, members

_RATE: Final = 1_000_000
_USUAL_BYTES: Final = 400
"""Of a snapshot of a small world."""


def since_format_7(seed: int, plan: Plan, times: int) -> Plan:
    """Each thing has a stream of its own, so that the rest of a plan stays one of format 6."""
    plan = _outlasting(plan)
    plan = _listening(Chance(seed, "listeners"), plan, times)
    plan = _by_size(Chance(seed, "bytes of snapshots"), plan)
    found = [
        *_renewed(Chance(seed, "renewals"), plan),
        *_unacked(Chance(seed, "unacked"), plan, times),
    ]
    return _with(plan, found)


def _with(plan: Plan, found: list[Deed]) -> Plan:
    within = [deed for deed in found if deed.at_ms < plan.duration_ms]
    return replace(plan, deeds=in_order([*plan.deeds, *within])) if within else plan


def _outlasting(plan: Plan) -> Plan:
    """Timeouts as `draw._patient` has them, by the fastest clock for an answer that waits by the
    slowest: seed 9400088 of format 6 could not heal, as every Fetch timed out."""
    timing, drift = plan.timing, plan.clock.drift_ppm
    wait = timing.fetch_max_wait_ms
    longer = -(-wait * (_RATE + drift) // (_RATE - drift)) - wait
    return replace(
        plan,
        timing=replace(
            timing,
            fetch_timeout_ms=timing.fetch_timeout_ms + longer,
            request_timeout_ms=timing.request_timeout_ms + longer,
        ),
    )


def _listening(luck: Chance, plan: Plan, times: int) -> Plan:
    """Each node has a second listener, which no controller uses; now and then that one moves
    alone, or an operator forgets to name it."""
    if not luck.happens(0.35):
        return plan
    count, found = plan.voters + plan.observers, []
    for _ in range(times):
        if luck.happens(0.5):
            for _ in range(1 + luck.skewed(0, 3)):
                args = 1 + luck.below(count), luck.between(10, 2000)
                found.append(Deed(luck.below(plan.duration_ms), "move-outside", args))
        if luck.happens(0.4):
            found += _added_in_part(luck, plan, 1 + luck.below(count))
    return _with(replace(plan, listeners=2), found)


def _added_in_part(luck: Chance, plan: Plan, node: int) -> list[Deed]:
    """It goes, and an operator who adds it again does not know all of its endpoints."""
    at = luck.below(plan.duration_ms)
    how = MISTAKES.index("add-in-part")
    later = (at + 300 * (1 + i) + luck.below(300) for i in range(4))
    return [Deed(at, "remove", (node,)), *(Deed(then, "err", (node, how)) for then in later)]


def _by_size(luck: Chance, plan: Plan) -> Plan:
    """A snapshot takes about so many fetch timeouts to be written, or installed."""
    if not luck.happens(0.3):
        return plan
    took_us = luck.pick((0.05, 0.5, 1.5)) * plan.timing.fetch_timeout_ms * 1000
    return replace(plan, disk=replace(plan.disk, byte_us=1 + int(took_us / _USUAL_BYTES)))


def _renewed(luck: Chance, plan: Plan) -> list[Deed]:
    """Most of the software that knows one kraft.version only is replaced sooner or later."""
    found = []
    for node in members(plan.old | plan.young):
        if luck.happens(0.6):
            args = node, luck.between(10, 2000)
            found.append(Deed(luck.below(plan.duration_ms), "renew", args))
    return found


def _unacked(luck: Chance, plan: Plan, times: int) -> list[Deed]:
    """Operators that do not wait for a new voter set to be committed; one that has just removed
    a node adds it again."""
    found, count = [], plan.voters + plan.observers
    for _ in range(times):
        if luck.happens(0.3):
            for _ in range(1 + luck.skewed(0, 4)):
                at, node = luck.below(plan.duration_ms), 1 + luck.below(count)
                if luck.happens(0.5):
                    found.append(Deed(at, "remove", (node,)))
                found.append(Deed(at + luck.below(1000), "add-unacked", (node,)))
    return found
