"""One test for each sentence about the fetching side: follower and observer (5.7, 5.10)."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from narrow import not_none
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, Listener, Listeners, OffsetAndEpoch
from quorate.base.notes import Warn
from quorate.raft.inputs import (
    Answered,
    CleanTo,
    InstallFailed,
    Persisted,
    SendFailed,
    SendFailure,
    SnapshotCreated,
    SnapshotInstalled,
)
from quorate.raft.log_index import LogIndex, NeedsSnapshot
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoteRequest,
)
from quorate.raft.ready import (
    AbandonSnapshot,
    Append,
    Clean,
    InstallSnapshot,
    Ready,
    SnapshotChunk,
    Truncate,
)
from quorate.raft.values import (
    Batch,
    ControlState,
    ElectionState,
    KRaftVersion,
    RecoveredLog,
    Voters,
)
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners, voter
from raft.single import (
    END,
    EPOCH,
    KRAFT_VERSION,
    LAST_EPOCH,
    VOTERS,
    Single,
    begin,
    fetched,
    follower,
    observer,
    recovered,
    vote,
)

LEADER = LeaderAndEpoch(2, EPOCH)


# -- the follower --------------------------------------------------------------------------------
def response(**changes: object) -> FetchResponse:
    fields: dict[str, object] = {"error": ErrorCode.NONE, "leader": LEADER, "high_watermark": 0}
    return FetchResponse(**(fields | changes))  # type: ignore[arg-type]


def leader_is_backed_off(ready: Ready) -> bool:
    """Is the leader 2 left alone for the backoff? (A bootstrap server may be asked.)"""
    return all(send.to != 2 for send in ready.sends)


def batch(base: int, epoch: int = EPOCH, count: int = 1) -> Batch:
    return Batch(base, base + count - 1, epoch, 10, (), f"b{base}")


def test_a_follower_fetches_from_its_log_end() -> None:
    sent = follower().sent(FetchRequest)
    assert sent is not None
    assert sent.to == 2 and sent.address == listeners(2)[0].address
    assert sent.request == FetchRequest(
        CLUSTER_ID, key(1), EPOCH, END, LAST_EPOCH, 500, 1_048_576, -1
    )


@kafka_scenario("KafkaRaftClientTest", "followerReplication")
def test_it_acknowledges_only_what_is_durable() -> None:
    single = follower()
    single.slow = True
    ready = single.answer(FetchRequest, response(batches=(batch(5), batch(6)), high_watermark=6))
    assert ready.writes == (Append((batch(5), batch(6))),)
    assert ready.high_watermark == 6
    assert ready.sends == ()
    ready = single.persist()
    (send,) = ready.sends
    assert isinstance(send.request, FetchRequest)
    assert (send.request.offset, send.request.last_fetched_epoch) == (7, EPOCH)
    assert send.request.high_watermark == 6


def test_the_high_watermark_is_at_most_the_own_end() -> None:
    single = follower()
    assert single.answer(FetchRequest, response(high_watermark=99)).high_watermark == END


@pytest.mark.parametrize("high_watermark", [-1, 3])
def test_a_lower_or_unknown_high_watermark_changes_nothing(high_watermark: int) -> None:
    single = fetched()
    single.answer(FetchRequest, response(high_watermark=4))
    ready = single.answer(FetchRequest, response(high_watermark=high_watermark))
    assert ready.high_watermark is None
    assert single.core.high_watermark == 4


BOTH = listeners(2, more=True)
"""A leader's endpoints as BeginQuorumEpoch announces them; a Fetch's answer has the one it came to."""


def test_an_answer_with_one_listener_keeps_the_other_listeners() -> None:
    single = Single()
    single.ask(begin(leader_endpoints=BOTH))
    single.answer(FetchRequest, response(leader_endpoints=listeners(2)))
    assert single.core.leader_endpoints == BOTH
    moved = Listener(BOTH[0].name, "elsewhere", 1)
    single.answer(FetchRequest, response(leader_endpoints=(moved,)))
    assert single.core.leader_endpoints == (moved, BOTH[1])


def test_the_reminder_of_a_leader_with_two_listeners_ends_no_download() -> None:
    """A leader says BeginQuorumEpoch each second while a voter fetches its snapshot."""
    single = Single()
    single.ask(begin(leader_endpoints=BOTH))
    wanted = OffsetAndEpoch(100, EPOCH)
    single.answer(FetchRequest, response(snapshot_id=wanted, leader_endpoints=listeners(2)))
    single.wait(1000)
    chunk = FetchSnapshotResponse(ErrorCode.NONE, LEADER, wanted, 10, 0, b"12345", listeners(2))
    single.answer(FetchSnapshotRequest, chunk)
    single.ask(begin(leader_endpoints=BOTH))
    assert not any(isinstance(write, AbandonSnapshot) for write in single.last.writes)
    last = single.sent(FetchSnapshotRequest)
    assert last is not None and last.request.position == 5  # type: ignore[union-attr]


@pytest.mark.parametrize("known", [listeners(2), BOTH], ids=["one listener", "two listeners"])
def test_reminders_do_not_restart_the_fetch_timer(known: Listeners) -> None:
    single = Single()
    single.ask(begin(leader_endpoints=known))
    single.answer(FetchRequest, response(leader_endpoints=listeners(2)))
    single.wait(1000)
    single.ask(begin(leader_endpoints=known))
    single.wait(1000)
    assert single.core.role == "prospective"


@pytest.mark.parametrize(
    "given",
    [{"batches": True}, {"diverging": OffsetAndEpoch(2, LAST_EPOCH)}],
    ids=["records", "diverging epoch"],
)
@pytest.mark.parametrize("other", [3, 1], ids=["another leader", "this node as leader"])
def test_only_fetch_responses_of_the_leader_are_applied(
    given: dict[str, object], other: int
) -> None:
    """The answer names another leader of this epoch: it moves neither the log nor the timer."""
    single = follower()
    if "batches" in given:
        given = {"batches": (batch(END),), "high_watermark": END + 1}
    single.wait(1000)
    ready = single.answer(
        FetchRequest,
        response(leader=LeaderAndEpoch(other, EPOCH), leader_endpoints=listeners(other), **given),
    )
    assert ready.writes == () and ready.high_watermark is None
    assert single.core.log_end.offset == END
    assert single.core.leader_endpoints == listeners(2)
    single.wait(1500)
    assert single.core.role == "prospective"


@kafka_scenario("KafkaRaftClientTest", "followerLogReconciliation")
def test_it_truncates_where_the_leader_diverges() -> None:
    single = follower()
    single.slow = True
    ready = single.answer(FetchRequest, response(diverging=OffsetAndEpoch(2, LAST_EPOCH)))
    assert ready.writes == (Truncate(2),)
    assert single.core.log_end == (2, LAST_EPOCH)
    assert ready.sends == ()
    (send,) = single.persist().sends
    assert single.core.durable_end_offset == 2
    assert send.to == 2 and isinstance(send.request, FetchRequest)
    assert (send.request.offset, send.request.last_fetched_epoch) == (2, LAST_EPOCH)


@pytest.mark.parametrize(
    ("diverging", "end"),
    [
        ((3, 0), 3),
        ((9, 0), END),
        ((2, LAST_EPOCH), 2),
        ((9, LAST_EPOCH), END),
        ((2, 1), 0),
    ],
)
def test_where_it_truncates(diverging: tuple[int, int], end: int) -> None:
    """To min(own end of that epoch, the leader's); whole where the epoch is unknown here."""
    single = follower()
    single.answer(FetchRequest, response(diverging=OffsetAndEpoch(*diverging)))
    assert single.core.log_end.offset == end


@kafka_scenario("KafkaRaftLogTest", "truncateBelowHighWatermark")
def test_it_never_truncates_what_is_committed() -> None:
    single = follower()
    single.answer(FetchRequest, response(high_watermark=4))
    ready = single.answer(FetchRequest, response(diverging=OffsetAndEpoch(3, LAST_EPOCH)))
    assert ready.writes == () and single.core.log_end.offset == END
    assert any("below what is committed" in note for note in ready.notes)
    assert single.core.high_watermark == 4


def test_no_truncation_above_the_high_watermark_follows_a_leader_that_lacks_committed_records() -> (
    None
):
    """It names epoch 2, unknown here, at offset 2: to cut the epochs above would lose offset 4."""
    single = follower(log=recovered(epochs=((1, 0), (LAST_EPOCH, 4))))
    single.answer(FetchRequest, response(high_watermark=4))
    ready = single.answer(FetchRequest, response(diverging=OffsetAndEpoch(2, 2)))
    assert ready.writes == () and single.core.log_end.offset == END
    assert leader_is_backed_off(ready) and any(
        "below what is committed" in note for note in ready.notes
    )


@pytest.mark.parametrize(
    "bad",
    [batch(6), batch(4), batch(5, EPOCH + 1), batch(5, LAST_EPOCH - 1), batch(5, count=0)],
)
def test_a_batch_that_does_not_continue_the_log_is_refused(bad: Batch) -> None:
    single = follower()
    ready = single.answer(FetchRequest, response(batches=(bad,)))
    assert ready.writes == () and single.core.log_end.offset == END
    assert leader_is_backed_off(ready)


def test_batches_before_a_bad_batch_are_appended() -> None:
    single = follower()
    ready = single.answer(FetchRequest, response(batches=(batch(5), batch(7))))
    assert ready.writes == (Append((batch(5),)),)


def test_a_successful_fetch_restarts_the_timer_a_begin_does_not() -> None:
    single = follower()
    single.wait(1500)
    single.ask(begin())
    single.answer(FetchRequest, response())
    single.wait(1900)
    assert single.core.role == "follower"
    single.ask(begin())
    single.wait(100)
    assert single.core.role == "prospective"


def test_an_observer_never_starts_an_election() -> None:
    single = observer()
    single.wait(100_000)
    assert single.core.role == "follower"
    assert single.last.faulted is None


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_REQUEST, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
)
def test_errors_that_stop_java_only_back_off_the_leader(error: ErrorCode) -> None:
    single = follower()
    ready = single.answer(FetchRequest, response(error=error))
    assert ready.faulted is None and leader_is_backed_off(ready)
    assert any(error.name in note for note in ready.notes)


