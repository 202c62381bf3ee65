"""Breadth first through a space: every state once, the shortest way to a broken law."""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from time import perf_counter

from quorate.sim.explore.laws import Broken
from quorate.sim.explore.space import Action, Setup, Space, State
from quorate.sim.halt import HALT, deferred


@dataclass(frozen=True, slots=True)
class Progress:
    """After a level: states at most `depth` actions away from the first, and how it went."""

    depth: int
    states: int
    transitions: int
    frontier: int
    """States of the last level, whose successors were not looked at yet."""
    replicas: int
    """Different replicas among them."""
    steps: int
    """How often a core was really stepped."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Violation:
    """A law that does not hold after the last action of the way from cold disks."""

    law: str
    message: str
    path: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Result:
    space: Space
    levels: tuple[Progress, ...]
    violation: Violation | None
    complete: bool
    """Nothing is left to look at: a deeper search would find no more."""

    @property
    def states(self) -> int:
        """How many were seen; 0 where a law was broken on the way to the first."""
        return self.levels[-1].states if self.levels else 0


class Search:
    """States are known by a hash of 128 bits; of all but the last level nothing else is kept."""

    def __init__(self, setup: Setup) -> None:
        self.space = Space(setup)
        self._seen: set[bytes] = set()
        self._parents = array("q")
        self._actions = array("q")
        self._numbers: dict[Action, int] = {}
        self._named: list[Action] = []
        self._opening: list[Action] = []
        self._transitions = 0
        self._levels: list[Progress] = []
        self._began = perf_counter()

    def run(
        self, depth: int, on_level: Callable[[Progress], None] = lambda progress: None
    ) -> Result:
        """All states at most `depth` actions from the first one; stops at a broken law.

        Raises KeyboardInterrupt between two states.
        """
        with deferred():
            return self._run(depth, on_level)

    def _run(self, depth: int, on_level: Callable[[Progress], None]) -> Result:
        try:
            first = self.space.begin(self._opening)
        except Broken as broken:
            violation = Violation(broken.law, broken.message, tuple(self._opening))
            return self._result(violation, complete=False)
        self._new(first)
        self._add(-1, ("begin",))
        frontier = [(0, first)]
        self._level(0, frontier, on_level)
        for level in range(1, depth + 1):
            try:
                frontier = self._next(frontier)
            except _Found as found:
                return self._result(found.violation, complete=False)
            self._level(level, frontier, on_level)
            if not frontier:
                break
        return self._result(None, complete=not frontier)

    def _next(self, frontier: list[tuple[int, State]]) -> list[tuple[int, State]]:
        space, most = self.space, self.space.setup.epochs
        found: list[tuple[int, State]] = []
        for index, state in frontier:
            if HALT.wanted:
                raise KeyboardInterrupt
            for action in space.actions(state):
                self._transitions += 1
                try:
                    after = space.follow(state, action)
                except Broken as broken:
                    raise _Found(self._violation(broken, index, action)) from broken
                if after == state or space.epoch(after) > most or not self._new(after):
                    continue
                found.append((self._add(index, action), after))
        return found

    def _new(self, state: State) -> bool:
        digest = blake2b(marshal.dumps(tuple(state), 2), digest_size=16).digest()
        if digest in self._seen:
            return False
        self._seen.add(digest)
        return True

    def _add(self, parent: int, action: Action) -> int:
        number = self._numbers.setdefault(action, len(self._named))
        if number == len(self._named):
            self._named.append(action)
        self._parents.append(parent)
        self._actions.append(number)
        return len(self._parents) - 1

    def _violation(self, broken: Broken, index: int, action: Action) -> Violation:
        path = [action]
        while index > 0:
            path.append(self._named[self._actions[index]])
            index = self._parents[index]
        return Violation(broken.law, broken.message, (*self._opening, *reversed(path)))

    def _level(
        self,
        depth: int,
        frontier: list[tuple[int, State]],
        on_level: Callable[[Progress], None],
    ) -> None:
        replicas = self.space.replicas
        seconds = perf_counter() - self._began
        progress = Progress(
            depth,
            len(self._seen),
            self._transitions,
            len(frontier),
            len(replicas.all),
            replicas.steps,
            seconds,
        )
        self._levels.append(progress)
        on_level(progress)

    def _result(self, violation: Violation | None, *, complete: bool) -> Result:
        return Result(self.space, tuple(self._levels), violation, complete)


class _Found(Exception):
    def __init__(self, violation: Violation) -> None:
        super().__init__()
        self.violation = violation
