"""Smaller variants of a plan or a fault event, for `shrink`. Pure functions that run no world."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from quorate.sim.plan.plan import FAULT_EVENTS, LEADER, FaultEvent, Plan, members

_ROUND: Final = (1000, 100, 10)
_TIMES: Final = frozenset({"down_ms", "for_ms", "age_ms"})
"""Arguments of fault events that are durations in ms."""


def simpler(fault_event: FaultEvent) -> Iterator[FaultEvent]:
    """Variants of a fault event with smaller or rounder numbers, the smallest first."""
    for sooner in _smaller(fault_event.at_ms):
        yield replace(fault_event, at_ms=sooner)
    for place, (name, value) in enumerate(_arguments(fault_event)):
        if name in ("node", "nodes", "from", "to", "what"):
            continue
        for smaller in _smaller(value):
            yield replace(
                fault_event,
                args=(*fault_event.args[:place], smaller, *fault_event.args[place + 1 :]),
            )


def _smaller(value: int) -> Sequence[int]:
    found = [1, 10, 100, 1000, *(value // unit * unit for unit in _ROUND)]
    return sorted({number for number in found if 0 < number < value})


def with_gaps_of(plan: Plan, most: int, only: int | None = None) -> Plan:
    """The plan with at most `most` ms before each fault event and before the end.

    `only`: shorten this gap alone, counted from 0. Later events keep their distances.
    """
    at = was = 0
    times = []
    for place, then in enumerate(
        (*(fault_event.at_ms for fault_event in plan.fault_events), plan.duration_ms)
    ):
        gap = max(0, then - was)
        at += min(gap, most) if only in (None, place) else gap
        was = then
        times.append(at)
    fault_events = tuple(
        replace(fault_event, at_ms=at)
        for fault_event, at in zip(plan.fault_events, times, strict=False)
    )
    return replace(plan, fault_events=fault_events, duration_ms=max(times[-1], 1))


def divided_times(plan: Plan, part: int) -> Plan:
    """The plan with all times and durations divided by `part`."""
    fault_events = []
    for fault_event in plan.fault_events:
        args = (
            max(1, value // part) if name in _TIMES and value > 0 else value
            for name, value in _arguments(fault_event)
        )
        fault_events.append(replace(fault_event, at_ms=fault_event.at_ms // part, args=tuple(args)))
    return replace(
        plan, fault_events=tuple(fault_events), duration_ms=max(1, plan.duration_ms // part)
    )


def without_node(plan: Plan, node: int) -> Plan | None:
    """The plan without this node. Higher ids decrease by one; fault events of the node are removed.

    None where no voter would remain.
    """
    if node <= plan.voters:
        if plan.voters == 1:
            return None
        fewer = replace(plan, voters=plan.voters - 1)
    else:
        fewer = replace(plan, observers=plan.observers - 1)
    fault_events = (_without(fault_event, node) for fault_event in plan.fault_events)
    return replace(
        fewer,
        fault_events=tuple(fault_event for fault_event in fault_events if fault_event is not None),
    )


def _without(fault_event: FaultEvent, node: int) -> FaultEvent | None:
    args = []
    for name, value in _arguments(fault_event):
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
    return replace(fault_event, args=tuple(args))


def _arguments(fault_event: FaultEvent) -> Iterator[tuple[str, int]]:
    return zip(FAULT_EVENTS[fault_event.kind], fault_event.args, strict=True)
