"""One test for each sentence about the leader: Fetch answered, parked, proposed to (5.6, 5.8)."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from quorate.raft.inputs import (
    CleanTo,
    Propose,
    Resign,
    Shutdown,
    SnapshotCreated,
)
from quorate.raft.messages import (
    FetchResponse,
    ReadRange,
    VoteRequest,
)
from quorate.raft.ready import (
    Accepted,
    Append,
    Refused,
)
from quorate.raft.values import Voters
from quorate.sim.scenario.names import key, listeners, voter
from raft.leader_scenarios import OWN, START, committed, led, snapshotted
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    Single,
    begin,
    candidate,
    fetch,
    follower,
    granted,
    leader,
    observer,
    recovered,
    resigned,
    unattached,
)


# -- the leader's checks -------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientTest", "invalidFetchRequest")
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"max_wait_ms": -1}, ErrorCode.INVALID_REQUEST),
        ({"offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": EPOCH + 2}, ErrorCode.INVALID_REQUEST),
        ({"epoch": EPOCH}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": EPOCH + 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"replica": key(1, 1)}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"cluster_id": None}, ErrorCode.NONE),
    ],
)
def test_checks_of_the_leader(changes: dict[str, object], error: ErrorCode) -> None:
    fields = {"offset": END, "last_fetched_epoch": LAST_EPOCH} | changes
    answer = led().ask(fetch(**fields))  # type: ignore[arg-type]
    assert isinstance(answer, FetchResponse) and answer.error == error
    assert answer.records is None or error == ErrorCode.NONE
    if error != ErrorCode.INCONSISTENT_CLUSTER_ID:
        assert (answer.leader, answer.leader_endpoints) == (OWN, listeners(1))


@pytest.mark.parametrize("role", [unattached, follower, observer])
def test_only_a_leader_serves(role) -> None:
    single = role()
    answer = single.ask(fetch(epoch=EPOCH))
    assert answer is not None and answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_other_replicas_name_the_leader_and_its_endpoint() -> None:
    answer = follower().ask(fetch(epoch=EPOCH))
    assert isinstance(answer, FetchResponse)
    assert (answer.leader, answer.leader_endpoints) == (LeaderAndEpoch(2, EPOCH), listeners(2))


def test_a_leader_that_shuts_down_serves_no_more() -> None:
    single = led()
    single.ask(fetch(START, EPOCH + 1, replica=key(9)))
    single.step(Shutdown())
    assert single.replies[single.asked].error == ErrorCode.NOT_LEADER_OR_FOLLOWER


# -- the leader's decision -----------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchRequestOffsetAtZero")
def test_offset_0_gets_the_newest_snapshot_but_never_0_0() -> None:
    assert led().ask(fetch(0, 0, max_wait_ms=0)).snapshot_id is None  # type: ignore[union-attr]
    answer = snapshotted(cleaned=False).ask(fetch(0, 0))
    assert answer.snapshot_id == (3, LAST_EPOCH)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("offset", "last_epoch", "snapshot"),
    [(2, LAST_EPOCH, True), (3, LAST_EPOCH - 1, True), (4, 1, True), (3, LAST_EPOCH, False)],
)
def test_what_is_before_the_log_gets_a_snapshot(
    offset: int, last_epoch: int, snapshot: bool
) -> None:
    answer = snapshotted(cleaned=True).ask(fetch(offset, last_epoch))
    assert isinstance(answer, FetchResponse)
    assert (answer.snapshot_id is not None) is snapshot
    assert (answer.records is not None) is not snapshot


@kafka_scenario("KafkaRaftClientTest", "leaderImmediatelySendsDivergingEpoch")
@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (END + 1, LAST_EPOCH, (END, LAST_EPOCH)),
        (END, LAST_EPOCH + 1, (END, LAST_EPOCH)),
        (2, LAST_EPOCH + 1, (END, LAST_EPOCH)),
        (START + 1, EPOCH + 1, (START, EPOCH + 1)),
        (2, 1, (0, 0)),
        (END, LAST_EPOCH, None),
        (START, EPOCH + 1, None),
        (0, 0, None),
    ],
)
def test_an_offset_and_epoch_outside_the_log_diverge(
    offset: int, last_epoch: int, diverging: tuple[int, int] | None
) -> None:
    """(2, 4) is the lesson of others: this log never had epoch 4, but offset 2 of an older one."""
    answer = led().ask(fetch(offset, last_epoch, max_wait_ms=0))
    assert answer.diverging == diverging  # type: ignore[union-attr]


def test_records_reach_to_the_log_end_synced_or_not() -> None:
    single = led()
    single.slow = True
    single.step(Propose(0, EPOCH + 1, 2, 10, "x"))
    answer = single.ask(fetch(END, LAST_EPOCH, max_bytes=77))
    assert answer.records == ReadRange(END, START + 2, 77)  # type: ignore[union-attr]


def test_an_answer_is_no_larger_than_a_segment_whatever_was_asked_for() -> None:
    answer = led(answer_max_bytes=2000).ask(fetch(END, LAST_EPOCH, max_bytes=1 << 20))
    assert answer.records == ReadRange(END, START, 2000)  # type: ignore[union-attr]


def test_every_answer_names_the_leader_and_its_endpoints() -> None:
    answer = led().ask(fetch())
    assert isinstance(answer, FetchResponse)
    assert (answer.leader, answer.leader_endpoints) == (OWN, listeners(1))
    assert answer.log_start_offset == 0


# -- parked fetches ------------------------------------------------------------------------------
def parked(high_watermark: int = -1) -> Single:
    single = led()
    assert single.ask(fetch(START, EPOCH + 1, replica=key(9), high_watermark=-1)) is None
    return single


@kafka_scenario("KafkaRaftClientTest", "purgatoryFetchTimeout")
def test_a_fetch_at_the_log_end_is_answered_empty_at_its_deadline() -> None:
    single = parked()
    single.wait(499)
    assert single.replies.get(single.asked) is None
    assert single.last.wake_at_ms == single.now + 1
    single.wait(1)
    answer = single.replies[single.asked]
    assert isinstance(answer, FetchResponse)
    assert (answer.error, answer.records, answer.leader) == (ErrorCode.NONE, None, OWN)


def test_max_wait_0_is_answered_at_once() -> None:
    assert led().ask(fetch(START, EPOCH + 1, max_wait_ms=0)) is not None


@kafka_scenario("KafkaRaftClientTest", "purgatoryFetchSatisfiedByWrite")
def test_an_append_answers_it_before_it_is_durable() -> None:
    single = parked()
    single.slow = True
    single.step(Propose(0, EPOCH + 1, 1, 10, "x"))
    assert single.replies[single.asked].records == ReadRange(START, START + 1, 1 << 20)  # type: ignore[union-attr]


@kafka_scenario("BatchAccumulatorTest", "delayedDrain")
def test_proposals_of_one_step_are_one_write_and_one_wake_up() -> None:
    single = parked()
    single.slow = True
    ready = single.step(*(Propose(i, EPOCH + 1, 1, 10, str(i)) for i in range(3)))
    (write,) = ready.writes
    assert isinstance(write, Append)
    assert [batch.payload for batch in write.batches] == ["0", "1", "2"]
    assert len(ready.replies) == 1
    assert ready.proposals == tuple(Accepted(i, START + i, START + i + 1) for i in range(3))


def test_a_higher_high_watermark_wakes_it() -> None:
    single = parked()
    first = single.asked
    single.ask(fetch(START, EPOCH + 1, replica=key(2), max_wait_ms=0))
    assert single.replies[first].high_watermark == START  # type: ignore[union-attr]


def test_a_request_that_knows_less_is_answered_at_once() -> None:
    single = committed()
    assert single.ask(fetch(START, EPOCH + 1, replica=key(9), high_watermark=START - 1)) is not None
    assert single.ask(fetch(START, EPOCH + 1, replica=key(9), high_watermark=START)) is None
    assert single.ask(fetch(START, EPOCH + 1, replica=key(8), high_watermark=(1 << 63) - 1)) is None


@kafka_scenario(
    "KafkaRaftClientTest",
    "resignWillCompleteFetchPurgatory",
    "purgatoryFetchCompletedByFollowerTransition",
)
def test_it_is_refused_when_leadership_ends() -> None:
    single = parked()
    single.step(Resign(EPOCH + 1))
    refused = single.replies[single.asked]
    assert isinstance(refused, FetchResponse) and refused.records is None
    assert (refused.error, refused.leader) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, OWN)
    single = parked()
    single.ask(begin(EPOCH + 3, 3))
    answer = single.replies[1]
    assert isinstance(answer, FetchResponse)
    assert (answer.error, answer.leader) == (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        LeaderAndEpoch(3, EPOCH + 3),
    )


def test_a_new_leader_serves_when_its_epoch_is_durable() -> None:
    single = candidate(slow=True)
    single.persist()
    single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    assert single.core.role == "leader"
    assert single.ask(fetch()) is None
    single.persist()
    assert single.replies[single.asked].records is not None  # type: ignore[union-attr]


# -- the high watermark lingers ------------------------------------------------------------------
def lingering() -> Single:
    """Leader of the voters 1, 2, 3 that reports the high watermark to voters 2 ms late."""
    control = ((4, Voters(tuple(voter(i) for i in (1, 2, 3)))),)
    return leader(log=recovered(control_records=control), high_watermark_linger_ms=2)


def test_a_high_watermark_without_records_lingers_for_a_voter() -> None:
    single = lingering()
    assert single.ask(fetch(START, EPOCH + 1, high_watermark=-1)) is None
    assert single.core.high_watermark == START
    single.wait(1)
    assert single.replies.get(single.asked) is None
    assert single.last.wake_at_ms == single.now + 1
    single.wait(1)
    answer = single.replies[single.asked]
    assert isinstance(answer, FetchResponse)
    assert (answer.high_watermark, answer.records) == (START, None)


def test_records_do_not_linger_and_carry_the_high_watermark() -> None:
    single = lingering()
    assert single.ask(fetch(START, EPOCH + 1, high_watermark=-1)) is None
    single.step(Propose(0, EPOCH + 1, 1, 10, "x"))
    answer = single.replies[single.asked]
    assert isinstance(answer, FetchResponse)
    assert answer.records == ReadRange(START, START + 1, 1 << 20)
    assert answer.high_watermark == START


def test_a_parked_fetch_of_a_voter_lingers_from_the_commit_on() -> None:
    single = lingering()
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    assert single.ask(fetch(START, EPOCH + 1, replica=key(3), high_watermark=START)) is None
    parked = single.asked
    single.wait(100)
    single.slow = True
    single.step(Propose(0, EPOCH + 1, 1, 10, "x"))
    assert single.replies[parked].records is not None  # type: ignore[union-attr]
    assert single.ask(fetch(START + 1, EPOCH + 1, replica=key(3), high_watermark=START)) is None
    parked = single.asked
    single.persist()
    assert single.core.high_watermark == START + 1
    assert single.replies.get(parked) is None
    single.wait(2)
    assert single.replies[parked].high_watermark == START + 1  # type: ignore[union-attr]


@pytest.mark.parametrize("replica", [key(9), key(3, 1)])
def test_nothing_lingers_for_an_observer(replica: ReplicaKey) -> None:
    single = lingering()
    assert single.ask(fetch(START, EPOCH + 1, replica=replica, high_watermark=-1)) is None
    parked = single.asked
    single.ask(fetch(START, EPOCH + 1))
    assert single.replies[parked].high_watermark == START  # type: ignore[union-attr]
    assert single.ask(fetch(START, EPOCH + 1, replica=replica, high_watermark=-1)) is not None


def test_a_fetch_lingers_no_longer_than_it_may_wait() -> None:
    single = lingering()
    assert single.ask(fetch(START, EPOCH + 1, high_watermark=-1, max_wait_ms=1)) is None
    single.wait(1)
    assert single.replies[single.asked].high_watermark == START  # type: ignore[union-attr]


# -- proposing -----------------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientTest",
    "appendFailedWithFencedEpoch",
    "appendFailedWithRecordBatchTooLargeException",
)
@kafka_scenario("KafkaRaftLogTest", "maxBatchSize")
@kafka_guarantee("KafkaRaftClientTest", "appendFailedWithBufferAllocationException")
@pytest.mark.parametrize(
    ("event", "error"),
    [
        (Propose(7, EPOCH, 1, 1, "x"), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (Propose(7, EPOCH + 2, 1, 1, "x"), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (Propose(7, EPOCH + 1, 0, 1, "x"), ErrorCode.INVALID_REQUEST),
        (Propose(7, EPOCH + 1, 1, 9_000_000, "x"), ErrorCode.RECORD_LIST_TOO_LARGE),
    ],
)
def test_a_proposal_is_refused_with_the_reason(event: Propose, error: ErrorCode) -> None:
    (proposal,) = led().step(event).proposals
    assert isinstance(proposal, Refused)
    assert (proposal.token, proposal.error) == (7, error)


@kafka_scenario("KafkaRaftClientTest", "appendFailedWithNotLeaderException")
@kafka_guarantee("BatchAccumulatorTest", "forceDrainBeforeAppendLeaderChangeMessage")
def test_a_replica_that_does_not_lead_refuses_proposals() -> None:
    for role in (unattached, follower, resigned):
        (proposal,) = role().step(Propose(7, EPOCH, 1, 1, "x")).proposals
        assert isinstance(proposal, Refused)


# -- its disk ------------------------------------------------------------------------------------
def fetched_by_all(single: Single) -> None:
    """Both followers have whatever the leader has written."""
    for node_id in (2, 3):
        end = single.core.log_end
        single.ask(fetch(end.offset, end.epoch, max_wait_ms=0, replica=key(node_id)))


def proposed(single: Single) -> None:
    single.step(Propose(1, EPOCH + 1, 1, 10, b"x"))


def test_a_leader_whose_disk_hangs_resigns_with_all_followers_connected() -> None:
    """Else it would go on committing by the others' disks, and keep what its own does not take."""
    single = committed()
    single.slow = True
    proposed(single)
    for _ in range(5):
        single.wait(500)
        fetched_by_all(single)
    assert single.core.high_watermark == START + 1 and single.core.role == "leader"
    proposed(single)
    assert single.core.role == "leader"
    single.wait(500)
    assert single.core.role == "resigned"
    assert any("its disk has not moved" in note for note in single.notes)


