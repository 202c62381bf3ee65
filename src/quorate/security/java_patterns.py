"""Java's regular expressions, as Python writes them.

Source: `java.util.regex.Pattern`.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import Final

_QUOTED: Final = re.compile(r"\\\\|\\Q(.*?)(?:\\E|$)", re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\(?:([pP])(?:\{(\w+)\}|(\w))|k<(\w+)>|x\{([0-9A-Fa-f]+)\}|(.))", re.DOTALL
)
_HORIZONTAL: Final = r" \t\xA0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_VERTICAL: Final = r"\n\x0B\f\r\x85\u2028\u2029"
_POSIX: Final = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7F",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1F\x7F",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0B\f\r",
}
_CATEGORIES: Final = frozenset(
    [
        "L",
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "M",
        "Mn",
        "Mc",
        "Me",
        "N",
        "Nd",
        "Nl",
        "No",
        "P",
        "Pc",
        "Pd",
        "Ps",
        "Pe",
        "Pi",
        "Pf",
        "Po",
        "S",
        "Sm",
        "Sc",
        "Sk",
        "So",
        "Z",
        "Zs",
        "Zl",
        "Zp",
    ]
)
_SETS: Final = {"h": _HORIZONTAL, "v": _VERTICAL}
_PLAIN: Final = {
    "z": r"\Z",
    "Z": rf"(?=(?:\r\n|[{_VERTICAL}])?\Z)".replace(r"\x0B\f", ""),
    "e": r"\x1b",
    "R": rf"(?:\r\n|[{_VERTICAL}])",
}
_SAME: Final = frozenset("dDwWsSbBAtnrfaxu123456789")
_ANY_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_CLASS: Final = re.compile(r"\[\^?[^\[\]&]+\]")
"""A class that both read alike: without a bracket or an ampersand inside."""
_COUNT: Final = re.compile(r"(?<=[{,])\d+(?=[,}])", re.ASCII)
_MAX_REPETITION: Final = 2**31 - 1
"""Java's: repetitions are an int."""
_ONLY_PYTHONS: Final = re.compile(
    r"\[|\(\?(?![:=!>]|<[=!]|[ims]+[):])|\{(?!\d+(?:,\d*)?\})|(?:^|[(|])\{"
)
"""Of a pattern without its classes: what Java refuses, or reads as something else."""


_NAMED_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_PATTERN_PARTS: Final = re.compile(
    r"\\(?:[pP]\{\w*\}|[pP]\w|k<\w+>|x\{\w+\}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|\.", re.DOTALL
)
"""Escapes, classes and the dots outside of them."""
_INSIDE: Final = re.compile(r"\\.", re.DOTALL)
_NOT_IN_CLASS: Final = re.compile(r"^\[(?:[^\\]|\\.)*?\\[bBA1-9]", re.DOTALL)
"""A class with an escape that Java reads outside of classes only."""
_JAVA_DOT: Final = r"[^\n\r\x85\u2028\u2029]"
_NO_REPETITION: Final = re.compile(r"(?:^|[(|])\{|\{(?!\d+(?:,\d*)?\})", re.ASCII)
_DOTALL: Final = re.compile(r"\(\?[A-Za-z]*s")


_REASONS: Final = {
    "unterminated character set": "a [ is not closed by a ]",
    "missing )": "a ( is not closed by a )",
    "unexpected end of pattern": "a ( is not closed by a )",
    "unbalanced parenthesis": "a ) has no ( before it",
    "nothing to repeat": "nothing stands before *, + or ? that it could repeat",
    "multiple repeat": "nothing stands before *, + or ? that it could repeat",
    "min repeat": "the least count of a repetition is above the greatest",
    "the repetition number": "the count of a repetition is too large",
    "bad escape (end": "nothing follows the \\ at its end",
    "bad character range": "a range inside [ ] runs backwards, or ends in a class",
    "invalid group reference": "it refers to a group that it does not have",
    "unknown group name": "it refers to a group that it does not have",
    "unknown extension": "what follows (? is not known",
    "global flags": "flags such as (?i) are supported at its beginning only",
    "look-behind": "a look-behind of no fixed width is not supported",
    "redefinition": "two groups have one name",
}
"""What Python's errors say, by how they begin."""


