"""Edits of a function's syntax tree, named by what they change and not by its text.

A pattern is Python source. It matches code with the same syntax tree, whatever the layout:

- `_` matches any expression; `_1`, `_2`, ... also capture it for the replacement.
- `...` as a statement matches any number of statements, and as the last argument all others.
- A local variable may have another name than in the pattern, if it has it everywhere. A pattern
  with the very names of the code is preferred, so that the rename of a local breaks nothing.

Every edit must find exactly one place, or it raises StaleMutantError.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from quorate.base.errors import QuorateError

Function = ast.FunctionDef | ast.AsyncFunctionDef
Edit = Callable[[Function], None]
"""Changes the syntax tree of a function in place. Raises StaleMutantError."""


class StaleMutantError(QuorateError):
    """A mutant does not fit the code any more: its function or its pattern is not there once."""


def replace(pattern: str, replacement: str) -> Edit:
    """The expression or the consecutive statements of `pattern` become those of `replacement`."""
    old, new = _parse(pattern), _parse(replacement)

    def edit(function: Function) -> None:
        if _is_expression(old) and _is_expression(new):
            place = _only_place(function, old[0].value, _expressions(function), pattern)  # type: ignore[attr-defined]
            place.put(_Fill(place.match).visit(deepcopy(new[0].value)))  # type: ignore[attr-defined]
        else:
            place = _only_place(function, old, _sequences(function, len(old)), pattern)
            place.put([_Fill(place.match).visit(one) for one in deepcopy(new)])

    return edit


def drop(pattern: str, *, followed_by: str = "") -> Edit:
    """The consecutive statements of `pattern` go, where the statement `followed_by` comes next."""
    old, kept = _parse(pattern), _parse(followed_by)

    def edit(function: Function) -> None:
        statements = [*old, *kept]
        places = _sequences(function, len(statements))
        place = _only_place(function, statements, places, f"{pattern}\n{followed_by}")
        assert isinstance(place.found, list)
        place.put([ast.Pass(), *place.found[len(old) :]])

    return edit


def insert_before(pattern: str, statements: str) -> Edit:
    """`statements` precede the statement of `pattern`."""
    return _insert(pattern, statements, before=True)


def insert_after(pattern: str, statements: str) -> Edit:
    """`statements` follow the statement of `pattern`."""
    return _insert(pattern, statements, before=False)


def begin_with(statements: str) -> Edit:
    """The function begins with `statements`."""
    new = _parse(statements)

    def edit(function: Function) -> None:
        function.body[:0] = deepcopy(new)

    return edit


def within(pattern: str, edit: Edit) -> Edit:
    """Apply `edit` inside the statement of `pattern` alone."""
    outer = _parse(pattern)

    def edit_there(function: Function) -> None:
        place = _only_place(function, outer, _sequences(function, 1), pattern)
        # A function of this one statement; its parameters keep the names known as local.
        part = ast.FunctionDef(function.name, function.args, list(place.found), [])
        part.local_names = _local_names(function)  # type: ignore[attr-defined]
        edit(part)
        place.put(part.body)

    return edit_there


# -- matching ----------------------------------------------------------------------------------
@dataclass
class _Match:
    """How a pattern fits: what wildcards stand for, and which local name stands for which."""

    free: frozenset[str]
    """The local names of the function, for which a pattern may have others; empty: exactly."""
    captured: dict[str, ast.AST] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def fits(self, pattern: object, code: object) -> bool:
        if isinstance(pattern, ast.Name) and pattern.id == "_":
            return isinstance(code, ast.expr)
        if isinstance(pattern, ast.Name) and _is_capture(pattern.id):
            if not isinstance(code, ast.expr):
                return False
            before = self.captured.setdefault(pattern.id, code)
            return before is code or ast.dump(before) == ast.dump(code)
        if isinstance(pattern, ast.Name) and isinstance(code, ast.Name):
            return self._names_fit(pattern.id, code.id)
        if isinstance(pattern, list):
            return isinstance(code, list) and self._lists_fit(pattern, code)
        if not isinstance(pattern, ast.AST):
            return pattern == code
        if isinstance(pattern, ast.Call) and isinstance(code, ast.Call) and _is_open(pattern):
            return self.fits(pattern.func, code.func) and self.fits(pattern.args, code.args)
        return type(pattern) is type(code) and all(
            self.fits(getattr(pattern, name, None), getattr(code, name, None))
            for name in pattern._fields
            if name not in ("ctx", "kind", "type_comment")
        )

    def _lists_fit(self, pattern: list[object], code: list[object]) -> bool:
        if not pattern:
            return not code
        if _is_rest(pattern[0]):
            if len(pattern) == 1:
                return True
            return len(code) >= len(pattern) - 1 and self._lists_fit(
                pattern[1:], code[len(code) - len(pattern) + 1 :]
            )
        return (
            bool(code) and self.fits(pattern[0], code[0]) and self._lists_fit(pattern[1:], code[1:])
        )

    def _names_fit(self, pattern: str, code: str) -> bool:
        if code not in self.free or hasattr(builtins, pattern):
            return pattern == code
        known = self.names.setdefault(pattern, code)
        return known == code and list(self.names.values()).count(code) == 1


class _Fill(ast.NodeTransformer):
    """Puts what was captured into a replacement, under the names of the code."""

    def __init__(self, match: _Match) -> None:
        self._match = match

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._match.captured:
            return deepcopy(self._match.captured[node.id])
        return ast.Name(self._match.names.get(node.id, node.id), node.ctx)


@dataclass
class _Place:
    """Where a pattern may be found: what is there, and how to put something else there."""

    found: Any
    put: Callable[[object], None]
    match: _Match = field(default_factory=lambda: _Match(frozenset()))


def _only_place(function: Function, pattern: object, places: Iterator[_Place], text: str) -> _Place:
    every = list(places)
    for free in (frozenset[str](), _local_names(function)):
        fitting = []
        for place in every:
            place.match = _Match(free)
            if place.match.fits(pattern, place.found):
                fitting.append(place)
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            break
    raise StaleMutantError(
        f"{function.name} has {len(fitting)} places that match '{' '.join(text.split())}', not one"
    )


def _expressions(function: Function) -> Iterator[_Place]:
    for statement in function.body:
        for parent in ast.walk(statement):
            for name, value in ast.iter_fields(parent):
                if isinstance(value, ast.expr):
                    yield _Place(value, lambda new, p=parent, n=name: setattr(p, n, new))  # type: ignore[misc]
                elif isinstance(value, list):
                    for at, one in enumerate(value):
                        if isinstance(one, ast.expr):
                            yield _Place(one, lambda new, v=value, i=at: v.__setitem__(i, new))  # type: ignore[misc]


def _sequences(function: Function, length: int) -> Iterator[_Place]:
    for parent in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if not isinstance(block, list):
                continue
            for at in range(len(block) - length + 1):

                def put(new: object, block: list[object] = block, at: int = at) -> None:
                    assert isinstance(new, list)
                    block[at : at + length] = new

                yield _Place(block[at : at + length], put)


def _insert(pattern: str, statements: str, *, before: bool) -> Edit:
    old, new = _parse(pattern), _parse(statements)

    def edit(function: Function) -> None:
        place = _only_place(function, old, _sequences(function, len(old)), pattern)
        filled = [_Fill(place.match).visit(one) for one in deepcopy(new)]
        assert isinstance(place.found, list)
        place.put([*filled, *place.found] if before else [*place.found, *filled])

    return edit


def _parse(source: str) -> list[ast.stmt]:
    return ast.parse(dedent(source).strip()).body


def _is_expression(statements: list[ast.stmt]) -> bool:
    return len(statements) == 1 and isinstance(statements[0], ast.Expr)


def _is_rest(pattern: object) -> bool:
    if isinstance(pattern, ast.Expr):
        pattern = pattern.value
    return isinstance(pattern, ast.Constant) and pattern.value is ...


def _is_open(call: ast.Call) -> bool:
    """Any keyword arguments fit, too."""
    return bool(call.args) and _is_rest(call.args[-1]) and not call.keywords


def _is_capture(name: str) -> bool:
    return name[0] == "_" and name[1:].isdecimal()


def _local_names(function: Function) -> frozenset[str]:
    known = getattr(function, "local_names", None)
    if known is not None:
        return known
    names = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}
    for one in ast.walk(function):
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
            names.add(one.id)
        elif isinstance(one, ast.MatchAs | ast.MatchStar) and one.name:
            names.add(one.name)
    return frozenset(names)
