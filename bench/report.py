"""What a measurement says: rows of numbers, and the goals they are held to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.progress import print_line


@dataclass(frozen=True)
class Row:
    """One number of one system."""

    measure: str
    system: str
    value: float
    unit: str


@dataclass(frozen=True)
class Goal:
    """`value` is to be at most (or at least) `limit`."""

    text: str
    value: float
    limit: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        return self.value <= self.limit if self.at_most else self.value >= self.limit


@dataclass
class Report:
    rows: list[Row] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Peers that were not on the machine, with how to get them: their goals are not checked."""

    def add(self, measure: str, system: str, value: float, unit: str) -> float:
        """Add a number, and print it at once."""
        self.rows.append(Row(measure, system, value, unit))
        print_line(f"{measure}, {system}: {_number(value)} {unit}")
        return value

    def value(self, measure: str, system: str) -> float | None:
        found = [r.value for r in self.rows if (r.measure, r.system) == (measure, system)]
        return found[0] if found else None

    def hold(self, text: str, value: float, limit: float) -> None:
        """A goal on a value that is to be at least `limit`."""
        self.goals.append(Goal(text, value, limit, at_most=False))

    def hold_ratio(
        self,
        text: str,
        measure: str,
        peer: str,
        limit: float,
        at_most: bool = True,
        *,
        ours: str = "quorate",
    ) -> None:
        """A goal on the value of the system `ours` over the peer's, where both were measured."""
        own, theirs = self.value(measure, ours), self.value(measure, peer)
        if own is not None and theirs:
            self.goals.append(Goal(text, own / theirs, limit, at_most))

    def extend(self, other: Report) -> None:
        self.rows += other.rows
        self.goals += other.goals
        self.absent += [line for line in other.absent if line not in self.absent]

    def as_json(self) -> dict[str, Any]:
        return {
            "rows": [asdict(row) for row in self.rows],
            "goals": [asdict(goal) | {"met": goal.met} for goal in self.goals],
            "absent": self.absent,
        }

    def as_text(self) -> str:
        """Two tables in Markdown: the numbers by measure and system, and the goals."""
        systems = list(dict.fromkeys(row.system for row in self.rows))
        measures = dict.fromkeys((row.measure, row.unit) for row in self.rows)
        lines = _table(
            ["measure", *systems],
            (
                [f"{measure}, {unit}", *(_number(self.value(measure, s)) for s in systems)]
                for measure, unit in measures
            ),
        )
        if self.goals:
            lines += ["", *_table(["goal", "to reach", "reached", ""], map(_goal, self.goals))]
        lines += [f"Not measured: {line}" for line in self.absent]
        return "\n".join(lines)


def _goal(goal: Goal) -> list[str]:
    bound = ("at most " if goal.at_most else "at least ") + _number(goal.limit)
    return [goal.text, bound, _number(goal.value), "met" if goal.met else "MISSED"]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    cells = [head, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return lines
