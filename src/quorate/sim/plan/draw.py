"""Swarm testing: each seed draws the size of its world, the kinds of faults, and their rates.

Most worlds have a few kinds of faults, because faults mask each other when all kinds are on. One
world in four is *intense*: it has the fault events of eight worlds. Some bugs need a combination of
faults that is rare in other worlds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.raft.values import RaftLimits
from quorate.replica.applier import SLICE_BYTES
from quorate.replica.tail import TAIL_BYTES
from quorate.sim.plan.draw_edges import since_format_8
from quorate.sim.plan.draw_faults import FaultEventDrawer, in_order
from quorate.sim.plan.draw_membership import since_format_7
from quorate.sim.plan.draw_rare import all_nodes_write_snapshots, rare_fault_events
from quorate.sim.plan.long_running import long_running
from quorate.sim.plan.plan import (
    LEADER,
    ClientPlan,
    ClockPlan,
    DiskPlan,
    FaultEvent,
    NetworkPlan,
    Plan,
    TimingPlan,
    largest_submit,
)
from quorate.sim.plan.rolled_back import rolled_back
from quorate.sim.plan.snapshot_ahead import snapshot_ahead
from quorate.sim.prng import Prng

_SIZES: Final = (1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7)
_OBSERVERS: Final = (0, 0, 0, 1, 1, 2, 2, 3)
_DURATIONS: Final = (5_000, 10_000, 10_000, 20_000, 30_000)
_INTENSE: Final = 0.25
_LONG_RUNNING: Final = 0.025
"""The part of the seeds that draw a world of `long_running`."""
_ROLLED_BACK: Final = 0.02
"""The part of the seeds that draw a world of `rolled_back`."""
_SNAPSHOT_AHEAD: Final = 0.01
"""The part of the seeds that draw a world of `snapshot_ahead`."""
_WORLDS_IN_ONE: Final = 8
_SMALL_BATCH: Final = 1 << 17
"""Batch size in bytes above which only `sim.run.oversize_probe` submits records that are too large."""
_INVALID_REQUESTS: Final = 12
"""The number of entries of `plan.INVALID_REQUESTS` in format 4."""
_WEEK_MS: Final = 604_800_000
_BAD_MEDIA: Final = (
    "misplace",
    "misplace",
    "rot-epoch",
    "lose-segment",
    "lose-log",
    "lose-snapshot",
    "lose-vote",
    "lose-epochs",
)


def draw(seed: int) -> Plan:
    """The plan of a seed. It never changes within one `plan.FORMAT`."""
    hours, loss = Prng(seed, "patient"), Prng(seed, "rolled back")
    if hours.happens(_LONG_RUNNING):
        return long_running(seed, hours)
    if loss.happens(_ROLLED_BACK):
        return rolled_back(seed, loss)
    ahead = Prng(seed, "own snapshot")
    return snapshot_ahead(seed, ahead) if ahead.happens(_SNAPSHOT_AHEAD) else _short(seed)


def _short(seed: int) -> Plan:
    """The plan of a world of at most 30 s before its liveness phase."""
    rng = Prng(seed, "plan")
    voters, observers = rng.pick(_SIZES), rng.pick(_OBSERVERS)
    static = rng.happens(0.25)
    duration = rng.pick(_DURATIONS)
    linger = Prng(seed, "linger").pick((0, 2, 2, 20))
    idle = Prng(seed, "idle").pick((0, 0, 500))
    timing = replace(_timing(rng), high_watermark_linger_ms=linger, idle_ms=idle)
    times = _WORLDS_IN_ONE if Prng(seed, "fierce").happens(_INTENSE) else 1
    inside = Prng(seed, "inside")
    plan = Plan(
        seed=seed,
        voters=voters,
        observers=observers,
        static=static,
        auto_join=rng.happens(0.35),
        wire=rng.happens(0.15),
        duration_ms=duration,
        network=_network(rng),
        timing=timing,
        clock=ClockPlan(rng.pick((0, 0, 50, 1000, 50_000))),
        disk=_disk(rng),
        clients=_clients(rng),
        fault_events=FaultEventDrawer(rng, voters, observers, duration, timing).draw(
            static, times, inside
        ),
    )
    disk = _small(Prng(seed, "small"), _aging(Prng(seed, "age"), plan.disk))
    if any(fault_event.kind == "churn" for fault_event in plan.fault_events):
        slices = Prng(seed, "slices").pick((1, 100))
        disk = replace(disk, slice_bytes=slices, tail_bytes=300, retention_bytes=500)
    plan = _since_format_4(seed, replace(plan, timing=_long_timeouts(plan), disk=disk), times)
    plan = _since_format_6(seed, _since_format_5(seed, plan), times)
    return since_format_8(seed, since_format_7(seed, plan, times))


def _since_format_4(seed: int, plan: Plan, times: int) -> Plan:
    """The settings and fault events of format 4.

    Each addition draws from its own stream, `Prng(seed, "its name")`. It therefore does not change
    what format 3 draws from the same seed.
    """
    clients = replace(
        plan.clients,
        lists=Prng(seed, "lists").pick((1, 2, 5)),
        barriers=Prng(seed, "barriers").pick((0.0, 0.1, 0.5)),
    )
    fault_events = (*plan.fault_events, *_invalid_requests(Prng(seed, "mistakes"), plan, times))
    old, young = _software(Prng(seed, "software"), plan)
    plan = replace(
        plan, clients=clients, fault_events=fault_events, old=old, young=young, thorough=True
    )
    return _bad_media(seed, plan, times)


def _since_format_5(seed: int, plan: Plan) -> Plan:
    """The additions of format 5, each from its own stream."""
    small = plan.limits.batch_bytes <= _SMALL_BATCH
    clients = replace(
        plan.clients,
        turn_away=Prng(seed, "turn away").pick((0.0, 0.0, 0.3)),
        oversized=Prng(seed, "oversized").pick((0.0, 0.0, 0.1)) if small else 0.0,
    )
    plan = replace(plan, clients=clients)
    return _upgraded(Prng(seed, "insist"), plan) if plan.static else plan


def _since_format_6(seed: int, plan: Plan, times: int) -> Plan:
    """The additions of format 6, each from its own stream."""
    plan = _cut_off(Prng(seed, "cut off"), plan)
    found = rare_fault_events(Prng(seed, "rare"), plan, times)
    return replace(plan, fault_events=in_order([*plan.fault_events, *found])) if found else plan


def _cut_off(rng: Prng, plan: Plan) -> Plan:
    """A partitioned leader receives a request to upgrade the quorum, and the operators repeat the
    request only after the partition: the leader's record must be truncated."""
    cuts, snapshots = rng.happens(0.5), rng.happens(0.5)
    first = next(
        (fault_event for fault_event in plan.fault_events if fault_event.kind == "insist"), None
    )
    quiet = _quiet_ms(plan.timing)
    if first is None or not cuts or plan.duration_ms < 3 * quiet:
        return plan
    away = 3 * plan.timing.fetch_timeout_ms
    found = [FaultEvent(quiet, "isolate", (LEADER, away)), FaultEvent(quiet + 1, "upgrade", ())]
    if snapshots:
        found += all_nodes_write_snapshots(plan, quiet + rng.between(20, 200))
    later = max(first.at_ms, quiet + away)
    others = [fault_event for fault_event in plan.fault_events if fault_event is not first]
    fault_events = in_order(
        [*others, *found, replace(first, at_ms=min(later, plan.duration_ms - 1))]
    )
    return replace(plan, fault_events=fault_events)


