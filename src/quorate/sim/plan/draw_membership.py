"""The additions of plan format 7.

It adds nodes with two listeners, software upgrades, and AddVoter without waiting for the commit.
Snapshots take a time that depends on their size, and timeouts allow for clock drift.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.sim.plan.draw_faults import in_order
from quorate.sim.plan.plan import INVALID_REQUESTS, FaultEvent, Plan, members
from quorate.sim.prng import Prng

_RATE: Final = 1_000_000
_USUAL_BYTES: Final = 400
"""The typical size of a snapshot in a small world."""


def since_format_7(seed: int, plan: Plan, times: int) -> Plan:
    """Each addition draws from its own stream, so the rest of a plan is as in format 6."""
    plan = _outlasting(plan)
    plan = _listening(Prng(seed, "listeners"), plan, times)
    plan = _by_size(Prng(seed, "bytes of snapshots"), plan)
    found = [
        *_renewed(Prng(seed, "renewals"), plan),
        *_unacked(Prng(seed, "unacked"), plan, times),
    ]
    return _with(plan, found)


def _with(plan: Plan, found: list[FaultEvent]) -> Plan:
    within = [fault_event for fault_event in found if fault_event.at_ms < plan.duration_ms]
    return replace(plan, fault_events=in_order([*plan.fault_events, *within])) if within else plan


def _outlasting(plan: Plan) -> Plan:
    """Timeouts by the fastest clock that exceed a wait by the slowest clock.

    `draw._long_timeouts` does not consider clock drift. With seed 9400088 of format 6 every Fetch
    timed out, and the quorum could not recover.
    """
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


def _listening(rng: Prng, plan: Plan, times: int) -> Plan:
    """Each node has a second listener, which no controller uses. In some worlds only that listener
    moves, or an operator omits it from a request."""
    if not rng.happens(0.35):
        return plan
    count, found = plan.voters + plan.observers, []
    for _ in range(times):
        if rng.happens(0.5):
            for _ in range(1 + rng.skewed(0, 3)):
                args = 1 + rng.below(count), rng.between(10, 2000)
                found.append(FaultEvent(rng.below(plan.duration_ms), "move-outside", args))
        if rng.happens(0.4):
            found += _added_in_part(rng, plan, 1 + rng.below(count))
    return _with(replace(plan, listeners=2), found)


def _added_in_part(rng: Prng, plan: Plan, node: int) -> list[FaultEvent]:
    """The node is removed, and an operator adds it again with some of its endpoints only."""
    at = rng.below(plan.duration_ms)
    how = INVALID_REQUESTS.index("add-in-part")
    later = (at + 300 * (1 + i) + rng.below(300) for i in range(4))
    return [
        FaultEvent(at, "remove", (node,)),
        *(FaultEvent(then, "err", (node, how)) for then in later),
    ]


def _by_size(rng: Prng, plan: Plan) -> Plan:
    """Set the duration per byte of a snapshot, drawn as a multiple of the fetch timeout."""
    if not rng.happens(0.3):
        return plan
    took_us = rng.pick((0.05, 0.5, 1.5)) * plan.timing.fetch_timeout_ms * 1000
    return replace(plan, disk=replace(plan.disk, byte_us=1 + int(took_us / _USUAL_BYTES)))


def _renewed(rng: Prng, plan: Plan) -> list[FaultEvent]:
    """Upgrade most nodes whose software supports one kraft.version only."""
    found = []
    for node in members(plan.old | plan.young):
        if rng.happens(0.6):
            args = node, rng.between(10, 2000)
            found.append(FaultEvent(rng.below(plan.duration_ms), "renew", args))
    return found


def _unacked(rng: Prng, plan: Plan, times: int) -> list[FaultEvent]:
    """Operators add voters without waiting for the commit (KIP-1186), in some cases right after
    the removal of the same node."""
    found, count = [], plan.voters + plan.observers
    for _ in range(times):
        if rng.happens(0.3):
            for _ in range(1 + rng.skewed(0, 4)):
                at, node = rng.below(plan.duration_ms), 1 + rng.below(count)
                if rng.happens(0.5):
                    found.append(FaultEvent(at, "remove", (node,)))
                found.append(FaultEvent(at + rng.below(1000), "add-unacked", (node,)))
    return found
