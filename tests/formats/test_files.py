from __future__ import annotations

import calendar
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from formats.samples import named, short
from quorate.base.ids import METADATA_TOPIC_ID, ZERO_UUID, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.errors import FormatError
from quorate.formats.files import (
    decode_leader_epochs,
    decode_partition_metadata,
    decode_quorum_state,
    encode_leader_epochs,
    encode_partition_metadata,
    encode_quorum_state,
    parse_segment_name,
    parse_snapshot_name,
    segment_name,
    snapshot_name,
)
from quorate.formats.meta_properties import (
    MetaProperties,
    decode_meta_properties,
    encode_meta_properties,
)
from quorate.raft.values import ElectionState

uuids = st.binary(min_size=16, max_size=16).map(Uuid)
int32s = st.integers(0, 2**31 - 1)


@pytest.mark.parametrize("path", named("quorum-state"), ids=short)
def test_every_sample_quorum_state_is_written_back_the_same(path: Path) -> None:
    data = path.read_bytes()
    state = decode_quorum_state(data)
    assert encode_quorum_state(state.election, state.data_version, state.voter_ids) == data
    said = json.loads(data)
    assert state.election.epoch == said["leaderEpoch"]
    assert state.election.leader_id == said["leaderId"]
    assert (-1 if state.election.voted is None else state.election.voted.id) == said["votedId"]


@pytest.mark.parametrize("path", named("leader-epoch-checkpoint"), ids=short)
def test_every_sample_leader_epoch_checkpoint_is_written_back_the_same(path: Path) -> None:
    data = path.read_bytes()
    epochs = decode_leader_epochs(data)
    assert encode_leader_epochs(epochs) == data
    assert epochs and list(epochs) == sorted(epochs)


@pytest.mark.parametrize("path", named("partition.metadata"), ids=short)
def test_every_sample_partition_metadata_is_written_back_the_same(path: Path) -> None:
    data = path.read_bytes()
    assert decode_partition_metadata(data) == METADATA_TOPIC_ID
    assert encode_partition_metadata() == data


@pytest.mark.parametrize("path", named("meta.properties"), ids=short)
def test_every_sample_meta_properties_is_written_back_the_same(path: Path) -> None:
    data = path.read_bytes()
    date = data.decode().splitlines()[1]
    written = calendar.timegm(time.strptime(date, "#%a %b %d %H:%M:%S UTC %Y"))
    meta = decode_meta_properties(data)
    assert encode_meta_properties(meta, written * 1000) == data
    assert meta.version == 1 and f"node{meta.node_id}" == path.parent.name


def test_a_members_directory_has_a_version_that_kafka_does_not_know() -> None:
    kafkas, members = MetaProperties(1, "c", 1), MetaProperties(1, "c", 1, member=True)
    data = encode_meta_properties(members, 0)
    kafkas_data = encode_meta_properties(kafkas, 0)
    assert data == kafkas_data.replace(b"version=1\n", b"version=quorate.embed\n")
    assert decode_meta_properties(data) == members


@pytest.mark.parametrize("path", named("*.checkpoint"), ids=short)
def test_every_sample_snapshot_name_is_made_again_from_its_id(path: Path) -> None:
    snapshot_id = parse_snapshot_name(path.name)
    if path.name == "bootstrap.checkpoint":
        assert snapshot_id is None
    else:
        assert snapshot_id is not None and snapshot_name(snapshot_id) == path.name


@kafka_scenario(
    "FileQuorumStateStoreTest",
    "writeReadElectedLeader",
    "writeReadVotedCandidate",
    "writeReadUnknownLeader",
)
@given(int32s, st.integers(-1, 9), st.none() | st.builds(ReplicaKey, int32s, uuids))
def test_quorum_state_1_keeps_epoch_leader_and_vote(
    epoch: int, leader: int, voted: ReplicaKey | None
) -> None:
    state = ElectionState(epoch, leader, voted)
    assert decode_quorum_state(encode_quorum_state(state, 1)).election == state


@kafka_scenario("FileQuorumStateStoreTest", "supportedVersion")
def test_quorum_state_0_forgets_the_directory_of_the_vote() -> None:
    state = ElectionState(4, -1, ReplicaKey(2, METADATA_TOPIC_ID))
    read = decode_quorum_state(encode_quorum_state(state, 0, (3, 1, 2)))
    assert read.election.voted == ReplicaKey(2, ZERO_UUID)
    assert read.voter_ids == (1, 2, 3)


