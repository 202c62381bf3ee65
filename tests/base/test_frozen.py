"""Frozen values: equal and hashed by content, without room for anything else."""

from dataclasses import replace

import pytest

from quorate.base.frozen import frozen


@frozen
class Place:
    offset: int
    epoch: int = 0


def test_values_are_equal_and_hashed_by_content():
    assert Place(1) == Place(1, 0) != Place(1, 1)
    assert {Place(1), Place(1, 0)} == {Place(1)}


def test_a_value_has_only_its_fields():
    with pytest.raises(AttributeError):
        Place(1).other = 2


def test_a_changed_copy_leaves_the_value_as_it_was():
    place = Place(1)
    assert replace(place, epoch=5) == Place(1, 5)
    assert place == Place(1, 0)