# -- the follower and snapshots ------------------------------------------------------------------
SNAPSHOT = OffsetAndEpoch(20, LAST_EPOCH)


def chunk(position: int, data: bytes, size: int = 10, **changes: object) -> FetchSnapshotResponse:
    fields: dict[str, object] = {
        "error": ErrorCode.NONE,
        "leader": LEADER,
        "snapshot_id": SNAPSHOT,
        "size": size,
        "position": position,
        "chunk": data,
    }
    return FetchSnapshotResponse(**(fields | changes))  # type: ignore[arg-type]


def downloading() -> Single:
    single = follower()
    single.answer(FetchRequest, response(snapshot_id=SNAPSHOT))
    return single


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchResponseWithSnapshotId")
def test_a_snapshot_is_downloaded_in_chunks_and_installed() -> None:
    single = downloading()
    single.slow = True
    first = single.sent(FetchSnapshotRequest)
    assert first is not None and isinstance(first.request, FetchSnapshotRequest)
    assert (first.request.snapshot_id, first.request.position) == (SNAPSHOT, 0)
    ready = single.answer(FetchSnapshotRequest, chunk(0, b"123456"))
    assert ready.writes == (SnapshotChunk(SNAPSHOT, 0, b"123456"),)
    (again,) = ready.sends
    assert isinstance(again.request, FetchSnapshotRequest) and again.request.position == 6
    ready = single.answer(FetchSnapshotRequest, chunk(6, b"7890"))
    assert ready.writes[1:] == (InstallSnapshot(SNAPSHOT),)
    assert ready.sends == ()
    control = ControlState(1, (voter(1), voter(2)))
    assert ready.seq is not None
    ready = single.step(SnapshotInstalled(ready.seq, SNAPSHOT, control))
    assert (single.core.log_start_offset, single.core.log_end) == (20, SNAPSHOT)
    assert ready.high_watermark == 20
    assert single.core.voters == control
    (fetching,) = ready.sends
    assert isinstance(fetching.request, FetchRequest)
    assert (fetching.request.offset, fetching.request.last_fetched_epoch) == (20, LAST_EPOCH)


