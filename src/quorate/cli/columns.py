"""Rows as aligned columns of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

_CONTROLS: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}
"""Escapes for characters that would break a line or control a terminal."""


def table_lines(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """The lines of a table with aligned columns. Cells are plain values, as in JSON."""
    cells = [list(map(cell, row)) for row in rows]
    heads = list(map(cell, names))
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [heads, ["-" * width for width in widths], *cells]
    return [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]


def cell(value: Any) -> str:
    """A value on one line; control characters are shown as escapes."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return "[" + ", ".join(map(cell, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{cell(name)}={cell(item)}" for name, item in value.items()) + "}"
    return str(value).translate(_CONTROLS)
