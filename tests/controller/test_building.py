"""Long responses, built in steps: the same rows as at once, and no step with too many of them."""

import random

import pytest

from quorate.controller.building import (
    LOOKED_AT,
    ROWS,
    at_once,
    each,
    each_group,
    in_order,
    smallest,
)


def pauses(steps):
    """How often it pauses."""
    return sum(1 for _ in steps)


@pytest.mark.parametrize("count", [0, 1, ROWS, ROWS + 1, 5 * ROWS])
def test_each_item_has_a_row_in_its_place(count):
    items = range(count)
    assert at_once(each(items, str)) == [str(item) for item in items]
    assert pauses(each(items, str)) == max(count - 1, 0) // ROWS


@pytest.mark.parametrize(
    "sizes", [[], [0] * 3 * ROWS, [1] * 3 * ROWS, [3 * ROWS], [7, 2 * ROWS] * 3]
)
def test_groups_keep_their_rows(sizes):
    made = []

    def row(item):
        made.append(item)
        return item

    groups = [range(size) for size in sizes]
    steps = each_group(groups, lambda group: group, row, lambda group, rows: rows)
    before = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assert end.value == [list(group) for group in groups]
            break
        assert len(made) - before <= 2 * ROWS
        before = len(made)
    assert pauses(each_group(groups, lambda group: group, row, lambda group, rows: rows)) >= (
        sum(sizes) + len(sizes)
    ) // (3 * ROWS)


@pytest.mark.parametrize("count", [0, 1, LOOKED_AT, LOOKED_AT + 1, 3 * LOOKED_AT + 7])
def test_order_is_that_of_sorted(count):
    items = [random.Random(count).randrange(count) for _ in range(count)]
    assert at_once(in_order(items)) == sorted(items)
    assert at_once(in_order(items, lambda item: -item)) == sorted(items, reverse=True)
    assert at_once(smallest(items, 10)) == sorted(items)[:10]
    assert pauses(smallest(items, 10)) == max(count - 1, 0) // LOOKED_AT
