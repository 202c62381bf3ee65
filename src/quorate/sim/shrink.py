"""From a world in which a promise breaks to a small one in which the same promise breaks.

Everything that a plan has is left out or made plain, piece by piece: what lies behind the failure,
deeds (by delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", 2002), nodes, clients, rates of faults, settings, and at last the numbers of the deeds that
are left. A piece stays away where the same check still fails. In a world of hours the hours go
first: each world that is tried costs as much as its time is long.

Luck is another one when a piece is gone, so at last every step is tried under a few seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.sim.observe import Observer
from quorate.sim.plan import DEEDS, LEADER, Deed, Plan, members
from quorate.sim.run import Outcome, checked, run_plan

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.sim.process import Process

TRIES: Final = 600
SECONDS: Final = 300.0
_SEEDS: Final = (1, 8)
"""Under so many seeds each step is tried: at first, and when nothing goes that way any more."""
_KEPT: Final = frozenset({"format", "seed", "voters", "observers", "duration_ms", "deeds"})
"""What is no setting that could be plain."""
_CLIENTS: Final = (0, 1, 2, 3)
_ROUND: Final = (1000, 100, 10)
_MARGIN_MS: Final = 1
_LONG_MS: Final = 120_000
"""A world that lasts longer has idle hours, which go first."""
_GAPS_MS: Final = (100, 10_000, 600_000)
"""So much at the most between one deed and the next, where that is enough."""
_PARTS: Final = (60, 8, 2)
"""All times shorter by such a factor."""
_TIMES: Final = frozenset({"down_ms", "for_ms", "age_ms"})
_LOOK_EVERY: Final = 256
"""In steps, of which each is an event too."""
_MANY: Final = 2
_SOME: Final = 10_000
"""A world of more steps than `_MANY` times the events of the best, and these, is not smaller."""

Run = Callable[[Plan], Outcome]
Say = Callable[[str], None]
Keep = Callable[[Outcome], None]


class NothingToShrink(QuorateError):
    """The world that was given keeps all its promises."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The small world and what comes of it; `tries` worlds were run to find it.

    `is_finished` False: it was stopped, by a limit or by a person, before nothing more could go.
    """

    outcome: Outcome
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

    At most `tries` worlds are run, and none of them but the first for longer than until `seconds`
    are over. `say` hears of every step that succeeds, `keep` gets every world that is smaller than
    all before, and the first one. Raises NothingToShrink where nothing fails.
    """
    until = time.monotonic() + seconds
    first = run_plan(plan, checked()) if run is None else run(plan)
    if first.failure is None:
        raise NothingToShrink("this world keeps all its promises: there is nothing to shrink")
    search = _Search(first, run, tries, until, say, keep)
    try:
        keep(first)
        for seeds in _SEEDS:
            search.seeds = seeds
            while search.leave_out():
                pass
        search.seeds = 1
        search.make_small()
    except _OutOfTries:
        return Shrunk(search.best, search.tried, False)
    except KeyboardInterrupt:
        return Shrunk(search.best, search.tried, False, is_interrupted=True)
    return Shrunk(search.best, search.tried, True)


class _OutOfTries(Exception):
    """So many worlds were agreed, and no more."""


class _TooLong(Exception):
    """This world takes longer than it is worth."""


class _Patience(Observer):
    """Ends a world that makes too many steps, or is late."""

    def __init__(self, steps: int, until: float) -> None:
        self._left = steps
        self._until = until

    def stepped(self, process: Process, happened: Sequence[Input], effects: Effects) -> None:
        self._left -= 1
        if self._left < 0 or (self._left % _LOOK_EVERY == 0 and time.monotonic() > self._until):
            raise _TooLong