@pytest.mark.parametrize("wrong", [(20, EPOCH + 1), (20, 2**31 - 1), (20, LAST_EPOCH - 1), (4, 3)])
def test_a_snapshot_that_no_leader_of_the_epoch_can_have_is_not_fetched(
    wrong: tuple[int, int],
) -> None:
    """Of a higher epoch, installed, it ended this replica, and each start after that."""
    own = OffsetAndEpoch(5, LAST_EPOCH)
    single = Single(log=recovered(start_offset=5, epochs=(), snapshots=(own,), batch_ends=()))
    single.ask(begin())
    ready = single.answer(FetchRequest, response(snapshot_id=OffsetAndEpoch(*wrong)))
    assert ready.faulted is None and leader_is_backed_off(ready)
    assert single.sent(FetchSnapshotRequest) is None


def test_an_installing_replica_starts_no_election() -> None:
    single = downloading()
    single.slow = True
    ready = single.answer(FetchSnapshotRequest, chunk(0, b"1234567890"))
    single.wait(10_000)
    assert single.core.role == "follower"
    assert ready.seq is not None
    single.step(InstallFailed(ready.seq, SNAPSHOT, "bad"))
    assert single.core.log_end == (END, LAST_EPOCH)


def installing() -> Single:
    """A follower of 2 that waits for its disk to install SNAPSHOT."""
    single = downloading()
    single.slow = True
    ready = single.answer(FetchSnapshotRequest, chunk(0, b"1234567890"))
    assert ready.writes[-1] == InstallSnapshot(SNAPSHOT)
    return single