def test_a_slow_disk_that_makes_progress_is_tolerated() -> None:
    single = committed()
    single.slow = True
    for _ in range(10):
        proposed(single)
        single.wait(2_500)
        fetched_by_all(single)
        single.persist()
    single.wait(2_900)
    fetched_by_all(single)
    single.wait(2_900)
    assert single.core.role == "leader", "nothing is being written"


def test_an_idle_disk_does_not_hang() -> None:
    single = committed(high_watermark_linger_ms=0)
    for _ in range(5):
        single.wait(2_000)
        fetched_by_all(single)
    single.slow = True
    proposed(single)
    assert single.core.role == "leader"


def test_a_long_clean_counts_as_a_hang_only_from_the_next_record() -> None:
    """Seed 8308542: no node waited for the disk while it deleted old segments."""
    single = committed(high_watermark_linger_ms=0)
    snapshot_id = OffsetAndEpoch(single.core.high_watermark, EPOCH + 1)
    single.step(SnapshotCreated(snapshot_id))
    single.slow = True
    single.step(CleanTo(snapshot_id))
    for _ in range(5):
        single.wait(2_000)
        fetched_by_all(single)
    proposed(single)
    for _ in range(2):
        assert single.core.role == "leader"
        single.wait(1_499)
        fetched_by_all(single)
    assert single.core.role == "leader"
    single.wait(2)
    assert single.core.role == "resigned"


