"""A plan as text, one setting or fault event a line, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

from quorate.raft.values import RaftLimits
from quorate.sim.plan.bounds import MOST
from quorate.sim.plan.plan import (
    FAULT_EVENTS,
    FORMAT,
    LEADER,
    NAMED,
    NONE,
    ClientPlan,
    ClockPlan,
    DiskPlan,
    FaultEvent,
    NetworkPlan,
    Plan,
    PlanError,
    TimingPlan,
    check_plan,
    nodes_text,
)

RENAMED: Final[Mapping[str, str]] = {
    "stranger": "foreign-cluster",
    "remove-stranger": "remove-unknown",
}
"""Fault events and invalid requests, by their names in plans of earlier releases."""
_READABLE: Final = (1, 2, 3, 4, 5, 6, 7, 8, FORMAT)
"""A plan of an older format has defaults for later settings, and runs as it ran before them."""
_OTHER_TAIL: Final = (1, 2)
"""Up to this format the value of `disk.tail_bytes` was without effect."""
_ENDED: Final = (5, 6, 7, 8, FORMAT)
_END: Final = "end"
"""The last line of a plan since format 5. A plan without it is incomplete."""
_DIGITS: Final = 19
_MOST_NODES: Final = 14
_PARTS: Final[Mapping[str, type[Any]]] = {
    "network": NetworkPlan,
    "timing": TimingPlan,
    "clock": ClockPlan,
    "disk": DiskPlan,
    "limits": RaftLimits,
    "clients": ClientPlan,
}
_PLAIN: Final = tuple(f.name for f in fields(Plan) if f.name not in (*_PARTS, "fault_events"))
HEAD: Final = ("format", "seed", "voters", "duration_ms")
"""Settings that every plan has, before all others."""
_LATER: Final = ("scenario", "controllers", "brokers")
"""Settings that were added without a new format. A plan without them has their defaults."""
_MASKS: Final = frozenset({"old", "young"})
_DEFAULT: Final = Plan()


def plan_text(plan: Plan, *, short: bool = False) -> str:
    """A plan as text, one setting or fault event a line; `parse_plan` reads it back.

    `short`: omit settings with default values, except those of HEAD.
    """
    lines = [
        f"{name} {nodes_text(getattr(plan, name)) if name in _MASKS else _say(getattr(plan, name))}"
        for name in _PLAIN
        if getattr(plan, name) != getattr(_DEFAULT, name)
        or name in HEAD
        or not (short or name in _LATER)
    ]
    for part, kind in _PARTS.items():
        value, default = getattr(plan, part), getattr(_DEFAULT, part)
        lines += [
            f"{part}.{f.name} {_say(getattr(value, f.name))}"
            for f in fields(kind)
            if not short or getattr(value, f.name) != getattr(default, f.name)
        ]
    lines += map(str, plan.fault_events)
    lines.append(_END)
    return "\n".join(lines) + "\n"


def parse_plan(text: str) -> Plan:
    """Read the text of `plan_text`. Empty lines and text after a # are ignored.

    Omitted settings have their defaults. A plan of format 5 or later must have its last line.
    Raises PlanError with the line.
    """
    plain: dict[str, object] = {}
    parts: dict[str, dict[str, Any]] = {name: {} for name in _PARTS}
    fault_events: list[FaultEvent] = []
    lines: dict[str | FaultEvent, int] = {}
    text_lines = text.splitlines()
    for number, line in enumerate(text_lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if _END in lines:
                raise ValueError("the plan has ended before")
            if words == [_END]:
                lines[_END] = number
            elif words[0] == "at":
                fault_events.append(_parse_fault_event(words[1:]))
                lines.setdefault(fault_events[-1], number)
            else:
                _parse_setting(words, plain, parts)
                lines[words[0]] = number
        except ValueError as error:
            raise PlanError(f"{error}: '{line.strip()}'", number) from None
    found_format = plain.get("format", FORMAT)
    if plain.get("format") in _ENDED and _END not in lines:
        raise PlanError(f"the plan is cut off here: its last line is '{_END}'", len(text_lines))
    if found_format in _OTHER_TAIL:
        parts["disk"].pop("tail_bytes", None)
    plain["format"] = FORMAT
    made = {name: kind(**parts[name]) for name, kind in _PARTS.items()}
    plan = Plan(**plain, **made, fault_events=tuple(fault_events))  # type: ignore[arg-type]
    check_plan(plan, lines)
    if found_format in (4, *_ENDED):
        _check_ends(plan, lines)
        return plan
    return replace(
        plan, fault_events=tuple(d for d in plan.fault_events if d.at_ms < plan.duration_ms)
    )


def _check_ends(plan: Plan, lines: Mapping[str | FaultEvent, int]) -> None:
    """Raise PlanError for a fault event after the end. Before format 4 seeds drew such events."""
    for fault_event in plan.fault_events:
        if fault_event.at_ms >= plan.duration_ms:
            reason = f"'{fault_event}' is never done: all faults end at {plan.duration_ms} ms"
            raise PlanError(reason, lines.get(fault_event, 0))


def _parse_setting(
    words: list[str], plain: dict[str, object], parts: dict[str, dict[str, Any]]
) -> None:
    if len(words) != 2:
        raise ValueError("a setting is a name and a value")
    name, value = words
    part, dot, field_name = name.partition(".")
    target, kind = (parts.get(part), _PARTS.get(part)) if dot else (plain, Plan)
    known = {f.name: f for f in fields(kind)} if kind is not None else {}
    key = field_name if dot else name
    if target is None or key not in known or (not dot and key not in _PLAIN):
        raise ValueError(f"there is no setting '{name}'")
    if key in target:
        raise ValueError(f"'{name}' is set twice")
    target[key] = _mask(value) if name in _MASKS else _read(value, str(known[key].type))
    if name == "format" and target[key] not in _READABLE:
        raise ValueError(
            f"this plan is of format {value}, and this version runs formats "
            f"{', '.join(map(str, _READABLE))}: use the version of quorate that wrote it"
        )


def _read(word: str, kind: str) -> object:
    if kind == "str":
        return word
    if kind == "bool":
        if word not in ("yes", "no"):
            raise ValueError(f"'{word}' is neither yes nor no")
        return word == "yes"
    if kind != "float":
        return _number(word)
    try:
        value = float(word)
    except ValueError:
        raise ValueError(f"'{word}' is no number") from None
    if not 0 <= value <= 1:
        raise ValueError(f"{word} is no probability")
    return value


def _number(word: str) -> int:
    if not (word.isascii() and word.isdecimal()):
        raise ValueError(f"{word} is negative" if word[:1] == "-" else f"'{word}' is no number")
    if len(word) > _DIGITS or int(word) > MOST:
        raise ValueError(f"{word} is too large")
    return int(word)


def _parse_fault_event(words: list[str]) -> FaultEvent:
    if len(words) < 2:
        raise ValueError("a fault event is 'at MS KIND name=value...'")
    at_ms, kind = _number(words[0]), RENAMED.get(words[1], words[1])
    names = FAULT_EVENTS.get(kind)
    if names is None:
        raise ValueError(f"there is no fault event '{kind}'")
    given = dict(word.split("=", 1) for word in words[2:] if "=" in word)
    if len(given) != len(words) - 2 or tuple(given) != names:
        raise ValueError(f"'{kind}' takes {' '.join(f'{n}=' for n in names) or 'nothing'}")
    return FaultEvent(at_ms, kind, tuple(_value(name, word) for name, word in given.items()))


def _value(name: str, word: str) -> int:
    if name in NAMED:
        kind, names = NAMED[name]
        word = RENAMED.get(word, word)
        if word not in names:
            raise ValueError(f"there is no {kind} '{word}', but {', '.join(names)}")
        return names.index(word)
    if name != "nodes":
        return LEADER if name == "node" and word == "leader" else _number(word)
    return _mask(word)


def _mask(word: str) -> int:
    mask = 0
    if word == NONE:
        return mask
    for node in map(_number, word.split(",")):
        if node > _MOST_NODES:
            raise ValueError(f"there is no node {node}: there are at most {_MOST_NODES}")
        mask |= 1 << node
    return mask


def _say(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
