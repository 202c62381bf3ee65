"""BatchAccumulatorTest, RecordsIteratorTest, FileQuorumStateStoreTest, damaged records of a Fetch:
what other tests of ours do not say."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from narrow import not_none
from quorate.base.ids import ReplicaKey
from quorate.formats.batch import encode_batch, encode_control_batch, iter_batches
from quorate.formats.control import ControlType
from quorate.node.raft_rpc_inbound import Asked, response_to_wire
from quorate.node.raft_rpc_outbound import response_from_wire
from quorate.raft.messages import FetchRequest, FetchResponse
from quorate.raft.values import ElectionState
from quorate.replica.proposals import BATCHING_DELAY_MS, Outcome, Proposals, Submit
from quorate.replica.state_machine import Now
from quorate.sim.scenario.names import key
from quorate.storage.memory import MemoryStorage
from quorate.wire.errors import WireError
from raft.conformance.world import LEADER, response
from raft.single import END, EPOCH, follower
from sim.test_known_bugs_of_nodes import OnlyVoter
from storage.builders import file_place


@kafka_scenario("BatchAccumulatorTest", "closeWhenEmpty")
def test_close_when_empty() -> None:
    """Leadership ends and nothing was asked for."""
    outcomes: list[Outcome] = []
    Proposals().lose(outcomes)
    assert outcomes == []


# -- the batching delay: Kafka's linger, 2 ms at most -----------------------------------------------
def after_a_round_of_four() -> OnlyVoter:
    """The only voter; four writers were answered together, and are expected back together."""
    node = OnlyVoter(MemoryStorage())
    node.run(*[Submit(i, [b"x"]) for i in range(4)])
    assert len(node.committed) == 4
    return node


@kafka_scenario("BatchAccumulatorTest", "lingerIgnoredIfAccumulatorEmpty")
def test_linger_ignored_if_accumulator_empty() -> None:
    """Nothing was submitted: nothing is due, and no time is waited for."""
    effects = after_a_round_of_four().replica.step([], Now(10, 10))
    assert effects.jobs == []
    assert effects.wake_at_ms is None or effects.wake_at_ms > 10 + BATCHING_DELAY_MS


@kafka_scenario(
    "KafkaRaftClientTest",
    "channelWokenUpIfLingerTimeoutReachedWithoutAppend",
    "channelWokenUpIfLingerTimeoutReachedDuringAppend",
)
@pytest.mark.parametrize("more", [0, 1], ids=["WithoutAppend", "DuringAppend"])
def test_channel_woken_up_if_linger_timeout_reached(more: int) -> None:
    """The replica asks to be woken when the wait is over, and appends then, be it alone or not."""
    node = after_a_round_of_four()
    end = node.replica.core.log_end.offset
    over = 10 + BATCHING_DELAY_MS
    for now, happened in ((10, [Submit(4, [b"first"])]), (11, [])):
        effects = node.replica.step(happened, Now(now, now))
        assert (effects.jobs, effects.wake_at_ms) == ([], over)
    effects = node.replica.step([Submit(5, [b"late"])] * more, Now(over, over))
    assert len(effects.jobs) == 1
    assert node.replica.core.log_end.offset == end + 1 + more


@kafka_scenario("BatchAccumulatorTest", "emptyControlBatch")
def test_an_empty_control_batch_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_control_batch(0, 1, 0, [])


@kafka_scenario("RecordsIteratorTest", "emptyRecords")
def test_empty_bytes_decode_to_no_batch() -> None:
    assert list(iter_batches(b"")) == []


@kafka_scenario("RecordsIteratorTest", "controlRecordTypeValues")
def test_control_record_types() -> None:
    assert {kind.name: kind.value for kind in ControlType} == {
        "ABORT": 0,
        "COMMIT": 1,
        "LEADER_CHANGE": 2,
        "SNAPSHOT_HEADER": 3,
        "SNAPSHOT_FOOTER": 4,
        "KRAFT_VERSION": 5,
        "KRAFT_VOTERS": 6,
    }


# -- records of a Fetch that are none --------------------------------------------------------------
NAME = "CONTROLLER"


def batches_of(records: bytes) -> FetchResponse | None:
    """What a follower makes of these bytes in its leader's answer; None: the answer is refused."""
    wire = response_to_wire(response(), records, Asked(18, NAME))
    try:
        answer = response_from_wire(wire, NAME)
    except WireError:
        return None
    assert isinstance(answer, FetchResponse)
    return answer


