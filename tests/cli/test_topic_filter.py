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
    ("pattern", "why"),
    [
        ("a.{1,3}b", "a { is no repetition such as {2}"),
        ("a{", "a { is no repetition such as {2}"),
        ("{2}", "a { is no repetition such as {2}"),
        ("a|{1}", "a { is no repetition such as {2}"),
        ("a{x}", "a { is no repetition such as {2}"),
        ("a{99999999999}", "the count of a repetition is too large"),
        ("[", "a [ is not closed by a ]"),
        ("(", "a ( is not closed by a )"),
        ("(?", "a ( is not closed by a )"),
        (")", "a ) has no ( before it"),
        ("*", "nothing stands before *, + or ? that it could repeat"),
        ("a+*", "nothing stands before *, + or ? that it could repeat"),
        ("\\", "nothing follows the \\ at its end"),
        ("[z-a]", "a range inside [ ] runs backwards"),
        (r"a\1", "it refers to a group that it does not have"),
        ("(?y)a", "what follows (? is not known"),
        ("(" * 5000 + ")" * 5000, "nested too deep"),
        (r"\p{Nope}", r"the class \p{Nope} is not supported"),
    ],
)
def test_what_java_refuses_is_refused_in_our_words(pattern, why):
    """A comma becomes `|`, also inside of a repetition; Python reads the braces as letters."""
    with pytest.raises(TopicPatternError) as refused:
        topic_pattern(pattern)
    expected = " is an invalid regex. Expected are a topic's name or a regular expression of Java"
    assert expected in str(refused.value)
    assert why in str(refused.value)
