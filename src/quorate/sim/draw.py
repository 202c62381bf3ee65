"""The swarm: each seed draws how large its world is, which faults are on, and how fierce.

Most worlds have a few kinds of trouble and not all: faults hide each other when all are on. One
in four is *fierce*, with the deeds of eight worlds: some bugs need so much to come together that
gentle worlds hardly ever meet it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorate.node.applier import SLICE_BYTES
from quorate.node.tail import TAIL_BYTES
from quorate.raft.values import Limits
from quorate.sim.chance import Chance
from quorate.sim.draw_changing import since_format_7
from quorate.sim.draw_deeds import Deeds, in_order
from quorate.sim.draw_rare import everybody_writes_snapshots, rare_deeds
from quorate.sim.patient import patient
from quorate.sim.plan import (
    LEADER,
    ClientPlan,
    ClockPlan,
    Deed,
    DiskPlan,
    NetworkPlan,
    Plan,
    TimingPlan,
    largest_submit,
)

_SIZES: Final = (1, 2, 3, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7)
_OBSERVERS: Final = (0, 0, 0, 1, 1, 2, 2, 3)
_DURATIONS: Final = (5_000, 10_000, 10_000, 20_000, 30_000)
_FIERCE: Final = 0.25
_PATIENT: Final = 0.025
"""Of the seeds so many are `sim.patient`."""
_WORLDS_IN_ONE: Final = 8
_SMALL_BATCH: Final = 1 << 17
"""Bytes of a batch above which what is too large for it is left to `sim.exam`."""
_MISTAKES: Final = 12
"""Those that format 4 had, the first of `plan.MISTAKES`."""
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
    """The plan of a seed: the same for ever within one `plan.FORMAT`."""
    hours = Chance(seed, "patient")
    return patient(seed, hours) if hours.happens(_PATIENT) else _hostile(seed)


def _hostile(seed: int) -> Plan:
    luck = Chance(seed, "plan")
    voters, observers = luck.pick(_SIZES), luck.pick(_OBSERVERS)
    static = luck.happens(0.25)
    duration = luck.pick(_DURATIONS)
    linger = Chance(seed, "linger").pick((0, 2, 2, 20))
    idle = Chance(seed, "idle").pick((0, 0, 500))
    timing = replace(_timing(luck), high_watermark_linger_ms=linger, idle_ms=idle)
    times = _WORLDS_IN_ONE if Chance(seed, "fierce").happens(_FIERCE) else 1
    inside = Chance(seed, "inside")
    plan = Plan(
        seed=seed,
        voters=voters,
        observers=observers,
        static=static,
        auto_join=luck.happens(0.35),
        wire=luck.happens(0.15),
        duration_ms=duration,
        network=_network(luck),
        timing=timing,
        clock=ClockPlan(luck.pick((0, 0, 50, 1000, 50_000))),
        disk=_disk(luck),
        clients=_clients(luck),
        deeds=Deeds(luck, voters, observers, duration, timing).draw(static, times, inside),
    )
    disk = _small(Chance(seed, "small"), _aging(Chance(seed, "age"), plan.disk))
    if any(deed.kind == "churn" for deed in plan.deeds):
        slices = Chance(seed, "slices").pick((1, 100))
        disk = replace(disk, slice_bytes=slices, tail_bytes=300, retention_bytes=500)
    plan = _since_format_4(seed, replace(plan, timing=_patient(plan), disk=disk), times)
    plan = _since_format_6(seed, _since_format_5(seed, plan), times)
    return since_format_7(seed, plan, times)


def _since_format_4(seed: int, plan: Plan, times: int) -> Plan:
    """What format 4 added. Each thing has a stream of its own, `Chance(seed, "its name")`, so that
    it leaves all that was drawn before as it was; without it a plan is one of format 3."""
    clients = replace(
        plan.clients,
        lists=Chance(seed, "lists").pick((1, 2, 5)),
        barriers=Chance(seed, "barriers").pick((0.0, 0.1, 0.5)),
    )
    deeds = (*plan.deeds, *_mistakes(Chance(seed, "mistakes"), plan, times))
    old, young = _software(Chance(seed, "software"), plan)
    plan = replace(plan, clients=clients, deeds=deeds, old=old, young=young, thorough=True)
    return _bad_media(seed, plan, times)


def _since_format_5(seed: int, plan: Plan) -> Plan:
    """What format 5 added, in the same way."""
    small = plan.limits.batch_bytes <= _SMALL_BATCH
    clients = replace(
        plan.clients,
        turn_away=Chance(seed, "turn away").pick((0.0, 0.0, 0.3)),
        oversized=Chance(seed, "oversized").pick((0.0, 0.0, 0.1)) if small else 0.0,
    )
    plan = replace(plan, clients=clients)
    return _upgraded(Chance(seed, "insist"), plan) if plan.static else plan


def _since_format_6(seed: int, plan: Plan, times: int) -> Plan:
    """What format 6 added, in the same way."""
    plan = _cut_off(Chance(seed, "cut off"), plan)
    found = rare_deeds(Chance(seed, "rare"), plan, times)
    return replace(plan, deeds=in_order([*plan.deeds, *found])) if found else plan


def _cut_off(luck: Chance, plan: Plan) -> Plan:
    """A leader that could upgrade the quorum is asked to when it is cut off, and insisted on only
    afterwards: what it has written has to be truncated."""
    cuts, snapshots = luck.happens(0.5), luck.happens(0.5)
    first = next((deed for deed in plan.deeds if deed.kind == "insist"), None)
    peace = _peace_ms(plan.timing)
    if first is None or not cuts or plan.duration_ms < 3 * peace:
        return plan
    away = 3 * plan.timing.fetch_timeout_ms
    found = [Deed(peace, "isolate", (LEADER, away)), Deed(peace + 1, "upgrade", ())]
    if snapshots:
        found += everybody_writes_snapshots(plan, peace + luck.between(20, 200))
    later = max(first.at_ms, peace + away)
    others = [deed for deed in plan.deeds if deed is not first]
    deeds = in_order([*others, *found, replace(first, at_ms=min(later, plan.duration_ms - 1))])
    return replace(plan, deeds=deeds)


def _upgraded(luck: Chance, plan: Plan) -> Plan:
    """Most static quorums are upgraded sooner or later: every voter has to tell one leader that it
    can, which hardly ever happens beside everything else. So half of them begin in peace."""
    insists, in_peace, able = luck.happens(0.8), luck.happens(0.6), luck.happens(0.7)
    if not insists:
        return plan
    peace = _peace_ms(plan.timing) if in_peace else 0
    at, period = luck.below(1 + peace // 2), luck.pick((100, 400))
    times = 1 + (plan.duration_ms // 2 + peace) // period
    later = [replace(deed, at_ms=deed.at_ms + peace) for deed in plan.deeds]
    return replace(
        plan,
        old=plan.old & -(2 << plan.voters) if able else plan.old,
        duration_ms=plan.duration_ms + peace,
        deeds=in_order([*later, Deed(at, "insist", (times, period))]),
    )


def _peace_ms(timing: TimingPlan) -> int:
    """In which a leader is elected, and hears once a fetch timeout of each voter."""
    return 3 * timing.election_timeout_ms + 3 * timing.fetch_timeout_ms


def _mistakes(luck: Chance, plan: Plan, times: int) -> list[Deed]:
    """What operators get wrong."""
    count, found = plan.voters + plan.observers, []
    for _ in range(times):
        if luck.happens(0.4):
            for _ in range(1 + luck.skewed(0, 10)):
                at, node = luck.below(plan.duration_ms), 1 + luck.below(count)
                found.append(Deed(at, "err", (node, luck.below(_MISTAKES))))
    return found


def _software(luck: Chance, plan: Plan) -> tuple[int, int]:
    """Nodes that know no kraft.version 1, and nodes that know no kraft.version 0. A node of the
    first kind is no voter where kraft.version is 1 from the beginning."""
    some, count = luck.happens(0.5), plan.voters + plan.observers
    first = 1 if plan.static else plan.voters + 1
    old = sum(1 << node for node in range(first, count + 1) if luck.happens(0.3))
    young = sum(1 << node for node in range(1, count + 1) if luck.happens(0.2))
    return (old, 0 if plan.static else young & ~old) if some else (0, 0)


def _bad_media(seed: int, plan: Plan, times: int) -> Plan:
    """What a medium does to whole batches, sectors and files; constants that a world can reach."""
    luck = Chance(seed, "media")
    count, duration = plan.voters + plan.observers, plan.duration_ms
    found = list(plan.deeds)
    for _ in range(times):
        if luck.happens(0.25):
            for _ in range(1 + luck.skewed(0, 3)):
                found.append(_bad_medium(luck, luck.below(duration), 1 + luck.below(count)))
        if luck.happens(0.15):
            everybody = (1 << count + 1) - 2
            args = everybody, luck.between(10, 2000)
            found.append(Deed(luck.below(duration), "blackout-reorder", args))
    disk = replace(
        plan.disk,
        loose_names=luck.happens(0.5),
        short_writes=luck.happens(0.5),
        sync_every=luck.pick((1 << 22, 1 << 22, 100)),
    )
    limits = _limits(Chance(seed, "limits"), plan)
    deeds = in_order([deed for deed in found if deed.at_ms < duration])
    return replace(plan, disk=disk, limits=limits, deeds=deeds)


def _bad_medium(luck: Chance, at: int, node: int) -> Deed:
    kind, down = luck.pick(_BAD_MEDIA), luck.between(10, 2000)
    if kind == "misplace":
        return Deed(at, kind, (node, luck.pick((0, 0, 512, 4096)), down))
    return Deed(at, kind, (node, down))


def _limits(luck: Chance, plan: Plan) -> Limits:
    """As they are, or so small that they are reached."""
    usual = Limits()
    if luck.happens(0.4):
        return usual
    largest = largest_submit(plan.clients)
    return Limits(
        border_window=luck.pick((usual.border_window, 1, 8)),
        batch_bytes=luck.pick((usual.batch_bytes, largest, 2 * largest)),
        observer_session_ms=luck.pick((usual.observer_session_ms, 1000)),
        max_observers=luck.pick((usual.max_observers, 3)),
        caught_up_within_ms=luck.pick((usual.caught_up_within_ms, 3000)),
    )


def _small(luck: Chance, disk: DiskPlan) -> DiskPlan:
    """Segments of a few batches, logs of a few segments, nodes that remember a few batches."""
    disk = replace(
        disk,
        tail_bytes=luck.pick((TAIL_BYTES, 4096, 300)),
        slice_bytes=luck.pick((SLICE_BYTES, 1, 100)),
    )
    if luck.happens(0.5):
        disk = replace(disk, segment_bytes=luck.pick((150, 300, 600)))
    if luck.happens(0.25):
        size = luck.pick((500, 1500))
        disk = replace(disk, snapshot_bytes=size, retention_bytes=size, clean_ms=1000)
    return disk


def _aging(luck: Chance, disk: DiskPlan) -> DiskPlan:
    """What the log does by its age."""
    return replace(
        disk,
        segment_ms=luck.pick((_WEEK_MS, _WEEK_MS, 3000)),
        retention_ms=luck.pick((_WEEK_MS, _WEEK_MS, 5000)),
        clean_ms=luck.pick((60_000, 1000)),
    )


def _patient(plan: Plan) -> TimingPlan:
    """Timeouts in which an answer can come: no protocol works where every Fetch times out."""
    network, timing = plan.network, plan.timing
    there_and_back_us = 2 * (network.delay_us + network.jitter_us) + 4 * plan.disk.sync_us
    least = 1 + there_and_back_us // 1000
    return replace(
        timing,
        election_timeout_ms=max(timing.election_timeout_ms, 3 * least),
        fetch_timeout_ms=max(timing.fetch_timeout_ms, timing.fetch_max_wait_ms + 3 * least),
        request_timeout_ms=max(timing.request_timeout_ms, timing.fetch_max_wait_ms + 2 * least),
    )


def _timing(luck: Chance) -> TimingPlan:
    if luck.happens(0.4):
        return TimingPlan(fetch_max_bytes=_fetch_bytes(luck), snapshot_max_bytes=_chunk(luck))
    election = luck.between(100, 1000)
    fetch = election * luck.between(1, 3)
    return TimingPlan(
        election_timeout_ms=election,
        fetch_timeout_ms=fetch,
        election_backoff_max_ms=luck.between(election // 4, 2 * election),
        request_timeout_ms=luck.between(election // 2, 2 * fetch),
        retry_backoff_ms=luck.between(5, 100),
        fetch_max_wait_ms=max(fetch // 4, 20),
        fetch_max_bytes=_fetch_bytes(luck),
        snapshot_max_bytes=_chunk(luck),
        cpu_us=luck.pick((20, 40, 40, 200)),
    )


def _fetch_bytes(luck: Chance) -> int:
    return luck.pick((1_048_576, 1_048_576, 4096, 300))


def _chunk(luck: Chance) -> int:
    return luck.pick((1_048_576, 300, 80))


def _network(luck: Chance) -> NetworkPlan:
    def rate(chance: float, most: float) -> float:
        return round(luck.random() ** 3 * most, 5) if luck.happens(chance) else 0.0

    return NetworkPlan(
        delay_us=luck.pick((50, 300, 300, 2000, 20_000)),
        jitter_us=luck.pick((20, 400, 400, 5000, 50_000)),
        loss=rate(0.35, 0.2),
        duplicate=rate(0.3, 0.2),
        hold=rate(0.3, 0.1),
        hold_ms=luck.pick((100, 1000, 10_000)),
        reorder=rate(0.3, 0.3),
        reset=rate(0.15, 0.1),
        corrupt=rate(0.15, 0.1),
    )


def _disk(luck: Chance) -> DiskPlan:
    return DiskPlan(
        sync_us=luck.pick((50, 500, 500, 5000, 30_000)),
        slow=0.02 if luck.happens(0.2) else 0.0,
        slow_ms=luck.pick((50, 500, 3000)),
        failure=0.001 if luck.happens(0.15) else 0.0,
        torn=luck.happens(0.7),
        segment_bytes=luck.pick((1 << 30, 1000, 3000)),
        snapshot_bytes=luck.pick((20_971_520, 600, 2000, 6000)),
        snapshot_ms=luck.pick((3_600_000, 700, 4000)),
        retention_bytes=luck.pick((104_857_600, 1500, 8000)),
    )


def _clients(luck: Chance) -> ClientPlan:
    return ClientPlan(
        count=luck.pick((0, 1, 2, 3, 4)),
        keys=luck.pick((1, 2, 5)),
        think_ms=luck.pick((20, 100, 300, 1000)),
        timeout_ms=luck.pick((300, 1000, 3000)),
        give_up=luck.pick((0.0, 0.2, 0.8)),
        reads=luck.pick((0.1, 0.4, 0.8)),
        compares=luck.pick((0.0, 0.2)),
        padding=luck.pick((0, 0, 100, 2000)),
    )
