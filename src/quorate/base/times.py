"""Times and time zones as people write them: ISO 8601, and the texts that Spark casts to a timestamp."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_TIME: Final = re.compile(
    r"\s*(?P<year>\d{4,6})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})(?:[ T](?P<hour>\d{1,2})"
    r"(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?(?P<zone>[^\d.].*)?"
    r")?)?)?)?)?\s*",
    re.ASCII,
)
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d\d(?=\d\d)|\d{1,2}(?!\d))"
    r"(?::?(?P<minutes>\d\d|(?<=\d\d:)\d$)(?::?(?P<seconds>\d\d))?)?",
    re.ASCII,
)
_LARGEST_OFFSET: Final = timedelta(hours=18)
"""Of a zone in Java (`ZoneOffset`)."""
_NOT_OF_JAVA: Final = ("posix/", "right/", "localtime", "posixrules", "Factory")
_SHORT: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""The short names of `java.time.ZoneId.SHORT_IDS`, which Spark reads."""


def zone_named(name: str) -> tzinfo:
    """The zone by Spark's name of it: a region, `UTC`, `Z`, or an offset as `+05:30` or `GMT+8`.

    Raises ValueError for a name that is none of these.
    """
    name = _SHORT.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    try:
        if offset is not None:
            return _fixed(offset)
        if not name.startswith(_NOT_OF_JAVA):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass  # a folder of zones, such as Europe, is an OSError
    raise ValueError(f"the time zone {name} is not known")


def _fixed(offset: re.Match[str]) -> tzinfo:
    hours, minutes, seconds = (int(offset[part] or 0) for part in ("hours", "minutes", "seconds"))
    span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if minutes > 59 or seconds > 59 or span > _LARGEST_OFFSET:
        raise ValueError(offset[0])
    return timezone(-span if offset["sign"] == "-" else span)


def parse_time(text: str) -> datetime:
    """The time that a text names: in UTC where it names a zone, else without a zone.

    A zone follows the seconds: '2026-11-26 12:00:00 Europe/Berlin', '2026-11-26T12:00:00Z'. A local
    time that occurs twice is the first one; one that is skipped is as much later (`ZonedDateTime.of`).
    ISO 8601 is read beyond that. Raises ValueError, which names a zone that is not known.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        time = datetime.fromisoformat(text)
    else:
        year, month, day = (int(found[part] or 1) for part in ("year", "month", "day"))
        hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
        micros = int((found["fraction"] or "")[:6].ljust(6, "0"))
        time = datetime(year, month, day, hour, minute, second, micros)
        zone = (found["zone"] or "").strip()
        if zone:
            time = time.replace(tzinfo=zone_named(zone))
    if time.tzinfo is None:
        return time
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text} is before the year 1 or after 9999 in UTC") from None


def parse_time_in_utc(text: str) -> datetime:
    """The time that a text names, in UTC, which also counts where it names no zone.

    Raises ValueError, as `parse_time`.
    """
    time = parse_time(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
