"""One test for each sentence about a replica between its core, its disk and its machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from narrow import as_any, not_none
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.inputs import Answered, Received
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    Request,
    Response,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Clean, Refused, Send, Truncate
from quorate.raft.values import ControlState, ElectionState, RaftConfig, RecoveredLog, Voter
from quorate.replica.disk_jobs import (
    Job,
    LogRead,
    ReadLog,
    ReadSnapshot,
    SnapshotRead,
    Surveyed,
    Write,
    WriteSnapshot,
)
from quorate.replica.disk_jobs import Written as Durable
from quorate.replica.proposals import BATCHING_DELAY_MS
from quorate.replica.replica import Committed, Effects, Input, Replica, Submit
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.replica.state_machine import Now
from quorate.sim.world.state_machine import NOTHING, KeyValueMachine
from quorate.storage.api import Recovered, SnapshotInfo

BOOTSTRAP, OLD, NEW = OffsetAndEpoch(0, 0), OffsetAndEpoch(5, 1), OffsetAndEpoch(9, 1)
KEY = ReplicaKey(1, Uuid(bytes(15) + b"1"))
LISTENERS = (Listener("CONTROLLER", "h", 9093),)
CONTROL = ControlState(1, (Voter(KEY, LISTENERS, 0, 1),))


J = TypeVar("J", bound=Job)


class OneVoter:
    """The only voter of its quorum. Its disk does what the test says, when it says so."""

    control, election = CONTROL, ElectionState(1)

    def __init__(
        self,
        *snapshots: OffsetAndEpoch,
        end: int,
        policy: SnapshotPolicy | None = None,
        machine: KeyValueMachine | None = None,
    ):
        epochs = ((1, 0),) if end else ()
        log = RecoveredLog(0, end, epochs, snapshots or (BOOTSTRAP,), self.control, ())
        config = RaftConfig("cluster", KEY.id, KEY.directory_id, True, LISTENERS)
        recovered = Recovered(log, self.election, ())
        self.machine = machine or KeyValueMachine()
        self.replica = Replica(config, recovered, self.machine, lambda: 0.5, policy)
        self.jobs: list[Job] = []
        self.sends: list[Send] = []
        self.now_ms = 0
        self.step()

    def step(self, *happened: Input) -> Effects:
        effects = self.replica.step(happened, Now(self.now_ms, 0))
        self.jobs += effects.jobs
        self.sends += effects.sends
        return effects

    def wanted(self, kind: type[J]) -> J:
        """The newest job of this kind."""
        return [job for job in self.jobs if isinstance(job, kind)][-1]

    def persist(self) -> Effects:
        return self.step(Durable(self.wanted(Write).seq))

    def load(self, snapshot_id: OffsetAndEpoch) -> Effects:
        """Answer the job that asks for this snapshot."""
        job = self.wanted(ReadSnapshot)
        assert job.snapshot_id == snapshot_id
        data = b"".join(
            encode_snapshot(snapshot_id, CONTROL, 0, not_none(KeyValueMachine().freeze()), 0)
        )
        return self.step(SnapshotRead(job.token, len(data), data))

    def feed(self, data: bytes) -> None:
        """Answer the job that asks for the log; the machine has as many steps as it wants."""
        effects = self.step(LogRead(self.wanted(ReadLog).token, data))
        while effects.wake_at_ms == self.now_ms:
            effects = self.step()

    def is_active(self) -> bool:
        return self.replica.leading_epoch == self.machine.led == self.replica.core.epoch


class OneOfThree(OneVoter):
    """A follower of node 2."""

    control = ControlState(
        1,
        tuple(
            Voter(ReplicaKey(i, Uuid(bytes(15) + b"%d" % i)), LISTENERS, 0, 1) for i in (1, 2, 3)
        ),
    )
    election = ElectionState(1, 2)

    def answer(self, kind: type[Request], response: Response) -> Effects:
        """Node 2's answer to the newest request of this kind."""
        asked = [send for send in self.sends if isinstance(send.request, kind) and send.to == 2]
        return self.step(Answered(asked[-1].correlation, response))