def installed(single: Single) -> Ready:
    assert single.seq is not None
    control = ControlState(1, tuple(voter(i) for i in (1, 2, 3)))
    return single.step(SnapshotInstalled(single.seq, SNAPSHOT, control))


def test_an_installing_replica_starts_no_election_in_an_epoch_without_a_leader() -> None:
    single = installing()
    seq = single.seq
    single.ask(vote(EPOCH + 1, candidate=9, end=99))
    single.persist()
    assert single.core.role == "unattached"
    single.wait(10_000)
    assert (single.core.role, single.sent(VoteRequest)) == ("unattached", None)
    single.seq = seq
    installed(single)
    assert single.core.role == "prospective"
    sent = single.sent(VoteRequest)
    assert sent is not None and isinstance(sent.request, VoteRequest)
    assert sent.request.last_offset == SNAPSHOT.offset


def test_once_it_has_installed_the_leader_has_a_whole_fetch_timeout_to_answer() -> None:
    single = installing()
    single.wait(10_000)
    installed(single)
    assert single.core.role == "follower"
    single.wait(1999)
    assert single.core.role == "follower"
    single.wait(1)
    assert single.core.role == "prospective"


def test_an_installing_replica_cleans_no_log() -> None:
    """Found by the simulator: the install drops the snapshot that the cleaning is to keep."""
    single = follower()
    single.answer(FetchRequest, response(high_watermark=END))
    own = OffsetAndEpoch(END, LAST_EPOCH)
    single.step(SnapshotCreated(own))
    assert own in single.core.snapshots
    single.answer(FetchRequest, response(snapshot_id=SNAPSHOT))
    single.slow = True
    ready = single.answer(FetchSnapshotRequest, chunk(0, b"1234567890"))
    assert ready.writes[-1] == InstallSnapshot(SNAPSHOT)
    ready = single.step(CleanTo(own))
    assert ready.writes == () and "nothing to clean before (5, 3)" in " ".join(ready.notes)


def test_cleaning_where_there_is_no_snapshot_yet_is_a_note() -> None:
    """A reader of the disk may know of one before the core does: seed 1830 of plan format 4,
    in a static quorum, which has no bootstrap snapshot either."""
    voters = tuple(voter(i, known=False) for i in (1, 2, 3))
    log = recovered(snapshots=(), snapshot_control=None)
    single = Single(1, log=log, static_voters=voters)
    ready = single.step(CleanTo(SNAPSHOT))
    assert ready.writes == () and "nothing to clean before" in " ".join(ready.notes)


def test_an_older_snapshot_after_the_installed_one_is_dropped() -> None:
    """It was in the making, and no node ever dropped it: seed 9 of plan format 4."""
    single = follower()
    single.answer(FetchRequest, response(snapshot_id=SNAPSHOT))
    ready = single.answer(FetchSnapshotRequest, chunk(0, b"1234567890"))
    control = ControlState(1, (voter(1), voter(2)))
    single.step(SnapshotInstalled(not_none(ready.seq), SNAPSHOT, control))
    assert single.core.log_start_offset == SNAPSHOT.offset
    assert single.step(CleanTo(SNAPSHOT)).writes == ()
    single.step(SnapshotCreated(OffsetAndEpoch(END, LAST_EPOCH)))
    assert single.step(CleanTo(SNAPSHOT)).writes == (Clean(SNAPSHOT),)
    assert single.step(CleanTo(SNAPSHOT)).writes == ()


