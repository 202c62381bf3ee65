"""Rows as columns for people, whatever their texts hold."""

from __future__ import annotations

import pytest

from quorate.cli.columns import table_lines


def test_columns_are_as_wide_as_they_must_be():
    rows = [[1, None], ["long", ["a", {"b": 2.5}]]]
    assert table_lines(["x", "y"], rows) == [
        "x     y",
        "----  ------------",
        "1     -",
        "long  [a, {b=2.5}]",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("a\r\n\tb", r"a\r\n\tb"),
        ("\x1b[2Jgone\0\x7f", r"\x1b[2Jgone\x00\x7f"),
        ("\x9b2J\x85", r"\x9b2J\x85"),
        ("a\u2028b\u2029", r"a\u2028b\u2029"),
        ("C:\\new 'é' \u200bß", "C:\\new 'é' \u200bß"),
    ],
)
def test_a_row_is_one_line_that_steers_no_terminal(text, shown):
    lines = table_lines(["name", "n"], [[text, 1], [[text], 2], [{text: text}, 3]])
    rows = [line.rsplit(maxsplit=1) for line in lines[2:]]
    assert rows == [[shown, "1"], [f"[{shown}]", "2"], [f"{{{shown}={shown}}}", "3"]]
    assert table_lines([text], [])[0] == shown
    assert all(len(line.splitlines()) == 1 for line in lines)
