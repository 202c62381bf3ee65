"""One connection: version negotiation, and nodes with invalid or missing responses."""

import socket
import ssl
import threading

import pytest

from client.fake_node import HANG_UP, SILENCE, FakeNode
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.connection import ClientSecurity, Connection
from quorate.client.errors import (
    ClientError,
    ConnectError,
    NoResponseError,
    SilentNodeError,
    TlsRefusedError,
    UnsupportedVersionError,
)
from quorate.wire.header import encode_response
from quorate.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def connect(node, timeout_ms=2000):
    return Connection(node.address, "test", timeout_ms)


def ask(connection, timeout_ms=2000, at_least=0):
    return connection.call(DescribeClusterRequest(), DescribeClusterResponse, timeout_ms, at_least)


def test_a_request_gets_its_response():
    with FakeNode({"DescribeClusterRequest": [DescribeClusterResponse(cluster_id="c")]}) as node:
        with connect(node) as connection:
            assert ask(connection).cluster_id == "c"
            assert ask(connection).cluster_id == "c"
        first = node.requests[0]
        assert (first.api_key, first.version, first.client_id) == (18, 5, "test")
        assert isinstance(first.message, ApiVersionsRequest)
        assert first.message.client_software_name == "quorate"


@pytest.mark.parametrize(("offered", "used"), [((0, 0), 0), ((0, 1), 1), ((1, 99), 2)])
def test_the_newest_common_version_is_used(offered, used):
    answers = {"DescribeClusterRequest": [DescribeClusterResponse(cluster_id="c")]}
    with FakeNode(answers, {60: offered}) as node, connect(node) as connection:
        assert ask(connection).cluster_id == "c"
        assert node.requests[-1].version == used


@pytest.mark.parametrize("offered", [{}, {60: (3, 4)}])
def test_an_unsupported_request_is_an_error(offered):
    with FakeNode({}, offered) as node, connect(node) as connection:
        with pytest.raises(UnsupportedVersionError, match="does not support DescribeCluster"):
            ask(connection)
        assert len(node.requests) == 1


def test_a_version_without_the_needed_field_is_an_error():
    with FakeNode({}, {60: (0, 0)}) as node, connect(node) as connection:
        with pytest.raises(UnsupportedVersionError, match="in version 1 or later"):
            ask(connection, at_least=1)
        assert connection.supports(60, 0)
        assert not connection.supports(60, 1)


def test_api_versions_falls_back_to_version_0():
    key = ApiVersionsResponse.ApiVersion(api_key=60, min_version=0, max_version=2)
    answers = {
        "ApiVersionsRequest": [
            ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION),
            ApiVersionsResponse(api_keys=[key]),
        ]
    }
    with FakeNode(answers) as node, connect(node) as connection:
        assert connection.supports(60, 2)
        assert [request.version for request in node.requests] == [5, 0]


def test_api_versions_is_repeated_in_the_version_that_the_node_names():
    """Kafka 4.3 has version 4, with the features that version 0 lacks."""
    own = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=4)
    level = ApiVersionsResponse.FinalizedFeatureKey(name="metadata.version", max_version_level=30)
    answers = {
        "ApiVersionsRequest": [
            ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own]),
            ApiVersionsResponse(api_keys=[own], finalized_features=[level]),
        ]
    }
    with FakeNode(answers) as node, connect(node) as connection:
        assert [request.version for request in node.requests] == [5, 4]
        assert connection.features.finalized_features == [level]


def test_a_refused_api_versions_is_an_error():
    refusal = ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with (
        FakeNode({"ApiVersionsRequest": [refusal]}) as node,
        pytest.raises(NoResponseError, match="CLUSTER_AUTHORIZATION_FAILED"),
    ):
        connect(node)


def test_a_refused_connection_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname()[:2])
    with pytest.raises(ConnectError, match=f"Cannot connect to {address}: Connection refused"):
        Connection(address, "test", 1000)


def test_an_unknown_host_is_an_error():
    with pytest.raises(ConnectError, match=r"Cannot connect to nowhere.invalid:1: "):
        Connection(Address("nowhere.invalid", 1), "test", 1000)


@pytest.mark.parametrize("host", ["..", "a" * 300])
def test_an_invalid_host_name_is_an_error(host):
    """A node passes on host names that others registered, even invalid ones."""
    with pytest.raises(ConnectError, match=r"Cannot connect to .*label (empty or )?too long"):
        Connection(Address(host, 1), "test", 1000)


BAD_ANSWERS = {
    "hang up": (HANG_UP, "broke: the node closed it.*TLS.*PLAINTEXT"),
    "silence": (SILENCE, "did not answer within 100 ms"),
    "half a frame": (b"\0\0\0\x20half", "did not answer within 100 ms"),
    "a web server": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks HTTP: is this the port of a me"),
    "garbage": (b"Hello, who is there?", "sent an invalid response"),
    "2 GiB": (b"\x7f\xff\xff\xff", "sent an invalid response"),
    "negative": (b"\xff\xff\xff\xff", "sent an invalid response"),
    "cut short": (b"\0\0\0\x06\0\0\0\x01\0\0", "sent an invalid response"),
    "another's": (
        encode_response(ApiVersionsResponse(), 18, 4, 99),
        "sent the response to another request",
    ),
}


@pytest.mark.parametrize("record", [b"\x15\x03\x03\0\x02\x02\x46", b"\x15\x03\x01"])
def test_a_node_that_answers_plaintext_with_an_alert_is_not_asked_again(record):
    """As a TLS server of OpenSSL or Java does. In two pieces, too."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname()[:2])

        def answer():
            with server.accept()[0] as peer:
                peer.recv(1000)
                peer.sendall(record)
                peer.sendall(b"\0" * 5)

        thread = threading.Thread(target=answer)
        thread.start()
        text = (
            f"Cannot connect to {address}: the node expects TLS, .* security.protocol=SSL or SASL_"
        )
        with pytest.raises(TlsRefusedError, match=text):
            Connection(address, "test", 5000)
        thread.join(5)


@pytest.mark.parametrize("tls", [None, ssl.create_default_context()], ids=["plaintext", "tls"])
def test_a_silent_node_has_another_error_than_one_that_hangs_up_or_is_not_there(tls):
    """By the kind of the error; over TLS the node is silent in the handshake."""

    def failure(address):
        with pytest.raises(ClientError) as failed:
            Connection(address, "test", 100, ClientSecurity(tls))
        return failed.value

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address(*silent.getsockname())
        assert isinstance(failure(address), SilentNodeError)
    assert not isinstance(failure(address), SilentNodeError)
    if tls is None:
        with FakeNode({"ApiVersionsRequest": [HANG_UP]}) as node:
            assert not isinstance(failure(node.address), SilentNodeError)


@pytest.mark.parametrize(("answer", "message"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_an_invalid_response_is_an_error(answer, message):
    with (
        FakeNode({"ApiVersionsRequest": [answer]}) as node,
        pytest.raises(NoResponseError, match=message),
    ):
        connect(node, timeout_ms=100)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            HANG_UP,
            r"broke: the node closed it \(is it a SASL listener\? Then set security.protocol",
        ),
        BAD_ANSWERS["silence"],
    ],
    ids=["end", "silence"],
)
def test_a_node_that_stops_answering_times_out(answer, message):
    with (
        FakeNode({"DescribeClusterRequest": [answer]}) as node,
        connect(node) as connection,
        pytest.raises(NoResponseError, match=message),
    ):
        ask(connection, timeout_ms=100)
