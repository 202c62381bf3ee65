"""Core messages to Kafka's bytes and back, in every version, both for asking and for answering."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    LeaderAndEpoch,
    Listener,
    OffsetAndEpoch,
    ReplicaKey,
    Uuid,
)
from quorate.formats.batch import encode_batch, encode_keyed_batch, iter_batches, to_raft_batch
from quorate.node.raft_rpc_inbound import Asked, request_from_wire, response_to_wire
from quorate.node.raft_rpc_outbound import api_key_of, request_to_wire, response_from_wire
from quorate.raft import messages as core
from quorate.wire import messages as wire
from quorate.wire.codec import decode, encode
from quorate.wire.errors import UnsupportedFieldError, WireError
from quorate.wire.registry import APIS

NAME = "CONTROLLER"
HERE = Listener(NAME, "here", 9093)
DIRECTORY = Uuid(bytes(range(16)))
LEADER = LeaderAndEpoch(3, 7)
INT64_MAX = 2**63 - 1

keys = st.builds(
    ReplicaKey,
    st.integers(0, 2**31 - 1),
    st.binary(min_size=16, max_size=16).map(Uuid),
)
epochs = st.integers(0, 2**31 - 1)
offsets = st.integers(0, 2**63 - 1)
sizes = st.integers(0, 2**31 - 1)
clusters = st.none() | st.text(max_size=20)
listeners = st.lists(
    st.builds(
        Listener,
        st.sampled_from(["CONTROLLER", "OTHER"]),
        st.text(max_size=9),
        st.integers(0, 65535),
    ),
    max_size=3,
).map(tuple)
leaders = st.builds(LeaderAndEpoch, epochs, epochs)
places = st.builds(OffsetAndEpoch, offsets, epochs)

REQUESTS = {
    "vote": st.builds(
        core.VoteRequest, clusters, keys, epochs, keys, epochs, offsets, st.booleans()
    ),
    "begin": st.builds(core.BeginQuorumEpochRequest, clusters, keys, leaders, listeners),
    "end": st.builds(
        core.EndQuorumEpochRequest,
        clusters,
        leaders,
        st.lists(keys, max_size=3).map(tuple),
        listeners,
    ),
    "fetch": st.builds(
        core.FetchRequest, clusters, keys, epochs, offsets, epochs, sizes, sizes, offsets
    ),
    "fetch snapshot": st.builds(
        core.FetchSnapshotRequest, clusters, keys, epochs, places, offsets, sizes
    ),
    "add voter": st.builds(core.AddVoterRequest, clusters, keys, listeners, sizes, st.booleans()),
    "remove voter": st.builds(core.RemoveVoterRequest, clusters, keys),
    "update voter": st.builds(
        core.UpdateVoterRequest,
        clusters,
        epochs,
        keys,
        listeners,
        st.integers(0, 99),
        st.integers(0, 99),
    ),
}


def over_the_wire(request, version):
    """What the receiver's core gets to see."""
    message = request_to_wire(request, version)
    data = encode(message, version)
    return request_from_wire(decode(type(message), version, data), version)


@pytest.mark.parametrize("kind", REQUESTS)
@given(data=st.data())
def test_a_request_arrives_as_it_was_sent_in_the_newest_version(kind, data):
    request = data.draw(REQUESTS[kind])
    newest = APIS[api_key_of(request)].max_version
    assert over_the_wire(request, newest) == request


ZERO = Uuid(bytes(16))


