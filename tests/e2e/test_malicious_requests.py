"""Malicious requests to a node that runs: as large as they may be, or larger."""

import struct

import pytest

from e2e.refusing import (
    acl,
    assigned,
    configs,
    running,
    said,
    topic,
    topics,
)
from interop.kafka import HOST, wait_for
from quorate.base.errors import ErrorCode as E
from quorate.base.ids import Address
from quorate.client.connection import Connection
from quorate.node.api_row import BULK_REQUEST_BYTES
from quorate.wire import messages as m
from quorate.wire.header import decode_response, encode_request
from quorate.wire.registry import APIS

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("refused")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running(tmp_path_factory.mktemp("malicious")) as cluster:
        yield cluster


def many(build, size):
    """A request of about as many items as fit a frame of `size` bytes."""
    return build(size * 900 // len(frame_of(build(1_000))))


def frame_of(message):
    return encode_request(message, APIS[message.schema.key].max_version, 1, "test")


def million(count):
    return assigned(*((index, [1]) for index in range(count)))


def entries(count):
    one = acl().creations[0]
    return m.CreateAclsRequest(creations=[one] * count)


def names(count):
    state = m.DeleteTopicsRequest.DeleteTopicState
    topics = [state(name=f"t{number}") for number in range(count)]
    return m.DeleteTopicsRequest(topics=topics, timeout_ms=60_000)


def nameless(count):
    return topics(*[topic("")] * count)


LARGE = {
    "partitions with their replicas": (million, E.POLICY_VIOLATION),
    "entries without a principal": (
        lambda n: m.CreateAclsRequest(creations=[acl(principal="").creations[0]] * n),
        E.INVALID_REQUEST,
    ),
    "unknown topics": (names, E.UNKNOWN_TOPIC_OR_PARTITION),
    "topics without a name": (nameless, E.INVALID_REQUEST),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_request_of_a_megabyte_is_refused_as_a_whole(cluster, name):
    build, error = LARGE[name]
    before = cluster.end
    response = cluster.ask(many(build, BULK_REQUEST_BYTES))
    assert {code for code, _ in said(response)} == {error}
    assert cluster.end == before


def with_string(size):
    """A CreateTopics of version 7 whose topic has a name of so many bytes."""
    frame = frame_of(topics(topic("")))
    head, tail = frame[4:].split(b"\x02\x01", 1)
    length = size + 1
    varint = bytes([length & 0x7F | 0x80, length >> 7 & 0x7F | 0x80, length >> 14])
    data = head + b"\x02" + varint + b"a" * size + tail
    return struct.pack(">i", len(data)) + data


TOO_LARGE = "has 1048576 bytes at most here"
REFUSED = {
    "10 MB of entries": lambda: entries(500_000),
    "200,000 partitions": lambda: million(200_000),
    "5,000 long names": lambda: topics(*[topic("n" * 249)] * 5_000),
    "100,000 names to delete": lambda: names(100_000),
    "a config for 100,000 topics": lambda: configs_of(100_000),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_larger_than_may_be_is_refused_and_the_connection_goes_on(cluster, name):
    message = REFUSED[name]()
    before = cluster.end
    with Connection(Address(HOST, cluster.port), "malicious", 30_000) as connection:
        answer = APIS[message.schema.key].response
        found = list(said(connection.call(message, answer, 30_000)))
        assert found and {code for code, _ in found} == {E.POLICY_VIOLATION}
        assert all(TOO_LARGE in text for _, text in found[:5])
        assert all(not text or TOO_LARGE in text for _, text in found[5:])
        quotas = connection.call(
            m.DescribeClientQuotasRequest(), m.DescribeClientQuotasResponse, 30_000
        )
        assert quotas.error_code == 0
    assert cluster.end == before


def configs_of(count):
    one = configs(2, "orders").resources[0]
    return m.IncrementalAlterConfigsRequest(resources=[one] * count)


TOO_LONG = "the string is longer than 32767 bytes"
CLOSED = {
    "a name of 64 KiB": (lambda: with_string(64 * 1024), TOO_LONG),
    "a name of 32,768 bytes": (lambda: with_string(32_768), TOO_LONG),
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_name_that_no_string_holds_closes_the_connection_with_a_word_in_the_log(cluster, name):
    node = cluster.quorum.nodes[1]
    before, logged = cluster.end, len(node.log)
    frame, words = CLOSED[name]
    assert cluster.answer(frame()) is None
    wait_for(lambda: words in node.log[logged:], "a word of it")
    assert cluster.end == before


def test_the_longest_name_is_refused_with_its_reason(cluster):
    frame = cluster.answer(with_string(32_767))
    assert frame is not None
    [(code, text)] = said(decode_response(frame, 19, 7)[1])
    assert code == E.INVALID_TOPIC_EXCEPTION
    assert text.startswith("Topic name is invalid") and text.endswith("249")
    assert "Traceback" not in cluster.quorum.nodes[1].log