class PatternError(ValueError):
    """A pattern that is wrong, or has no counterpart here; the text says which part of it."""


def compiled(pattern: str) -> re.Pattern[str]:
    """A Java pattern: a dot is no line terminator of Java's, named groups have another spelling.

    Classes such as `\\w` are ASCII, as those of Java. Raises PatternError.
    """
    dot = "." if _DOTALL.search(pattern) else _JAVA_DOT

    def ours(part: re.Match[str]) -> str:
        return dot if part[0] == "." else escapes(part[0], in_class=part[0].startswith("["))

    plain = unquoted(pattern)
    for part in _PATTERN_PARTS.findall(plain):
        inside = _INSIDE.sub("", part)[1:]
        if "[" in inside or "&&" in inside:
            raise PatternError(f"the class {part} has another inside, which is not supported")
    if _NO_REPETITION.search(_PATTERN_PARTS.sub("x", plain)):
        # A literal brace for Python.
        raise PatternError("a { is no repetition such as {2} or {1,3} of what stands before it")
    try:
        return re.compile(_NAMED_GROUP.sub("(?P<", _PATTERN_PARTS.sub(ours, plain)), re.ASCII)
    except (re.error, OverflowError) as error:
        reasons = (ours for theirs, ours in _REASONS.items() if str(error).startswith(theirs))
        raise PatternError(next(reasons, "it cannot be read")) from None
    except RecursionError:
        raise PatternError("its parentheses are nested too deep") from None


def unquoted(pattern: str) -> str:
    r"""The pattern without `\Q...\E`: each character of the quotation is escaped."""
    return _QUOTED.sub(lambda one: one[0] if one[1] is None else re.escape(one[1]), pattern)


def escapes(text: str, *, in_class: bool) -> str:
    """The text with Python's escapes. Raises PatternError for one that is not supported."""

    def one(found: re.Match[str]) -> str:
        kind, long, short, group, code, letter = found.groups()
        if kind is not None:
            return _set(_property(long or short), kind == "P", in_class, found[0])
        if group is not None:
            return f"(?P={group})"
        if code is not None:
            return re.escape(chr(int(code, 16)))
        if letter.lower() in _SETS:
            return _set(_SETS[letter.lower()], letter.isupper(), in_class, found[0])
        if letter in _PLAIN and not (in_class and letter != "e"):
            return _PLAIN[letter]
        if letter in _SAME or not (letter.isascii() and letter.isalnum()):
            return found[0]
        raise PatternError(f"{found[0]} is not supported")

    return _ESCAPE.sub(one, text)


def is_common(pattern: str) -> bool:
    """Java and Python can both read the pattern.

    A few that Java reads are refused, too: with a named group, a class in a class, a rare flag.
    """
    try:
        re.compile(pattern)
        outside = _CLASS.sub("", _ANY_ESCAPE.sub(_readable, pattern))
        if any(_NOT_IN_CLASS.search(part) for part in _PATTERN_PARTS.findall(pattern)):
            return False
        if any(int(count) > _MAX_REPETITION for count in _COUNT.findall(outside)):
            return False
    except (re.error, PatternError, RecursionError, OverflowError):
        return False
    return _ONLY_PYTHONS.search(outside) is None


def _readable(found: re.Match[str]) -> str:
    letter = found[1]
    if letter.isascii() and letter.isalnum() and letter not in _SAME:
        raise PatternError(f"{found[0]} is not supported")
    return "e"


def _set(content: str, is_negated: bool, in_class: bool, shown: str) -> str:
    if not in_class:
        return f"[{'^' if is_negated else ''}{content}]"
    if is_negated:
        raise PatternError(f"{shown} inside of a class is not supported")
    return content


def _property(name: str) -> str:
    if name in _POSIX:
        return _POSIX[name]
    category = name.removeprefix("Is")
    if category in _CATEGORIES:
        return _ranges(category)
    raise PatternError(f"the class \\p{{{name}}} is not supported")


@lru_cache(maxsize=8)
def _ranges(category: str) -> str:
    """The characters of a general category of Unicode, as ranges of a class."""
    found: list[str] = []
    start = -1
    for code in range(sys.maxunicode + 2):
        is_in = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(category)
        if is_in and start < 0:
            start = code
        elif not is_in and start >= 0:
            found.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    return "".join(found)
