"""A world since plan format 9: a leader's snapshot reaches beyond its own log on disk.

The leader's disk hangs within a sync. The other voters commit without it, so a snapshot is due of
records that only they have on disk. The power fails before the sync ends: recovery must drop the log
for the snapshot, although no leader sent that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.sim.plan.plan import LEADER, DiskPlan, FaultEvent, NetworkPlan, Plan, TimingPlan
from quorate.sim.plan.with_controllers import with_controllers
from quorate.sim.prng import Prng

_FIRST_MS: Final = 3_000
"""A leader is active and has clients by then."""
_ROUND_MS: Final = 4_000
"""The voters elect another leader within it, and the crashed one follows."""


def snapshot_ahead(seed: int, rng: Prng) -> Plan:
    """A few rounds of the three events, each at the leader of that time."""
    timing, rounds, found = TimingPlan(), rng.between(2, 4), []
    for round_ in range(rounds):
        at = _FIRST_MS + round_ * _ROUND_MS + rng.below(500)
        # A sync takes half to one and a half of it, and the leader resigns after 1.5 fetch timeouts.
        sync_ms, for_ms = rng.between(400, timing.fetch_timeout_ms), rng.between(50, 150)
        due = at + for_ms + 1
        crash = due + rng.between(10, max(sync_ms // 2 - for_ms, 11))
        found += [
            FaultEvent(at, "slow-disk", (LEADER, sync_ms, for_ms)),
            FaultEvent(due, "snapshot", (LEADER,)),
            FaultEvent(crash, "power", (LEADER, rng.between(10, 1000))),
        ]
    segment_bytes, torn = rng.pick((1 << 30, 3000)), rng.happens(0.3)
    plan = with_controllers(
        seed,
        Plan(
            seed=seed,
            voters=rng.pick((3, 3, 3, 5)),
            observers=rng.pick((0, 0, 1)),
            static=rng.happens(0.25),
            thorough=True,
            duration_ms=_FIRST_MS + rounds * _ROUND_MS,
            network=NetworkPlan(delay_us=rng.pick((50, 300))),
            timing=timing,
            disk=DiskPlan(segment_bytes=segment_bytes, torn=torn),
            fault_events=tuple(found),
        ),
    )
    # Many writes: some are under way whenever the disk begins to hang.
    return replace(plan, clients=replace(plan.clients, count=4, think_ms=50))
