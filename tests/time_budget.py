"""How much of the long loops a test run takes.

- `make check` (QUORATE_QUICK=1): the first of several like cases, a tenth of the examples of property tests.
- `make test`: a slice that the date (UTC) chooses, so that every case runs within a few days. The date
  also seeds the property tests, so a failure repeats on the same day.
- `make test-long` (QUORATE_LONG=1): everything.

QUORATE_DAY=20261126 repeats the slice of a day.
"""

import os
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")

QUICK = bool(os.environ.get("QUORATE_QUICK"))
LONG = bool(os.environ.get("QUORATE_LONG"))
# The workers of pytest-xdist inherit the day, so all of them collect the same cases, also at midnight.
DAY = int(os.environ.setdefault("QUORATE_DAY", f"{datetime.now(UTC):%Y%m%d}"))
TODAY = date(DAY // 10_000, DAY // 100 % 100, DAY % 100)
TURN = TODAY.toordinal()
"""Counts the days: what has `step` slices takes number `TURN % step`."""


def share(full: int, *, quick: int, daily: int) -> int:
    """How many of `full` repetitions this run makes."""
    return quick if QUICK else full if LONG else daily


def examples(full: int) -> int:
    """How many examples a property test tries of the `full` number of `make test-long`."""
    return share(full, quick=max(3, full // 10), daily=max(5, full // 2))


def one_day_in(step: int, turn: int) -> pytest.MarkDecorator:
    """Leaves a long test to one day in `step`, that with `TURN % step == turn`; `make test-long` runs it.

    Tests of one kind take different turns, so that one of them runs each day.
    Cases that such a test takes in turn need a number of slices that has no divisor in common with
    `step`: otherwise the days of the test always choose the same ones.
    """
    return pytest.mark.skipif(
        not LONG and TURN % step != turn % step,
        reason=f"runs on one day in {step}, and in `make test-long`",
    )


def todays(step: int, cases: Iterable[Case]) -> list[Case]:
    """Of cases that one test takes in turn: one of every `step`, which the date chooses, or all."""
    return [case for number, case in enumerate(cases) if LONG or number % step == TURN % step]


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`: the first of every `step`, one more that the date chooses, or all.

    All but the first of every `step` are marked slow, which `make check` leaves out.
    """
    return [
        pytest.param(case, marks=pytest.mark.slow) if number % step else case
        for number, case in enumerate(cases)
        if QUICK or LONG or number % step in (0, TURN % step)
    ]
