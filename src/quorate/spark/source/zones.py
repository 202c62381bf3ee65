"""Time zones of Spark's sessions, for times without a zone in the option `where`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from typing import Any

from pyspark.sql.datasource import Filter, In, Not

from quorate.base.times import zone_named
from quorate.spark.files.paths import SourceError


def session_zone_named(name: str) -> tzinfo:
    """The zone of a session by Spark's name of it. Raises SourceError."""
    try:
        return zone_named(name)
    except ValueError as error:
        raise SourceError(f"of the session: {error}") from None


def in_zone(filters: Sequence[Filter], zone: tzinfo | None) -> tuple[Filter, ...]:
    """The filters, with times that name no zone read in this one; None: the machine's."""
    return tuple(_in_zone(found, zone) for found in filters)


def _in_zone(found: Filter, zone: tzinfo | None) -> Filter:
    if isinstance(found, Not):
        return Not(_in_zone(found.child, zone))
    if isinstance(found, In):
        return In(found.attribute, tuple(_instant(one, zone) for one in found.value))
    value = getattr(found, "value", None)
    if isinstance(value, datetime):
        return replace(found, value=_instant(value, zone))  # type: ignore[call-arg]
    return found


def _instant(value: Any, zone: tzinfo | None) -> Any:
    if not isinstance(value, datetime) or value.tzinfo is not None:
        return value
    return value.astimezone(UTC) if zone is None else value.replace(tzinfo=zone).astimezone(UTC)
