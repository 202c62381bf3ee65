"""How Java reads numbers and lists from text."""

from __future__ import annotations

import re
from typing import Final

BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes; a no-break space is not among them."""
COMMA: Final = re.compile(r"\s*,\s*")
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,1000}", re.ASCII)
_DOUBLE: Final = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|[+-]?Infinity", re.ASCII
)


def parse_integer(text: str, bits: int) -> int | None:
    """A signed integer of `bits` bits in Java's syntax; None: it is none."""
    limit = 1 << (bits - 1)
    number = int(text) if _INTEGER.fullmatch(text) else limit
    return number if -limit <= number < limit else None


def parse_double(text: str) -> float | None:
    """A decimal number in Java's syntax; None: it is none."""
    return float(text.rstrip("dDfF")) if _DOUBLE.fullmatch(text) else None
