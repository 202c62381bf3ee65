"""Long-running worlds: some hours with few events.

All other worlds last seconds. They never reach what is due after an hour: a snapshot by age,
retention by age, or the time limit of a voter that is down; and their clocks hardly drift. Timeouts
here are as long as for a slow network, and in some worlds those of production. The cost of a world
is its number of Fetches, one every `fetch_max_wait_ms`.
"""

from __future__ import annotations

from typing import Final

from quorate.sim.plan.plan import (
    LEADER,
    ClientPlan,
    ClockPlan,
    DiskPlan,
    FaultEvent,
    NetworkPlan,
    Plan,
    TimingPlan,
)
from quorate.sim.prng import Prng

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_WEEK_MS: Final = 7 * _DAY_MS
_AS_IN_PRODUCTION: Final = 0.1


def long_running(seed: int, rng: Prng) -> Plan:
    """Some hours, few clients, a few faults. Snapshots and retention have Kafka's defaults, or some
    hours instead of a week."""
    if rng.happens(_AS_IN_PRODUCTION):
        voters, observers, timing = rng.pick((1, 2, 3)), 0, TimingPlan()
        duration = rng.between(65 * _MINUTE_MS, 80 * _MINUTE_MS)
    else:
        voters, observers = rng.pick((1, 2, 3, 3, 3, 5)), rng.pick((0, 0, 1, 2))
        timing = _slow(rng)
        duration = rng.between(2 * _HOUR_MS, 6 * _HOUR_MS)
    static = rng.happens(0.25)
    return Plan(
        seed=seed,
        voters=voters,
        observers=observers,
        static=static,
        auto_join=rng.happens(0.35),
        thorough=True,
        duration_ms=duration,
        network=NetworkPlan(loss=rng.pick((0.0, 0.0, 0.001))),
        timing=timing,
        clock=ClockPlan(rng.pick((0, 50, 5000, 20_000))),
        disk=DiskPlan(
            segment_bytes=rng.pick((1 << 30, 1000, 3000)),
            segment_ms=rng.pick((_WEEK_MS, 20 * _MINUTE_MS)),
            retention_ms=rng.pick((_WEEK_MS, _HOUR_MS, 90 * _MINUTE_MS)),
        ),
        clients=ClientPlan(
            count=rng.pick((0, 1, 2)),
            think_ms=rng.pick((20_000, 120_000, 600_000)),
            timeout_ms=timing.request_timeout_ms,
            padding=rng.pick((0, 100)),
            turn_away=rng.pick((0.0, 0.3)),
        ),
        fault_events=_fault_events(rng, voters, observers, duration, static),
    )


def _slow(rng: Prng) -> TimingPlan:
    wait = rng.between(5000, 20_000)
    fetch = wait * rng.between(2, 4)
    return TimingPlan(
        election_timeout_ms=rng.between(1000, fetch),
        fetch_timeout_ms=fetch,
        election_backoff_max_ms=rng.between(1000, fetch),
        request_timeout_ms=rng.between(wait + 1000, 2 * fetch),
        retry_backoff_ms=rng.between(500, 5000),
        fetch_max_wait_ms=wait,
        idle_ms=rng.pick((0, _MINUTE_MS, 5 * _MINUTE_MS)),
    )


def _fault_events(
    rng: Prng, voters: int, observers: int, duration: int, static: bool
) -> tuple[FaultEvent, ...]:
    found, count = [], voters + observers

    def add(kind: str, *args: int) -> None:
        found.append(FaultEvent(rng.below(duration), kind, args))

    def node() -> int:
        return LEADER if rng.happens(0.33) else 1 + rng.below(count)

    def away() -> int:
        """A downtime: minutes, or more than the hour within which a new voter must catch up."""
        least = rng.pick((1, 62))
        return rng.between(least * _MINUTE_MS, (least + 10) * _MINUTE_MS)

    for _ in range(rng.skewed(0, 6)):
        kind = rng.pick(("kill", "power", "stop", "pause", "isolate", "replace", "move"))
        add(kind, node(), away())
    for _ in range(rng.skewed(0, 3)):
        add(rng.pick(("add", "remove")), 1 + rng.below(count))
    for _ in range(rng.skewed(0, 2)):
        add("jump", node(), rng.pick((_MINUTE_MS, _HOUR_MS, _DAY_MS)))
    if rng.happens(0.4):
        at, node_id, gone = rng.below(duration // 2), 1 + rng.below(count), away()
        found.append(FaultEvent(at, "remove", (node_id,)))
        found.append(FaultEvent(at + 5000, "isolate", (node_id, gone)))
        found.append(FaultEvent(at + 5000 + gone + rng.below(500), "add", (node_id,)))
    if static and rng.happens(0.5):
        add("insist", 20, _MINUTE_MS)
    found = [fault_event for fault_event in found if fault_event.at_ms < duration]
    return tuple(sorted(found, key=lambda fault_event: (fault_event.at_ms, str(fault_event))))
