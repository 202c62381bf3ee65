"""From a world in which a promise breaks to a small one in which the same promise breaks.

Everything that a plan has is left out or made plain, piece by piece: what lies behind the failure,
deeds (by delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing
Input", 2002), nodes, clients, rates of faults, settings, and at last the numbers of the deeds that
are left. A piece stays away where the same check still fails.

Luck is another one when a piece is gone, so at last every step is tried under a few seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Final

from quorate.base.errors import QuorateError
from quorate.sim.plan import DEEDS, LEADER, Deed, Plan, members
from quorate.sim.run import Outcome, checked, run_plan

TRIES: Final = 600
SECONDS: Final = 300.0
_SEEDS: Final = (1, 8)
"""Under so many seeds each step is tried: at first, and when nothing goes that way any more."""
_KEPT: Final = frozenset({"format", "seed", "voters", "observers", "duration_ms", "deeds"})
"""What is no setting that could be plain."""
_CLIENTS: Final = (0, 1, 2, 3)
_ROUND: Final = (1000, 100, 10)
_MARGIN_MS: Final = 1

Run = Callable[[Plan], Outcome]
Say = Callable[[str], None]


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

    @property
    def plan(self) -> Plan:
        return self.outcome.plan


def shrink(
    plan: Plan,
    *,
    tries: int = TRIES,
    seconds: float = SECONDS,
    say: Say = lambda text: None,
    run: Run = lambda plan: run_plan(plan, checked()),
) -> Shrunk:
    """A small plan in which the same check fails as in this one.

    `say` hears of every step that succeeds. Raises NothingToShrink where nothing fails.
    """
    first = run(plan)
    if first.failure is None:
        raise NothingToShrink("this world keeps all its promises: there is nothing to shrink")
    search = _Search(first, run, tries, time.monotonic() + seconds, say)
    try:
        for seeds in _SEEDS:
            search.seeds = seeds
            while search.leave_out():
                pass
        search.seeds = 1
        search.make_small()
    except (_OutOfTries, KeyboardInterrupt):
        return Shrunk(search.best, search.tried, False)
    return Shrunk(search.best, search.tried, True)


class _OutOfTries(Exception):
    """So many worlds were agreed, and no more."""


class _Search:
    """`best` is the smallest failing world so far."""

    def __init__(self, first: Outcome, run: Run, tries: int, until: float, say: Say) -> None:
        assert first.failure is not None
        self.best = first
        self.tried = 1
        self._check = first.failure.check
        self._run = run
        self._tries = tries
        self._until = until
        self._say = say
        self._seen: set[Plan] = {first.plan}
        self.seeds = 1

    @property
    def plan(self) -> Plan:
        return self.best.plan

    def leave_out(self) -> bool:
        """Try everything once; was anything left out?"""
        before = self.plan
        self._end_early()
        self._drop_deeds()
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
            outcome = self._run(tried)
            if outcome.failure is not None and outcome.failure.check == self._check:
                self.best = outcome
                self._say(f"{self.tried} worlds tried: {what}; {_size(outcome)}")
                self._cut_tail()
                return True
        return False

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