def test_an_older_snapshot_after_the_installed_one_does_not_change_the_log() -> None:
    """It may be of an older epoch than the log's start: who ends there with another record would
    have been asked to go on. Found by seed 3007622 of plan format 5."""
    log = LogIndex(RecoveredLog(25, 30, ((3, 25),), (OffsetAndEpoch(25, 2),), None, ()))
    older = OffsetAndEpoch(19, 1)
    for _ in range(2):
        assert log.validate(25, 1) == NeedsSnapshot(OffsetAndEpoch(25, 2))
        assert log.validate(42, 1) == NeedsSnapshot(OffsetAndEpoch(25, 2))
        assert log.validate(25, 2) is None
        assert log.end_offset_for_epoch(2) == OffsetAndEpoch(25, 2)
        log.add_snapshot(older)
    assert log.snapshots[0] == older


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotResponseWithInvalidId")
@pytest.mark.parametrize(
    "wrong",
    [
        chunk(1, b"1"),
        chunk(0, b"1", snapshot_id=OffsetAndEpoch(21, 3)),
        chunk(0, b"12345678901"),
        chunk(0, b""),
    ],
)
def test_a_wrong_chunk_restarts_the_download(wrong: FetchSnapshotResponse) -> None:
    single = downloading()
    ready = single.answer(FetchSnapshotRequest, wrong)
    assert ready.writes == (AbandonSnapshot(SNAPSHOT),)
    single.wait(20)
    assert isinstance(single.sends[-1].request, FetchRequest)


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotResponseMissingSnapshot")
@pytest.mark.parametrize(
    "gone",
    [chunk(0, b"", error=ErrorCode.SNAPSHOT_NOT_FOUND), chunk(0, b"", snapshot_id=(-1, -1))],
)
def test_a_deleted_snapshot_ends_the_download(gone: FetchSnapshotResponse) -> None:
    single = downloading()
    ready = single.answer(FetchSnapshotRequest, gone)
    assert ready.writes == (AbandonSnapshot(SNAPSHOT),)
    assert isinstance(ready.sends[0].request, FetchRequest)


def test_another_error_backs_off_the_leader() -> None:
    single = downloading()
    ready = single.answer(
        FetchSnapshotRequest, chunk(0, b"", error=ErrorCode.POSITION_OUT_OF_RANGE)
    )
    assert ready.writes == () and leader_is_backed_off(ready)


def test_an_observer_in_a_download_searches_a_leader_when_its_own_is_unreachable() -> None:
    """Found by the simulator: it asked a leader at its former endpoint for chunks, without end."""
    single = Single(4)
    single.ask(begin())
    single.answer(FetchRequest, response(snapshot_id=SNAPSHOT))
    send = single.sent(FetchSnapshotRequest)
    assert send is not None
    ready = single.step(SendFailed(send.correlation, SendFailure.DISCONNECTED))
    (elsewhere,) = ready.sends
    assert elsewhere.to != send.to and isinstance(elsewhere.request, FetchRequest)
    single.step(
        Answered(
            elsewhere.correlation,
            FetchResponse(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                LeaderAndEpoch(3, EPOCH + 1),
                leader_endpoints=listeners(3),
            ),
        )
    )
    assert single.core.leader == (3, EPOCH + 1)


def test_a_response_of_the_leader_gives_its_endpoint() -> None:
    """Found by the simulator: a moved leader was reached by a bootstrap server's address, and
    asked for its snapshot at the old one without end."""
    single = Single(4, bootstrap_servers=(("moved", 9),))
    single.ask(begin())
    moved = (Listener("CONTROLLER", "moved", 9),)
    said = response(snapshot_id=SNAPSHOT, leader_endpoints=moved)
    ready = single.answer(FetchRequest, said)
    (send,) = ready.sends
    assert isinstance(send.request, FetchSnapshotRequest)
    assert (send.to, send.address) == (2, moved[0].address)


def test_a_new_leader_ends_the_download() -> None:
    single = downloading()
    ready = single.step()
    single.ask(begin(EPOCH + 1, 3))
    assert AbandonSnapshot(SNAPSHOT) in single.last.writes
    assert ready.faulted is None


