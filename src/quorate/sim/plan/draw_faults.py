"""Draws the fault events of a world from its seed, one family after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.sim.plan.plan import LEADER, OPERATIONS, FaultEvent, TimingPlan
from quorate.sim.prng import Prng

_CALM_MS: Final = 1500
"""A fetch timeout that is long enough for a slow node to follow."""


def in_order(fault_events: list[FaultEvent]) -> tuple[FaultEvent, ...]:
    return tuple(
        sorted(fault_events, key=lambda fault_event: (fault_event.at_ms, str(fault_event)))
    )


class FaultEventDrawer:
    """Draws the fault events of a plan, one family after the other."""

    def __init__(
        self, rng: Prng, voters: int, observers: int, duration_ms: int, timing: TimingPlan
    ) -> None:
        self._rng = rng
        self._voters = voters
        self._count = voters + observers
        self._duration = duration_ms
        self._timing = timing
        self._found: list[FaultEvent] = []

    def draw(self, static: bool, times: int, inside: Prng) -> tuple[FaultEvent, ...]:
        """The fault events of `times` worlds, for one world."""
        for _ in range(times):
            self._draw_once(static)
        self._rng = inside
        for _ in range(times):
            self._draw_inside()
        return in_order(self._found)

    def _draw_once(self, static: bool) -> None:
        rng = self._rng
        families: tuple[tuple[float, int, Callable[[], None]], ...] = (
            (0.6, 8, self._crash),
            (0.25, 5, self._pause),
            (0.3, 6, self._disk_fault),
            (0.2, 3, self._lose_disk),
            (0.5, 6, self._partition),
            (0.25, 6, self._link),
            (0.5, 8, self._change),
            (0.4, 8, self._snapshot),
            (0.15, 2, self._power_cut_of_many),
        )
        for chance, most, family in families:
            if rng.happens(chance):
                for _ in range(1 + rng.skewed(0, most)):
                    family()
        if static and rng.happens(0.6):
            for _ in range(rng.between(1, 3)):
                self._add("upgrade")
        if rng.happens(0.2):
            self._strand()

    def _draw_inside(self) -> None:
        """Forks of the log, and power cuts in the middle of a disk operation."""
        rng = self._rng
        if rng.happens(0.5):
            for _ in range(1 + rng.skewed(0, 4)):
                self._fork()
        if rng.happens(0.25):
            self._collide()
        if rng.happens(0.3) and self._timing.fetch_timeout_ms >= _CALM_MS:
            self._overtake()
        if rng.happens(0.4):
            for _ in range(1 + rng.skewed(0, 5)):
                self._inside(rng.below(self._duration), rng.pick(OPERATIONS), self._node())

    def _add(self, kind: str, *args: int) -> None:
        self._found.append(FaultEvent(self._rng.below(self._duration), kind, args))

    def _node(self) -> int:
        """The node of a fault event: in one of three cases, the leader."""
        return LEADER if self._rng.happens(0.33) else 1 + self._rng.below(self._count)

    def _some(self) -> int:
        """A bit mask of nodes. With two nodes or more it is a proper, non-empty subset."""
        ids = self._rng.shuffled(range(1, self._count + 1))
        count = self._rng.between(1, max(1, self._count - 1))
        return sum(1 << node for node in ids[:count])

    def _while(self) -> int:
        """A duration in ms, shorter or longer than the timeouts."""
        timing = self._timing
        most = self._rng.pick((timing.election_timeout_ms, 3 * timing.fetch_timeout_ms, 8000))
        return self._rng.between(10, most)

    def _crash(self) -> None:
        rng = self._rng
        kind = rng.pick(("kill", "kill", "power", "power", "power-reorder", "stop"))
        self._add(kind, self._node(), self._while())

    def _power_cut_of_many(self) -> None:
        nodes = self._some() if self._rng.happens(0.5) else (1 << self._count + 1) - 2
        self._add("blackout", nodes, self._while())

    def _strand(self) -> None:
        """A partitioned leader continues to write, another one is elected, and then all lose power.
        After the restart the longest log is not the newest one."""
        at = self._rng.below(self._duration)
        cut_off = self._rng.between(1, 3) * self._timing.fetch_timeout_ms
        everybody = (1 << self._count + 1) - 2
        self._found.append(FaultEvent(at, "isolate", (LEADER, cut_off)))
        self._found.append(
            FaultEvent(at + cut_off, "blackout", (everybody, self._rng.between(1, 300)))
        )

    def _fork(self) -> None:
        """A partitioned leader writes records that must be truncated later. In some cases its power
        fails during the truncation, or soon after it."""
        rng = self._rng
        at = rng.between(self._duration // 5, 2 * self._duration // 3)
        cut_off = rng.between(2, 4) * self._timing.fetch_timeout_ms
        step = self._steps() if rng.happens(0.6) else 0
        args = (LEADER, rng.pick((0, 0, 1, 2)), rng.pick((5, 20, 60)), step, cut_off)
        self._found.append(FaultEvent(at, "fork", args))
        if rng.happens(0.4):
            later = at + cut_off + rng.below(2 * self._timing.fetch_timeout_ms)
            self._found.append(FaultEvent(later, "power", (self._node(), rng.between(1, 1000))))

    def _collide(self) -> None:
        """A voter change does not commit in time, and further changes are requested meanwhile."""
        rng, timing = self._rng, self._timing
        at = rng.between(self._duration // 5, 2 * self._duration // 3)
        others = rng.shuffled(range(1, self._count + 1))
        if rng.happens(0.5):
            down = self._while()
            self._found += (FaultEvent(at + rng.below(20), "move", (i, down)) for i in others[:2])
            return
        answered = timing.request_timeout_ms + rng.between(1, 200)
        cut_off = max(answered, min(answered + 500, 3 * timing.fetch_timeout_ms // 2))
        self._found.append(FaultEvent(at, "isolate", (LEADER, cut_off)))
        for later, node in zip((rng.below(3), answered, answered), others, strict=False):
            self._found.append(FaultEvent(at + later, rng.pick(("add", "remove")), (node,)))

    def _overtake(self) -> None:
        """The log grows and is cleaned faster than a slow node can apply it, so the node installs
        one snapshot after another."""
        rng = self._rng
        at, node = (
            rng.between(self._duration // 5, self._duration // 2),
            1 + rng.below(self._count),
        )
        self._found.append(FaultEvent(at, "slow-cpu", (node, rng.pick((80_000, 120_000)), 9000)))
        self._found.append(FaultEvent(at, "kill", (node, rng.between(10, 1500))))
        args = (LEADER, rng.pick((5, 30)), rng.pick((100, 150, 200)), 60)
        self._found.append(FaultEvent(at, "churn", args))

    def _inside(self, at: int, what: str, node: int) -> None:
        args = (node, OPERATIONS.index(what), self._steps())
        self._found.append(FaultEvent(at, "crash-inside", args))

    def _steps(self) -> int:
        """Steps from the begin of a disk operation to the power cut: within it, or soon after it."""
        return self._rng.skewed(1, 15) if self._rng.happens(0.6) else self._rng.between(5, 40)

    def _pause(self) -> None:
        rng = self._rng
        kind = rng.pick(("pause", "pause", "slow-cpu", "jump"))
        if kind == "pause":
            self._add(kind, self._node(), self._while())
        elif kind == "slow-cpu":
            self._add(kind, self._node(), rng.pick((1000, 10_000, 100_000)), self._while())
        else:
            self._add(kind, self._node(), rng.pick((1000, 3_600_000, 10**9)))

    def _disk_fault(self) -> None:
        rng = self._rng
        kind = rng.pick(("slow-disk", "fail-disk", "crash-disk", "crash-recovery", "full-disk"))
        if kind == "slow-disk":
            self._add(kind, self._node(), rng.pick((20, 200, 2000)), self._while())
        elif kind == "full-disk":
            self._add(kind, self._node(), self._while())
        else:
            self._add(kind, self._node(), rng.between(1, 20), self._while())

    def _lose_disk(self) -> None:
        rng = self._rng
        kind = rng.pick(("wipe", "replace", "old-copy", "rot", "rot-live", "misdirect"))
        if kind == "rot-live":
            self._add(kind, self._node())
        elif kind == "old-copy":
            self._add(kind, self._node(), rng.between(100, self._duration), self._while())
        else:
            self._add(kind, self._node(), self._while())

    def _partition(self) -> None:
        rng = self._rng
        kind = rng.pick(
            ("partition", "partition-one-way", "isolate", "mute", "deafen", "bridge", "flap")
        )
        if kind in ("partition", "partition-one-way"):
            self._add(kind, self._some(), self._while())
        elif kind == "bridge":
            self._add(kind, 1 + rng.below(self._count), self._some(), self._while())
        elif kind == "flap":
            self._add(kind, self._some(), rng.between(20, 2000), rng.between(2, 10))
        else:
            self._add(kind, self._node(), self._while())

    def _link(self) -> None:
        rng = self._rng
        if self._count < 2 or rng.happens(0.3):
            self._add("reset", self._node())
            return
        source, to = rng.shuffled(range(1, self._count + 1))[:2]
        if rng.happens(0.5):
            self._add("cut", source, to, self._while())
        else:
            self._add("slow-link", source, to, rng.pick((50, 500, 3000)), self._while())

    def _change(self) -> None:
        rng = self._rng
        kind = rng.pick(("add", "remove", "add", "remove", "alter", "replace", "move", "resign"))
        if kind == "alter":
            self._add(kind, self._some())
        elif kind in ("replace", "move"):
            self._add(kind, self._node(), self._while())
        elif kind == "add":
            self._add(kind, 1 + rng.below(self._count))
        else:
            self._add(kind, self._node())

    def _snapshot(self) -> None:
        self._add(self._rng.pick(("snapshot", "snapshot", "clean")), self._node())
