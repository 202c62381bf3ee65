"""Time zones of Spark's sessions, for times without a zone in the option `where`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark.sql.datasource import Filter, In, Not

from quorate.spark.files.paths import SourceError

_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?(?::?(?P<seconds>\d{2}))?"
)


def zone_named(name: str) -> tzinfo:
    """The zone by Spark's name of it: a region, `UTC`, `Z`, or an offset as `+05:30` or `GMT+8`.

    Raises SourceError for a name that is none of these.
    """
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        parts = (int(offset[part] or 0) for part in ("hours", "minutes", "seconds"))
        hours, minutes, seconds = parts
        span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-span if offset["sign"] == "-" else span)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise SourceError(f"the session's time zone {name} is not known to Python") from None


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