def _upgraded(rng: Prng, plan: Plan) -> Plan:
    """Upgrade most static quorums to kraft.version 1.

    Every voter must report its support to one leader, which is rare while faults occur. Half of
    these worlds therefore begin with a period without faults.
    """
    insists, begins_quiet, able = rng.happens(0.8), rng.happens(0.6), rng.happens(0.7)
    if not insists:
        return plan
    quiet = _quiet_ms(plan.timing) if begins_quiet else 0
    at, period = rng.below(1 + quiet // 2), rng.pick((100, 400))
    times = 1 + (plan.duration_ms // 2 + quiet) // period
    later = [
        replace(fault_event, at_ms=fault_event.at_ms + quiet) for fault_event in plan.fault_events
    ]
    return replace(
        plan,
        old=plan.old & -(2 << plan.voters) if able else plan.old,
        duration_ms=plan.duration_ms + quiet,
        fault_events=in_order([*later, FaultEvent(at, "insist", (times, period))]),
    )


def _quiet_ms(timing: TimingPlan) -> int:
    """The time in which a leader is elected and receives a request of each voter."""
    return 3 * timing.election_timeout_ms + 3 * timing.fetch_timeout_ms


def _invalid_requests(rng: Prng, plan: Plan, times: int) -> list[FaultEvent]:
    """Invalid requests of operators."""
    count, found = plan.voters + plan.observers, []
    for _ in range(times):
        if rng.happens(0.4):
            for _ in range(1 + rng.skewed(0, 10)):
                at, node = rng.below(plan.duration_ms), 1 + rng.below(count)
                found.append(FaultEvent(at, "err", (node, rng.below(_INVALID_REQUESTS))))
    return found


def _software(rng: Prng, plan: Plan) -> tuple[int, int]:
    """Bit masks of the nodes whose software lacks kraft.version 1, and of those that lack 0.

    Where kraft.version is 1 from the beginning, a node of the first kind is not a voter.
    """
    some, count = rng.happens(0.5), plan.voters + plan.observers
    first = 1 if plan.static else plan.voters + 1
    old = sum(1 << node for node in range(first, count + 1) if rng.happens(0.3))
    young = sum(1 << node for node in range(1, count + 1) if rng.happens(0.2))
    return (old, 0 if plan.static else young & ~old) if some else (0, 0)


def _bad_media(seed: int, plan: Plan, times: int) -> Plan:
    """Damage to whole batches, sectors and files, and limits that a small world can reach."""
    rng = Prng(seed, "media")
    count, duration = plan.voters + plan.observers, plan.duration_ms
    found = list(plan.fault_events)
    for _ in range(times):
        if rng.happens(0.25):
            for _ in range(1 + rng.skewed(0, 3)):
                found.append(_bad_medium(rng, rng.below(duration), 1 + rng.below(count)))
        if rng.happens(0.15):
            everybody = (1 << count + 1) - 2
            args = everybody, rng.between(10, 2000)
            found.append(FaultEvent(rng.below(duration), "blackout-reorder", args))
    disk = replace(
        plan.disk,
        loose_names=rng.happens(0.5),
        short_writes=rng.happens(0.5),
        sync_every=rng.pick((1 << 22, 1 << 22, 100)),
    )
    limits = _limits(Prng(seed, "limits"), plan)
    fault_events = in_order([fault_event for fault_event in found if fault_event.at_ms < duration])
    return replace(plan, disk=disk, limits=limits, fault_events=fault_events)


def _bad_medium(rng: Prng, at: int, node: int) -> FaultEvent:
    kind, down = rng.pick(_BAD_MEDIA), rng.between(10, 2000)
    if kind == "misplace":
        return FaultEvent(at, kind, (node, rng.pick((0, 0, 512, 4096)), down))
    return FaultEvent(at, kind, (node, down))


def _limits(rng: Prng, plan: Plan) -> RaftLimits:
    """The default limits, or limits so small that a world reaches them."""
    usual = RaftLimits()
    if rng.happens(0.4):
        return usual
    largest = largest_submit(plan.clients)
    return RaftLimits(
        border_window=rng.pick((usual.border_window, 1, 8)),
        batch_bytes=rng.pick((usual.batch_bytes, largest, 2 * largest)),
        observer_session_ms=rng.pick((usual.observer_session_ms, 1000)),
        max_observers=rng.pick((usual.max_observers, 3)),
        caught_up_within_ms=rng.pick((usual.caught_up_within_ms, 3000)),
    )


def _small(rng: Prng, disk: DiskPlan) -> DiskPlan:
    """Segments of a few batches, logs of a few segments, and a tail of a few batches in memory."""
    disk = replace(
        disk,
        tail_bytes=rng.pick((TAIL_BYTES, 4096, 300)),
        slice_bytes=rng.pick((SLICE_BYTES, 1, 100)),
    )
    if rng.happens(0.5):
        disk = replace(disk, segment_bytes=rng.pick((150, 300, 600)))
    if rng.happens(0.25):
        size = rng.pick((500, 1500))
        disk = replace(disk, snapshot_bytes=size, retention_bytes=size, clean_ms=1000)
    return disk


def _aging(rng: Prng, disk: DiskPlan) -> DiskPlan:
    """Segment roll, snapshots and retention by age."""
    return replace(
        disk,
        segment_ms=rng.pick((_WEEK_MS, _WEEK_MS, 3000)),
        retention_ms=rng.pick((_WEEK_MS, _WEEK_MS, 5000)),
        clean_ms=rng.pick((60_000, 1000)),
    )


def _long_timeouts(plan: Plan) -> TimingPlan:
    """Timeouts longer than a round trip: no protocol works where every Fetch times out."""
    network, timing = plan.network, plan.timing
    there_and_back_us = 2 * (network.delay_us + network.jitter_us) + 4 * plan.disk.sync_us
    least = 1 + there_and_back_us // 1000
    return replace(
        timing,
        election_timeout_ms=max(timing.election_timeout_ms, 3 * least),
        fetch_timeout_ms=max(timing.fetch_timeout_ms, timing.fetch_max_wait_ms + 3 * least),
        request_timeout_ms=max(timing.request_timeout_ms, timing.fetch_max_wait_ms + 2 * least),
    )


def _timing(rng: Prng) -> TimingPlan:
    if rng.happens(0.4):
        return TimingPlan(fetch_max_bytes=_fetch_bytes(rng), snapshot_max_bytes=_chunk(rng))
    election = rng.between(100, 1000)
    fetch = election * rng.between(1, 3)
    return TimingPlan(
        election_timeout_ms=election,
        fetch_timeout_ms=fetch,
        election_backoff_max_ms=rng.between(election // 4, 2 * election),
        request_timeout_ms=rng.between(election // 2, 2 * fetch),
        retry_backoff_ms=rng.between(5, 100),
        fetch_max_wait_ms=max(fetch // 4, 20),
        fetch_max_bytes=_fetch_bytes(rng),
        snapshot_max_bytes=_chunk(rng),
        cpu_us=rng.pick((20, 40, 40, 200)),
    )


def _fetch_bytes(rng: Prng) -> int:
    return rng.pick((1_048_576, 1_048_576, 4096, 300))


def _chunk(rng: Prng) -> int:
    return rng.pick((1_048_576, 300, 80))


def _network(rng: Prng) -> NetworkPlan:
    def rate(chance: float, most: float) -> float:
        return round(rng.random() ** 3 * most, 5) if rng.happens(chance) else 0.0

    return NetworkPlan(
        delay_us=rng.pick((50, 300, 300, 2000, 20_000)),
        jitter_us=rng.pick((20, 400, 400, 5000, 50_000)),
        loss=rate(0.35, 0.2),
        duplicate=rate(0.3, 0.2),
        hold=rate(0.3, 0.1),
        hold_ms=rng.pick((100, 1000, 10_000)),
        reorder=rate(0.3, 0.3),
        reset=rate(0.15, 0.1),
        corrupt=rate(0.15, 0.1),
    )


def _disk(rng: Prng) -> DiskPlan:
    return DiskPlan(
        sync_us=rng.pick((50, 500, 500, 5000, 30_000)),
        slow=0.02 if rng.happens(0.2) else 0.0,
        slow_ms=rng.pick((50, 500, 3000)),
        failure=0.001 if rng.happens(0.15) else 0.0,
        torn=rng.happens(0.7),
        segment_bytes=rng.pick((1 << 30, 1000, 3000)),
        snapshot_bytes=rng.pick((20_971_520, 600, 2000, 6000)),
        snapshot_ms=rng.pick((3_600_000, 700, 4000)),
        retention_bytes=rng.pick((104_857_600, 1500, 8000)),
    )


def _clients(rng: Prng) -> ClientPlan:
    return ClientPlan(
        count=rng.pick((0, 1, 2, 3, 4)),
        keys=rng.pick((1, 2, 5)),
        think_ms=rng.pick((20, 100, 300, 1000)),
        timeout_ms=rng.pick((300, 1000, 3000)),
        give_up=rng.pick((0.0, 0.2, 0.8)),
        reads=rng.pick((0.1, 0.4, 0.8)),
        compares=rng.pick((0.0, 0.2)),
        padding=rng.pick((0, 0, 100, 2000)),
    )
