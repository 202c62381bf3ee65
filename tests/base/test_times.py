"""Times and zones as people write them; tests/spark/test_where.py compares them with Spark's."""

from datetime import UTC, datetime

import pytest

from quorate.base.times import parse_time, parse_time_in_utc

SAME = [
    "2026-11-21 06:14:00 Europe/Berlin",
    "2026-11-21T06:14:00.5Europe/Berlin",
    "2026-11-21 06:14:00.123456789 UTC",
    "2026-11-21 06:14:00Z",
    "2026-11-21 06:14:00 +1",
    "2026-11-21 06:14:00+05:30",
    "2026-11-21 06:14:00+5:30",
    "2026-11-21 06:14:00+0530",
    "2026-11-21 06:14:00 GMT-03:30",
    "2026-11-21 06:14:00 UTC+8",
    "2026-11-21 06:14:00 PST",
    "2026-11-21 06:14:00 EST",
    "2026-1-2 3:4:5 Asia/Kolkata",
    "2026-10-25 02:30:00 Europe/Berlin",
    "2026-03-29 02:30:00 Europe/Berlin",
    "2026-11-21 06:14",
    "2026-11-21 06",
    "2026-11-21",
    "2026-11",
    "2026",
    " 2026-11-21 06:14:00.  ",
]
"""Texts that Spark casts to a timestamp; each is read as Spark reads it."""
NEITHER = [
    "2026-11-21 06:14:00 Europe",
    "2026-11-21 06:14:00 Mars/Base",
    "2026-11-21 06:14:00 posix/Europe/Berlin",
    "2026-11-21 06:14:00+19:00",
    "2026-11-21 06:14:00 +05:99",
    "2026-11-21 06:14 Europe/Berlin",
    "2026-11-21 06:61:00",
    "2026-02-30",
    "noon",
    "",
]
"""Texts that neither reads."""


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (SAME[0], datetime(2026, 11, 21, 5, 14, tzinfo=UTC)),
        (SAME[7], datetime(2026, 11, 21, 0, 44, tzinfo=UTC)),
        (SAME[13], datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        (SAME[14], datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        ("2026-11-21", datetime(2026, 11, 21)),
        ("2026-11-21T06:14+01:00", datetime(2026, 11, 21, 5, 14, tzinfo=UTC)),
    ],
)
def test_a_time_is_in_the_zone_that_it_names(text, time):
    assert parse_time(text) == time
    assert parse_time(text).tzinfo is time.tzinfo


@pytest.mark.parametrize("text", NEITHER)
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError):
        parse_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "9999-12-31 23:59:59 -18:00",
        "0001-01-01 00:00:00 +18:00",
        "0001-01-01T00:00:00+18:00",
        "0001-01-01 00:00:00 Europe/Berlin",
    ],
)
def test_a_time_that_utc_cannot_hold_is_refused(text):
    with pytest.raises(ValueError, match="before the year 1 or after 9999 in UTC"):
        parse_time(text)


def test_a_time_without_a_zone_may_be_taken_for_utc():
    noon = datetime(2026, 11, 26, 12, tzinfo=UTC)
    for text in ("2026-11-26 12:00", "2026-11-26T12:00:00Z", "2026-11-26 13:00:00 Europe/Berlin"):
        assert parse_time_in_utc(text) == noon
