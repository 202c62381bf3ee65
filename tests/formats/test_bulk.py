"""What the extension finds in many records at once is what the readers of one find."""

from __future__ import annotations

import array
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.formats import bulk
from quorate.formats.batch import encode_batch
from quorate.formats.batch_records import HEADER_SIZE, encode_values, plain_values
from quorate.formats.json_text import to_json
from quorate.formats.records import ConfigRecord, NoOpRecord, PartitionRecord, encode_record
from time_budget import examples

pytestmark = pytest.mark.skipif(not bulk.available(), reason="the extension is not built")

LARGEST_BATCH = 2000


def places(*numbers: int) -> array.array[int]:
    return array.array("q", numbers)


def found(data: bytes, *batches: tuple[int, int, int]) -> tuple[list[bytes], list[int]]:
    """The values in these batches (start, end, count), and which of them are plain."""
    columns = [places(*column) for column in zip(*batches, strict=True)]
    starts, ends, plain = bulk.value_bounds(data, *columns)
    bounds = zip(array.array("q", starts), array.array("q", ends), strict=True)
    return [data[start:end] for start, end in bounds], list(plain)


@given(st.lists(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=5), max_size=4))
def test_values_of_many_batches_are_found(batches):
    data, bounds = b"", []
    for values in batches:
        start = len(data) + HEADER_SIZE
        data += encode_batch(0, 1, 0, values)
        bounds.append((start, len(data), len(values)))
    if bounds:
        assert found(data, *bounds) == (
            [v for values in batches for v in values],
            [1] * len(bounds),
        )


def test_indices_and_lengths_of_every_width_are_found():
    values = [b"x" * (1 + index % 70 * 100) for index in range(LARGEST_BATCH)]
    data = encode_values(values)
    assert found(data, (0, len(data), len(values))) == (values, [1])


@settings(max_examples=examples(400))
@given(st.data())
def test_of_damaged_records_the_same_is_found_as_one_by_one(data):
    values = data.draw(st.lists(st.binary(min_size=1, max_size=150), min_size=1, max_size=4))
    made = bytearray(encode_values(values))
    for _ in range(data.draw(st.integers(0, 3))):
        made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(made[: len(made) - data.draw(st.integers(0, 3))])
    count = data.draw(st.integers(1, 5))
    expected = plain_values(cut, 0, len(cut), count)
    assert found(cut, (0, len(cut), count)) == (expected or [], [expected is not None])


@pytest.mark.parametrize("batch", [(-1, 5, 1), (0, 100, 1), (6, 5, 1), (0, 9, 2**40), (0, 9, 0)])
def test_places_outside_of_the_data_are_no_batch(batch):
    assert found(encode_values([b"x"]) + b"y", batch) == ([], [0])


def test_places_of_different_numbers_are_refused():
    with pytest.raises(ValueError, match="int64"):
        bulk.value_bounds(b"", places(0), places(), places(0))
    with pytest.raises(ValueError, match="int64"):
        bulk.json_texts(NoOpRecord, 0, b"", places(0), places(0, 1))


def printed(cls: type, version: int, *messages: bytes) -> list[str | None]:
    """The text of each message; None of those that are left to the codec."""
    ends = [sum(map(len, messages[: place + 1])) for place in range(len(messages))]
    starts = [end - len(message) for end, message in zip(ends, messages, strict=True)]
    text, bounds, sound = bulk.json_texts(
        cls, version, b"".join(messages), places(*starts), places(*ends)
    )
    offsets = array.array("i", bounds)
    texts = (text[a:b].decode() for a, b in pairwise(offsets))
    return [next(texts) if good else None for good in sound]


def test_what_is_unusual_is_left_out_between_what_is_printed():
    names = ["ok", "fü", 'a"', "", "\n", "x" * 5000]
    found = [ConfigRecord(resource_type=2, resource_name=name, name="n") for name in names]
    messages = [encode_record(one, 0)[3:] for one in found]
    expected = [
        to_json(one, 0) if plain else None
        for one, plain in zip(found, (True, False, False, True, False, True), strict=True)
    ]
    cut = messages[0][:-1]
    assert printed(ConfigRecord, 0, *messages, cut) == [*expected, None]


def test_the_largest_numbers_and_no_fields_at_all_are_printed():
    record = PartitionRecord(
        partition_id=-(2**31), leader=2**31 - 1, replicas=[-1, 0], last_known_elr=[]
    )
    message = encode_record(record, 2)[3:]
    assert printed(PartitionRecord, 2, message) == [to_json(record, 2)]
    assert printed(NoOpRecord, 0, b"\0") == ["{}"]
