"""What the JVM of a driver writes to stderr reaches the user, but for one warning."""

from __future__ import annotations

import pytest

from quorate.spark.gateway import _WARNING, without_warning


@pytest.mark.parametrize("size", [1, 7, 60, 1000])
def test_the_warning_is_dropped_however_it_arrives(size):
    text = b"before\n" + _WARNING + b"[Stage 0:>  (0 + 1) / 1]\rWARNING: Using another\nend"
    shown = held = b""
    for start in range(0, len(text), size):
        out, held = without_warning(held + text[start : start + size])
        shown += out
    assert shown + held == text.replace(_WARNING, b"")


@pytest.mark.parametrize("text", [b"WARN no newline yet", b"[Stage 0:>", b"WARNING: Using x"])
def test_a_line_that_is_not_whole_is_shown_at_once(text):
    assert without_warning(text) == (text, b"")
