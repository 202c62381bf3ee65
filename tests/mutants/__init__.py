"""Mutants: deliberate bugs in the real code that no unit test finds and the simulator must find.

A development package beside the tests; the wheel does not have it. `python -m mutants` hunts them
with the simulator's seeds. Where `PYTHONPATH` names the folder `tests`, `--plant mutants:NAME`
puts one into a command of `quorate sim`.

Nothing of the code under test is imported here: `plant` decides first that it is interpreted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate._pure import prefer_sources

if TYPE_CHECKING:
    from mutants.mutant import Mutant


def find(name: str) -> Mutant:
    """The mutant of this name. Raises UnknownMutantError."""
    from mutants import catalog

    return catalog.find(name)


def plant(name: str) -> None:
    """Put the bug into this process, for as long as it lives.

    Raises UnknownMutantError, and StaleMutantError where the target is imported and compiled.
    """
    # A mutant is a function with another code object, and compiled functions have none. The codec
    # has no mutants.
    prefer_sources(kept="quorate.wire._native")
    from mutants import mutant

    mutant.plant(find(name))
