"""Requests that are too long: each API answers with its response, an error and the limit."""

import struct

import pytest

from narrow import not_none
from quorate.base.errors import ErrorCode as E
from quorate.controller.building import at_once
from quorate.node.apis import API_TABLE, ROWS
from quorate.node.envelope import unwrap
from quorate.node.long_requests import envelope_of_long_request, long_request_response
from quorate.node.request_limits import REFUSED_BYTES
from quorate.node.requests import ENVELOPE, Call
from quorate.wire import messages as m
from quorate.wire.codec import encode
from quorate.wire.errors import WireError
from quorate.wire.header import WireRequest, decode_response, encode_request
from quorate.wire.registry import APIS

MIB = 1024 * 1024
TOO_LONG = 9 * MIB
VALUES = {"string": "x", "uuid": bytes(16)}
"""Of lists; a number otherwise."""
FETCH_ERROR_SINCE = 7
"""The first version of Fetch with an error of the whole request. No replica sends an older one."""


def errors(item):
    """Every (code, message) of an error in a response; the message is None where there is no place."""
    code = getattr(item, "error_code", 0)
    if code:
        yield E(code), getattr(item, "error_message", None)
    for field in item.schema.fields:
        if field.type_name == "array" and field.holds_structs:
            for each in getattr(item, field.name) or ():
                yield from errors(each)


def some_items(cls, version=None):
    """A request with three items in each of its lists, and so on."""
    values = {}
    for field in cls.schema.fields:
        if field.type_name == "array" and (version is None or field.in_version(version)):
            if field.holds_structs:
                values[field.name] = [some_items(field.struct, version) for _ in range(3)]
            else:
                values[field.name] = [VALUES.get(field.element, 1)] * 3
    return cls(**values)


def refused(message, version=None, size=TOO_LONG):
    key = message.schema.key
    version = APIS[key].max_version if version is None else version
    frame = encode_request(message, version, 7, "test")[4:]
    answer = long_request_response(frame[:REFUSED_BYTES], size)
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    correlation_id, response = decode_response(answer[4:], key, version)
    assert correlation_id == 7
    return response


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.key != ENVELOPE], ids=lambda row: row.name
)
def test_each_version_of_each_api_refuses_what_is_too_long(row):
    """A response without an error would say that the request is done."""
    api = APIS[row.key]
    text = f"A request of {row.name} has {row.max_bytes} bytes at most here, not {TOO_LONG}."
    code = E.INVALID_REQUEST if row.operation is None else E.POLICY_VIOLATION
    first = FETCH_ERROR_SINCE if row.key == 1 else api.min_version
    for version in range(first, api.max_version + 1):
        response = refused(some_items(api.request, version), version)
        found = list(errors(response))
        assert found and {error for error, _ in found} == {code}
        assert {said for _, said in found} <= {text, None, ""}, found


