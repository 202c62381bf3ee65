"""Invariants of the clients' history and of the disks. Each check returns its violations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from quorate.nemesis.disk_contents import DiskContents
from quorate.sim.checks.linearizability import check, describe
from quorate.sim.world.client_op import ClientOp

RECOVERS: Final = "a recovered quorum works"
_NOTHING_LOST: Final = "no acknowledged write is lost"
_AT_MOST: Final = 3
"""Violations that one check reports for one disk."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, and where."""

    invariant: str
    details: str


def linearizable(ops: Sequence[ClientOp]) -> list[Violation]:
    anomaly = check(ops)
    return [] if anomaly is None else [Violation("linearizability", str(anomaly))]


def nothing_lost(
    ops: Iterable[ClientOp], logs: Sequence[DiskContents], until: int
) -> list[Violation]:
    """Check that, below `until`, every disk has every acknowledged write, and no disk a refused one.

    A disk whose log begins after the last snapshot cannot prove the first: at least one must.
    """
    violations = []
    if not any(log.is_complete for log in logs):
        violations.append(Violation(_NOTHING_LOST, "no disk has the whole history"))
    done = {op.value: op for op in ops if op.kind != "get" and op.outcome == "ok"}
    refused = {op.value: op for op in ops if op.kind != "get" and op.outcome == "refused"}
    for log in logs:
        known = log.numbers(until)
        if log.is_complete:
            for number in sorted(done.keys() - known, key=repr)[:_AT_MOST]:
                details = f"{describe(done[number])}: not on the disk of {log.node}"
                violations.append(Violation(_NOTHING_LOST, details))
        for number in sorted(refused.keys() & known, key=repr)[:_AT_MOST]:
            details = f"{describe(refused[number])}: is on the disk of {log.node}"
            violations.append(Violation("no refused write is in a log", details))
    return violations


def same_prefix(logs: Sequence[DiskContents], until: int) -> list[Violation]:
    """All logs reach the offset `until`, and any two are equal where both have records below it."""
    violations = []
    for log in logs:
        if log.end < until:
            reason = log.torn or "the files end"
            details = f"the disk of {log.node} ends at {log.end}, {until} is committed: {reason}"
            violations.append(Violation("acknowledged records are durable", details))
    for one, two in combinations(logs, 2):
        first = max(one.start, two.start)
        last = min(one.end, two.end, until)
        for offset in range(first, last):
            a, b = one.entries.get(offset), two.entries.get(offset)
            if a != b:
                details = f"offset {offset}: {one.node} has {a}, {two.node} has {b}"
                violations.append(Violation("committed logs are equal", details))
                break
    return violations


def log_order(ops: Iterable[ClientOp], log: DiskContents, until: int) -> list[Violation]:
    """Check that, below `until`, each write is in the log once, in the clients' real-time order.

    A write that was acknowledged before another one was requested precedes it.
    """
    by_number = {op.value: op for op in ops if op.kind != "get"}
    placed: dict[int, int] = {}
    newest: ClientOp | None = None
    for offset in range(log.start, min(log.end, until)):
        entry = log.entries.get(offset)
        if entry is None or entry.number is None:
            continue
        op = by_number.get(entry.number)
        if op is None:
            details = f"offset {offset} of {log.node}: number {entry.number} was never written"
            return [Violation("a log has requested writes only", details)]
        if entry.number in placed:
            details = (
                f"{describe(op)}: at offset {placed[entry.number]} and at {offset} of {log.node}"
            )
            return [Violation("a write is in the log once", details)]
        placed[entry.number] = offset
        if newest is not None and op.outcome == "ok" and op.answered_us < newest.invoked_us:
            details = (
                f"offset {offset} of {log.node}: {describe(op)} comes after {describe(newest)}"
            )
            return [Violation("the log is in real-time order", details)]
        if newest is None or op.invoked_us > newest.invoked_us:
            newest = op
    return []
