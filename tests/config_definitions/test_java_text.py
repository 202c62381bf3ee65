"""Numbers and lists as Java reads them."""

from math import inf

import pytest

from quorate.config_definitions.java_text import parse_double, parse_integer, split_parts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x10p3", 128.0),
        ("-0X1.8P1d", -3.0),
        ("0x.8p0F", 0.5),
        ("0x1.p-1", 0.5),
        ("0x1p99999", inf),
        ("-0x1p99999", -inf),
        ("1e3", 1000.0),
        (".5f", 0.5),
        ("Infinity", inf),
        *(
            (text, None)
            for text in ("0x10", "0xp3", "0x.p3", "1p3", "0x1p", "0x1p1.5", "1_0", "inf")
        ),
    ],
)
def test_doubles(text, value):
    assert parse_double(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+5", 5),
        ("-007", -7),
        ("\uff14\u0663", 43),
        ("2147483647", 2**31 - 1),
        *((text, None) for text in ("", "+", "2147483648", "1_0", "1.0", "\xb2", "\U0001d7d7")),
    ],
)
def test_integers(text, value):
    """Digits of other scripts, too; not those that need two of Java's chars."""
    assert parse_integer(text, 32) == value


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,", ["a"]),
        ("a,,", ["a"]),
        (",a", ["", "a"]),
        (",", []),
        ("", [""]),
        ("a,,b", ["a", "", "b"]),
    ],
)
def test_a_split_has_no_empty_parts_at_its_end(text, parts):
    assert split_parts(text.split(",")) == parts