def test_a_leader_asks_to_be_woken_when_its_disk_hangs() -> None:
    single = committed(high_watermark_linger_ms=0)
    single.slow = True
    proposed(single)
    due = single.now + 3_000
    while single.core.role == "leader":
        fetched_by_all(single)
        wake = single.last.wake_at_ms
        assert wake is not None
        single.wait(max(wake - single.now, 1))
    assert single.now == due


def test_the_only_voter_waits_for_its_disk_as_long_as_it_takes() -> None:
    control = ((4, Voters((voter(1),))),)
    single = Single(log=recovered(control_records=control))
    single.wait(10_000)
    assert single.core.role == "leader"
    single.slow = True
    single.step(Propose(1, single.core.epoch, 1, 10, b"x"))
    single.wait(60_000)
    assert single.core.role == "leader"


def test_a_leader_knows_which_voters_have_its_epoch_on_their_disks() -> None:
    single = leader()
    assert single.core.voters_of_epoch == {1, 2}  # itself, and the one that voted for it
    single.ask(fetch(replica=key(3, 1)))
    assert single.core.voters_of_epoch == {1, 2}  # another disk under the id of voter 3
    single.ask(fetch(replica=key(3)))
    assert single.core.voters_of_epoch == {1, 2, 3}


def test_a_replica_that_does_not_lead_knows_of_no_voters_of_its_epoch() -> None:
    assert follower().core.voters_of_epoch == frozenset()