class _Search:
    """`best` is the smallest failing world so far."""

    def __init__(
        self, first: Outcome, run: Run | None, tries: int, until: float, say: Say, keep: Keep
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
        """Try everything once; was anything left out?"""
        before = self.plan
        self._end_early()
        self._shorten()
        self._drop_deeds()
        self._shorten()
        self._drop_nodes()
        self._drop_clients()
        self._make_plain()
        return self.plan != before

    def _fails(self, plan: Plan, what: str) -> bool:
        """Does the same check fail there too? Then it is the best from now on."""
        for seed in range(plan.seed, plan.seed + self.seeds):
            tried = replace(plan, seed=seed)
            if tried in self._seen:
                continue
            if self.tried >= self._tries or time.monotonic() > self._until:
                raise _OutOfTries
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
                raise _OutOfTries
        return False

    def _outcome(self, plan: Plan) -> Outcome:
        if self._run is not None:
            return self._run(plan)
        steps = _MANY * self.best.events + _SOME
        return run_plan(plan, [*checked(), _Patience(steps, self._until)])

    # -- time ---------------------------------------------------------------------------------
    def _cut_tail(self) -> None:
        """What was to come after the failure does not matter."""
        failure = self.best.failure
        assert failure is not None
        if failure.at_ms + _MARGIN_MS < self.plan.duration_ms:
            end = failure.at_ms + _MARGIN_MS
            kept = tuple(deed for deed in self.plan.deeds if deed.at_ms <= failure.at_ms)
            self._fails(replace(self.plan, duration_ms=end, deeds=kept), "no time after it")

    def _end_early(self) -> None:
        """The healing may begin sooner, where it is then that the check fails."""
        self._cut_tail()
        while self._fails_healing() and self.plan.duration_ms > 1:
            last = max((deed.at_ms for deed in self.plan.deeds), default=0)
            ends = (self.plan.duration_ms // 2, last + _MARGIN_MS, last + 1000)
            if not any(self._end_at(end) for end in ends if end < self.plan.duration_ms):
                return

    def _end_at(self, end: int) -> bool:
        kept = tuple(deed for deed in self.plan.deeds if deed.at_ms < end)
        return self._fails(replace(self.plan, duration_ms=end, deeds=kept), f"end at {end} ms")

    def _shorten(self) -> None:
        """Of hours most are idle: nobody, and nothing between the deeds; then less of all."""
        if self.plan.duration_ms <= _LONG_MS:
            return
        self._drop_clients()
        for most in _GAPS_MS:
            if self._fails(_closer(self.plan, most), f"at most {most} ms between deeds"):
                break
        else:
            self._close_gaps()
        for part in _PARTS:
            while self.plan.duration_ms > _LONG_MS:
                if not self._fails(_shorter(self.plan, part), f"all times by {part} shorter"):
                    break

    def _close_gaps(self) -> None:
        """One after the other, the longest first: some failures need an hour, but not every one."""
        ends = (*(deed.at_ms for deed in self.plan.deeds), self.plan.duration_ms)
        gaps = [end - start for start, end in pairwise((0, *ends))]
        for place in sorted(range(len(gaps)), key=lambda place: -gaps[place]):
            for most in _GAPS_MS:
                what = f"at most {most} ms before deed {place + 1}"
                if gaps[place] > most and self._fails(_closer(self.plan, most, place), what):
                    break

    def _fails_healing(self) -> bool:
        failure = self.best.failure
        return failure is not None and failure.at_ms >= self.plan.duration_ms

    # -- deeds --------------------------------------------------------------------------------
    def _drop_deeds(self) -> None:
        """Delta debugging: leave out runs of deeds, half of all at first, one by one at last."""
        size = max(1, len(self.plan.deeds) // 2)
        while self.plan.deeds:
            size = min(size, len(self.plan.deeds))
            at, gone = 0, False
            while at < len(self.plan.deeds):
                deeds = self.plan.deeds
                fewer = deeds[:at] + deeds[at + size :]
                what = f"without {len(deeds) - len(fewer)} of {len(deeds)} deeds"
                if self._fails(replace(self.plan, deeds=fewer), what):
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
        """All as by default: first a whole group of settings, then what is left one by one."""
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
        """Smaller and rounder numbers in the deeds that are left; one of them may now be idle."""
        for place in range(len(self.plan.deeds)):
            while any(self._put(place, better) for better in self._simpler(place)):
                pass
        self._end_early()
        self._drop_deeds()

    def _simpler(self, place: int) -> list[Deed]:
        return list(_simpler(self.plan.deeds[place])) if place < len(self.plan.deeds) else []

    def _put(self, place: int, better: Deed) -> bool:
        deeds = self.plan.deeds
        changed = (*deeds[:place], better, *deeds[place + 1 :])
        return self._fails(replace(self.plan, deeds=changed), f"simpler: {better}")


def _simpler(deed: Deed) -> Iterator[Deed]:
    """Deeds that say the same in smaller or rounder numbers, the best of them first."""
    for sooner in _smaller(deed.at_ms):
        yield replace(deed, at_ms=sooner)
    for place, (name, value) in enumerate(_arguments(deed)):
        if name in ("node", "nodes", "from", "to", "what"):
            continue
        for smaller in _smaller(value):
            yield replace(deed, args=(*deed.args[:place], smaller, *deed.args[place + 1 :]))


def _smaller(value: int) -> Sequence[int]:
    found = [1, 10, 100, 1000, *(value // unit * unit for unit in _ROUND)]
    return sorted({number for number in found if 0 < number < value})


def _closer(plan: Plan, most: int, only: int | None = None) -> Plan:
    """The same deeds in the same order, none later than `most` ms after the one before; the end,
    too. `only`: this one alone, counted from 0; all others as long after it as they were."""
    at = was = 0
    times = []
    for place, then in enumerate((*(deed.at_ms for deed in plan.deeds), plan.duration_ms)):
        gap = max(0, then - was)
        at += min(gap, most) if only in (None, place) else gap
        was = then
        times.append(at)
    deeds = tuple(replace(deed, at_ms=at) for deed, at in zip(plan.deeds, times, strict=False))
    return replace(plan, deeds=deeds, duration_ms=max(times[-1], 1))


def _shorter(plan: Plan, part: int) -> Plan:
    """Deeds come sooner by this factor, and last as much less long."""
    deeds = []
    for deed in plan.deeds:
        args = (
            max(1, value // part) if name in _TIMES and value > 0 else value
            for name, value in _arguments(deed)
        )
        deeds.append(replace(deed, at_ms=deed.at_ms // part, args=tuple(args)))
    return replace(plan, deeds=tuple(deeds), duration_ms=max(1, plan.duration_ms // part))


def without_node(plan: Plan, node: int) -> Plan | None:
    """The plan without this node: higher ids move down, deeds that need it are gone.

    None where no voter would be left.
    """
    if node <= plan.voters:
        if plan.voters == 1:
            return None
        fewer = replace(plan, voters=plan.voters - 1)
    else:
        fewer = replace(plan, observers=plan.observers - 1)
    deeds = (_without(deed, node) for deed in plan.deeds)
    return replace(fewer, deeds=tuple(deed for deed in deeds if deed is not None))


def _without(deed: Deed, node: int) -> Deed | None:
    args = []
    for name, value in _arguments(deed):
        if name == "nodes":
            left = [one - (one > node) for one in members(value) if one != node]
            if not left:
                return None
            value = sum(1 << one for one in left)
        elif name in ("node", "from", "to") and value != LEADER:
            if value == node:
                return None
            value -= value > node
        args.append(value)
    return replace(deed, args=tuple(args))


def _arguments(deed: Deed) -> Iterator[tuple[str, int]]:
    return zip(DEEDS[deed.kind], deed.args, strict=True)


def _size(outcome: Outcome) -> str:
    plan = outcome.plan
    nodes = plan.voters + plan.observers
    return (
        f"{len(plan.deeds)} deeds, {nodes} nodes, {plan.clients.count} clients, "
        f"{plan.duration_ms} ms, {outcome.events} events"
    )
