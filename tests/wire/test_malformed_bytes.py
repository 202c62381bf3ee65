"""Bytes from a peer raise WireError or nothing, and never make us allocate what they only claim."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.formats.records import PartitionRecord
from quorate.wire.codec import decode, encode
from quorate.wire.errors import WireError
from quorate.wire.frame import FrameReader
from quorate.wire.header import decode_request, decode_response, encode_request, peek_header
from quorate.wire.messages import (
    DescribeClusterResponse,
    ElectLeadersRequest,
    FetchRequest,
    FetchResponse,
    SaslAuthenticateRequest,
    VoteRequest,
)
from quorate.wire.registry import APIS
from quorate.wire.runtime import put_varint
from quorate.wire.schema import Message
from time_budget import examples, one_in
from wire.message_strategies import all_messages, messages, versions

EACH = pytest.mark.parametrize("cls", one_in(4, all_messages()), ids=lambda cls: cls.__name__)
FEW = settings(
    max_examples=examples(20),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
GIB_2 = 2**31 - 1


def decodes_or_refuses(cls: type[Message], version: int, data: bytes) -> None:
    try:
        decode(cls, version, data)
    except WireError as error:
        assert f"{cls.__name__} v{version}" in str(error)


@EACH
@FEW
@given(data=st.data())
def test_mutated_bytes_raise_only_wire_error(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    wire = bytearray(encode(data.draw(messages(cls, version, unknown=True)), version))
    chance = data.draw(st.randoms(use_true_random=False))
    for _ in range(examples(20)):
        mutated = _mutated(wire, chance)
        decodes_or_refuses(cls, version, mutated)


def _mutated(wire: bytearray, chance: random.Random) -> bytes:
    out = bytearray(wire)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(out) + 1)
        action = chance.randrange(4)
        if action == 0 and at < len(out):
            out[at] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))
        elif action == 1:
            del out[at : at + chance.randrange(1, 9)]
        elif action == 2:
            out[at:at] = chance.randbytes(chance.randrange(1, 9))
        else:
            del out[at:]
    return bytes(out)


@EACH
@FEW
@given(data=st.data())
def test_random_bytes_raise_only_wire_error(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    decodes_or_refuses(cls, version, data.draw(st.binary(max_size=64)))


@EACH
@FEW
@given(data=st.data())
def test_every_cut_of_a_message_is_refused(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    wire = encode(data.draw(messages(cls, version)), version)
    for end in range(len(wire)):
        with pytest.raises(WireError, match=f"{cls.__name__} v{version}: cannot read"):
            decode(cls, version, wire[:end])


@given(st.binary(max_size=64))
def test_random_frames_raise_only_wire_error(frame: bytes) -> None:
    for read in (decode_request, peek_header):
        with suppress(WireError):
            read(frame)
    for key in (1, 18, 52, 60):
        for version in (APIS[key].min_version, APIS[key].max_version):
            with suppress(WireError):
                decode_response(frame, key, version)


@given(st.binary(max_size=200), st.integers(1, 20))
def test_random_streams_raise_only_wire_error(stream: bytes, step: int) -> None:
    reader = FrameReader(max_size=50)
    try:
        for start in range(0, len(stream), step):
            for frame in reader.feed(stream[start : start + step]):
                assert len(frame) <= 50
    except WireError as error:
        assert "allowed are 0 to 50" in str(error)


VARINT_2_GIB = b"\xff\xff\xff\xff\x07"
INT_2_GIB = GIB_2.to_bytes(4, "big")


@pytest.mark.parametrize(
    ("cls", "version", "wire", "why"),
    [
        (FetchRequest, 4, bytes(17) + INT_2_GIB + bytes(99), "a list of 2147483647 elements"),
        (VoteRequest, 2, b"\x00" + bytes(4) + VARINT_2_GIB, "a list of 2147483646 elements"),
        (VoteRequest, 2, VARINT_2_GIB + bytes(99), "2147483646 bytes are announced, 99 are left"),
        (SaslAuthenticateRequest, 1, INT_2_GIB + b"x", "2147483647 bytes are announced, 1 are"),
        (VoteRequest, 2, bytes(5) + b"\x01" + VARINT_2_GIB, "2147483647 tagged fields"),
        (VoteRequest, 2, bytes(5) + b"\x01\x01\x09" + VARINT_2_GIB, "2147483647 bytes are"),
    ],
    ids=["classic array", "compact array", "string", "bytes", "tags", "tag"],
)
def test_a_length_of_2_gib_allocates_nothing(
    cls: type[Message], version: int, wire: bytes, why: str
) -> None:
    with pytest.raises(WireError):
        decode(cls, version, b"")  # so that the code of this version is there
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match=why):
            decode(cls, version, wire)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


MILLION = 1_000_000


def int32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def varint(number: int) -> bytes:
    out = bytearray()
    put_varint(out, number)
    return bytes(out)


@pytest.mark.parametrize(
    ("cls", "version", "before", "count", "after"),
    [
        (ElectLeadersRequest, 0, int32(1) + bytes(2), int32, bytes(4)),
        (PartitionRecord, 0, bytes(20), lambda n: varint(n + 1), b"\x01" * 3 + bytes(13)),
    ],
    ids=["classic", "compact"],
)
def test_a_list_has_a_million_elements_at_most(
    cls: type[Message], version: int, before: bytes, count: Callable[[int], bytes], after: bytes
) -> None:
    """Kafka's limit, from 4.4 on; of requests and of metadata records."""
    at_most = before + count(MILLION) + bytes(4 * MILLION) + after
    decode(cls, version, at_most)
    one_more = before + count(MILLION + 1) + bytes(4 * MILLION + 4) + after
    text = (
        "Tried to read a collection of size 1000001, which exceeds the maximum allowed size of "
        r"1000000\."
    )
    with pytest.raises(WireError, match=f"^{cls.__name__} v{version}: cannot read .*: {text}$"):
        decode(cls, version, one_more)


