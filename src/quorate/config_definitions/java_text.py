"""How Java reads numbers and lists from text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf
from typing import Final

BLANKS: Final = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes; a no-break space is not among them."""
COMMA: Final = re.compile(r"\s*,\s*")
_INTEGER: Final = re.compile(r"[+-]?\d{1,1000}")
_LAST_OF_A_CHAR: Final = "\uffff"
_DOUBLE: Final = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|NaN|[+-]?Infinity", re.ASCII
)
_HEX_DOUBLE: Final = re.compile(
    r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?", re.ASCII
)


def parse_integer(text: str, bits: int) -> int | None:
    """A signed integer of `bits` bits in Java's syntax; None: it is none.

    Digits of any script count, as far as one Java `char` holds them (`Character.digit`).
    """
    limit = 1 << (bits - 1)
    is_number = _INTEGER.fullmatch(text) and max(text) <= _LAST_OF_A_CHAR
    number = int(text) if is_number else limit
    return number if -limit <= number < limit else None


def parse_double(text: str) -> float | None:
    """A number in the syntax of Java's `Double.valueOf`, also hexadecimal; None: it is none."""
    if _HEX_DOUBLE.fullmatch(text):
        try:
            return float.fromhex(text.rstrip("dDfF"))
        except OverflowError:
            return -inf if text.startswith("-") else inf
    return float(text.rstrip("dDfF")) if _DOUBLE.fullmatch(text) else None


def split_parts(parts: Sequence[str]) -> list[str]:
    """The parts of a split text without empty ones at the end, as Java's `String.split` has them.

    An empty text is one empty part.
    """
    found = list(parts)
    while found and not found[-1] and len(parts) > 1:
        found.pop()
    return found