@pytest.mark.parametrize(
    ("request_", "version", "arrives"),
    [
        (
            core.VoteRequest(
                "c", ReplicaKey(2, DIRECTORY), 5, ReplicaKey(1, DIRECTORY), 4, 9, False
            ),
            0,
            core.VoteRequest("c", None, 5, ReplicaKey(1), 4, 9, False),
        ),
        (
            core.BeginQuorumEpochRequest("c", ReplicaKey(2, DIRECTORY), LEADER, (HERE,)),
            0,
            core.BeginQuorumEpochRequest("c", None, LEADER, ()),
        ),
        (
            core.EndQuorumEpochRequest("c", LEADER, (ReplicaKey(2, DIRECTORY), ReplicaKey(1)), ()),
            0,
            core.EndQuorumEpochRequest("c", LEADER, (ReplicaKey(2), ReplicaKey(1)), ()),
        ),
        (
            core.FetchRequest("c", ReplicaKey(2, DIRECTORY), 5, 9, 4, 500, 1000, 8),
            17,
            core.FetchRequest("c", ReplicaKey(2, DIRECTORY), 5, 9, 4, 500, 1000, INT64_MAX),
        ),
        (
            core.FetchRequest("c", ReplicaKey(2, DIRECTORY), 5, 9, 4, 500, 1000, 8),
            13,
            core.FetchRequest("c", ReplicaKey(2), 5, 9, 4, 500, 1000, INT64_MAX),
        ),
        (
            core.FetchSnapshotRequest(
                "c", ReplicaKey(2, DIRECTORY), 5, OffsetAndEpoch(9, 4), 100, 1000
            ),
            0,
            core.FetchSnapshotRequest("c", ReplicaKey(2), 5, OffsetAndEpoch(9, 4), 100, 1000),
        ),
    ],
)
def test_what_an_older_version_cannot_say_arrives_as_unknown(request_, version, arrives):
    assert over_the_wire(request_, version) == arrives


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (core.VoteRequest("c", None, 5, ReplicaKey(1), 4, 9, True), 1),
        (core.AddVoterRequest("c", ReplicaKey(1), (HERE,), 1, False), 0),
        (core.FetchRequest("c", ReplicaKey(2), 5, 9, 4, 500, 1000, 8), 11),
    ],
)
def test_what_a_version_must_not_drop_is_refused(request_, version):
    with pytest.raises(UnsupportedFieldError):
        encode(request_to_wire(request_, version), version)


def test_a_fetch_is_filled_as_kafka_fills_it():
    request = core.FetchRequest("c", ReplicaKey(2, DIRECTORY), 5, 9, 4, 500, 1000, 8)
    message = request_to_wire(request, 18)
    partition = message.topics[0].partitions[0]  # type: ignore[attr-defined]
    assert message.topics[0].topic_id == METADATA_TOPIC_ID  # type: ignore[attr-defined]
    assert (message.min_bytes, message.session_id, message.session_epoch) == (0, 0, -1)  # type: ignore[attr-defined]
    assert (partition.partition_max_bytes, partition.log_start_offset) == (0, -1)
    assert message.replica_state.replica_epoch == -1  # type: ignore[attr-defined]


METADATA_SNAPSHOT = wire.FetchSnapshotRequest.TopicSnapshot(
    name=METADATA_TOPIC, partitions=[wire.FetchSnapshotRequest.TopicSnapshot.PartitionSnapshot()]
)

WRONG = {
    "vote": (
        wire.VoteRequest(topics=[]),
        2,
        wire.VoteResponse(error_code=ErrorCode.INVALID_REQUEST),
    ),
    "begin": (
        wire.BeginQuorumEpochRequest(
            topics=[wire.BeginQuorumEpochRequest.TopicData(topic_name="other")]
        ),
        1,
        wire.BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST),
    ),
    "end": (
        wire.EndQuorumEpochRequest(topics=[]),
        1,
        wire.EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST),
    ),
    "fetch": (
        wire.FetchRequest(topics=[wire.FetchRequest.FetchTopic(topic_id=DIRECTORY)]),
        18,
        wire.FetchResponse(error_code=ErrorCode.INVALID_REQUEST),
    ),
    "fetch by name": (
        wire.FetchRequest(topics=[wire.FetchRequest.FetchTopic(topic="other")]),
        12,
        wire.FetchResponse(error_code=ErrorCode.INVALID_REQUEST),
    ),
    "no snapshot topic": (
        wire.FetchSnapshotRequest(topics=[]),
        1,
        wire.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST),
    ),
    **{
        f"snapshot of {case}": (
            wire.FetchSnapshotRequest(topics=topics),
            1,
            wire.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST),
        )
        for case, topics in {
            "two topics": [METADATA_SNAPSHOT, METADATA_SNAPSHOT],
            "no partition": [wire.FetchSnapshotRequest.TopicSnapshot(name=METADATA_TOPIC)],
            "two partitions": [
                wire.FetchSnapshotRequest.TopicSnapshot(
                    name=METADATA_TOPIC, partitions=METADATA_SNAPSHOT.partitions * 2
                )
            ],
        }.items()
    },
}


