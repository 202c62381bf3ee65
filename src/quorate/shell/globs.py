"""Globs in paths: `*`, `?`, `{a,b}` and backslashes (`GlobComponent`, `GlobVisitor`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from quorate.shell.nodes import Directory, Node


class Match(NamedTuple):
    """A node that a glob matches, and the names on the way to it."""

    path: tuple[str, ...]
    node: Node

    @property
    def last_name(self) -> str:
        return self.path[-1] if self.path else "/"

    @property
    def absolute_path(self) -> str:
        return "/" + "/".join(self.path)


def split_path(path: str) -> list[str]:
    """The names of a path; several slashes count as one, a trailing one not at all."""
    return [name for name in path.split("/") if name]


def without_dots(names: list[str]) -> list[str]:
    """The names with `.` and `..` resolved; the parent of the root is the root."""
    found: list[str] = []
    for name in names:
        if name == "..":
            del found[-1:]
        elif name != ".":
            found.append(name)
    return found


def absolute(path: str, working_directory: str) -> list[str]:
    """The names from the root to `path`, which may be relative."""
    return without_dots(split_path(path if path.startswith("/") else f"{working_directory}/{path}"))


def matches(root: Node, names: list[str]) -> Iterator[Match]:
    """Every node below `root` that the globs match, in the order of their names."""
    return _matches(root, [_pattern(name) or name for name in names], ())


def _matches(
    node: Node, patterns: list[str | re.Pattern[str]], path: tuple[str, ...]
) -> Iterator[Match]:
    if not patterns:
        yield Match(path, node)
        return
    if not isinstance(node, Directory):
        return
    first, rest = patterns[0], patterns[1:]
    if isinstance(first, str):
        child = node.child(first)
        if child is not None:
            yield from _matches(child, rest, (*path, first))
        return
    for name, child in node.children():
        if first.fullmatch(name):
            yield from _matches(child, rest, (*path, name))


def _pattern(glob: str) -> re.Pattern[str] | None:
    """The regular expression of a glob; None where it matches only itself, or is malformed.

    As in Kafka a backslash is only removed from names that have another special character.
    """
    pieces: list[str] = []
    literal, grouped = True, False
    characters = iter(glob)
    for character in characters:
        piece = re.escape(character)
        if character == "?":
            literal, piece = False, "."
        elif character == "*":
            literal, piece = False, ".*"
        elif character == "\\":
            piece = re.escape(next(characters, "\\"))
        elif character == "{":
            if grouped:
                return None
            literal, grouped, piece = False, True, "(?:(?:"
        elif character == "," and grouped:
            piece = ")|(?:"
        elif character == "}" and grouped:
            grouped, piece = False, "))"
        pieces.append(piece)
    if literal or grouped:
        return None
    return re.compile("".join(pieces), re.DOTALL)
