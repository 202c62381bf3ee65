"""A store member with a bug: `python -m quorate.nemesis.mutated_member MODULE:NAME ARGUMENTS...`

`MODULE:NAME` is a mutant (`sim.run.plant`); the package ships none. ARGUMENTS are those of
`quorate.nemesis.member`.
"""

from __future__ import annotations

import sys

from quorate.base.errors import QuorateError
from quorate.sim.run.plant import plant


def main() -> None:
    # A mutant needs interpreted code: it is planted before the member is imported.
    try:
        plant(sys.argv.pop(1))
    except QuorateError as error:
        sys.exit(str(error))
    from quorate.nemesis.member import main

    main()


if __name__ == "__main__":
    main()
