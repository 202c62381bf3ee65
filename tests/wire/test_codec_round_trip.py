"""Every message of every version comes back from its bytes as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from narrow import as_any
from quorate.wire.codec import decode, decode_prefix, encode
from quorate.wire.errors import EncodeError, UnsupportedFieldError, WireError
from quorate.wire.messages import FetchRequest, FetchResponse, UpdateRaftVoterResponse
from quorate.wire.schema import Field, Message, Struct
from time_budget import examples
from wire.message_strategies import (
    all_messages,
    all_versions,
    messages,
    other_value,
    stored_messages,
    versions,
)

EACH = pytest.mark.parametrize(
    "cls", [*all_messages(), *stored_messages()], ids=lambda cls: cls.__name__
)
FEW = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
PARTITION = FetchRequest.FetchTopic.FetchPartition


@EACH
@FEW
@given(data=st.data())
def test_any_message_round_trips_in_any_version(cls: type[Message], data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(versions(cls)))
    message = data.draw(messages(cls, version, unknown=True))
    wire = encode(message, version)
    assert decode(cls, version, wire) == message
    assert decode_prefix(cls, version, b"ab" + wire + b"c", 2) == (message, 2 + len(wire))
    assert decode(cls, version, memoryview(wire)) == message


@pytest.mark.parametrize(
    ("cls", "version"),
    list(all_versions()),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_new_message_round_trips(cls: type[Message], version: int) -> None:
    assert decode(cls, version, encode(cls(), version)) == cls()


@EACH
def test_fields_that_a_version_lacks_are_dropped_only_when_ignorable(cls: type[Message]) -> None:
    for version in versions(cls):
        for message, field in _with_one_absent_field(cls, version):
            if field.ignorable:
                assert decode(cls, version, encode(message, version)) != message
            else:
                with pytest.raises(UnsupportedFieldError, match=field.name):
                    encode(message, version)


def _with_one_absent_field(cls: type[Message], version: int) -> list[tuple[Message, Field]]:
    """For each field in `cls` that `version` lacks: a message in which only it is set."""
    return [(cls(**as_any(changes)), field) for changes, field in _changes(cls, version)]


def _changes(cls: type[Struct], version: int) -> list[tuple[dict[str, object], Field]]:
    found: list[tuple[dict[str, object], Field]] = []
    for field in cls.schema.fields:
        if not field.in_version(version):
            found.append(({field.name: other_value(field)}, field))
        elif field.holds_structs:
            for inner, absent in _changes(field.struct, version):
                value = field.struct(**inner)
                found.append(
                    ({field.name: [value] if field.type_name == "array" else value}, absent)
                )
    return found


def test_unknown_tags_are_written_back_in_order() -> None:
    message = FetchRequest(
        cluster_id="c",
        unknown_tags=((9, b"nine"), (300, b"")),
        topics=[FetchRequest.FetchTopic(unknown_tags=((5, b"five"),))],
    )
    again = decode(FetchRequest, 17, encode(message, 17))
    assert again.unknown_tags == ((9, b"nine"), (300, b""))
    assert again.topics[0].unknown_tags == ((5, b"five"),)


def test_unknown_tags_in_any_order_are_kept_and_written_ascending() -> None:
    ascending = encode(UpdateRaftVoterResponse(unknown_tags=((1, b"a"), (2, b"b"))), 0)
    shuffled = ascending[:-6] + b"\x02\x01b" + b"\x01\x01a"
    assert encode(decode(UpdateRaftVoterResponse, 0, shuffled), 0) == ascending


def test_a_version_without_tags_refuses_to_lose_unknown_ones() -> None:
    with pytest.raises(UnsupportedFieldError, match="v11: unknown_tags is set"):
        encode(FetchRequest(unknown_tags=((9, b"nine"),)), 11)


def test_an_unknown_tag_cannot_take_the_place_of_a_known_one() -> None:
    with pytest.raises(EncodeError, match=r"holds tags that are taken: \[0\]"):
        encode(FetchRequest(cluster_id="c", unknown_tags=((0, b"x"),)), 17)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"max_wait_ms": 2**31}, "max_wait_ms is 2147483648, but an int32 goes from"),
        ({"isolation_level": -129}, "isolation_level is -129, but an int8 goes from -128 to 127"),
        ({"rack_id": None}, "rack_id is null, which this version does not allow"),
        ({"rack_id": 7}, "rack_id must be a str, not 7"),
        ({"rack_id": "n" * 32768}, "rack_id has 32768 bytes of UTF-8, but a string has at most"),
        ({"rack_id": "\ud800"}, "rack_id is not text that UTF-8 can write"),
        ({"topics": None}, "topics is null"),
        ({"topics": "abc"}, "topics must be a list, not 'abc'"),
        ({"topics": [7]}, r"topics\[0\] must be a FetchRequest.FetchTopic, not 7"),
        (
            {"topics": [FetchRequest.FetchTopic(topic_id=as_any(b"short"))]},
            r"topics\[0\].topic_id has 5 bytes, but a uuid has 16",
        ),
        (
            {
                "topics": [
                    FetchRequest.FetchTopic(
                        partitions=[PARTITION(), PARTITION(partition=as_any("1"))]
                    )
                ]
            },
            r"topics\[0\].partitions\[1\].partition must be an int, not '1'",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_place(change: dict[str, Any], text: str) -> None:
    with pytest.raises(EncodeError, match=f"^FetchRequest v17: {text}"):
        encode(FetchRequest(**change), 17)


def test_versions_that_do_not_exist_are_refused() -> None:
    with pytest.raises(EncodeError, match="FetchRequest has versions 4 to 18, not 3"):
        encode(FetchRequest(), 3)
    with pytest.raises(WireError, match="FetchRequest has versions 4 to 18, not 19"):
        decode(FetchRequest, 19, b"")


def test_bytes_fields_take_any_buffer() -> None:
    partition = FetchResponse.FetchableTopicResponse.PartitionData
    topic = FetchResponse.FetchableTopicResponse

    def response(records: Any) -> FetchResponse:
        return FetchResponse(responses=[topic(partitions=[partition(records=records)])])

    expected = encode(response(b"batch"), 17)
    assert encode(response(memoryview(b"batch")), 17) == expected
    assert encode(response(bytearray(b"batch")), 17) == expected