# -- the leader -------------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientTest",
    "handleCommitCallbackFiresInVotedState",
    "handleCommitCallbackFiresInCandidateState",
)
def test_what_is_committed_is_applied_while_there_is_no_leader() -> None:
    """`KafkaRaftClientTest.testHandleCommitCallbackFiresInCandidateState` and -VotedState."""
    one = OneOfThree(end=12)
    leader = LeaderAndEpoch(2, 1)
    one.answer(FetchRequest, FetchResponse(ErrorCode.NONE, leader, high_watermark=12))
    first, *rest = (encode_batch(at, 1, 0, [NOTHING] * 4) for at in (0, 4, 8))
    one.feed(first)
    one.now_ms += 5_000
    one.step()
    assert (one.replica.core.role, one.replica.applied.offset) == ("prospective", 4)
    one.feed(rest[0])
    assert (one.replica.core.role, one.replica.applied.offset) == ("prospective", 8)
    granted = VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, 1), True)
    one.answer(VoteRequest, granted)
    one.feed(rest[1])
    assert (one.replica.core.role, one.replica.applied.offset) == ("candidate", 12)
    assert one.replica.leading_epoch is None


# -- becoming active ---------------------------------------------------------------------------
@kafka_scenario("OffsetControlManagerTest", "activate")
@kafka_scenario(
    "KafkaRaftClientTest", "handleLeaderChangeFiresAfterListenerReachesEpochStartOffset"
)
@pytest.mark.parametrize("snapshot_id", [BOOTSTRAP, OLD])
def test_it_becomes_active_when_a_record_of_its_own_epoch_is_applied_not_when_elected(
    snapshot_id: OffsetAndEpoch,
) -> None:
    """All that was committed before may lack from its state until then, though it has applied
    everything up to where its epoch starts."""
    voter = OneVoter(snapshot_id, end=snapshot_id.offset)
    if snapshot_id != BOOTSTRAP:
        voter.load(snapshot_id)
    voter.persist()
    assert (voter.replica.core.role, voter.replica.applied) == ("leader", snapshot_id)
    assert (voter.replica.leading_epoch, voter.machine.led) == (None, None)
    (refused,) = voter.step(Submit(7, [NOTHING])).outcomes
    assert isinstance(refused, Refused) and refused.error == ErrorCode.NOT_CONTROLLER
    voter.persist()
    assert voter.replica.applied.offset > snapshot_id.offset
    assert voter.is_active()
    voter.step(Submit(8, [NOTHING]))
    (committed,) = voter.persist().outcomes
    assert isinstance(committed, Committed) and committed.token == 8


# -- cleaning ----------------------------------------------------------------------------------
def test_a_submission_without_records_is_answered_when_the_log_before_it_is_applied() -> None:
    """An unsuccessful batching delay is not repeated at once, so it is proposed when the
    batch before it is applied; nothing may happen for long after that."""
    node = OneVoter(end=0)
    node.persist()
    node.persist()
    assert node.is_active()
    for token in range(1, 40, 2):
        steps = [node.step(Submit(token, [NOTHING])), node.step(Submit(token + 1, ()))]
        steps.append(node.persist())
        while len(tokens := [outcome.token for step in steps for outcome in step.outcomes]) < 2:
            wake = steps[-1].wake_at_ms
            assert wake is not None and wake <= node.now_ms + BATCHING_DELAY_MS
            node.now_ms = wake
            steps.append(node.step())
        assert tokens == [token, token + 1]


def test_records_covered_by_a_loading_snapshot_may_be_deleted_meanwhile() -> None:
    """The newest is always the one that is loaded, and always kept."""
    voter = OneVoter(OLD, NEW, end=12, policy=SnapshotPolicy(retention_bytes=0))
    infos = tuple(SnapshotInfo(snapshot_id, 100, 0) for snapshot_id in (OLD, NEW))
    voter.persist()
    assert voter.replica.is_loading
    voter.step(Surveyed(1000, infos))
    assert voter.wanted(Write).writes == (Clean(NEW),)
    assert voter.replica.core.log_start_offset == NEW.offset
    voter.load(NEW)
    voter.persist()
    assert voter.wanted(ReadLog).offset == NEW.offset
    voter.feed(encode_batch(NEW.offset, 1, 0, [NOTHING] * 3))
    assert voter.replica.applied.offset == voter.replica.core.high_watermark > 12
    assert voter.is_active()


def test_a_scan_that_dropped_nothing_is_not_repeated_at_once() -> None:
    """Seed 9 of plan format 4: it looked at its disk without a pause, for seconds."""
    voter = OneVoter(OLD, end=12, policy=SnapshotPolicy(retention_bytes=0))
    strays = (SnapshotInfo(OffsetAndEpoch(at, 1), 100, 0) for at in (3, 4))
    effects = voter.step(Surveyed(1000, tuple(strays)))
    assert "nothing to clean before (4, 1)" in effects.notes
    assert effects.jobs == []


