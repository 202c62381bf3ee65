"""Malformed UTF-8 has as many replacement characters as in Java."""

from __future__ import annotations

import pytest

from quorate.base.java_utf8 import java_text
from quorate.formats.loose_records import plain_text


@pytest.mark.parametrize("read", [java_text, plain_text])
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"orders", "orders"),
        ("ü€😀".encode(), "ü€😀"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xbf\xbf\xed\xb1.", "\ufffd\ufffd."),
        (b"\xe2\x82\xed\xa0", "\ufffd\ufffd"),
        (b"\xff\xed\x9f\xbf", "\ufffd\ud7ff"),
        (b"\x80\xc3(\xf0\x90\x80", "\ufffd\ufffd(\ufffd"),
    ],
)
def test_as_java_reads_it(read, data, text):
    assert read(data) == text
