"""The independent decoder of batches reads what the node's encoder writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.formats.batch import encode_batch, encode_keyed_batch
from quorate.verify.batches import batches, values

VALUES = st.lists(st.binary(max_size=300), min_size=1, max_size=200)


@given(st.integers(0, 1 << 60), st.integers(0, 1 << 30), st.integers(0, 1 << 40), VALUES)
def test_a_batch_is_read_as_it_was_written(
    base: int, epoch: int, time: int, written: list[bytes]
) -> None:
    data = encode_batch(base, epoch, time, written)
    (found,) = batches(data)
    assert found == (base, base + len(written), epoch, time, data)
    assert values(found.data) == written


def test_keys_are_passed_over() -> None:
    data = encode_keyed_batch(0, 1, 2, [(b"key" * 50, b"one"), (b"", b"two")])
    assert values(data) == [b"one", b"two"]


@pytest.mark.parametrize("broken", [b"", b"\0" * 200, b"x"])
def test_batches_end_where_there_is_no_whole_one(broken: bytes) -> None:
    data = encode_batch(7, 1, 2, [b"value"])
    assert [one.base_offset for one in batches(data + broken)] == [7]
    assert [one.base_offset for one in batches(data + data[:-1])] == [7]