# -- reading for others ------------------------------------------------------------------------
def fetch(epoch: int, offset: int = 0) -> FetchRequest:
    return FetchRequest(None, ReplicaKey(-1, Uuid(bytes(16))), epoch, offset, 0, 0, 1 << 20, -1)


def test_a_write_waits_for_few_of_the_reads_of_a_flood() -> None:
    voter = OneVoter(end=12)
    voter.persist()
    voter.persist()
    voter.feed(encode_batch(0, 1, 0, [NOTHING] * 12))
    assert voter.is_active()
    voter.jobs.clear()
    epoch = voter.replica.core.epoch
    voter.step(*(Received(at, fetch(epoch)) for at in range(100)))
    voter.step(Submit(8, [NOTHING]))
    assert [type(job) for job in voter.jobs] == [ReadLog, ReadLog, Write]
    first = voter.jobs[0]
    assert isinstance(first, ReadLog)
    answers = voter.step(LogRead(first.token, b"data")).answers
    assert [(answer.reply_to, answer.data) for answer in answers] == [(0, b"data")]
    assert [type(job) for job in voter.jobs[3:]] == [ReadLog]


def test_reads_that_wait_never_see_a_log_that_lost_its_end() -> None:
    one = OneOfThree(end=12)
    one.now_ms += 5_000
    one.step()
    for epoch in (1, 2):  # the pre-vote, and the vote
        one.answer(VoteRequest, VoteResponse(ErrorCode.NONE, LeaderAndEpoch(-1, epoch), True))
        one.persist()
    assert (one.replica.core.role, one.replica.core.epoch) == ("leader", epoch)
    one.step(*(Received(at, fetch(epoch)) for at in range(3)))
    one.step(Received(9, BeginQuorumEpochRequest(None, KEY, LeaderAndEpoch(2, 3), LISTENERS)))
    one.persist()
    there = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, 3), 0, 0, OffsetAndEpoch(4, 1))
    effects = one.answer(FetchRequest, there)
    assert one.wanted(Write).writes == (Truncate(4),)
    assert [(answer.reply_to, answer.data) for answer in effects.answers] == [(2, b"")]
    tokens = [job.token for job in one.jobs if isinstance(job, ReadLog)]
    assert len(tokens) == 2


def test_a_snapshot_that_rots_before_it_is_loaded_ends_the_replica_with_its_name() -> None:
    voter = OneVoter(OLD, end=5)
    asked = voter.wanted(ReadSnapshot)
    data = bytearray(
        b"".join(encode_snapshot(OLD, CONTROL, 0, not_none(KeyValueMachine().freeze()), 0))
    )
    data[-1] ^= 1
    effects = voter.step(SnapshotRead(asked.token, len(data), bytes(data)))
    assert effects.faulted is not None
    assert "00000000000000000005-0000000001.checkpoint: bytes that were sound" in effects.faulted
    assert effects.is_over


class Hesitant:
    """A state machine that allows no snapshot at first."""

    def __init__(self) -> None:
        self.inner = KeyValueMachine()
        self.may_be_frozen = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def freeze(self) -> Iterable[bytes] | None:
        return self.inner.freeze() if self.may_be_frozen else None


@kafka_scenario("SnapshotGeneratorTest", "snapshotsCreatedAgainWhenLastOffsetIsAligned")
@kafka_guarantee("SnapshotGeneratorTest", "snapshotsDisabled")
def test_a_snapshot_that_cannot_be_made_now_is_made_as_soon_as_it_can() -> None:
    """Inside a metadata transaction: the state is that of no offset that a snapshot may end at."""
    hesitant = Hesitant()
    one = OneVoter(end=0, policy=SnapshotPolicy(max_bytes=1), machine=as_any(hesitant))
    one.persist()
    one.persist()
    for token in range(3):
        one.step(Submit(token, [NOTHING]))
        one.persist()
    assert one.replica.leading_epoch is not None
    assert not [job for job in one.jobs if isinstance(job, WriteSnapshot)]
    hesitant.may_be_frozen = True
    one.step(Submit(9, [NOTHING]))
    one.persist()
    [made, *_] = [job for job in one.jobs if isinstance(job, WriteSnapshot)]
    assert made.snapshot_id.offset > 3


def test_what_the_machine_notes_is_reported_once() -> None:
    one = OneVoter(end=0)
    one.machine.notes.append("the machine is warm")
    assert "the machine is warm" in one.step().notes
    assert not one.machine.notes and "the machine is warm" not in one.step().notes