def test_a_snapshot_below_what_is_committed_is_refused() -> None:
    single = follower()
    single.answer(FetchRequest, response(high_watermark=5))
    ready = single.answer(FetchRequest, response(snapshot_id=OffsetAndEpoch(4, LAST_EPOCH)))
    assert leader_is_backed_off(ready) and any("refused" in note for note in ready.notes)


# -- finding the leader, timeouts ----------------------------------------------------------------
def test_a_leader_that_does_not_answer_is_searched_after_the_request_timeout() -> None:
    single = Single(4, bootstrap_servers=(("elsewhere", 1),))
    single.ask(begin())
    before = len(single.sends)
    single.wait(2000)
    (send,) = single.sends[before:]
    assert (send.to, send.address.host) == (-2, "elsewhere")


def test_a_leader_that_does_not_answer_is_asked_again_when_all_other_nodes_back_off() -> None:
    """Found by the simulator (seed 12007591): no node was asked, until something else was due."""
    single = Single(4, bootstrap_servers=(("elsewhere", 1),))
    single.ask(begin())
    single.core.state.requests.backoff_until[-2] = single.now + 2020
    before = len(single.sends)
    single.wait(2000)
    (send,) = single.sends[before:]
    assert (send.to, send.address) == (2, listeners(2)[0].address)


def test_the_only_voter_of_the_start_asks_the_voters_of_now_once_it_is_removed() -> None:
    """Found by the simulator: without bootstrap servers it never had a node to ask."""
    alone = recovered(snapshot_control=ControlState(1, (voter(1),)))
    single = Single(log=alone)
    single.step()
    assert single.core.role == "leader"
    single.ask(begin(single.core.epoch + 1, 2))
    end, epoch = single.core.log_end.offset, single.core.epoch
    gone = Batch(end, end, epoch, 10, (Voters((voter(2),)),))
    single.answer(FetchRequest, response(leader=single.core.leader, batches=(gone,)))
    assert not single.core.is_voter
    single.ask(vote(epoch + 1, 2))
    assert (single.core.role, single.core.epoch) == ("unattached", epoch + 1)
    send = single.sent(FetchRequest)
    assert send is not None and isinstance(send.request, FetchRequest)
    assert (send.to, send.request.epoch) == (2, epoch + 1)


def test_a_failed_request_backs_off_20_ms() -> None:
    single = Single(4)
    single.ask(begin())
    send = single.sent(FetchRequest)
    assert send is not None
    single.step(SendFailed(send.correlation, SendFailure.DISCONNECTED))
    found = single.sent(FetchRequest)
    assert found is not None and found.to != 2


@kafka_scenario("KafkaRaftClientTest", "fetchResponseIgnoredAfterBecomingFollowerOfDifferentLeader")
def test_a_late_answer_is_ignored() -> None:
    single = follower()
    send = single.sent(FetchRequest)
    assert send is not None
    single.ask(begin(EPOCH + 1, 3))
    ready = single.step(Answered(send.correlation, response(batches=(batch(5),))))
    assert ready.writes == () and single.core.log_end.offset == END
    assert single.core.election == ElectionState(EPOCH + 1, 3)


def test_an_observer_appends_records_of_its_first_answer() -> None:
    single = Single(4, bootstrap_servers=(("host2", 9002),), election=ElectionState(EPOCH))
    ready = single.answer(
        FetchRequest, response(batches=(batch(5),), leader_endpoints=listeners(2))
    )
    assert Append((batch(5),)) in ready.writes
    assert single.core.leader == LEADER


def test_a_kraft_version_that_only_later_software_knows_ends_the_replica_with_its_number() -> None:
    """Nothing of it is written, so that later software finds what it would have found anyway."""
    single = follower()
    later = Batch(END, END, EPOCH, 10, (KRaftVersion(2),), "later")
    single.answer(FetchRequest, response(batches=(later,)))
    assert single.last.faulted is not None and single.last.writes == ()
    assert "kraft.version 2 in the log, of which this software knows up to 1" in single.last.faulted
    again = Single(log=recovered(control_records=((2, KRaftVersion(2)),)))
    again.step()
    assert again.last.faulted == single.last.faulted


def test_persisted_twice_is_persisted_once() -> None:
    single = follower()
    single.step(Persisted(1))
    single.step(Persisted(999))
    assert single.last.faulted is None


