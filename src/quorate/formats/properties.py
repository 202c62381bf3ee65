"""The text of a Java properties file, as `java.util.Properties.load` takes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_LINE_ENDS: Final = re.compile("\r\n|\r|\n")
_BLANKS: Final = " \t\f"
_KEY: Final = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u([0-9a-fA-F]{4})|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class PropertiesError(ValueError):
    """A text that Java refuses, too; `line` and `column` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(reason)
        self.line = line
        self.column = column


class _Piece(NamedTuple):
    """A part of a logical line: where it begins there, and where it stands in the file."""

    start: int
    line: int
    column: int


class Property(NamedTuple):
    """A value, and the line where its key stands, from 1."""

    value: str
    line: int


def load_properties(data: bytes) -> dict[str, Property]:
    """What an ISO-8859-1 text sets, by key; of a key that comes again the last one counts.

    Raises PropertiesError: a `\\u` without its four hexadecimal digits, nothing else is wrong.
    """
    found = {}
    for line, pieces in _logical_lines(data.decode("iso-8859-1")):
        key = _KEY.match(line)
        assert key is not None  # it may be empty
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        name = _unescaped(line, 0, key.end(), pieces)
        value = _unescaped(line, separator.end(), len(line), pieces)
        found[name] = Property(value, pieces[0].line)
    return found


def _logical_lines(text: str) -> Iterator[tuple[str, list[_Piece]]]:
    """Without comments and blank ones, and with those that go on behind a backslash as one; each
    with the natural lines that it is made of."""
    whole, pieces = "", list[_Piece]()
    for number, natural in enumerate(_LINE_ENDS.split(text), 1):
        line = natural.lstrip(_BLANKS)
        if not whole:
            if line.startswith(("#", "!")):
                continue
            pieces = []
        pieces.append(_Piece(len(whole), number, len(natural) - len(line) + 1))
        whole += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            whole = whole[:-1]
            continue
        if whole:
            yield whole, pieces
        whole = ""
    if whole:
        yield whole, pieces


def _unescaped(line: str, start: int, end: int, pieces: list[_Piece]) -> str:
    """Return a part of a logical line with its escapes replaced."""
    text = line[start:end]
    if "\\" not in text:
        return text

    def plain(escape: re.Match[str]) -> str:
        letter, digits = escape[1], escape[2]
        if digits is not None:
            return chr(int(digits, 16))
        if letter == "u":
            raise _malformed(start + escape.start(), pieces)
        return _LETTERS.get(letter, letter)

    # Java's strings are UTF-16: two escapes may be one character.
    return _ESCAPE.sub(plain, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _malformed(at: int, pieces: list[_Piece]) -> PropertiesError:
    piece = [piece for piece in pieces if piece.start <= at][-1]
    column = piece.column + at - piece.start
    return PropertiesError("Malformed \\uxxxx encoding.", piece.line, column)
