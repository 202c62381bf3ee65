"""Coverage points are read from what nodes say of themselves: every text that they look for can be said.

A pattern whose text the code does not have any more matches nothing, and a campaign would end with
its coverage point unreached, however many seeds it runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import quorate
from quorate.sim.checks.leader_duties import NOBODY_FETCHES
from quorate.sim.coverage.coverage_points import (
    CHANGE_NOT_COMMITTED,
    LACKS_SUPPORT,
    NOTES,
    RECOVERY_NOTES,
)

ROOT = Path(quorate.__file__).parent
SPEAK = ("raft", "replica", "node", "storage")
"""The packages whose notes a world sees."""
COMPOSED = ("resigned", "vote of", "auto join: joins")
"""Notes that are put together of several texts: their words are looked for one by one."""
HOLE = "\0"
"""In place of what an f-string fills in."""


def texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@cache
def said() -> tuple[str, ...]:
    """All that is written as a text in the code of a node; docstrings left out."""
    files = [path for name in SPEAK for path in sorted((ROOT / name).rglob("*.py"))]
    found = (text for path in files for text in texts(ast.parse(path.read_text("utf-8"))))
    return tuple(text for text in found if "\n" not in text)


def words(pattern: str) -> list[str]:
    """What a pattern asks for letter by letter, in order."""
    pieces = re.split(r"\.\*|^\(|\\d\+|\[A-Z\]|\$| of |\\[()]|[(): ]*\b[01]\b|: ", pattern)
    return [piece for piece in pieces if piece.strip()]


def can_be_said(pattern: str) -> bool:
    pieces = words(pattern)
    if any(name in pattern for name in COMPOSED):
        return all(any(piece.strip() in text for text in said()) for piece in pieces)
    order = re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
    return any(order.search(text) for text in said())


def test_a_pattern_is_taken_apart() -> None:
    assert words(r".*fetches at \d+, having") == ["fetches at ", ", having"]
    assert words(r".*\(fetch timeout\)") == ["fetch timeout"]
    assert not can_be_said("a peer's directory id")


@pytest.mark.parametrize("pattern", NOTES)
def test_every_note_of_a_pattern_can_occur(pattern: str) -> None:
    assert words(pattern) and can_be_said(pattern)


@pytest.mark.parametrize(
    "text", [*RECOVERY_NOTES, CHANGE_NOT_COMMITTED, LACKS_SUPPORT, NOBODY_FETCHES]
)
def test_every_other_note_can_occur(text: str) -> None:
    assert can_be_said(text)
