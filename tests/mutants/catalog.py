"""All mutants."""

from __future__ import annotations

from difflib import get_close_matches

from mutants.beliefs import BELIEFS
from mutants.examples import EXAMPLES
from mutants.mutant import Mutant
from mutants.raft import RAFT
from mutants.replica import REPLICA
from quorate.base.errors import QuorateError

MUTANTS: tuple[Mutant, ...] = (*RAFT, *REPLICA, *BELIEFS, *EXAMPLES)


class UnknownMutantError(QuorateError):
    """No mutant has this name; the message has names like it."""

    exit_code = 2


def find(name: str) -> Mutant:
    """The mutant of this name. Raises UnknownMutantError."""
    for mutant in MUTANTS:
        if mutant.name == name:
            return mutant
    close = get_close_matches(name, [mutant.name for mutant in MUTANTS], cutoff=0.4)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    raise UnknownMutantError(
        f"there is no mutant '{name}'; {meant}'python -m mutants --list' lists them"
    )
