"""Cutting a byte stream into frames."""

from __future__ import annotations

import tracemalloc
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.wire.errors import WireError
from quorate.wire.frame import FrameReader


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


@given(st.lists(st.binary(max_size=40), max_size=6), st.data())
def test_any_chopping_of_a_stream_gives_the_same_frames(
    frames: list[bytes], data: st.DataObject
) -> None:
    stream = framed(*frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader, found = FrameReader(), []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:stop])
    assert found == frames
    assert reader.buffered == 0


def test_chunks_may_be_any_buffer_and_are_not_kept() -> None:
    reader, chunk = FrameReader(), bytearray(framed(b"abc")[:5])
    assert reader.feed(memoryview(chunk)) == []
    chunk[:] = b"xxxxx"
    assert reader.feed(b"bc") == [b"abc"]


def test_what_is_buffered_can_be_seen() -> None:
    reader = FrameReader()
    assert reader.feed(framed(b"abc", b"defg")[:-2]) == [b"abc"]
    assert reader.buffered == 2
    assert reader.feed(b"fg") == [b"defg"]


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_length_out_of_bounds_is_refused(size: int) -> None:
    with pytest.raises(WireError, match=f"a frame of {size} bytes is announced; allowed are 0 to"):
        FrameReader(max_size=100).feed(size.to_bytes(4, "big", signed=True))


def test_the_limit_itself_is_allowed() -> None:
    assert FrameReader(max_size=100).feed(framed(bytes(100))) == [bytes(100)]


def test_frames_before_a_bad_length_are_not_delivered_with_it() -> None:
    with pytest.raises(WireError):
        FrameReader(max_size=10).feed(framed(b"good") + b"\xff\xff\xff\xff")


def test_a_large_frame_in_small_chunks_costs_linear_time() -> None:
    def cost(size: int) -> float:
        reader, chunk = FrameReader(), bytes(1024)
        stream = [size.to_bytes(4, "big"), *[chunk] * (size // 1024)]
        start = process_time()
        frames = [frame for part in stream for frame in reader.feed(part)]
        assert len(frames) == 1
        return process_time() - start

    small = min(cost(2**20) for _ in range(3))
    large = min(cost(2**24) for _ in range(3))
    assert large < max(small, 0.001) * 16 * 6


def test_bytes_that_came_in_small_pieces_take_no_more_memory_than_they_are() -> None:
    reader, count = FrameReader(), 100_000
    reader.feed((2**20).to_bytes(4, "big"))
    tracemalloc.start()
    try:
        for _ in range(count):
            reader.feed(bytes(3))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * reader.buffered == 6 * count


def test_many_small_frames_in_one_chunk_cost_linear_time() -> None:
    stream = framed(*[b"x"] * 100_000)
    start = process_time()
    assert len(FrameReader().feed(stream)) == 100_000
    assert process_time() - start < 2
