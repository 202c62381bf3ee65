"""Worlds in which a majority of the voters is put back on old disks.

No quorum survives that without a loss. The checks of other worlds end there, and
`RolledBackCheck` goes on: a loss that a disk can prove is refused or reported.
"""

from __future__ import annotations

from quorate.sim.plan.plan import ClientPlan, FaultEvent, NetworkPlan, Plan, TimingPlan
from quorate.sim.prng import Prng


def rolled_back(seed: int, rng: Prng) -> Plan:
    """A few seconds of writes. No snapshot is due, so each log has all records from offset 0."""
    voters, observers = rng.pick((3, 3, 3, 4, 5)), rng.pick((0, 0, 1))
    election = rng.between(150, 600)
    fetch = election * rng.between(1, 3)
    at, age = rng.between(500, 2500), rng.between(100, 2000)
    others = rng.pick((0, 0, rng.between(10, 1500)))
    args = _majority(rng, voters), age, rng.between(10, 1000), others
    found = [FaultEvent(at, "roll-back", args)]
    if rng.happens(0.3):
        node, cut = 1 + rng.below(voters), rng.between(100, 3000)
        found.insert(0, FaultEvent(rng.below(at), "isolate", (node, cut)))
    return Plan(
        seed=seed,
        voters=voters,
        observers=observers,
        static=rng.happens(0.2),
        thorough=True,
        duration_ms=at + age + rng.between(100, 4000),
        network=NetworkPlan(delay_us=rng.pick((50, 300, 2000)), loss=rng.pick((0.0, 0.0, 0.02))),
        timing=TimingPlan(
            election_timeout_ms=election,
            fetch_timeout_ms=fetch,
            election_backoff_max_ms=election,
            request_timeout_ms=2 * fetch,
            fetch_max_wait_ms=max(20, fetch // 4),
        ),
        clients=ClientPlan(count=rng.between(1, 4), think_ms=rng.pick((20, 60, 300))),
        fault_events=tuple(found),
    )


def _majority(rng: Prng, voters: int) -> int:
    """The bit mask of a majority of the voters, but not of all."""
    ids = rng.shuffled(range(1, voters + 1))
    return sum(1 << node for node in ids[: rng.between(voters // 2 + 1, voters - 1)])
