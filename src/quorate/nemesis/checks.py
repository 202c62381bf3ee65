"""The promises, held against what clients were told and what lies on the disks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from quorate.nemesis.harvest import Harvest
from quorate.sim.linear import check, describe
from quorate.sim.observe import ClientOp


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise that was not kept: which, and how."""

    promise: str
    how: str


def linearizable(ops: Sequence[ClientOp]) -> list[Broken]:
    anomaly = check(ops)
    return [] if anomaly is None else [Broken("linearizability", str(anomaly))]


def nothing_lost(ops: Iterable[ClientOp], logs: Sequence[Harvest], until: int) -> list[Broken]:
    """Every acknowledged write is on every disk, below `until`; no refused one is on any."""
    broken = []
    if not any(log.is_complete for log in logs):
        broken.append(Broken("no acknowledged write is lost", "no disk has the whole history"))
    done = {op.value: op for op in ops if op.kind != "get" and op.outcome == "ok"}
    refused = {op.value: op for op in ops if op.kind != "get" and op.outcome == "refused"}
    for log in logs:
        known = log.numbers(until)
        if log.is_complete:
            for number in sorted(done.keys() - known, key=repr)[:3]:
                how = f"{describe(done[number])}: not on the disk of {log.node}"
                broken.append(Broken("no acknowledged write is lost", how))
        for number in sorted(refused.keys() & known, key=repr)[:3]:
            how = f"{describe(refused[number])}: is on the disk of {log.node}"
            broken.append(Broken("what was refused is never done", how))
    return broken


def same_prefix(logs: Sequence[Harvest], until: int) -> list[Broken]:
    """All logs reach `until` and say the same below it, wherever two overlap."""
    broken = []
    for log in logs:
        if log.end < until:
            why = log.torn or "the files end"
            how = f"the disk of {log.node} ends at {log.end}, {until} is committed: {why}"
            broken.append(Broken("what every voter acknowledged is durable", how))
    for one, two in combinations(logs, 2):
        first = max(one.start, two.start)
        last = min(one.end, two.end, until)
        for offset in range(first, last):
            a, b = one.entries.get(offset), two.entries.get(offset)
            if a != b:
                how = f"offset {offset}: {one.node} has {a}, {two.node} has {b}"
                broken.append(Broken("the committed log is the same everywhere", how))
                break
    return broken


def log_order(ops: Iterable[ClientOp], log: Harvest, until: int) -> list[Broken]:
    """A write is in the log once; what was answered before another was asked comes before it."""
    by_number = {op.value: op for op in ops if op.kind != "get"}
    placed: dict[int, int] = {}
    newest: ClientOp | None = None
    for offset in range(log.start, min(log.end, until)):
        entry = log.entries.get(offset)
        if entry is None or entry.number is None:
            continue
        op = by_number.get(entry.number)
        if op is None:
            how = f"offset {offset} of {log.node}: number {entry.number} was never written"
            return [Broken("only what clients asked is done", how)]
        if entry.number in placed:
            how = f"{describe(op)}: at offset {placed[entry.number]} and at {offset} of {log.node}"
            return [Broken("a write is done once", how)]
        placed[entry.number] = offset
        if newest is not None and op.outcome == "ok" and op.answered_us < newest.invoked_us:
            how = f"offset {offset} of {log.node}: {describe(op)} comes after {describe(newest)}"
            return [Broken("the log keeps the order of what clients saw", how)]
        if newest is None or op.invoked_us > newest.invoked_us:
            newest = op
    return []
