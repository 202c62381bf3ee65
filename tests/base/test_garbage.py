"""When the garbage collector stays away, and that it comes back."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from quorate.base.garbage import without_collections


@pytest.fixture
def thawed() -> Iterator[None]:
    """What a test freezes is visited again after it."""
    yield
    gc.unfreeze()


def is_visited(wanted: object) -> bool:
    return any(each is wanted for each in gc.get_objects())


def test_the_collector_is_off_inside_and_on_again_after_an_error():
    with pytest.raises(KeyError), without_collections(), without_collections():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_the_caller_turned_off_stays_off():
    gc.disable()
    try:
        with without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.usefixtures("thawed")
def test_no_collection_visits_what_is_frozen():
    with without_collections():
        visited: list[object] = [[]]
    assert is_visited(visited)
    with without_collections(freeze=True):
        frozen: list[object] = [[]]
    assert not is_visited(frozen)
