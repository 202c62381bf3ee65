"""Rows as aligned columns, with any text in a cell."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.cli import columns
from quorate.cli.columns import table_lines


def test_columns_have_the_width_of_their_widest_cell():
    rows: list[list[Any]] = [[1, None], ["long", ["a", {"b": 2.5}]]]
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
def test_control_characters_in_a_cell_are_escaped(text, shown):
    lines = table_lines(["name", "n"], [[text, 1], [[text], 2], [{text: text}, 3]])
    rows = [line.rsplit(maxsplit=1) for line in lines[2:]]
    assert rows == [[shown, "1"], [f"[{shown}]", "2"], [f"{{{shown}={shown}}}", "3"]]
    assert table_lines([text], [])[0] == shown
    assert all(len(line.splitlines()) == 1 for line in lines)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("a b c", ["a b c"]),
        ("0123456789 a", ["0123456789", "  a"]),
        ("a: 1\tb: 23456789\tc:\n", ["a: 1", "  b:", "    234567", "    89", "  c:"]),
        ("\ta: 1\tb: 2345", ["  a: 1", "    b:", "      2345"]),
        ("    see: 4567 9", ["  see:", "    4567 9"]),
        ("", [""]),
    ],
)
def test_a_line_too_long_for_a_terminal_goes_on_in_the_next(monkeypatch, line, shown):
    monkeypatch.setattr(columns, "terminal_width", lambda: 10)
    assert columns.fold([line, line]) == shown * 2
    monkeypatch.setattr(columns, "terminal_width", lambda: None)
    assert columns.fold([line]) == [line]


@pytest.mark.parametrize(
    ("width", "rows", "shown"),
    [
        (12, [["a", "b"]], ["name  second", "----  ------", "a     b"]),
        (11, [["a", "b"], ["c", None]], ["name: a", "second: b", "", "name: c", "second: -"]),
        (11, [["01234567a", ""]], ["name: 01234", "  567a", "second:"]),
        (13, [], ["name  second"]),
        (10, [], ["name  seco", "  nd", "----  ----", "  --"]),
    ],
)
def test_a_table_too_wide_for_a_terminal_becomes_records(monkeypatch, width, rows, shown):
    monkeypatch.setattr(columns, "terminal_width", lambda: width)
    found = table_lines(["name", "second"], rows)
    assert found[: len(shown)] == shown if not rows else found == shown
