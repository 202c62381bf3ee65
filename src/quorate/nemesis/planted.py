"""A member with a bug in it: `python -m quorate.nemesis.planted BUG MEMBER'S ARGUMENTS...`

The bug is one of the member's own, or one of the simulator's mutants of the real code.
"""

from __future__ import annotations

import sys
from typing import Final

from quorate.base.errors import QuorateError
from quorate.nemesis.bugs import NONE, OWN
from quorate.sim.mutants.catalog import MUTANTS
from quorate.sim.mutants.plant import plant

BUGS: Final = {
    NONE: "nothing",
    **OWN,
    **{mutant.name: f"{mutant.what} ({mutant.module})" for mutant in MUTANTS},
}


def main() -> None:
    """The mutant first: it must be there before its module is imported."""
    bug = sys.argv.pop(1)
    try:
        for mutant in MUTANTS:
            if mutant.name == bug:
                plant(mutant)
    except QuorateError as error:
        sys.exit(str(error))
    from quorate.nemesis.member import main

    if bug in OWN:
        sys.argv += ["--plant", bug]
    main()


if __name__ == "__main__":
    main()
