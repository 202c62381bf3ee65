"""Rows as columns side by side, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table_lines(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """Columns side by side; a cell is as wide as it must be. Rows are plain values, as of JSON."""
    cells = [list(map(cell, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    lines = [list(names), ["-" * width for width in widths], *cells]
    return [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return "[" + ", ".join(map(cell, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}={cell(item)}" for name, item in value.items()) + "}"
    return str(value)
