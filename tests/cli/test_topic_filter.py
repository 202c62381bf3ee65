"""What is asked of a cluster for the patterns of --topic."""

import pytest

from quorate.cli.topic_filter import matching, topic_starts

NAMES = ["", "a", "ab", "abc", "abd", "b", "b.c", "bxc", "orders-1", "orders.eu-0-1", "x"]


@pytest.mark.parametrize(
    ("patterns", "starts"),
    [
        ((), [("", False)]),
        (("orders",), [("orders", True)]),
        (("orders-1", "a"), [("a", True), ("orders-1", True)]),
        (("a,b",), [("a", True), ("b", True)]),
        (("b.c",), [("b", False)]),
        (("orders.*-0-.*",), [("orders", False)]),
        (("abc?",), [("ab", False)]),
        (("abc*", "abd{2}"), [("ab", False)]),
        (("ab(c|d)",), [("", False)]),
        (("ab(c)",), [("ab", False)]),
        (("(?i)A.*",), [("", False)]),
        ((".*",), [("", False)]),
        (("^ab.*",), [("", False)]),
        (("a|b.*",), [("a", True), ("b", False)]),
        ((r"b\.c",), [("b", False)]),
        (("[ab]c?",), [("", False)]),
    ],
)
def test_a_pattern_asks_for_the_names_that_it_can_match(patterns, starts):
    assert topic_starts(patterns) == starts
    for name in matching(NAMES, patterns):
        assert any(name == text if whole else name.startswith(text) for text, whole in starts)
