"""The size limits of requests and responses: a short frame can name a million empty topics."""

import struct

import pytest

from quorate.base.errors import ErrorCode
from quorate.node.request_limits import check_response_size, check_size, long_envelope_response
from quorate.wire.errors import WireError
from quorate.wire.header import decode_response
from quorate.wire.messages import EnvelopeResponse

KIB, MIB = 1024, 1024 * 1024


def frame(api_key, size):
    return struct.pack(">hhi", api_key, 0, 7).ljust(size, b"\0")


@pytest.mark.parametrize(
    ("api_key", "most", "name"),
    [
        (1, 64 * KIB, "Fetch"),
        (52, 64 * KIB, "Vote"),
        (55, 64 * KIB, "DescribeQuorum"),
        (9999, 64 * KIB, "api 9999"),
        (49, MIB, "AlterClientQuotas"),
        (56, 8 * MIB, "AlterPartition"),
    ],
)
def test_a_request_beyond_the_limit_of_its_api_is_refused(api_key, most, name):
    check_size(frame(api_key, most))
    with pytest.raises(WireError, match=f"{name} has {most} bytes at most here, not {most + 1}"):
        check_size(frame(api_key, most + 1))


def test_a_long_envelope_is_refused_with_a_response():
    assert check_size(frame(58, MIB)) is None
    long = frame(58, MIB + 1)
    assert check_size(long) == f"a request of Envelope has {MIB} bytes at most here, not {MIB + 1}"
    correlation_id, response = decode_response(long_envelope_response(long)[4:], 58, 0)
    assert isinstance(response, EnvelopeResponse)
    assert (correlation_id, response.error_code) == (7, ErrorCode.INVALID_REQUEST)


def test_a_long_envelope_of_an_unknown_version_is_malformed():
    with pytest.raises(WireError, match="Envelope has"):
        check_size(struct.pack(">hhi", 58, 1, 7).ljust(MIB + 1, b"\0"))


@pytest.mark.parametrize(("api_key", "name"), [(18, "ApiVersions"), (52, "Vote"), (80, "AddRaft")])
def test_a_response_beyond_the_limit_is_refused(api_key, name):
    check_response_size(bytes(64 * KIB), api_key)
    with pytest.raises(WireError, match=f"a response to {name}.* has {64 * KIB} bytes at most"):
        check_response_size(bytes(64 * KIB + 1), api_key)


@pytest.mark.parametrize("api_key", [1, 59])
def test_a_response_that_carries_bytes_may_be_long(api_key):
    check_response_size(bytes(MIB), api_key)