# -- an observer without a leader ----------------------------------------------------------------
def lost() -> Single:
    """Observer 4, whose only bootstrap server 9 is no voter (1, 2 and 3 are) and knows nothing."""
    return Single(4, bootstrap_servers=(("host9", 9009),), election=ElectionState(EPOCH))


def without_a_leader(single: Single, rounds: int) -> list[int]:
    """The nodes that it asks in so many rounds, each answered without a leader."""
    asked = []
    for _ in range(rounds):
        send = single.sends[-1]
        asked.append(send.to)
        no_leader = LeaderAndEpoch(-1, EPOCH)
        said = FetchResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER, no_leader)
        single.step(Answered(send.correlation, said))
        for _ in range(600):
            if single.sends[-1] is not send:
                break
            single.wait(1)
    return asked


def test_an_observer_asks_the_voters_of_its_log_beside_the_bootstrap_servers() -> None:
    """These may all have been voted out: then no node found the quorum again, ever."""
    asked = without_a_leader(lost(), 20)
    assert set(asked[:3]) == {-2} and set(asked) == {-2, 1, 2, 3}


def test_a_replica_whose_leader_does_not_answer_asks_the_other_voters() -> None:
    single = Single(4, bootstrap_servers=(("host9", 9009),))
    single.ask(begin())
    single.wait(2000)
    before = len(single.sends)
    for _ in range(20):
        single.step(SendFailed(single.sends[-1].correlation, SendFailure.DISCONNECTED))
        single.wait(5)
    assert {1, 3, -2} <= {send.to for send in single.sends[before:]}


def test_a_voter_asks_the_bootstrap_servers_alone() -> None:
    """It holds elections, which lead it to the others."""
    single = Single(1, bootstrap_servers=(("host9", 9009),))
    assert {send.to for send in single.sends if isinstance(send.request, FetchRequest)} == {-2}


def test_the_interval_of_the_search_grows() -> None:
    single = lost()
    without_a_leader(single, 60)
    before = single.now
    without_a_leader(single, 40)
    assert single.now - before >= 9 * 500  # of four servers, one each 125 ms


def test_an_unknown_leader_is_reported_once() -> None:
    single = lost()
    without_a_leader(single, 100)
    notes = [note for note in single.notes if "no node knows a leader" in note]
    assert len(notes) == 1 and isinstance(notes[0], Warn)
    assert "host9:9009" in notes[0] and "host3:9003" in notes[0]


def test_truncated_records_are_logged_as_a_warning() -> None:
    single = follower()
    single.answer(FetchRequest, response(diverging=OffsetAndEpoch(3, LAST_EPOCH)))
    notes = [note for note in single.notes if isinstance(note, Warn)]
    said = "truncated to 3, from 5: leader 2 does not have the rest"
    unknown = "This node knows of no committed record after its newest snapshot"
    assert notes == [f"{said}. {unknown}: the rest may have been acknowledged"]


def test_records_after_a_known_high_watermark_are_dropped_without_a_doubt() -> None:
    single = follower()
    single.answer(FetchRequest, response(high_watermark=3))
    single.answer(FetchRequest, response(diverging=OffsetAndEpoch(3, LAST_EPOCH)))
    notes = [note for note in single.notes if isinstance(note, Warn)]
    assert notes == ["truncated to 3, from 5: leader 2 does not have the rest"]


@pytest.mark.parametrize(
    ("longest", "gaps"), [(0, [20, 20, 20, 20, 20]), (100, [20, 40, 80, 100, 20])]
)
def test_a_silent_leader_is_asked_ever_more_rarely_where_the_file_says_so(longest, gaps):
    """`controller.quorum.retry.backoff.max.ms`. The last gap follows an answer."""
    two = recovered(snapshot_control=ControlState(KRAFT_VERSION, VOTERS[:2]))
    single = follower(fetch_timeout_ms=60_000, retry_backoff_max_ms=longest, log=two)
    found = []
    for number in range(5):
        if number == 4:
            single.answer(FetchRequest, FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), 0))
        asked = not_none(single.sent(FetchRequest, 2))
        single.step(SendFailed(asked.correlation, SendFailure.TIMED_OUT))
        failed_at = single.now
        while single.sent(FetchRequest, 2) is asked:
            single.wait(1)
        found.append(single.now - failed_at)
    assert found == gaps
