"""What a mutant is. Imports nothing that could be mutated."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.base.errors import QuorateError


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug: `old`, found exactly once in the source of `module`, becomes `new`.

    `what` says in one sentence what goes wrong in the mutated code.
    """

    name: str
    what: str
    module: str
    old: str
    new: str


class StaleMutant(QuorateError):
    """The code that a mutant changes is not there any more: the mutant must be written anew."""