@pytest.mark.parametrize(
    ("message", "codes"),
    [
        (some_items(m.CreateTopicsRequest), 3),
        (some_items(m.CreateAclsRequest), 3),
        (some_items(m.DeleteAclsRequest), 3),
        (some_items(m.IncrementalAlterConfigsRequest), 3),
        (some_items(m.AlterConfigsRequest), 3),
        (some_items(m.DeleteTopicsRequest, 6), 3),
        (some_items(m.AlterClientQuotasRequest), 3),
        (some_items(m.DescribeConfigsRequest), 3),
        (some_items(m.UpdateFeaturesRequest), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_message_says_how_long_the_request_may_be(message, codes):
    found = list(errors(refused(message)))
    most = API_TABLE[message.schema.key].max_bytes
    assert len(found) >= codes
    assert all(f"has {most} bytes at most here, not {TOO_LONG}" in said for _, said in found)


def test_the_topics_at_the_beginning_are_named():
    cls = m.CreateTopicsRequest.CreatableTopic
    names = [f"topic-{number}" for number in range(1_000)]
    response = refused(m.CreateTopicsRequest(topics=[cls(name=name) for name in names]))
    found = [topic.name for topic in response.topics]
    assert 100 < len(found) < 1_000
    assert found == names[: len(found)]


def test_a_topic_of_a_million_partitions_is_named():
    cls = m.CreateTopicsRequest.CreatableTopic
    one = cls.CreatableReplicaAssignment(partition_index=1, broker_ids=[1])
    topic = cls(name="wide", num_partitions=-1, replication_factor=-1, assignments=[one] * 1_000)
    [answer] = refused(m.CreateTopicsRequest(topics=[topic])).topics
    assert (answer.name, answer.error_code) == ("wide", E.POLICY_VIOLATION)


# -- in an Envelope --------------------------------------------------------------------------------
def inside(message, version=None):
    key = message.schema.key
    return encode_request(message, version or APIS[key].max_version, 9, "client")[4:]


def test_the_client_of_a_broker_learns_the_limit_too():
    data = inside(some_items(m.CreateTopicsRequest)).ljust(MIB, b"\0")
    envelope = encode_request(
        m.EnvelopeRequest(request_data=data, request_principal=b"", client_host_address=b""),
        0,
        7,
        "b",
    )[4:]
    answer = long_request_response(envelope[:REFUSED_BYTES], len(envelope))
    correlation_id, outer = decode_response(answer[4:], ENVELOPE, 0)
    assert isinstance(outer, m.EnvelopeResponse)
    assert (correlation_id, outer.error_code) == (7, E.NONE)
    correlation_id, response = decode_response(not_none(outer.response_data), 19, 7)
    assert correlation_id == 9
    text = f"A request of Envelope has {MIB} bytes at most here, not {len(envelope)}."
    assert list(errors(response)) == [(E.POLICY_VIOLATION, text)] * 3


def test_the_limit_is_that_of_the_request_inside_where_it_is_too_long():
    outer = envelope_of_long_request(inside(some_items(m.UpdateFeaturesRequest)), 70_000)
    _, response = decode_response(not_none(outer.response_data), 57, APIS[57].max_version)
    text = "A request of UpdateFeatures has 65536 bytes at most here, not 70000."
    assert list(errors(response)) == [(E.POLICY_VIOLATION, text)]


def test_a_node_answers_for_the_request_in_an_envelope_of_a_size_that_may_be():
    data = inside(some_items(m.UpdateFeaturesRequest)).ljust(70_000, b"\0")
    message = m.EnvelopeRequest(
        request_data=data,
        request_principal=bytes(2) + encode(m.DefaultPrincipalData(type="User", name="a"), 0),
        client_host_address=bytes(4),
    )
    opened = at_once(unwrap(Call(1, WireRequest(ENVELOPE, 0, 7, "b", message), "CONTROLLER")))
    assert isinstance(opened, m.EnvelopeResponse)
    assert opened == envelope_of_long_request(data[:REFUSED_BYTES], 70_000)
    assert opened.response_data is not None


@pytest.mark.parametrize(
    "data",
    [
        inside(m.FetchRequest()),
        struct.pack(">hhi", 9999, 0, 7) + bytes(100),
        struct.pack(">hhi", 19, 7, 7) + b"\xff" * 100,
        b"\0\0",
        b"",
    ],
    ids=["not forwardable", "no API", "no message", "no header", "nothing"],
)
def test_an_envelope_around_what_has_no_response_is_invalid(data):
    assert envelope_of_long_request(data, TOO_LONG).error_code == E.INVALID_REQUEST
    body = encode(m.EnvelopeRequest(request_data=data + bytes(MIB)), 0)
    head = struct.pack(">hhi", ENVELOPE, 0, 7) + b"\xff\xff\0"
    answer = long_request_response((head + body)[:REFUSED_BYTES], TOO_LONG)
    _, outer = decode_response(answer[4:], ENVELOPE, 0)
    assert isinstance(outer, m.EnvelopeResponse)
    assert outer.error_code == E.INVALID_REQUEST


def test_a_request_that_cannot_be_read_so_far_has_no_response():
    nameless = encode_request(some_items(m.CreateAclsRequest), 3, 7, "t")[4:]
    with pytest.raises(WireError, match="A request of CreateAcls has"):
        long_request_response(nameless[:16], TOO_LONG)
    for data in (b"\xff" * 100, struct.pack(">h", 30_000), struct.pack(">h", 1) + b"a\xff"):
        with pytest.raises(WireError):
            long_request_response(struct.pack(">hhi", 19, 7, 7) + data, TOO_LONG)


@pytest.mark.parametrize("row", [row for row in ROWS if row.forwardable], ids=lambda row: row.name)
def test_an_envelope_around_a_long_request_of_no_version_is_refused(row):
    """It stopped the active controller: the response could not be encoded."""
    api = APIS[row.key]
    for version in (-1, api.min_version - 1, api.max_version + 1, 32_767):
        start = struct.pack(">hhi", row.key, version, 7) + bytes(REFUSED_BYTES)
        answer = envelope_of_long_request(start, TOO_LONG)
        assert answer.error_code == E.UNSUPPORTED_VERSION and answer.response_data is None
