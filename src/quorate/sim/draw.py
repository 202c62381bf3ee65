"""The swarm: each seed draws how large its world is, which faults are on, and how fierce.

Most worlds have a few kinds of trouble and not all: faults hide each other when all are on. One
in four is *fierce*, with the deeds of eight worlds: some bugs need so much to come together that
gentle worlds hardly ever meet it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.node.applier import SLICE_BYTES
from quorate.node.tail import TAIL_BYTES
from quorate.raft.values import Limits
from quorate.sim.chance import Chance
from quorate.sim.patient import patient
from quorate.sim.plan import (
    LEADER,
    MISTAKES,
    OPERATIONS,
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
_CALM_MS: Final = 1500
"""A fetch timeout in which a slow node can still follow."""
_SMALL_BATCH: Final = 1 << 17
"""Bytes of a batch above which what is too large for it is left to `sim.exam`."""
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
        deeds=_Deeds(luck, voters, observers, duration, timing).draw(static, times, inside),
    )
    disk = _small(Chance(seed, "small"), _aging(Chance(seed, "age"), plan.disk))
    if any(deed.kind == "churn" for deed in plan.deeds):
        slices = Chance(seed, "slices").pick((1, 100))
        disk = replace(disk, slice_bytes=slices, tail_bytes=300, retention_bytes=500)
    plan = _since_format_4(seed, replace(plan, timing=_patient(plan), disk=disk), times)
    return _since_format_5(seed, plan)


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
        deeds=_sorted([*later, Deed(at, "insist", (times, period))]),
    )


def _peace_ms(timing: TimingPlan) -> int:
    """In which a leader is elected, and hears once a fetch timeout of each voter."""
    return 3 * timing.election_timeout_ms + 3 * timing.fetch_timeout_ms


def _sorted(deeds: list[Deed]) -> tuple[Deed, ...]:
    return tuple(sorted(deeds, key=lambda deed: (deed.at_ms, str(deed))))


def _mistakes(luck: Chance, plan: Plan, times: int) -> list[Deed]:
    """What operators get wrong."""
    count, found = plan.voters + plan.observers, []
    for _ in range(times):
        if luck.happens(0.4):
            for _ in range(1 + luck.skewed(0, 10)):
                at, node = luck.below(plan.duration_ms), 1 + luck.below(count)
                found.append(Deed(at, "err", (node, luck.below(len(MISTAKES)))))
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
    deeds = _sorted([deed for deed in found if deed.at_ms < duration])
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


class _Deeds:
    """Draws the deeds of a plan, family by family."""

    def __init__(
        self, luck: Chance, voters: int, observers: int, duration_ms: int, timing: TimingPlan
    ) -> None:
        self._luck = luck
        self._voters = voters
        self._count = voters + observers
        self._duration = duration_ms
        self._timing = timing
        self._found: list[Deed] = []

    def draw(self, static: bool, times: int, inside: Chance) -> tuple[Deed, ...]:
        """The deeds of so many worlds, in one."""
        for _ in range(times):
            self._draw_once(static)
        self._luck = inside
        for _ in range(times):
            self._draw_inside()
        return _sorted(self._found)

    def _draw_once(self, static: bool) -> None:
        luck = self._luck
        families: tuple[tuple[float, int, Callable[[], None]], ...] = (
            (0.6, 8, self._crash),
            (0.25, 5, self._pause),
            (0.3, 6, self._disk_fault),
            (0.2, 3, self._lose_disk),
            (0.5, 6, self._partition),
            (0.25, 6, self._link),
            (0.5, 8, self._change),
            (0.4, 8, self._snapshot),
            (0.15, 2, self._blackout),
        )
        for chance, most, family in families:
            if luck.happens(chance):
                for _ in range(1 + luck.skewed(0, most)):
                    family()
        if static and luck.happens(0.6):
            for _ in range(luck.between(1, 3)):
                self._add("upgrade")
        if luck.happens(0.2):
            self._strand()

    def _draw_inside(self) -> None:
        """Forks of the log, and power cuts in the middle of what a disk does."""
        luck = self._luck
        if luck.happens(0.5):
            for _ in range(1 + luck.skewed(0, 4)):
                self._fork()
        if luck.happens(0.25):
            self._collide()
        if luck.happens(0.3) and self._timing.fetch_timeout_ms >= _CALM_MS:
            self._overtake()
        if luck.happens(0.4):
            for _ in range(1 + luck.skewed(0, 5)):
                self._inside(luck.below(self._duration), luck.pick(OPERATIONS), self._node())

    def _add(self, kind: str, *args: int) -> None:
        self._found.append(Deed(self._luck.below(self._duration), kind, args))

    def _node(self) -> int:
        """A third of what happens, happens to the leader."""
        return LEADER if self._luck.happens(0.33) else 1 + self._luck.below(self._count)

    def _some(self) -> int:
        """A set of nodes, as a bit mask: neither none nor all where there are two."""
        ids = self._luck.shuffled(range(1, self._count + 1))
        count = self._luck.between(1, max(1, self._count - 1))
        return sum(1 << node for node in ids[:count])

    def _while(self) -> int:
        """ms: short against the timeouts, or long."""
        timing = self._timing
        most = self._luck.pick((timing.election_timeout_ms, 3 * timing.fetch_timeout_ms, 8000))
        return self._luck.between(10, most)

    def _crash(self) -> None:
        luck = self._luck
        kind = luck.pick(("kill", "kill", "power", "power", "power-reorder", "stop"))
        self._add(kind, self._node(), self._while())

    def _blackout(self) -> None:
        nodes = self._some() if self._luck.happens(0.5) else (1 << self._count + 1) - 2
        self._add("blackout", nodes, self._while())

    def _strand(self) -> None:
        """A leader is cut off with its clients and writes on, another one is elected; then all
        lose power, and when they come back the longer log is not the better one."""
        at = self._luck.below(self._duration)
        cut_off = self._luck.between(1, 3) * self._timing.fetch_timeout_ms
        everybody = (1 << self._count + 1) - 2
        self._found.append(Deed(at, "isolate", (LEADER, cut_off)))
        self._found.append(Deed(at + cut_off, "blackout", (everybody, self._luck.between(1, 300))))

    def _fork(self) -> None:
        """A leader is cut off and writes what it will have to truncate; now and then the power
        goes while it does, or soon after."""
        luck = self._luck
        at = luck.between(self._duration // 5, 2 * self._duration // 3)
        cut_off = luck.between(2, 4) * self._timing.fetch_timeout_ms
        step = self._steps() if luck.happens(0.6) else 0
        args = (LEADER, luck.pick((0, 0, 1, 2)), luck.pick((5, 20, 60)), step, cut_off)
        self._found.append(Deed(at, "fork", args))
        if luck.happens(0.4):
            later = at + cut_off + luck.below(2 * self._timing.fetch_timeout_ms)
            self._found.append(Deed(later, "power", (self._node(), luck.between(1, 1000))))

    def _collide(self) -> None:
        """A voter change is not committed in time, and more of them come meanwhile."""
        luck, timing = self._luck, self._timing
        at = luck.between(self._duration // 5, 2 * self._duration // 3)
        others = luck.shuffled(range(1, self._count + 1))
        if luck.happens(0.5):
            down = self._while()
            self._found += (Deed(at + luck.below(20), "move", (i, down)) for i in others[:2])
            return
        answered = timing.request_timeout_ms + luck.between(1, 200)
        cut_off = max(answered, min(answered + 500, 3 * timing.fetch_timeout_ms // 2))
        self._found.append(Deed(at, "isolate", (LEADER, cut_off)))
        for later, node in zip((luck.below(3), answered, answered), others, strict=False):
            self._found.append(Deed(at + later, luck.pick(("add", "remove")), (node,)))

    def _overtake(self) -> None:
        """The log grows and is cleaned faster than a slow node can apply it: it is sent snapshot
        after snapshot."""
        luck = self._luck
        at, node = (
            luck.between(self._duration // 5, self._duration // 2),
            1 + luck.below(self._count),
        )
        self._found.append(Deed(at, "slow-cpu", (node, luck.pick((80_000, 120_000)), 9000)))
        self._found.append(Deed(at, "kill", (node, luck.between(10, 1500))))
        args = (LEADER, luck.pick((5, 30)), luck.pick((100, 150, 200)), 60)
        self._found.append(Deed(at, "churn", args))

    def _inside(self, at: int, what: str, node: int) -> None:
        args = (node, OPERATIONS.index(what), self._steps())
        self._found.append(Deed(at, "crash-inside", args))

    def _steps(self) -> int:
        """In the middle of an operation of the disk, or soon after it."""
        return self._luck.skewed(1, 15) if self._luck.happens(0.6) else self._luck.between(5, 40)

    def _pause(self) -> None:
        luck = self._luck
        kind = luck.pick(("pause", "pause", "slow-cpu", "jump"))
        if kind == "pause":
            self._add(kind, self._node(), self._while())
        elif kind == "slow-cpu":
            self._add(kind, self._node(), luck.pick((1000, 10_000, 100_000)), self._while())
        else:
            self._add(kind, self._node(), luck.pick((1000, 3_600_000, 10**9)))

    def _disk_fault(self) -> None:
        luck = self._luck
        kind = luck.pick(("slow-disk", "fail-disk", "crash-disk", "crash-recovery", "full-disk"))
        if kind == "slow-disk":
            self._add(kind, self._node(), luck.pick((20, 200, 2000)), self._while())
        elif kind == "full-disk":
            self._add(kind, self._node(), self._while())
        else:
            self._add(kind, self._node(), luck.between(1, 20), self._while())

    def _lose_disk(self) -> None:
        luck = self._luck
        kind = luck.pick(("wipe", "replace", "old-copy", "rot", "rot-live", "misdirect"))
        if kind == "rot-live":
            self._add(kind, self._node())
        elif kind == "old-copy":
            self._add(kind, self._node(), luck.between(100, self._duration), self._while())
        else:
            self._add(kind, self._node(), self._while())

    def _partition(self) -> None:
        luck = self._luck
        kind = luck.pick(
            ("partition", "partition-one-way", "isolate", "mute", "deafen", "bridge", "flap")
        )
        if kind in ("partition", "partition-one-way"):
            self._add(kind, self._some(), self._while())
        elif kind == "bridge":
            self._add(kind, 1 + luck.below(self._count), self._some(), self._while())
        elif kind == "flap":
            self._add(kind, self._some(), luck.between(20, 2000), luck.between(2, 10))
        else:
            self._add(kind, self._node(), self._while())

    def _link(self) -> None:
        luck = self._luck
        if self._count < 2 or luck.happens(0.3):
            self._add("reset", self._node())
            return
        source, to = luck.shuffled(range(1, self._count + 1))[:2]
        if luck.happens(0.5):
            self._add("cut", source, to, self._while())
        else:
            self._add("slow-link", source, to, luck.pick((50, 500, 3000)), self._while())

    def _change(self) -> None:
        luck = self._luck
        kind = luck.pick(("add", "remove", "add", "remove", "alter", "replace", "move", "resign"))
        if kind == "alter":
            self._add(kind, self._some())
        elif kind in ("replace", "move"):
            self._add(kind, self._node(), self._while())
        elif kind == "add":
            self._add(kind, 1 + luck.below(self._count))
        else:
            self._add(kind, self._node())

    def _snapshot(self) -> None:
        self._add(self._luck.pick(("snapshot", "snapshot", "clean")), self._node())
