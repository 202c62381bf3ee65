"""What is kept of a frame that is too long, and what its beginning says of the message."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.wire import messages as m
from quorate.wire.codec import decode, encode
from quorate.wire.errors import WireError
from quorate.wire.frame import LONG_FRAME_BYTES, START_BYTES, FrameReader
from quorate.wire.registry import APIS
from quorate.wire.truncated import TruncatedFrame, bytes_beginning, decode_beginning

KEPT = 1_000


def framed(*frames: bytes) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def kept(start: bytes, size: int) -> int:
    assert len(start) == START_BYTES
    return KEPT if start.startswith(b"long") else size


LONG = b"long" + bytes(range(250)) * 400
OTHER = b"kept" + bytes(LONG_FRAME_BYTES)


@given(st.lists(st.sampled_from([b"short", LONG, OTHER]), max_size=4), st.data())
def test_any_chopping_of_a_stream_gives_the_same_beginnings(
    frames: list[bytes], data: st.DataObject
) -> None:
    stream = framed(*frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    near = [cut for cut in range(1, 20) if cut < len(stream)]
    reader, found = FrameReader(kept=kept), []
    cuts = sorted([*cuts, *near])
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += reader.feed(stream[start:stop])
    assert found == [LONG[:KEPT] if frame is LONG else frame for frame in frames]
    truncated = [frame for frame in found if isinstance(frame, TruncatedFrame)]
    assert [frame.size for frame in truncated] == [len(LONG)] * frames.count(LONG)
    assert reader.buffered == 0


def test_what_is_dropped_takes_no_memory() -> None:
    reader, chunk, pieces = FrameReader(kept=kept), bytes(65_536), 1_500
    reader.feed((len(chunk) * pieces + 4).to_bytes(4, "big") + b"long")
    tracemalloc.start()
    for _ in range(pieces - 1):
        assert reader.feed(chunk) == []
        assert reader.buffered == KEPT
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 200_000
    [frame] = reader.feed(chunk)
    assert isinstance(frame, TruncatedFrame)
    assert (len(frame), frame.size) == (KEPT, len(chunk) * pieces + 4)


def test_a_long_frame_may_be_refused_before_it_comes() -> None:
    def refuse(start: bytes, size: int) -> int:
        raise WireError(f"no {size}")

    reader = FrameReader(kept=refuse)
    assert reader.feed(framed(bytes(LONG_FRAME_BYTES))) != []
    with pytest.raises(WireError, match=f"no {LONG_FRAME_BYTES + 1}"):
        reader.feed((LONG_FRAME_BYTES + 1).to_bytes(4, "big") + bytes(START_BYTES))


def topics(*names: str) -> m.CreateTopicsRequest:
    cls = m.CreateTopicsRequest.CreatableTopic
    replicas = [
        cls.CreatableReplicaAssignment(partition_index=index, broker_ids=[1, 2])
        for index in range(3)
    ]
    return m.CreateTopicsRequest(
        topics=[cls(name=name, num_partitions=-1, assignments=replicas) for name in names],
        timeout_ms=5,
    )


@pytest.mark.parametrize("version", [4, 7])
def test_each_prefix_of_a_message_says_what_it_has(version: int) -> None:
    whole = topics("one", "two")
    data = encode(whole, version)
    seen = []
    for size in range(len(data)):
        found = decode_beginning(m.CreateTopicsRequest, version, data[:size], 0)
        names = [topic.name for topic in found.topics]
        assert names == ["one", "two"][: len(names)]
        seen.append(len(names))
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2}
    assert decode_beginning(m.CreateTopicsRequest, version, data, 0) == whole


def test_the_only_topic_of_a_request_is_named_while_its_partitions_go_on() -> None:
    data = encode(topics("one"), 7)
    [topic] = decode_beginning(m.CreateTopicsRequest, 7, data[:25], 0).topics
    assert (topic.name, topic.num_partitions) == ("one", -1)
    assert len(topic.assignments) < 3


@pytest.mark.parametrize("version", [0, 1])
def test_no_prefix_has_an_item_with_a_part_of_what_names_it(version: int) -> None:
    """The entity of a quota is a list itself."""
    cls = m.AlterClientQuotasRequest.EntryData
    entity = [
        cls.EntityData(entity_type="user", entity_name="alice"),
        cls.EntityData(entity_type="client-id", entity_name="tool"),
    ]
    entry = cls(entity=entity, ops=[cls.OpData(key="request_percentage", value=1.0)] * 2)
    data, seen = encode(m.AlterClientQuotasRequest(entries=[entry] * 2), version), set()
    for size in range(len(data)):
        found = decode_beginning(m.AlterClientQuotasRequest, version, data[:size], 0).entries
        assert all(each.entity == entity for each in found), size
        seen.add((len(found), len(found[-1].ops) if found else 0))
    assert seen == {(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)}


@pytest.mark.parametrize("key", sorted(api.key for api in APIS.values()))
def test_a_whole_message_of_any_version_is_read_as_ever(key: int) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        data = encode(api.request(), version)
        assert decode_beginning(api.request, version, data, 0) == decode(api.request, version, data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x00\x00\x00\x01\xff\xff", "name at byte 6: it is null"),
        (b"\x00\x00\x00\x01\x00\x01\xff", "name at byte 7: it is not valid UTF-8"),
        (b"\xff\xff\xff\xff", "topics at byte 4: it is null"),
    ],
)
def test_bytes_that_are_no_such_message_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=f"CreateTopicsRequest v4: cannot read {why}"):
        decode_beginning(m.CreateTopicsRequest, 4, data, 0)


def test_a_string_and_a_varint_that_are_too_long_are_refused() -> None:
    with pytest.raises(WireError, match="the string is longer than 32767 bytes"):
        decode_beginning(m.CreateTopicsRequest, 7, b"\x02\x81\x80\x02" + b"a" * 9, 0)
    with pytest.raises(WireError, match="the varint at byte 5 is too long"):
        decode_beginning(m.CreateTopicsRequest, 7, b"\xff" * 9, 0)


def test_the_beginning_of_bytes_has_their_whole_length() -> None:
    assert bytes_beginning(b"?\x90\x4eabc", 1) == (b"abc", 9_999)
    with pytest.raises(WireError, match="the bytes end inside the length at byte 1"):
        bytes_beginning(b"?\x90", 1)
