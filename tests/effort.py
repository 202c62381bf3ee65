"""How hard tests try: `make check` (QUORATE_QUICK=1, without slow tests) looks at a part."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

QUICK = bool(os.environ.get("QUORATE_QUICK"))


def examples(full: int) -> int:
    """How many examples to try of the `full` number that `make test` tries."""
    return max(3, full // 10) if QUICK else full


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`, of which only the first of every `step` are not slow."""
    return [
        pytest.param(case, marks=pytest.mark.slow) if number % step else case
        for number, case in enumerate(cases)
    ]
