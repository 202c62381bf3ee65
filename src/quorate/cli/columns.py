"""Rows as aligned columns of text, or as records where a terminal is too narrow for columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

_CONTROLS: Final = {
    code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
}
"""Escapes for characters that would break a line or control a terminal."""

_INDENT: Final = "  "
_NARROWEST: Final = 10
"""A terminal that says it is narrower is taken to be this wide."""


def table_lines(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """The lines of a table with aligned columns, or of records (`fit`).

    Cells are plain values, as in JSON.
    """
    cells = [list(map(cell, row)) for row in rows]
    heads = list(map(cell, names))
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    lines = [heads, ["-" * width for width in widths], *cells]
    aligned = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    return fit(aligned, heads, cells)


def fit(lines: Sequence[str], names: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """The lines of a table where they fit the terminal; else a record of lines for each row.

    Only a terminal has a width: what a pipe or a file gets does not depend on it. No line of a record is
    longer than the terminal is wide, and no text is left out.
    """
    width = terminal_width()
    if width is None:
        return list(lines)
    shown = [line.expandtabs().rstrip() for line in lines]
    if all(len(line) <= width for line in shown):
        return shown
    records = [
        [f"{cell(name)}: {cell(value)}".rstrip() for name, value in zip(names, row, strict=True)]
        for row in rows
    ]
    text = [line for record in records for line in (*record, "")][:-1]
    return [part for line in text or shown for part in _wrapped(line, width)]


def fold(lines: Iterable[str]) -> list[str]:
    """The lines of a text, each of which goes on in the next line where it is too long for the terminal.

    Each field before a tab has a line of its own then. No text is left out. What a pipe or a file gets
    does not depend on a width.
    """
    width = terminal_width()
    if width is None:
        return list(lines)
    return [part for line in lines for part in _folded(line, width)]


def _folded(line: str, width: int) -> Iterator[str]:
    if len(line.expandtabs().rstrip()) <= width:
        yield line
        return
    text = line.strip()
    indent = _INDENT if line[:1].isspace() else ""
    for number, field in enumerate(filter(None, text.split("\t"))):
        yield from _filled(field, width, indent if number == 0 else indent + _INDENT)


def _filled(text: str, width: int, indent: str) -> Iterator[str]:
    """The words of a text in lines of at most `width`; all but the first are indented further."""
    line = indent
    more = indent + _INDENT
    for word in text.split():
        if line.strip() and len(line) + 1 + len(word) > width:
            yield line
            line = more
        line += (" " if line.strip() else "") + word
        while len(line) > width:
            yield line[:width]
            line = more + line[width:]
    yield line


def terminal_width() -> int | None:
    """The columns of the terminal on stdout, or of $COLUMNS where there is one; None for a pipe."""
    if not sys.stdout.isatty():
        return None
    from shutil import get_terminal_size

    return max(get_terminal_size().columns, _NARROWEST)


def _wrapped(text: str, width: int) -> Iterator[str]:
    """Pieces of at most `width` characters; all but the first are indented."""
    yield text[:width]
    step = width - len(_INDENT)
    for at in range(width, len(text), step):
        yield _INDENT + text[at : at + step]


def cell(value: Any) -> str:
    """A value on one line; control characters are shown as escapes."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return "[" + ", ".join(map(cell, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{cell(name)}={cell(item)}" for name, item in value.items()) + "}"
    return str(value).translate(_CONTROLS)