VOTE = bytes(5) + b"\x01"
"""A VoteRequest v2 up to its tagged fields."""


def tags(count: int) -> bytes:
    return b"".join(varint(number) + b"\x00" for number in range(100, 100 + count))


@pytest.mark.parametrize(
    ("wire", "why"),
    [
        (varint(10_001) + tags(10_001), "Tried to read 10001 tagged fields, which exceeds the max"),
        (varint(300) + bytes(99), "Tried to read 300 tagged fields, but there are only 99 bytes"),
        (b"\x01", "Tried to read 1 tagged fields, but there are only 0 bytes remaining."),
        (varint(2**32 - 1), "Invalid negative number of tagged fields -1"),
        (varint(2**31) + bytes(9), "Invalid negative number of tagged fields -2147483648"),
        (varint(2**32) + bytes(9), "the varint is greater than 31 bits"),
    ],
    ids=["too many", "few bytes", "no bytes", "-1", "lowest", "33 bits"],
)
def test_the_number_of_tagged_fields_is_limited(wire: bytes, why: str) -> None:
    with pytest.raises(WireError, match=f"VoteRequest v2: cannot read tagged fields at .*: {why}"):
        decode(VoteRequest, 2, VOTE + wire)


def test_a_struct_may_have_ten_thousand_tagged_fields() -> None:
    found = decode(VoteRequest, 2, VOTE + varint(10_000) + tags(10_000))
    assert len(found.unknown_tags) == 10_000


def test_a_frame_of_2_gib_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="a frame of 2147483647 bytes is announced"):
            FrameReader().feed(INT_2_GIB + b"x")
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        (b"\x02\xff", "cannot read cluster_id at byte 1: it is not valid UTF-8"),
        (b"\x00\x00\x00", "cannot read voter_id at byte 1: the bytes end inside it"),
        (b"", "cannot read cluster_id at byte 0: the bytes end before it"),
        (b"\x05ab", "cannot read cluster_id at byte 1: 4 bytes are announced, 2 are left"),
        (b"\x00" + bytes(4) + b"\x00", "cannot read topics at byte 6: it is null, which"),
        (b"\x00" + bytes(4) + b"\x01\x00z", "it ends at byte 7, but 8 were given"),
        (b"\x80\x80\x80\x80\x80\x01", "cannot read cluster_id at byte 1: the varint is greater"),
        (b"\x80\x80\x80\x80\x08", "the varint is greater than 31 bits"),
    ],
)
def test_the_error_names_message_version_field_and_position(wire: bytes, text: str) -> None:
    with pytest.raises(WireError, match=f"^VoteRequest v2: .*{text}"):
        decode(VoteRequest, 2, wire)


def test_the_error_names_the_field_inside_a_run_of_fixed_ones() -> None:
    wire = encode(DescribeClusterResponse(cluster_id="c"), 2)
    with pytest.raises(WireError, match="cannot read error_code at byte 4: the bytes end inside"):
        decode(DescribeClusterResponse, 2, wire[:5])


def test_a_compact_string_of_more_than_32767_bytes_is_refused() -> None:
    wire = b"\x81\x80\x02" + b"n" * 32768 + bytes(4) + b"\x01\x00"
    with pytest.raises(WireError, match="the string is longer than 32767 bytes"):
        decode(VoteRequest, 2, wire)


def test_a_tagged_field_must_be_as_long_as_it_says() -> None:
    wire = encode(FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=1)), 17)
    assert wire[-16:-13] == b"\x01\x01\x0d"
    longer = wire[:-14] + b"\x0e" + wire[-13:] + b"\x00"
    with pytest.raises(WireError, match="a tagged field is not as long as it says"):
        decode(FetchRequest, 17, longer)


def test_a_tag_of_a_later_version_is_refused_as_kafka_does() -> None:
    wire = encode(FetchRequest(), 14)
    with pytest.raises(WireError, match="it holds a tag that this version does not have"):
        decode(FetchRequest, 14, wire[:-1] + b"\x01\x01\x00")


def test_a_tag_given_twice_counts_as_kafka_counts_it_the_last_time() -> None:
    wire = encode(FetchRequest(), 17)
    twice = wire[:-1] + b"\x02" + b"\x00\x02\x02a" + b"\x00\x02\x02b"
    assert decode(FetchRequest, 17, twice).cluster_id == "b"


def test_half_a_response_is_refused_with_its_place() -> None:
    frame = encode_request(VoteRequest(cluster_id="abc"), 2, 1, "me")[4:]
    with pytest.raises(WireError, match="VoteRequest v2: cannot read voter_id at byte 17"):
        decode_request(frame[:-3])
    with pytest.raises(WireError, match="FetchResponse v17: cannot read throttle_time_ms"):
        decode_response(bytes(5), 1, 17)
    assert isinstance(decode_response(bytes(5) + encode(FetchResponse(), 17), 1, 17)[1], Message)