@pytest.mark.parametrize("case", WRONG)
def test_a_request_about_another_partition_is_answered_at_once(case):
    message, version, answer = WRONG[case]
    assert request_from_wire(message, version) == answer


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotRequestUnknownPartition")
def test_a_snapshot_of_another_partition_is_unknown():
    topic = wire.FetchSnapshotRequest.TopicSnapshot
    message = wire.FetchSnapshotRequest(
        topics=[topic(name="other", partitions=[topic.PartitionSnapshot(partition=4)])]
    )
    request = request_from_wire(message, 1)
    assert isinstance(request, wire.FetchSnapshotResponse)
    found = request.topics[0]
    assert (found.name, found.partitions[0].index) == ("other", 4)
    assert found.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- answers ----------------------------------------------------------------------------------
ENDPOINTS = (Listener("OTHER", "elsewhere", 1), HERE)
BATCH = encode_batch(5, 7, 1000, [b"one", b"two"])

ANSWERS: dict[str, Any] = {
    "vote": core.VoteResponse(ErrorCode.NONE, LEADER, True, ENDPOINTS),
    "begin": core.BeginQuorumEpochResponse(ErrorCode.FENCED_LEADER_EPOCH, LEADER, ENDPOINTS),
    "end": core.EndQuorumEpochResponse(ErrorCode.NONE, LEADER, ENDPOINTS),
    "fetch": core.FetchResponse(
        ErrorCode.NONE, LEADER, 11, 2, records=core.ReadRange(5, 7, 100), leader_endpoints=ENDPOINTS
    ),
    "fetch diverging": core.FetchResponse(
        ErrorCode.NONE, LEADER, 11, 2, diverging=OffsetAndEpoch(4, 3), leader_endpoints=ENDPOINTS
    ),
    "fetch of a snapshot id": core.FetchResponse(
        ErrorCode.NONE, LEADER, -1, 2, snapshot_id=OffsetAndEpoch(4, 3), leader_endpoints=ENDPOINTS
    ),
    "fetch refused": core.FetchResponse(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, LEADER, leader_endpoints=ENDPOINTS
    ),
    "snapshot": core.FetchSnapshotResponse(
        ErrorCode.NONE, LEADER, OffsetAndEpoch(4, 3), 99, 10, b"", ENDPOINTS
    ),
    "snapshot gone": core.FetchSnapshotResponse(
        ErrorCode.SNAPSHOT_NOT_FOUND, LEADER, OffsetAndEpoch(0, 0), leader_endpoints=ENDPOINTS
    ),
    "add": core.AddVoterResponse(ErrorCode.DUPLICATE_VOTER, "voter 3 is there"),
    "remove": core.RemoveVoterResponse(ErrorCode.NONE, None),
    "update": core.UpdateVoterResponse(ErrorCode.NONE, LEADER, ENDPOINTS),
}
DATA = {"fetch": BATCH, "snapshot": b"bytes of it"}


@pytest.mark.parametrize("kind", [core.AddVoterResponse, core.RemoveVoterResponse])
@pytest.mark.parametrize("said", [None, "no voter"])
def test_a_refused_change_says_what_the_core_says(kind, said):
    message = response_to_wire(kind(ErrorCode.INVALID_REQUEST, said), b"", Asked(1, NAME))
    assert (message.error_code, message.error_message) == (ErrorCode.INVALID_REQUEST, said)  # type: ignore[attr-defined]


def answer_over_the_wire(response, data, version=None):
    message = response_to_wire(response, data, Asked(999 if version is None else version, NAME))
    if version is None:
        version = type(message).schema.versions[1]
    return response_from_wire(decode(type(message), version, encode(message, version)), NAME)


