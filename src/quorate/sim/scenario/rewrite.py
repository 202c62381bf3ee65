"""The result of a scenario: its text with the present outcomes, and the differences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A block whose outcome differs from the expected one; `line` of its first command."""

    line: int
    commands: tuple[str, ...]
    written: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """A scenario with its present outcomes."""

    text: str
    differences: tuple[Difference, ...]
