"""The longest names that a request can carry: the answer has a code and a reason, and the node goes on."""

from collections.abc import Iterator
from typing import Any

import pytest

from node.world import World
from quorate.base.ids import Uuid
from quorate.node.apis import API_TABLE
from quorate.node.long_texts import shorten_error_messages
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire.messages import CreateTopicsResponse, UpdateFeaturesResponse
from quorate.wire.registry import APIS
from quorate.wire.schema import Field, Struct

LONGEST = 32_767
CONNECTION = {"SaslHandshake", "SaslAuthenticate", "Envelope"}
VALUES: dict[str, Any] = {
    "resource_type": 2,
    "resource_pattern_type": 3,
    "operation": 3,
    "permission_type": 3,
    "mechanism": 1,
    "iterations": 4096,
    "num_partitions": 1,
    "replication_factor": 1,
    "principal": "User:a",
    "topic_id": Uuid(bytes(16)),
    "error_message": None,
}
"""Values with which a request comes as far as its names."""


@pytest.fixture(scope="module")
def world():
    world = World((1,), authorizer=AuthorizerConfig(frozenset({"User:ANONYMOUS"})))
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    return world


def strings(cls: type[Struct], version: int, *before: Field) -> Iterator[tuple[Field, ...]]:
    """The way to each string of a message."""
    for field in cls.schema.fields:
        if field.in_version(version):
            if "string" in (field.type_name, field.element):
                yield (*before, field)
            elif field.holds_structs:
                yield from strings(field.struct, version, *before, field)


def made(cls: type[Struct], version: int) -> Any:
    message: Any = cls()
    for field in message.schema.fields:
        if field.name in VALUES:
            setattr(message, field.name, VALUES[field.name])
        elif field.type_name == "string" and field.in_version(version):
            setattr(message, field.name, "a")
    return message


def with_text(cls: type[Struct], version: int, way: tuple[Field, ...], text: str) -> Any:
    """A message with one element in each array on the way to this text."""
    top = inner = made(cls, version)
    *outer, last = way
    for field in outer:
        child = made(field.struct, version)
        setattr(inner, field.name, [child] if field.type_name == "array" else child)
        inner = child
    setattr(inner, last.name, [text] if last.type_name == "array" else text)
    return top


@pytest.mark.parametrize("row", API_TABLE.values(), ids=lambda row: row.name)
def test_a_request_with_the_longest_text_is_answered(world, row):
    """In each of its fields, on its newest version; a message of an error may repeat the text."""
    api = APIS[row.key]
    if row.name in CONNECTION:
        return
    for way in strings(api.request, api.max_version):
        for text in ("a" * LONGEST, "User:" + "b" * (LONGEST - 5), "é" * (LONGEST // 2)):
            request = with_text(api.request, api.max_version, way, text)
            got = world.call(1, request, api.max_version)
            world.run_until(lambda got=got: got or world.closed)
            assert got and not world.closed, way[-1].name
    assert world.active and world.active.faulted is None


def test_only_the_middle_of_a_message_that_is_too_long_is_cut():
    topic = CreateTopicsResponse.CreatableTopicResult
    long = "it begins " + "x" * LONGEST + " it ends"
    response = CreateTopicsResponse(
        topics=[topic(name="a", error_message=long), topic(name="b", error_message="short")]
    )
    assert shorten_error_messages(response)
    cut, short = (each.error_message for each in response.topics)
    assert short == "short" and cut is not None and len(cut) < 3_000
    assert cut.startswith("it begins x") and cut.endswith("x it ends") and " ... " in cut
    assert not shorten_error_messages(response)
    assert not shorten_error_messages(UpdateFeaturesResponse(error_message=None))
