"""Frames of requests and responses: which header, and the response to an unknown peer."""

from __future__ import annotations

import pytest

from quorate.wire.codec import decode
from quorate.wire.errors import EncodeError, WireError
from quorate.wire.header import (
    RequestStart,
    WireRequest,
    correlation_id_of,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    peek_header,
)
from quorate.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    RequestHeader,
    VoteRequest,
    VoteResponse,
)
from quorate.wire.registry import API_VERSIONS, APIS, CONTROLLER_API_VERSIONS, api
from wire.message_strategies import versions


@pytest.mark.parametrize("key", list(APIS))
def test_requests_and_responses_of_every_version_come_back(key: int) -> None:
    found = api(key)
    for version in versions(found.request):
        frame = encode_request(found.request(), version, 77, "client")
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert decode_request(frame[4:]) == WireRequest(key, version, 77, "client", found.request())
        frame = encode_response(found.response(), key, version, -5)
        assert decode_response(frame[4:], key, version) == (-5, found.response())
        assert correlation_id_of(frame[4:]) == -5


def test_api_versions_in_a_version_of_the_future_can_still_be_answered() -> None:
    frame = bytes.fromhex("0012 0063 00000009") + b"whatever the future brings"
    request = decode_request(frame)
    assert request == WireRequest(API_VERSIONS, 99, 9, None, None)
    assert request.response_version == 0
    refusal = ApiVersionsResponse(
        error_code=35,
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=18, max_version=4)],
    )
    wire = encode_response(refusal, API_VERSIONS, request.response_version, 9)
    assert decode_response(wire[4:], API_VERSIONS, 4) == (9, refusal)


def test_the_response_version_of_a_known_request_is_its_own() -> None:
    frame = encode_request(ApiVersionsRequest(), 3, 1, None)
    assert decode_request(frame[4:]).response_version == 3


def test_unknown_apis_and_versions_are_refused_but_can_be_peeked_at() -> None:
    unknown = bytes.fromhex("03e7 0001 00000009 ffff")
    with pytest.raises(WireError, match="api key 999 is not known"):
        decode_request(unknown)
    assert peek_header(unknown) == RequestStart(999, 1, 9)
    with pytest.raises(WireError, match="Vote has versions 0 to 2, not 3"):
        decode_request(bytes.fromhex("0034 0003 00000009 ffff"))


def test_bytes_behind_a_message_are_refused() -> None:
    frame = encode_request(VoteRequest(), 2, 1, None)[4:]
    with pytest.raises(
        WireError, match=f"ends at byte {len(frame)}, the frame at {len(frame) + 1}"
    ):
        decode_request(frame + b"x")
    answer = encode_response(VoteResponse(), 52, 2, 1)[4:]
    with pytest.raises(WireError, match="Vote v2: the message ends at byte"):
        decode_response(answer + b"x", 52, 2)


def test_frames_too_short_for_a_header_are_refused() -> None:
    with pytest.raises(WireError, match="a request begins with 8 bytes, but its frame has 7"):
        decode_request(bytes(7))
    with pytest.raises(WireError, match="a response begins with 4 bytes, but its frame has 3"):
        correlation_id_of(bytes(3))


def test_only_requests_are_sent_as_requests_and_responses_as_responses() -> None:
    with pytest.raises(EncodeError, match="VoteResponse is not a request"):
        encode_request(VoteResponse(), 2, 1, None)
    with pytest.raises(EncodeError, match="VoteRequest is not a response"):
        encode_response(VoteRequest(), 52, 2, 1)
    with pytest.raises(EncodeError, match="VoteResponse answers api 52, not 53"):
        encode_response(VoteResponse(), 53, 1, 1)


def test_the_header_alone_can_be_read() -> None:
    frame = encode_request(VoteRequest(), 2, 1, "me")[4:]
    assert decode(RequestHeader, 2, frame[:13]).client_id == "me"


def test_controllers_do_not_offer_what_only_brokers_answer() -> None:
    assert 3 in APIS
    assert 3 not in CONTROLLER_API_VERSIONS
    assert CONTROLLER_API_VERSIONS[1] == (4, 18)
    with pytest.raises(KeyError):
        CONTROLLER_API_VERSIONS[3]
    assert len(CONTROLLER_API_VERSIONS) == 45
