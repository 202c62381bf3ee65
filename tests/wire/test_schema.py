"""What a declared class is to those who use it."""

from __future__ import annotations

from typing import get_type_hints

import pytest

from quorate.base.ids import ZERO_UUID, Uuid
from quorate.wire import messages
from quorate.wire.codec import decode, encode
from quorate.wire.messages import ApiVersionsRequest, FetchRequest, UpdateRaftVoterRequest
from quorate.wire.schema import (
    Field,
    Message,
    Struct,
    array,
    batches,
    binary,
    float64,
    int16,
    int32,
    string,
    struct,
    uint32,
)
from wire.message_strategies import all_messages, structs_of

PARTITION = FetchRequest.FetchTopic.FetchPartition


class Everything(Message, kind="data", versions=(0, 2), flexible=2):
    """The words that no message of a controller uses."""

    class Inner(Struct):
        number: int = int32()

    maybe: Inner | None = struct(Inner, nullable=1, default=None)
    counter: int = uint32()
    numbers: list[int] = array("int16")
    floats: list[float] = array("float64")
    blobs: list[bytes] = array("bytes")
    ratio: float = float64(since=1)
    batch: bytes | None = batches(nullable=0)
    old_text: str | None = string(nullable=0, flexible=False)
    maybe_bytes: bytes | None = binary(nullable=0)
    late: int = int16(since=1, until=1, ignorable=True)


def test_every_field_has_a_default() -> None:
    request = FetchRequest()
    assert request.cluster_id is None
    assert request.max_bytes == 0x7FFFFFFF
    assert request.topics == []
    assert request.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    assert PARTITION().replica_directory_id == ZERO_UUID
    assert request.unknown_tags == ()


def test_default_lists_and_structs_are_not_shared() -> None:
    one, other = FetchRequest(), FetchRequest()
    one.topics.append(FetchRequest.FetchTopic())
    one.replica_state.replica_id = 7
    assert other == FetchRequest()


def test_equality_is_by_type_fields_and_unknown_tags() -> None:
    assert PARTITION(partition=1) == PARTITION(partition=1)
    assert PARTITION(partition=1) != PARTITION(partition=2)
    assert PARTITION() != PARTITION(unknown_tags=((7, b""),))
    assert ApiVersionsRequest() != FetchRequest()
    with pytest.raises(TypeError, match="unhashable"):
        hash(PARTITION())


def test_a_typing_error_is_refused() -> None:
    with pytest.raises(TypeError, match="clutser_id"):
        FetchRequest(clutser_id="c")  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        FetchRequest().clutser_id = "c"  # type: ignore[attr-defined]


def test_replace_makes_a_changed_copy() -> None:
    request = FetchRequest(cluster_id="c", unknown_tags=((9, b"x"),))
    changed = request.replace(max_wait_ms=5)
    assert changed == FetchRequest(cluster_id="c", max_wait_ms=5, unknown_tags=((9, b"x"),))
    assert request.max_wait_ms == 0


def test_repr_shows_the_fields() -> None:
    text = repr(ApiVersionsRequest(client_software_name="q", unknown_tags=((1, b"z"),)))
    assert text == (
        "ApiVersionsRequest(client_software_name='q', client_software_version='',"
        " cluster_id=None, node_id=-1, unknown_tags=((1, b'z'),))"
    )


def test_json_names_are_kafkas() -> None:
    names = [field.json_name for field in UpdateRaftVoterRequest.schema.fields]
    assert names[:3] == ["clusterId", "currentLeaderEpoch", "voterId"]
    assert names[-1] == "kRaftVersionFeature"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_words_that_no_controller_message_uses(version: int) -> None:
    message = Everything(
        counter=2**32 - 1,
        numbers=[-1, 300],
        floats=[0.5, -1e300],
        blobs=[b"", b"abc"],
        batch=b"batch",
        old_text="old",
        maybe_bytes=None,
    )
    message.maybe = Everything.Inner(number=7)
    if version:
        message.ratio = 2.5
    assert decode(Everything, version, encode(message, version)) == message


def test_nullable_structs_have_a_byte_before_them() -> None:
    null, there = Everything(maybe=None), Everything(maybe=Everything.Inner(number=1))
    assert encode(null, 1)[:1] == b"\xff"
    assert encode(there, 1)[:5] == b"\x01\x00\x00\x00\x01"


@pytest.mark.parametrize("cls", [*all_messages(), Everything], ids=lambda cls: cls.__name__)
def test_annotations_say_the_same_as_the_words(cls: type[Message]) -> None:
    for inner in structs_of(cls):
        hints = get_type_hints(inner, localns=dict(vars(inner)))
        for field in inner.schema.fields:
            assert hints[field.name] == _annotation(field), f"{inner.__qualname__}.{field.name}"


_PYTHON: dict[str, object] = {
    "bool": bool,
    "float64": float,
    "uuid": Uuid,
    "string": str,
    "bytes": bytes,
    "records": bytes,
}


def _annotation(field: Field) -> object:
    element = field.element
    if isinstance(element, str) or element is None:
        found = _PYTHON.get(element or field.type_name, int)
    else:
        found = element
    if field.type_name == "array":
        found = list[found]  # type: ignore[valid-type]
    return found | None if field.nullable is not None else found  # type: ignore[operator]


def test_messages_are_all_within_reach_and_no_others() -> None:
    for cls in all_messages():
        assert getattr(messages, cls.__name__) is cls
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        messages.NoSuchRequest  # noqa: B018
