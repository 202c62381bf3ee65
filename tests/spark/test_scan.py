"""Valid batches are found behind damage, and each byte is reported once."""

from __future__ import annotations

import itertools

from hypothesis import example, given
from hypothesis import strategies as st

from quorate.formats.batch import BatchView, iter_batches
from quorate.spark.files.scan import Damage, scan
from spark.logs import batches

LOG = b"".join(batches(range(1, 30)))
EDGES = [view.position for view in iter_batches(LOG)] + [len(LOG)]


def reading(data: bytes):
    return lambda position, size: data[position : position + size]


def found(data: bytes, start: int = 0, end: int | None = None) -> list[BatchView | Damage]:
    return list(scan(reading(data), len(data), start, end))


def places(items: list[BatchView | Damage]) -> list[tuple[int, int, bool]]:
    return [(item.position, item.size, isinstance(item, Damage)) for item in items]


def damaged(data: bytes, flips: dict[int, int], cut: int = 0) -> bytes:
    out = bytearray(data[: len(data) - cut])
    for place, mask in flips.items():
        if place < len(out):
            out[place] ^= mask
    return bytes(out)


DAMAGES = st.builds(
    lambda flips, cut: damaged(LOG, flips, cut),
    st.dictionaries(st.integers(0, len(LOG) - 1), st.integers(1, 255), max_size=4),
    st.integers(0, 200),
)


def test_a_sound_log_is_its_batches():
    assert found(LOG) == list(iter_batches(LOG))


@given(DAMAGES)
def test_every_batch_that_no_flip_touched_is_found(data: bytes):
    kept = {item.position for item in found(data) if isinstance(item, BatchView)}
    for start, end in itertools.pairwise(EDGES):
        if data[start:end] == LOG[start:end]:
            assert start in kept


@given(DAMAGES)
def test_batches_and_damage_cover_the_file_without_gap_or_overlap(data: bytes):
    position = 0
    for item in found(data):
        assert item.position == position
        assert item.size > 0
        position += item.size
    assert position == len(data)


@example(damaged(LOG, {EDGES[1]: 1}), [1])  # an offset that none reaches, under a right checksum
@given(DAMAGES, st.lists(st.integers(1, len(LOG) - 1), max_size=6))
def test_any_division_of_a_file_into_ranges_gives_the_same_batches(data: bytes, cuts: list[int]):
    edges = [0, *sorted({cut for cut in cuts if cut < len(data)}), len(data)]
    pieces = [item for start, end in itertools.pairwise(edges) for item in found(data, start, end)]
    assert places(pieces) == places(found(data))


def test_a_flipped_byte_damages_only_its_batch():
    data = damaged(LOG, {EDGES[3] + 70: 1})
    (damage,) = [item for item in found(data) if isinstance(item, Damage)]
    assert (damage.position, damage.size) == (EDGES[3], EDGES[4] - EDGES[3])
    assert "checksum does not match" in damage.what and f"byte {EDGES[3]}" in damage.what
    assert damage.view is not None and damage.view.base_offset > 0


def test_a_damaged_length_is_passed_to_the_next_sound_batch():
    data = damaged(LOG, {EDGES[3] + 9: 0x7F})
    (damage,) = [item for item in found(data) if isinstance(item, Damage)]
    assert damage.what.endswith(f"the next sound batch begins at byte {EDGES[4]}")
    assert damage.view is None


def test_a_torn_tail_is_one_damage():
    data = LOG[:-10]
    assert found(data)[-1] == Damage(
        EDGES[-2],
        EDGES[-1] - EDGES[-2] - 10,
        f"damaged length or torn tail: a batch of {EDGES[-1] - EDGES[-2]} bytes, of which the "
        f"file has {EDGES[-1] - EDGES[-2] - 10} (batch at byte {EDGES[-2]})",
    )


def test_bytes_without_any_batch_are_one_damage():
    (damage,) = found(bytes(5000))
    assert (damage.position, damage.size) == (0, 5000)
    assert found(b"") == []


def test_a_batch_larger_than_a_piece_is_read_whole(monkeypatch):
    data = damaged(LOG, {EDGES[9] + 9: 1})
    expected = places(found(data))
    monkeypatch.setattr("quorate.spark.files.scan.PIECE_SIZE", 100)
    assert found(LOG) == list(iter_batches(LOG))
    assert places(found(data)) == expected
