"""The size limits of requests and responses: a short frame can name a million empty topics."""

import struct

import pytest

from quorate.node.request_limits import check_response_size, check_size
from quorate.wire.errors import WireError

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
        (58, MIB, "Envelope"),
        (56, 8 * MIB, "AlterPartition"),
    ],
)
def test_a_request_beyond_the_limit_of_its_api_is_refused(api_key, most, name):
    check_size(frame(api_key, most))
    with pytest.raises(WireError, match=f"{name} has {most} bytes at most here, not {most + 1}"):
        check_size(frame(api_key, most + 1))


@pytest.mark.parametrize(("api_key", "name"), [(18, "ApiVersions"), (52, "Vote"), (80, "AddRaft")])
def test_a_response_beyond_the_limit_is_refused(api_key, name):
    check_response_size(bytes(64 * KIB), api_key)
    with pytest.raises(WireError, match=f"a response to {name}.* has {64 * KIB} bytes at most"):
        check_response_size(bytes(64 * KIB + 1), api_key)


@pytest.mark.parametrize("api_key", [1, 59])
def test_a_response_that_carries_bytes_may_be_long(api_key):
    check_response_size(bytes(MIB), api_key)