@kafka_scenario("FileQuorumStateStoreTest", "cantReadVersionQuorumState")
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not a line of JSON"),
        ("[" * 100_000, "not a line of JSON"),
        ("[]", "not a JSON object"),
        ("{}", "data_version is missing"),
        ('{"data_version":2}', "data_version 2 is not supported"),
        ('{"data_version":1,"leaderId":1,"votedId":-1}', "leaderEpoch is missing"),
        (
            '{"data_version":1,"leaderId":1,"leaderEpoch":true,"votedId":-1}',
            "leaderEpoch is missing or not a whole number",
        ),
        (
            '{"data_version":1,"leaderId":1,"leaderEpoch":2,"votedId":-1}',
            "votedDirectoryId is missing",
        ),
        (
            '{"data_version":1,"leaderId":1,"leaderEpoch":2,"votedId":3,"votedDirectoryId":"x"}',
            "'x' is not a uuid",
        ),
        ('{"data_version":0,"leaderId":1,"leaderEpoch":2,"votedId":3}', "currentVoters"),
        (
            '{"data_version":0,"leaderId":1,"leaderEpoch":2,"votedId":3,"currentVoters":[{}]}',
            "voterId is missing",
        ),
        (
            '{"data_version":1,"leaderId":-7,"leaderEpoch":2,"votedId":3}',
            "is negative",
        ),
    ],
)
def test_a_damaged_quorum_state_says_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(FormatError, match=what) as raised:
        decode_quorum_state(text.encode(), "data/quorum-state")
    assert str(raised.value).startswith("data/quorum-state: ")


@given(st.lists(st.tuples(int32s, st.integers(0, 2**62)), max_size=5))
def test_leader_epochs_are_read_back(epochs: list[tuple[int, int]]) -> None:
    assert decode_leader_epochs(encode_leader_epochs(epochs)) == tuple(epochs)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("1\n0\n", "version 1 is not supported"),
        ("0\n2\n1 0\n", "says 2 entries, holds 1"),
        ("0\n1\n1\n", "not an epoch and a start offset"),
        ("0\n1\n1 x\n", "'x' in line '1 x' is not a number"),
        ("0\n\n", "is not a number"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_a_damaged_leader_epoch_checkpoint_says_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        decode_leader_epochs(text.encode(errors="surrogateescape"))


def test_an_empty_leader_epoch_checkpoint_holds_nothing() -> None:
    assert decode_leader_epochs(b"") == ()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "must say"),
        ("version: 0", "must say"),
        ("version: x\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "not a number"),
        ("version: -1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", "version -1"),
        ("version: 0\ntopic_id: AAAA", "not a uuid"),
        ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "all zeroes"),
    ],
)
def test_a_damaged_partition_metadata_says_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        decode_partition_metadata(text.encode())


def test_meta_properties_of_version_0_has_a_broker_id() -> None:
    meta = decode_meta_properties(b"broker.id=3\ncluster.id=abc\n")
    assert meta == MetaProperties(0, "abc", 3)
    again = encode_meta_properties(meta, 0).decode()
    assert again == "#\n#Thu Jan 01 00:00:00 UTC 1970\nbroker.id=3\nversion=0\ncluster.id=abc\n"


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1), int32s, uuids)
def test_meta_properties_are_read_back_with_any_cluster_id(
    cluster_id: str, node_id: int, directory_id: Uuid
) -> None:
    meta = MetaProperties(1, cluster_id, node_id, directory_id)
    assert decode_meta_properties(encode_meta_properties(meta, 0)) == meta


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("version=1\nnode.id=1", "cluster.id was not found"),
        ("version=1\ncluster.id=a", "node.id was not found"),
        ("version=2\ncluster.id=a\nnode.id=1", "version 2 is not supported"),
        ("version=x", "version=x is not a whole number"),
        ("version=1\ncluster.id=a\nnode.id=one", "node.id=one is not a whole number"),
        ("version=1\ncluster.id=a\nnode.id=1\ndirectory.id=zz", "directory.id: 'zz' is not"),
        ("version=\\uZZZZ", "not a properties file"),
    ],
)
def test_a_damaged_meta_properties_says_what_is_wrong(text: str, what: str) -> None:
    with pytest.raises(FormatError, match=what):
        decode_meta_properties(text.encode())


@given(st.binary(max_size=200))
def test_random_bytes_in_a_small_file_raise_only_format_errors(data: bytes) -> None:
    for decode in (
        decode_quorum_state,
        decode_leader_epochs,
        decode_partition_metadata,
        decode_meta_properties,
    ):
        try:
            decode(data)
        except FormatError as error:
            assert str(error)


def test_names_of_segments_and_snapshots() -> None:
    assert segment_name(300) == "00000000000000000300.log"
    assert segment_name(300, ".timeindex") == "00000000000000000300.timeindex"
    assert parse_segment_name("00000000000000000300.log") == 300
    assert parse_segment_name("00000000000000000300.log.deleted") is None
    name = "00000000000000000285-0000000004.checkpoint"
    assert snapshot_name(OffsetAndEpoch(285, 4)) == name
    assert parse_snapshot_name(name) == OffsetAndEpoch(285, 4)
    assert parse_snapshot_name(name + ".deleted") is None
    assert parse_snapshot_name("00000000000000000285-0000000004-12345.checkpoint.part") is None
