"""Patient worlds: some hours in which hardly anything happens.

All other worlds last seconds, so that what is due after an hour is never due: a snapshot because of
its age, the end of a log that is old, a voter that has been away for too long; and clocks have no
time to drift. Timers are as long as they may be in a quorum over a bad line, now and then those of
production: what costs a world its time are the Fetches, one every `fetch_max_wait_ms`.
"""

from __future__ import annotations

from typing import Final

from quorate.sim.chance import Chance
from quorate.sim.plan import (
    LEADER,
    ClientPlan,
    ClockPlan,
    Deed,
    DiskPlan,
    NetworkPlan,
    Plan,
    TimingPlan,
)

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_DAY_MS: Final = 24 * _HOUR_MS
_WEEK_MS: Final = 7 * _DAY_MS
_AS_IN_PRODUCTION: Final = 0.1


def patient(seed: int, luck: Chance) -> Plan:
    """Some hours, few clients, a few faults; snapshots and retention as Kafka has them, or some
    hours instead of its week."""
    if luck.happens(_AS_IN_PRODUCTION):
        voters, observers, timing = luck.pick((1, 2, 3)), 0, TimingPlan()
        duration = luck.between(65 * _MINUTE_MS, 80 * _MINUTE_MS)
    else:
        voters, observers = luck.pick((1, 2, 3, 3, 3, 5)), luck.pick((0, 0, 1, 2))
        timing = _slow(luck)
        duration = luck.between(2 * _HOUR_MS, 6 * _HOUR_MS)
    static = luck.happens(0.25)
    return Plan(
        seed=seed,
        voters=voters,
        observers=observers,
        static=static,
        auto_join=luck.happens(0.35),
        thorough=True,
        duration_ms=duration,
        network=NetworkPlan(loss=luck.pick((0.0, 0.0, 0.001))),
        timing=timing,
        clock=ClockPlan(luck.pick((0, 50, 5000, 20_000))),
        disk=DiskPlan(
            segment_bytes=luck.pick((1 << 30, 1000, 3000)),
            segment_ms=luck.pick((_WEEK_MS, 20 * _MINUTE_MS)),
            retention_ms=luck.pick((_WEEK_MS, _HOUR_MS, 90 * _MINUTE_MS)),
        ),
        clients=ClientPlan(
            count=luck.pick((0, 1, 2)),
            think_ms=luck.pick((20_000, 120_000, 600_000)),
            timeout_ms=timing.request_timeout_ms,
            padding=luck.pick((0, 100)),
            turn_away=luck.pick((0.0, 0.3)),
        ),
        deeds=_deeds(luck, voters, observers, duration, static),
    )


def _slow(luck: Chance) -> TimingPlan:
    wait = luck.between(5000, 20_000)
    fetch = wait * luck.between(2, 4)
    return TimingPlan(
        election_timeout_ms=luck.between(1000, fetch),
        fetch_timeout_ms=fetch,
        election_backoff_max_ms=luck.between(1000, fetch),
        request_timeout_ms=luck.between(wait + 1000, 2 * fetch),
        retry_backoff_ms=luck.between(500, 5000),
        fetch_max_wait_ms=wait,
        idle_ms=luck.pick((0, _MINUTE_MS, 5 * _MINUTE_MS)),
    )


def _deeds(
    luck: Chance, voters: int, observers: int, duration: int, static: bool
) -> tuple[Deed, ...]:
    found, count = [], voters + observers

    def add(kind: str, *args: int) -> None:
        found.append(Deed(luck.below(duration), kind, args))

    def node() -> int:
        return LEADER if luck.happens(0.33) else 1 + luck.below(count)

    def away() -> int:
        """For minutes, or for more than the hour within which a new voter has to have caught up."""
        least = luck.pick((1, 62))
        return luck.between(least * _MINUTE_MS, (least + 10) * _MINUTE_MS)

    for _ in range(luck.skewed(0, 6)):
        kind = luck.pick(("kill", "power", "stop", "pause", "isolate", "replace", "move"))
        add(kind, node(), away())
    for _ in range(luck.skewed(0, 3)):
        add(luck.pick(("add", "remove")), 1 + luck.below(count))
    for _ in range(luck.skewed(0, 2)):
        add("jump", node(), luck.pick((_MINUTE_MS, _HOUR_MS, _DAY_MS)))
    if luck.happens(0.4):
        at, node_id, gone = luck.below(duration // 2), 1 + luck.below(count), away()
        found.append(Deed(at, "remove", (node_id,)))
        found.append(Deed(at + 5000, "isolate", (node_id, gone)))
        found.append(Deed(at + 5000 + gone + luck.below(500), "add", (node_id,)))
    if static and luck.happens(0.5):
        add("insist", 20, _MINUTE_MS)
    found = [deed for deed in found if deed.at_ms < duration]
    return tuple(sorted(found, key=lambda deed: (deed.at_ms, str(deed))))
