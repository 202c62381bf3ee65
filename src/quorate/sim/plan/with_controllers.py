"""Settings of worlds whose nodes run whole controllers."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.sim.plan.plan import Plan
from quorate.sim.prng import Prng

_STREAM: Final = "controllers"
_MOST_MS: Final = 30_000
_BATCH_BYTES: Final = 1 << 16
"""A registration of a controller and the bootstrap records fit."""
_CHUNK_BYTES: Final = 1_500
"""An image has some KiB. In smaller chunks its snapshot may be older than all that a leader keeps before a
follower has it, again and again."""
_LEFT_OUT: Final = frozenset({"upgrade", "insist"})
"""They propose a kraft.version to the replica, past the write queue of its controller."""
_BROKERS: Final = (0, 1, 3, 3, 4)
_IDLE_MS: Final = (0, 2_000, 5_000)
"""`metadata.max.idle.interval.ms`. Shorter, the log might not stand still in the liveness phase."""


def with_controllers(seed: int, plan: Plan) -> Plan:
    """This plan with controllers, and in most cases with brokers."""
    rng = Prng(seed, _STREAM)
    duration_ms = min(plan.duration_ms, _MOST_MS)
    return replace(
        plan,
        controllers=True,
        brokers=Prng(seed, "brokers").pick(_BROKERS),
        wire=False,
        old=0,
        young=0,
        duration_ms=duration_ms,
        # A Fetch response is encoded as a frame here, and the network does not corrupt frames.
        network=replace(plan.network, corrupt=0.0),
        timing=replace(
            plan.timing,
            idle_ms=rng.pick(_IDLE_MS),
            snapshot_max_bytes=max(plan.timing.snapshot_max_bytes, _CHUNK_BYTES),
        ),
        limits=replace(plan.limits, batch_bytes=max(plan.limits.batch_bytes, _BATCH_BYTES)),
        clients=replace(
            plan.clients, count=rng.between(1, 4), think_ms=rng.pick((50, 200, 1000)), barriers=0.0
        ),
        fault_events=tuple(
            event
            for event in plan.fault_events
            if event.at_ms < duration_ms and event.kind not in _LEFT_OUT
        ),
    )
