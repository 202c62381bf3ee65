"""Mutants: deliberate bugs, planted to see that a check fails. The package ships none.

`MODULE:NAME` names a mutant. MODULE is importable and has two functions: `find(NAME)`, and
`plant(NAME)`, which puts the bug into this process. Both raise QuorateError.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from quorate.base.errors import QuorateError


class MutantError(QuorateError):
    """The given name is not a mutant."""

    exit_code = 2


class _Mutants(Protocol):
    def find(self, name: str) -> object: ...

    def plant(self, name: str) -> None: ...


def check_mutant(mutant: str) -> None:
    """Raise QuorateError where `mutant` cannot be found; nothing is planted."""
    module, name = _found(mutant)
    module.find(name)


def plant(mutant: str) -> None:
    """Put the bug into this process, permanently. Raises QuorateError."""
    module, name = _found(mutant)
    module.plant(name)


def label(mutant: str) -> str:
    """The suffix of the version of mutated code."""
    return mutant.rpartition(":")[2]


def _found(mutant: str) -> tuple[_Mutants, str]:
    module, colon, name = mutant.partition(":")
    if not colon or not all(part.isidentifier() for part in module.split(".")):
        raise MutantError(f"'{mutant}' names no mutant: give MODULE:NAME")
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise MutantError(
            f"'{mutant}': there is no module '{module}': name its directory in PYTHONPATH"
        ) from None
    return cast(_Mutants, found), name
