"""What a mutant is, and how it comes into this process: as new code of one function.

The function object stays, so every module that has imported it runs the mutated code. That works
with interpreted code alone: a function that mypyc has compiled has no code object.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

from mutants.edit import Edit, Function, StaleMutantError


@dataclass(frozen=True, slots=True)
class Mutant:
    """One deliberate bug: `edit` changes the syntax tree of `target`.

    `target` is a function, a method or a property of the package. `what` says in one sentence what
    goes wrong in the mutated code.
    """

    name: str
    what: str
    target: object
    edit: Edit

    @property
    def module(self) -> str:
        """The full name of the target's module."""
        return _place_of(self.target)[0]


def mutated(mutant: Mutant) -> CodeType:
    """The code of the target with the bug in it. Raises StaleMutantError."""
    module, path = _place_of(mutant.target)
    file = sys.modules[module].__file__
    assert file is not None
    source = Path(file).with_suffix("").with_suffix(".py")  # beside `x.cpython-311-....so`, too
    tree, function = _parsed(source, path)
    before = ast.dump(function)
    try:
        mutant.edit(function)
    except StaleMutantError as error:
        raise StaleMutantError(f"mutant {mutant.name}: {error}: write it anew") from None
    if ast.dump(function) == before:
        raise StaleMutantError(f"mutant {mutant.name} changes nothing in {module}.{path}")
    # The module as a whole: closures, names of classes and __future__ flags stay what they were.
    code = compile(ast.fix_missing_locations(tree), str(source), "exec", dont_inherit=True)
    return next(one for one in _codes(code) if _is_code_of(one, function, path))


def plant(mutant: Mutant) -> None:
    """Put the bug into this process. Raises StaleMutantError, also where the target is compiled."""
    function = _function_of(mutant)
    function.__code__ = mutated(mutant)


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """Put the bug into this process, and take it out again."""
    function = _function_of(mutant)
    before = function.__code__
    plant(mutant)
    try:
        yield
    finally:
        function.__code__ = before


def _function_of(mutant: Mutant) -> FunctionType:
    target = mutant.target
    if isinstance(target, property):
        target = target.fget
    target = inspect.unwrap(getattr(target, "__func__", target))  # type: ignore[arg-type]
    if not isinstance(target, FunctionType):
        raise StaleMutantError(
            f"mutant {mutant.name}: {'.'.join(_place_of(mutant.target))} is compiled: "
            "mutants need QUORATE_PURE_PYTHON=1"
        )
    return target


def _place_of(target: object) -> tuple[str, str]:
    """(module, qualified name); of compiled functions, methods and properties, too."""
    if isinstance(target, property):
        target = target.fget
    owner = getattr(target, "__objclass__", None)
    if owner is not None:
        return owner.__module__, f"{owner.__qualname__}.{target.__name__}"  # type: ignore[attr-defined]
    return target.__module__, target.__qualname__  # type: ignore[attr-defined]


def _parsed(source: Path, path: str) -> tuple[ast.Module, Function]:
    """The tree of the module, and in it the node of the function."""
    tree = ast.parse(_text(source), str(source))
    scope: ast.AST = tree
    for name in path.split("."):
        found = [
            node
            for node in ast.iter_child_nodes(scope)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name == name
        ]
        if not found:
            raise StaleMutantError(f"{source} has no {path}")
        scope = found[0]  # of a property the getter
    assert isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
    return tree, scope


@cache
def _text(source: Path) -> str:
    return source.read_text(encoding="utf-8")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _is_code_of(code: CodeType, function: Function, path: str) -> bool:
    first = min([function.lineno, *(one.lineno for one in function.decorator_list)])
    return code.co_qualname == path and code.co_firstlineno == first
