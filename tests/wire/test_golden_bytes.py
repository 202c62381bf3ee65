"""Bytes written down by hand from the protocol's description, one field at a time."""

from __future__ import annotations

import pytest

from quorate.base.ids import Uuid
from quorate.wire.codec import decode, encode
from quorate.wire.header import decode_request, encode_request, encode_response
from quorate.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
    UpdateRaftVoterResponse,
    VoteRequest,
)
from quorate.wire.schema import Message


def raw(*parts: str | bytes) -> bytes:
    """Hex text (blanks allowed) and plain bytes, one behind the other."""
    return b"".join(bytes.fromhex(p) if isinstance(p, str) else p for p in parts)


DIRECTORY = Uuid(bytes(range(16)))

VOTE = VoteRequest(
    cluster_id="abc",
    voter_id=2,
    topics=[
        VoteRequest.TopicData(
            topic_name="t",
            partitions=[
                VoteRequest.TopicData.PartitionData(
                    partition_index=0,
                    replica_epoch=5,
                    replica_id=1,
                    replica_directory_id=DIRECTORY,
                    last_offset_epoch=4,
                    last_offset=1000,
                    pre_vote=True,
                )
            ],
        )
    ],
)
VOTE_V2 = raw(
    "04", b"abc",  # compact string: length 3 + 1
    "00000002",  # voter id
    "02",  # one topic, + 1
    "02", b"t",
    "02",  # one partition, + 1
    "00000000 00000005 00000001",  # index, epoch, replica
    "000102030405060708090a0b0c0d0e0f",  # its directory
    "00000000000000000000000000000000",  # the receiver's directory: unknown
    "00000004 00000000000003e8",  # last epoch, last offset
    "01",  # pre-vote
    "00 00 00",  # no tags in partition, topic, request
)  # fmt: skip

BEGIN = BeginQuorumEpochRequest(
    cluster_id=None,
    topics=[
        BeginQuorumEpochRequest.TopicData(
            topic_name="t",
            partitions=[
                BeginQuorumEpochRequest.TopicData.PartitionData(leader_id=1, leader_epoch=9)
            ],
        )
    ],
)
BEGIN_V0 = raw(
    "ffff",  # classic null string
    "00000001",  # one topic
    "0001", b"t",
    "00000001",
    "00000000 00000001 00000009",
)  # fmt: skip

END = EndQuorumEpochRequest(
    topics=[
        EndQuorumEpochRequest.TopicData(
            topic_name="t",
            partitions=[
                EndQuorumEpochRequest.TopicData.PartitionData(
                    leader_id=1, leader_epoch=9, preferred_successors=[2, 3]
                )
            ],
        )
    ],
)
END_V0 = raw(
    "ffff 00000001 0001", b"t", "00000001",
    "00000000 00000001 00000009",
    "00000002 00000002 00000003",  # classic array of int32
)  # fmt: skip

FETCHED = FetchResponse.FetchableTopicResponse
FETCH = FetchResponse(
    responses=[
        FETCHED(
            topic_id=DIRECTORY,
            partitions=[
                FETCHED.PartitionData(
                    high_watermark=7,
                    current_leader=FETCHED.PartitionData.LeaderIdAndEpoch(
                        leader_id=1, leader_epoch=2
                    ),
                    records=b"RECORDS",
                )
            ],
        )
    ],
    node_endpoints=[FetchResponse.NodeEndpoint(node_id=1, host="h", port=9093)],
)
FETCH_V17 = raw(
    "00000000 0000 00000000",  # throttle, error, session
    "02", "000102030405060708090a0b0c0d0e0f", "02",
    "00000000 0000 0000000000000007 ffffffffffffffff ffffffffffffffff",
    "01",  # aborted transactions: empty, as a new message has it
    "ffffffff",  # preferred read replica
    "08", b"RECORDS",
    "01 01 09 00000001 00000002 00",  # one tag: 1, 9 bytes, leader with no tags of its own
    "00",
    "01 00 0d",  # one tag: 0, 13 bytes
    "02 00000001 02", b"h", "00002385 00 00",  # one endpoint; rack null; no tags
)  # fmt: skip

UPDATED = UpdateRaftVoterResponse(
    error_code=74,
    current_leader=UpdateRaftVoterResponse.CurrentLeader(
        leader_id=1, leader_epoch=2, host="h", port=9
    ),
)
UPDATED_V0 = raw("00000000 004a", "01 00 0f 00000001 00000002 02", b"h", "00000009 00")


HELLO = ApiVersionsRequest(
    client_software_name="q", client_software_version="1", cluster_id="abc", node_id=2
)
HELLO_V5 = raw("02", b"q", "02", b"1", "04", b"abc", "00000002", "00")

UNREGISTER = UnregisterControllerRequest(controller_id=2)
UNREGISTER_V0 = raw("00000002 00")

UNREGISTERED = UnregisterControllerResponse(error_code=136, error_message="no")
UNREGISTERED_V0 = raw("00000000 0088 03", b"no", "00")


@pytest.mark.parametrize(
    ("message", "version", "wire"),
    [
        (VOTE, 2, VOTE_V2),
        (BEGIN, 0, BEGIN_V0),
        (END, 0, END_V0),
        (FETCH, 17, FETCH_V17),
        (UPDATED, 0, UPDATED_V0),
        (HELLO, 5, HELLO_V5),
        (UNREGISTER, 0, UNREGISTER_V0),
        (UNREGISTERED, 0, UNREGISTERED_V0),
    ],
    ids=lambda it: type(it).__name__ if isinstance(it, Message) else "",
)
def test_message_has_these_bytes(message: Message, version: int, wire: bytes) -> None:
    assert encode(message, version) == wire
    assert decode(type(message), version, wire) == message


def test_request_header_v2_keeps_the_classic_client_id() -> None:
    frame = encode_request(ApiVersionsRequest(client_software_name="q"), 3, 7, "me")
    assert frame == raw(
        "00000011",  # 17 bytes follow
        "0012 0003 00000007",  # api, version, correlation id
        "0002", b"me",  # a classic string also here
        "00",  # no tags in the header
        "02", b"q", "01",  # name, version
        "00",
    )  # fmt: skip
    assert decode_request(frame[4:]).client_id == "me"


def test_request_header_v1_has_no_tags() -> None:
    frame = encode_request(ApiVersionsRequest(), 0, -1, None)
    assert frame == raw("0000000a", "0012 0000 ffffffff", "ffff")


def test_api_versions_response_has_header_version_0_also_when_flexible() -> None:
    response = ApiVersionsResponse(
        api_keys=[ApiVersionsResponse.ApiVersion(api_key=52, max_version=2)],
        finalized_features_epoch=3,
    )
    assert encode_response(response, 18, 4, 7) == raw(
        "0000001d",
        "00000007",  # correlation id, and no tags behind it
        "0000",
        "02 0034 0000 0002 00",  # one api: key, lowest, highest, no tags
        "00000000",
        "01 01 08 0000000000000003",  # one tag: 1, the epoch of the features
    )