def header(length: int, magic: int, size: int) -> bytes:
    """`size` bytes of a batch: base offset 1234, this length, epoch 4321, this format, zeros."""
    return (struct.pack(">qiib", 1234, length, 4321, magic) + bytes(256))[:size]


INVALID = {
    "notEnoughBytes": (bytes(11), False),
    "recordsSizeTooSmall": (header(13, 0, 256), True),
    "notEnoughBytesToMagic": (header(244, 0, 16), False),
    "negativeMagic": (header(244, -1, 256), True),
    "largeMagic": (header(244, 3, 256), True),
    "lessBytesThanRecordSize": (header(244, 2, 243), False),
}


@kafka_scenario("KafkaRaftClientFetchTest", "invalidMemoryRecords")
@kafka_scenario("KafkaRaftLogTest", "invalidMemoryRecords")
@pytest.mark.parametrize("kind", list(INVALID))
def test_invalid_memory_records(kind: str) -> None:
    """A cut batch is none yet; another format or length is the peer's fault; neither is kept."""
    records, refused = INVALID[kind]
    answer = batches_of(records)
    assert (answer is None) is refused
    if answer is not None:
        assert answer.batches == ()
        single = follower()
        ready = single.answer(FetchRequest, answer)
        assert ready.writes == () and single.core.log_end.offset == END
        assert single.core.leader == LEADER


@kafka_scenario("KafkaRaftClientFetchTest", "randomRecords")
@kafka_scenario("KafkaRaftLogTest", "randomRecords")
@given(st.binary(max_size=300))
def test_random_records(records: bytes) -> None:
    answer = batches_of(records)
    assert answer is None or answer.batches == ()


@kafka_scenario("KafkaRaftLogTest", "invalidLeaderEpoch")
def test_batches_before_invalid_records_are_appended() -> None:
    """Also invalidLeaderEpoch: of two batches the second is of an epoch that is not yet."""
    good, early = encode_batch(END, EPOCH, 5, [b"x"]), encode_batch(END + 1, EPOCH + 1, 5, [b"y"])
    for bad in (early, INVALID["largeMagic"][0], INVALID["lessBytesThanRecordSize"][0]):
        answer = batches_of(good + bad)
        assert answer is not None
        single = follower()
        single.answer(FetchRequest, answer)
        assert single.core.log_end == (END + 1, EPOCH)


# -- quorum-state ----------------------------------------------------------------------------------
@kafka_scenario(
    "FileQuorumStateStoreTest",
    "writeReadElectedLeader",
    "writeReadVotedCandidate",
    "writeReadUnknownLeader",
)
@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize(
    "written",
    [ElectionState(2, 1, key(1)), ElectionState(2, -1, key(1)), ElectionState(2)],
    ids=["writeReadElectedLeader", "writeReadVotedCandidate", "writeReadUnknownLeader"],
)
def test_write_read(tmp_path, kraft_version: int, written: ElectionState) -> None:
    """At kraft.version 0 the directory of the vote is not kept, but whose it was."""
    place = file_place(tmp_path)
    place.open()
    place.storage.save_election(ElectionState(1, 3), kraft_version, (1, 2, 3))
    place.storage.save_election(written, kraft_version, (1, 2, 3))
    found = not_none(place.reopen().election)
    assert (found.epoch, found.leader_id) == (written.epoch, written.leader_id)
    if kraft_version == 1 or written.voted is None:
        assert found == written
    else:
        assert found.voted == ReplicaKey(written.voted.id)