@pytest.mark.parametrize("case", ANSWERS)
def test_an_answer_arrives_with_the_endpoint_of_the_listener_that_was_asked(case):
    sent, data = ANSWERS[case], DATA.get(case, b"")
    got = answer_over_the_wire(sent, data)
    assert got.error == sent.error
    if hasattr(sent, "leader"):
        assert got.leader == sent.leader and got.leader_endpoints == (HERE,)
    for name in ("granted", "diverging", "snapshot_id", "high_watermark", "log_start_offset"):
        assert getattr(got, name, None) == getattr(sent, name, None)
    if case == "fetch":
        assert got.batches == tuple(map(to_raft_batch, iter_batches(BATCH)))
    if case == "snapshot":
        assert (got.size, got.position, got.chunk) == (99, 10, b"bytes of it")


@pytest.mark.parametrize(
    ("case", "version"),
    [("vote", 0), ("begin", 0), ("end", 0), ("fetch", 16), ("snapshot", 0)],
)
def test_older_versions_carry_no_endpoints(case, version):
    got = answer_over_the_wire(ANSWERS[case], DATA.get(case, b""), version)
    assert got.leader == LEADER and got.leader_endpoints == ()


def test_no_endpoint_where_the_leader_does_not_listen_under_that_name():
    asked = Asked(2, "UNHEARD")
    assert response_to_wire(ANSWERS["vote"], b"", asked).node_endpoints == []  # type: ignore[attr-defined]


def test_no_endpoint_without_a_leader():
    answer = core.VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, 7), False, ENDPOINTS)
    assert answer_over_the_wire(answer, b"").leader_endpoints == ()


@pytest.mark.parametrize(
    "cls",
    [
        core.VoteResponse,
        core.BeginQuorumEpochResponse,
        core.EndQuorumEpochResponse,
        core.FetchResponse,
        core.FetchSnapshotResponse,
    ],
)
def test_a_wrong_cluster_is_said_of_the_whole_request(cls):
    message = response_to_wire(cls(ErrorCode.INCONSISTENT_CLUSTER_ID), b"", Asked(0, NAME))
    assert message.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID  # type: ignore[attr-defined]
    assert response_from_wire(message, NAME).error == ErrorCode.INCONSISTENT_CLUSTER_ID


def fetched(records):
    answer = response_to_wire(ANSWERS["fetch"], records, Asked(18, NAME))
    return response_from_wire(answer, NAME)


def test_a_cut_last_batch_is_left_for_the_next_fetch():
    assert len(fetched(BATCH + BATCH[:30]).batches) == 1


def test_sound_batches_before_a_damaged_one_are_taken():
    damaged = bytearray(BATCH)
    damaged[-2] ^= 1
    assert len(fetched(BATCH + bytes(damaged)).batches) == 1


@kafka_scenario("KafkaRaftClientFetchTest", "invalidMemoryRecords")
@kafka_scenario("KafkaRaftLogTest", "invalidMemoryRecords")
def test_damaged_records_are_the_peers_fault():
    damaged = bytearray(BATCH)
    damaged[-2] ^= 1
    with pytest.raises(WireError, match="damaged"):
        fetched(bytes(damaged))


def test_a_control_record_of_a_later_release_is_newer():
    newer = encode_keyed_batch(0, 1, 1, [(b"\x00\x00\x00\x09", b"\x00\x00\x00")])
    with pytest.raises(WireError, match="a newer release wrote the fetched records"):
        fetched(newer)


def test_an_answer_about_nothing_is_the_peers_fault():
    with pytest.raises(WireError, match="Vote"):
        response_from_wire(wire.VoteResponse(), NAME)


def test_the_range_of_kraft_version_is_read_from_api_versions():
    feature = wire.ApiVersionsResponse.SupportedFeatureKey
    message = wire.ApiVersionsResponse(
        supported_features=[feature(name="kraft.version", min_version=0, max_version=1)]
    )
    response = response_from_wire(message, NAME)
    assert isinstance(response, core.ApiVersionsResponse)
    assert response.features == {"kraft.version": (0, 1)}
