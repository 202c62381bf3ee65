"""The size limits of requests and responses: a short frame can name a million empty topics."""

import struct

import pytest

from quorate.node.request_limits import (
    REFUSED_BYTES,
    check_response_size,
    kept_bytes,
    size_refusal,
)
from quorate.wire.errors import WireError
from quorate.wire.registry import APIS

KIB, MIB = 1024, 1024 * 1024


def frame(api_key, size, version=0):
    return struct.pack(">hhi", api_key, version, 7).ljust(size, b"\0")


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
    assert size_refusal(frame(api_key, 8), most) is None
    why = f"a request of {name} has {most} bytes at most here, not {most + 1}"
    assert size_refusal(frame(api_key, 8), most + 1) == why


@pytest.mark.parametrize(("api_key", "most"), [(19, MIB), (52, 64 * KIB), (56, 8 * MIB), (58, MIB)])
def test_only_the_beginning_is_kept_of_what_is_too_long(api_key, most):
    start = frame(api_key, 8, APIS[api_key].max_version)
    assert kept_bytes(start, most) == most
    assert kept_bytes(start, most + 1) == REFUSED_BYTES


@pytest.mark.parametrize(
    ("api_key", "version"), [(9999, 0), (3, 1), (19, 99), (19, -1), (58, 1), (18, 99)]
)
def test_what_has_no_response_is_refused_before_it_is_read(api_key, version):
    with pytest.raises(WireError, match="bytes at most here"):
        kept_bytes(frame(api_key, 8, version), 9 * MIB)


@pytest.mark.parametrize(("api_key", "name"), [(18, "ApiVersions"), (52, "Vote"), (80, "AddRaft")])
def test_a_response_beyond_the_limit_is_refused(api_key, name):
    check_response_size(bytes(64 * KIB), api_key)
    with pytest.raises(WireError, match=f"a response to {name}.* has {64 * KIB} bytes at most"):
        check_response_size(bytes(64 * KIB + 1), api_key)


@pytest.mark.parametrize("api_key", [1, 59])
def test_a_response_that_carries_bytes_may_be_long(api_key):
    check_response_size(bytes(MIB), api_key)
