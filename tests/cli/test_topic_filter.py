"""What is asked of a cluster for the patterns of --topic."""

import pytest

from quorate.cli.topic_filter import TopicPatternError, matching, topic_pattern, topic_starts

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


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"\p{Alpha}+\.\p{Lower}*", ["b.c"]),
        (r"\Qb.c\E", ["b.c"]),
        ("ab{1}[cd]", ["abc", "abd"]),
        ("(?<first>a)b", ["ab"]),
        ("orders.++", ["orders-1", "orders.eu-0-1"]),
        (r"b\x2ec", ["b.c"]),
    ],
)
def test_patterns_are_those_of_java(pattern, names):
    assert matching(NAMES, [pattern]) == names


@pytest.mark.parametrize(
    "pattern", ["a.{1,3}b", "a{", "{2}", "a|{1}", "(", "*", r"\p{Nope}", "a{x}"]
)
def test_what_java_refuses_is_refused(pattern):
    """A comma becomes `|`, also inside of a repetition; Python reads the braces as letters."""
    with pytest.raises(TopicPatternError, match=r"is an invalid regex\."):
        topic_pattern(pattern)
