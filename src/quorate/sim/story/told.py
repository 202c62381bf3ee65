"""What came of a story: its text with the outcomes of now, and where they differ."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """A block whose outcome is not the written one; `line` of its first command."""

    line: int
    commands: tuple[str, ...]
    written: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A story with the outcomes that it has now."""

    text: str
    differences: tuple[Difference, ...]
