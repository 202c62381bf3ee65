"""Messages whose long list is encoded part by part: the bytes are those of the whole message."""

import pytest

from narrow import as_any
from quorate.wire.codec import encode
from quorate.wire.errors import EncodeError
from quorate.wire.long_messages import MessageParts, long_list
from quorate.wire.messages import CreateTopicsResponse
from quorate.wire.registry import APIS

LISTS = [
    (api.response, version, field)
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
    for field in api.response.schema.fields
    if field.type_name == "array" and field.holds_structs and field.tag is None
    if field.in_version(version)
]


@pytest.mark.parametrize("count", [0, 1, 126, 127, 300])
def test_parts_are_the_whole(count):
    for cls, version, field in LISTS:
        message = as_any(cls)(**{field.name: [field.struct() for _ in range(count)]})
        parts = MessageParts(message, version, field.name)
        rows = getattr(message, field.name)
        for start in range(0, count, 100):
            parts.add(rows[start : start + 100])
        assert parts.joined() == encode(message, version), (cls, version)
        assert long_list(message, 126) == (field.name if count > 126 else None)


@pytest.mark.parametrize("count", [0, 1, 127, 300])
def test_a_row_with_a_long_list_of_its_own_is_encoded_in_parts(count):
    compared = 0
    for cls, version, field in LISTS:
        for inner in field.struct.schema.fields:
            if inner.type_name != "array" or not inner.holds_structs or inner.tag is not None:
                continue
            if not inner.in_version(version):
                continue
            row = as_any(field.struct)(**{inner.name: [inner.struct() for _ in range(count)]})
            message = as_any(cls)(**{field.name: [field.struct(), row, field.struct()]})
            parts = MessageParts(message, version, field.name)
            parts.add([field.struct()])
            rows = parts.begin(row, inner.name)
            for start in range(0, count, 100):
                rows.add(getattr(row, inner.name)[start : start + 100])
            rows.end()
            parts.add([field.struct()])
            assert parts.joined() == encode(message, version), (cls, version)
            compared += 1
    assert compared > 20


def test_a_part_that_cannot_be_encoded_is_left_out():
    row = CreateTopicsResponse.CreatableTopicResult
    message = CreateTopicsResponse(topics=[row(name="a")])
    parts = MessageParts(message, 7, "topics")
    parts.add(message.topics)
    with pytest.raises(EncodeError):
        parts.add([row(name="b" * 40_000)])
    assert parts.joined() == encode(message, 7)
