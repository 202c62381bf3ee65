"""Which parts of a log can be skipped because no row of them can pass a filter.

This only saves work: Spark evaluates each filter again on the rows, or `where.passing` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

ValueRange = tuple[Any, Any]
"""The least and the greatest value of a column, both inclusive; (None, None) for a column of nulls."""
HEADER_COLUMNS: Final = frozenset(("offset", "timestamp", "epoch", "is_control"))
"""Columns that batch headers fill and that are null in rows of damage. Damage can lie in any range,
so a filter that accepts a null of these columns must never skip."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_TESTS: Final[dict[type[Filter], Callable[[Any, Any, Any], bool]]] = {
    EqualTo: lambda low, high, value: low <= value <= high,
    EqualNullSafe: lambda low, high, value: low <= value <= high,
    GreaterThan: lambda low, high, value: high > value,
    GreaterThanOrEqual: lambda low, high, value: high >= value,
    LessThan: lambda low, high, value: low < value,
    LessThanOrEqual: lambda low, high, value: low <= value,
    In: lambda low, high, values: any(
        low <= value <= high for value in values if value is not None
    ),
    StringStartsWith: lambda low, high, value: low[: len(value)] <= value <= high[: len(value)],
}


def may_match(filters: Sequence[Filter], spans: Mapping[str, ValueRange]) -> bool:
    """False when no row whose columns lie in these ranges can pass all filters.

    Filters on other columns and of unknown types count as passed. So do filters for nulls of a
    column that is null in rows of damage.
    """
    return all(_may_pass(found, spans) for found in filters)


def _may_pass(found: Filter, spans: Mapping[str, ValueRange]) -> bool:
    attribute = getattr(found, "attribute", None)
    if attribute is None or len(attribute) != 1 or attribute[0] not in spans:
        return True
    low, high = spans[attribute[0]]
    may_be_null = low is None or attribute[0] in HEADER_COLUMNS
    if isinstance(found, IsNull):
        return may_be_null
    if isinstance(found, IsNotNull):
        return low is not None
    test = _TESTS.get(type(found))
    if test is None:
        return True
    value = found.value  # type: ignore[attr-defined]
    if isinstance(found, EqualNullSafe) and value is None:
        return may_be_null
    if low is None:
        return False
    try:
        return test(low, high, value)
    except TypeError:
        return True  # Spark can compare types that Python cannot


def in_microseconds(filters: Sequence[Filter]) -> list[Filter]:
    """The filters with times as us since 1970 (UTC where they name no time zone)."""
    out = []
    for found in filters:
        value = getattr(found, "value", None)
        if isinstance(found, In):
            if any(isinstance(one, datetime) for one in found.value):
                found = In(found.attribute, tuple(_microseconds(one) for one in found.value))
        elif isinstance(value, datetime):
            found = replace(found, value=_microseconds(value))  # type: ignore[call-arg]
        out.append(found)
    return out


def _microseconds(instant: Any) -> int | None:
    if not isinstance(instant, datetime):
        return None
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def mentions(filters: Sequence[Filter], columns: frozenset[str]) -> list[Filter]:
    """The filters on one of these columns."""
    return [found for found in filters if getattr(found, "attribute", ("",))[0] in columns]
