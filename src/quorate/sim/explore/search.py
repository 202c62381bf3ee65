"""Breadth-first search of a space: each state once, the shortest path to a violation."""

from __future__ import annotations

import marshal
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from time import perf_counter

from quorate.sim.explore.invariants import InvariantViolationError
from quorate.sim.explore.setups import Setup
from quorate.sim.explore.space import Action, ClusterState, Space
from quorate.sim.world.interrupt import HALT, deferred


@dataclass(frozen=True, slots=True)
class LevelProgress:
    """Statistics of a level: the states at most `depth` actions from the first one."""

    depth: int
    states: int
    transitions: int
    frontier: int
    """States of the last level, whose successors are not visited yet."""
    replicas: int
    """Number of different replica states."""
    steps: int
    """How often a core was stepped, not looked up."""
    seconds: float


@dataclass(frozen=True, slots=True)
class InvariantViolation:
    """An invariant that is violated after the last action of a path from formatted disks."""

    invariant: str
    message: str
    path: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    space: Space
    levels: tuple[LevelProgress, ...]
    violation: InvariantViolation | None
    complete: bool
    """The space is exhausted: a deeper search finds no more states."""

    @property
    def states(self) -> int:
        """Number of states; 0 where an invariant was violated on the way to the first one."""
        return self.levels[-1].states if self.levels else 0


class Search:
    """The search keeps a 128-bit hash of each state, and whole states of the last level only."""

    def __init__(self, setup: Setup) -> None:
        self.space = Space(setup)
        self._seen: set[bytes] = set()
        self._parents = array("q")
        self._actions = array("q")
        self._numbers: dict[Action, int] = {}
        self._named: list[Action] = []
        self._opening: list[Action] = []
        self._transitions = 0
        self._levels: list[LevelProgress] = []
        self._began = perf_counter()

    def run(
        self, depth: int, on_level: Callable[[LevelProgress], None] = lambda progress: None
    ) -> SearchResult:
        """Visit all states at most `depth` actions from the first one; stop at a violation.

        Raises KeyboardInterrupt between two states.
        """
        with deferred():
            return self._run(depth, on_level)

    def _run(self, depth: int, on_level: Callable[[LevelProgress], None]) -> SearchResult:
        try:
            first = self.space.begin(self._opening)
        except InvariantViolationError as broken:
            violation = InvariantViolation(broken.invariant, broken.message, tuple(self._opening))
            return self._result(violation, complete=False)
        self._new(first)
        self._add(-1, ("begin",))
        frontier = [(0, first)]
        self._level(0, frontier, on_level)
        for level in range(1, depth + 1):
            try:
                frontier = self._next(frontier)
            except _FoundError as found:
                return self._result(found.violation, complete=False)
            self._level(level, frontier, on_level)
            if not frontier:
                break
        return self._result(None, complete=not frontier)

    def _next(self, frontier: list[tuple[int, ClusterState]]) -> list[tuple[int, ClusterState]]:
        space, most = self.space, self.space.setup.epochs
        found: list[tuple[int, ClusterState]] = []
        for index, state in frontier:
            if HALT.wanted:
                raise KeyboardInterrupt
            for action in space.actions(state):
                self._transitions += 1
                try:
                    after = space.follow(state, action)
                except InvariantViolationError as broken:
                    raise _FoundError(self._violation(broken, index, action)) from broken
                if after == state or space.epoch(after) > most or not self._new(after):
                    continue
                found.append((self._add(index, action), after))
        return found

    def _new(self, state: ClusterState) -> bool:
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

    def _violation(
        self, broken: InvariantViolationError, index: int, action: Action
    ) -> InvariantViolation:
        path = [action]
        while index > 0:
            path.append(self._named[self._actions[index]])
            index = self._parents[index]
        return InvariantViolation(
            broken.invariant, broken.message, (*self._opening, *reversed(path))
        )

    def _level(
        self,
        depth: int,
        frontier: list[tuple[int, ClusterState]],
        on_level: Callable[[LevelProgress], None],
    ) -> None:
        replicas = self.space.replicas
        seconds = perf_counter() - self._began
        progress = LevelProgress(
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

    def _result(self, violation: InvariantViolation | None, *, complete: bool) -> SearchResult:
        return SearchResult(self.space, tuple(self._levels), violation, complete)


class _FoundError(Exception):
    def __init__(self, violation: InvariantViolation) -> None:
        super().__init__()
        self.violation = violation
