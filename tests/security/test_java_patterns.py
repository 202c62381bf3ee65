"""Patterns that Python alone reads: a broker could not apply what it cannot compile."""

import pytest

from quorate.security.java_patterns import is_common


@pytest.mark.parametrize(
    "pattern", [r"[\b]", r"[a\B]", r"[\A]", r"[\1]", "a{2147483648}", "a{1,2147483648}"]
)
def test_what_java_refuses_is_not_common(pattern):
    assert not is_common(pattern)


@pytest.mark.parametrize("pattern", [r"[\\b]", r"\bx", r"(a)\1", r"\[\b", "a{2147483647}", r"[\w]"])
def test_what_both_read_is_common(pattern):
    assert is_common(pattern)
