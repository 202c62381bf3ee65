"""The progress of a run: each number when it is known, and how far a long one is."""

from __future__ import annotations

import sys

_CLEAR = "\r\x1b[K"


def print_line(text: str) -> None:
    """A line on stderr, in the place of what `show` wrote last."""
    print(f"{_clear()}  {text}", file=sys.stderr, flush=True)


def show(text: str) -> None:
    """On a terminal, what goes on now; the next line takes its place."""
    if sys.stderr.isatty():
        print(f"{_CLEAR}  {text}", end="", file=sys.stderr, flush=True)


def _clear() -> str:
    return _CLEAR if sys.stderr.isatty() else ""
