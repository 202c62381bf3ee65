"""Sorting beside a thread that must not wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.metadata import order
from quorate.metadata.order import in_order

FEW = 3


@pytest.fixture
def slices(monkeypatch):
    """Slices of three, and the length of each that was sorted."""
    sizes = []

    def watched(items, key):
        part = list(items)
        sizes.append(len(part))
        return sorted(part, key=key)

    monkeypatch.setattr(order, "SLICE", FEW)
    monkeypatch.setattr(order, "sorted", watched, raising=False)
    return sizes


@given(st.lists(st.tuples(st.integers(0, 5), st.integers())))
def test_it_is_what_sorted_gives(items):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "SLICE", FEW)
        assert list(in_order(items)) == sorted(items)
        first = lambda item: item[0]  # noqa: E731
        assert list(in_order(items, key=first)) == sorted(items, key=first)


def test_no_more_than_a_slice_is_sorted_at_once(slices):
    assert list(in_order(range(100, 0, -1))) == list(range(1, 101))
    assert max(slices) == FEW and sum(slices) == 100
