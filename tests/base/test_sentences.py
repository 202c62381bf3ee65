"""Texts of others become sentences."""

import pytest

from quorate.base.sentences import sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [("why", "why."), ("why.", "why."), ("why. ", "why."), ("why?", "why?"), ("why!", "why!")],
)
def test_a_sentence_ends_once(text, expected):
    assert sentence(text) == expected
