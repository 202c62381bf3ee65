"""The deeds of a world as a seed draws them, family by family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.sim.chance import Chance
from quorate.sim.plan import LEADER, OPERATIONS, Deed, TimingPlan

_CALM_MS: Final = 1500
"""A fetch timeout in which a slow node can still follow."""


def in_order(deeds: list[Deed]) -> tuple[Deed, ...]:
    return tuple(sorted(deeds, key=lambda deed: (deed.at_ms, str(deed))))


class Deeds:
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
        return in_order(self._found)

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
