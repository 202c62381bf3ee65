"""How hard property tests try: QUORATE_QUICK=1 (`make check`) is a fifth of the examples."""

import os

QUICK = bool(os.environ.get("QUORATE_QUICK"))


def examples(full: int) -> int:
    """How many examples to try of the `full` number that `make test` tries."""
    return max(3, full // 5) if QUICK else full
