"""Reduces a failing plan to a small plan in which the same check fails.

1. Remove the time after the failure. In a world of hours shorten the idle time first, because the
   cost of each run is proportional to it.
2. Remove fault events by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
   Failure-Inducing Input", 2002).
3. Remove nodes and clients.
4. Set rates of faults and settings to their defaults.
5. Reduce the numbers in the remaining fault events.

A step is kept if the same check still fails. A smaller plan draws other random numbers. When no step
succeeds any more, each one is therefore tried again with several seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.sim.plan.plan import FaultEvent, Plan
from quorate.sim.run.plan_reductions import divided_times, simpler, with_gaps_of, without_node
from quorate.sim.run.run import WorldOutcome, checked, run_plan
from quorate.sim.world.observer import Observer

if TYPE_CHECKING:
    from quorate.replica.replica import Effects, Input
    from quorate.sim.world.observable import SimulatedNode

TRIES: Final = 600
SECONDS: Final = 300.0
_SEEDS: Final = (1, 8)
"""The number of seeds for each step: at first, and when no step succeeds with that any more."""
_KEPT: Final = frozenset({"format", "seed", "voters", "observers", "duration_ms", "fault_events"})
"""Fields of a plan that are not set to their defaults."""
_CLIENTS: Final = (0, 1, 2, 3)
_MARGIN_MS: Final = 1
_LONG_MS: Final = 120_000
"""A world above this duration has idle hours, which are shortened first."""
_GAPS_MS: Final = (100, 10_000, 600_000)
"""Upper bounds of the time between two fault events, in the order in which they are tried."""
_PARTS: Final = (60, 8, 2)
"""Factors by which all times are divided."""
_LOOK_EVERY: Final = 256
"""The number of steps between two looks at the clock. Each step is an event."""
_MANY: Final = 2
_SOME: Final = 10_000
"""A world with more steps than `_MANY` times the events of the best one plus `_SOME` is given up."""

Run = Callable[[Plan], WorldOutcome]
Say = Callable[[str], None]
Keep = Callable[[WorldOutcome], None]


class NothingToShrinkError(QuorateError):
    """The given world violates no invariant."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The outcome of the small world; `tries` worlds were run to find it.

    `is_finished` False: a limit or an interrupt stopped the search.
    """

    outcome: WorldOutcome
    tries: int
    is_finished: bool
    is_interrupted: bool = False

    @property
    def plan(self) -> Plan:
        return self.outcome.plan


def shrink(
    plan: Plan,
    *,
    tries: int = TRIES,
    seconds: float = SECONDS,
    say: Say = lambda text: None,
    keep: Keep = lambda outcome: None,
    run: Run | None = None,
) -> Shrunk:
    """A small plan in which the same check fails as in this one.

    At most `tries` worlds are run. All of them except the first end after `seconds` at the latest.
    `say` receives a text for each successful step, `keep` the first world and each smaller one.
    Raises NothingToShrinkError where no check fails.
    """
    until = time.monotonic() + seconds
    first = run_plan(plan, checked()) if run is None else run(plan)
    if first.failure is None:
        raise NothingToShrinkError("this world violates no invariant: there is nothing to shrink")
    search = _Reduction(first, run, tries, until, say, keep)
    try:
        keep(first)
        for seeds in _SEEDS:
            search.seeds = seeds
            while search.leave_out():
                pass
        search.seeds = 1
        search.make_small()
    except _OutOfTriesError:
        return Shrunk(search.best, search.tried, False)
    except KeyboardInterrupt:
        return Shrunk(search.best, search.tried, False, is_interrupted=True)
    return Shrunk(search.best, search.tried, True)


class _OutOfTriesError(Exception):
    """The limit of worlds or of time is reached."""


class _TooLongError(Exception):
    """The world exceeds its limit of steps or of time."""


class _Limit(Observer):
    """Ends a world that exceeds its limit of steps or of time."""

    def __init__(self, steps: int, until: float) -> None:
        self._left = steps
        self._until = until

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        self._left -= 1
        if self._left < 0 or (self._left % _LOOK_EVERY == 0 and time.monotonic() > self._until):
            raise _TooLongError


class _Reduction:
    """The reduction of one plan; `best` is the smallest failing world so far."""

    def __init__(
        self, first: WorldOutcome, run: Run | None, tries: int, until: float, say: Say, keep: Keep
    ) -> None:
        assert first.failure is not None
        self.best = first
        self.tried = 1
        self._check = first.failure.check
        self._run = run
        self._tries = tries
        self._until = until
        self._say = say
        self._keep = keep
        self._seen: set[Plan] = {first.plan}
        self.seeds = 1

    @property
    def plan(self) -> Plan:
        return self.best.plan

    def leave_out(self) -> bool:
        """Try each step once. Returns whether one succeeded."""
        before = self.plan
        self._end_early()
        self._shorten()
        self._drop_fault_events()
        self._shorten()
        self._drop_nodes()
        self._drop_clients()
        self._make_plain()
        return self.plan != before

    def _fails(self, plan: Plan, what: str) -> bool:
        """Whether the same check fails in this world. If so, it becomes the best one."""
        for seed in range(plan.seed, plan.seed + self.seeds):
            tried = replace(plan, seed=seed)
            if tried in self._seen:
                continue
            if self.tried >= self._tries or time.monotonic() > self._until:
                raise _OutOfTriesError
            self._seen.add(tried)
            self.tried += 1
            outcome = self._outcome(tried)
            if outcome.failure is not None and outcome.failure.check == self._check:
                self.best = outcome
                self._keep(outcome)
                self._say(f"{self.tried} worlds tried: {what}; {_size(outcome)}")
                self._cut_tail()
                return True
            if time.monotonic() > self._until:
                raise _OutOfTriesError
        return False

    def _outcome(self, plan: Plan) -> WorldOutcome:
        if self._run is not None:
            return self._run(plan)
        steps = _MANY * self.best.events + _SOME
        return run_plan(plan, [*checked(), _Limit(steps, self._until)])

    # -- time ---------------------------------------------------------------------------------
    def _cut_tail(self) -> None:
        """Remove the time after the failure."""
        failure = self.best.failure
        assert failure is not None
        if failure.at_ms + _MARGIN_MS < self.plan.duration_ms:
            end = failure.at_ms + _MARGIN_MS
            kept = tuple(
                fault_event
                for fault_event in self.plan.fault_events
                if fault_event.at_ms <= failure.at_ms
            )
            self._fails(replace(self.plan, duration_ms=end, fault_events=kept), "no time after it")

    def _end_early(self) -> None:
        """Begin the liveness phase earlier, where the check fails in that phase."""
        self._cut_tail()
        while self._fails_liveness() and self.plan.duration_ms > 1:
            last = max((fault_event.at_ms for fault_event in self.plan.fault_events), default=0)
            ends = (self.plan.duration_ms // 2, last + _MARGIN_MS, last + 1000)
            if not any(self._end_at(end) for end in ends if end < self.plan.duration_ms):
                return

    def _end_at(self, end: int) -> bool:
        kept = tuple(
            fault_event for fault_event in self.plan.fault_events if fault_event.at_ms < end
        )
        return self._fails(
            replace(self.plan, duration_ms=end, fault_events=kept), f"end at {end} ms"
        )

    def _shorten(self) -> None:
        """Shorten idle time: without clients, between the fault events, then all times."""
        if self.plan.duration_ms <= _LONG_MS:
            return
        self._drop_clients()
        for most in _GAPS_MS:
            if self._fails(
                with_gaps_of(self.plan, most), f"at most {most} ms between fault events"
            ):
                break
        else:
            self._close_gaps()
        for part in _PARTS:
            while self.plan.duration_ms > _LONG_MS:
                if not self._fails(divided_times(self.plan, part), f"all times by {part} shorter"):
                    break

    def _close_gaps(self) -> None:
        """Shorten the gaps one by one, the longest first: some failures need one long gap."""
        ends = (
            *(fault_event.at_ms for fault_event in self.plan.fault_events),
            self.plan.duration_ms,
        )
        gaps = [end - start for start, end in pairwise((0, *ends))]
        for place in sorted(range(len(gaps)), key=lambda place: -gaps[place]):
            for most in _GAPS_MS:
                what = f"at most {most} ms before fault event {place + 1}"
                if gaps[place] > most and self._fails(with_gaps_of(self.plan, most, place), what):
                    break

    def _fails_liveness(self) -> bool:
        failure = self.best.failure
        return failure is not None and failure.at_ms >= self.plan.duration_ms

    # -- fault events --------------------------------------------------------------------------------
    def _drop_fault_events(self) -> None:
        """Delta debugging: remove runs of fault events, at first half of them, at last single ones."""
        size = max(1, len(self.plan.fault_events) // 2)
        while self.plan.fault_events:
            size = min(size, len(self.plan.fault_events))
            at, gone = 0, False
            while at < len(self.plan.fault_events):
                fault_events = self.plan.fault_events
                fewer = fault_events[:at] + fault_events[at + size :]
                what = (
                    f"without {len(fault_events) - len(fewer)} of {len(fault_events)} fault events"
                )
                if self._fails(replace(self.plan, fault_events=fewer), what):
                    gone = True
                else:
                    at += size
            if size == 1 and not gone:
                return
            size = max(1, size // 2)

    # -- nodes and clients --------------------------------------------------------------------
    def _drop_nodes(self) -> None:
        for node in range(self.plan.voters + self.plan.observers, 0, -1):
            fewer = without_node(self.plan, node)
            if fewer is not None:
                self._fails(fewer, f"without node {node}")

    def _drop_clients(self) -> None:
        for count in _CLIENTS:
            clients = self.plan.clients
            if count < clients.count:
                fewer = replace(self.plan, clients=replace(clients, count=count))
                if self._fails(fewer, f"{count} clients"):
                    return

    # -- settings -----------------------------------------------------------------------------
    def _make_plain(self) -> None:
        """Set defaults: a whole group of settings first, then its settings one by one."""
        plain = Plan(clients=replace(Plan().clients, count=self.plan.clients.count))
        for name in (f.name for f in fields(Plan) if f.name not in _KEPT):
            default = getattr(plain, name)
            if self._set(name, default) or not is_dataclass(default):
                continue
            for field in (f.name for f in fields(default)):
                value = {field: getattr(default, field)}
                self._set(name, replace(getattr(self.plan, name), **value), field)

    def _set(self, name: str, value: Any, field: str = "") -> bool:
        if getattr(self.plan, name) == value:
            return True
        what = f"plain {name}{'.' + field if field else ''}"
        return self._fails(replace(self.plan, **{name: value}), what)

    # -- numbers ------------------------------------------------------------------------------
    def make_small(self) -> None:
        """Reduce and round the numbers of fault events. Some events may become redundant by that."""
        for place in range(len(self.plan.fault_events)):
            while any(self._put(place, better) for better in self._variants(place)):
                pass
        self._end_early()
        self._drop_fault_events()

    def _variants(self, place: int) -> list[FaultEvent]:
        return (
            list(simpler(self.plan.fault_events[place]))
            if place < len(self.plan.fault_events)
            else []
        )

    def _put(self, place: int, better: FaultEvent) -> bool:
        fault_events = self.plan.fault_events
        changed = (*fault_events[:place], better, *fault_events[place + 1 :])
        return self._fails(replace(self.plan, fault_events=changed), f"simpler: {better}")


def _size(outcome: WorldOutcome) -> str:
    plan = outcome.plan
    nodes = plan.voters + plan.observers
    return (
        f"{len(plan.fault_events)} fault events, {nodes} nodes, {plan.clients.count} clients, "
        f"{plan.duration_ms} ms, {outcome.events} events"
    )
