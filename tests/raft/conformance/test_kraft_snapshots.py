"""KafkaRaftClientSnapshotTest, KafkaRaftClientFetchTest: snapshots, sizes, the high watermark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.inputs import Answered, CleanTo, Propose, SnapshotCreated, SnapshotInstalled
from quorate.raft.messages import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ReadRange,
    VoteRequest,
)
from quorate.raft.ready import AbandonSnapshot, Append, InstallSnapshot, SnapshotChunk
from quorate.raft.values import ControlState
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners
from raft.conformance.world import (
    LEADER,
    OWN,
    SET,
    SNAPSHOT,
    START,
    STATIC,
    acknowledge,
    batch,
    chunk,
    committed,
    downloading,
    follower_of_two,
    led,
    response,
    sent_since,
    snapshot_request,
    snapshotted,
    state,
    without_voters,
)
from raft.single import (
    BOOTSTRAP,
    END,
    EPOCH,
    LAST_EPOCH,
    Single,
    fetch,
    fetched,
    follower,
    leader,
    recovered,
    unattached,
)

DOWNLOAD = OffsetAndEpoch(20, LAST_EPOCH)


# -- the newest snapshot -------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientSnapshotTest", "latestSnapshotId")
def test_latest_snapshot_id() -> None:
    assert snapshotted().core.snapshots[-1] == SNAPSHOT
    single = Single(log=recovered(snapshots=(BOOTSTRAP, SNAPSHOT)))
    assert single.core.snapshots[-1] == SNAPSHOT
    assert single.core.high_watermark == SNAPSHOT.offset, "what a snapshot holds is committed"


@kafka_scenario("KafkaRaftClientSnapshotTest", "latestSnapshotIdMissing")
def test_latest_snapshot_id_missing() -> None:
    assert Single(log=recovered(snapshots=(), snapshot_control=None)).core.snapshots == ()


@kafka_scenario("KafkaRaftClientSnapshotTest", "createSnapshotAsFollowerWithInvalidSnapshotId")
@pytest.mark.parametrize(
    ("problem", "snapshot_id"),
    [
        ("high watermark -1", (4, LAST_EPOCH)),
        ("high watermark 4", (5, LAST_EPOCH)),
        ("no such offset and epoch", (4, EPOCH)),
        ("no such offset and epoch", (4, LAST_EPOCH - 1)),
        ("no such offset and epoch", (8, LAST_EPOCH)),
        ("no such offset and epoch", (8, EPOCH + 1)),
        ("inside a batch", (7, EPOCH)),
    ],
)
def test_create_snapshot_as_follower_with_invalid_snapshot_id(
    problem: str, snapshot_id: tuple[int, int]
) -> None:
    single = fetched()
    if problem == "high watermark -1":
        single = follower()
    elif snapshot_id[0] < 6:
        single.answer(FetchRequest, response(high_watermark=4))
    else:
        taken = response(batches=(batch(END, count=3),), high_watermark=8)
        single.answer(FetchRequest, taken)
        assert single.core.high_watermark == 8
        assert single.core.snapshot_problem(OffsetAndEpoch(8, EPOCH)) is None
    said = single.core.snapshot_problem(OffsetAndEpoch(*snapshot_id))
    assert said is not None and problem in said
    single.step(SnapshotCreated(OffsetAndEpoch(*snapshot_id)))
    assert single.core.snapshots == (BOOTSTRAP,)


@kafka_scenario("KafkaRaftClientSnapshotTest", "createSnapshotAsLeaderWithInvalidSnapshotId")
def test_create_snapshot_as_leader_with_invalid_snapshot_id() -> None:
    """No high watermark yet, above it, of another epoch, where that epoch has ended, in a batch."""
    single = led()
    said = []

    def problem(offset: int, epoch: int) -> None:
        said.append(single.core.snapshot_problem(OffsetAndEpoch(offset, epoch)))
        single.step(SnapshotCreated(OffsetAndEpoch(offset, epoch)))

    problem(4, LAST_EPOCH)
    acknowledge(single, 2)
    single.step(Propose(0, EPOCH + 1, 3, 30, "three"))
    assert (single.core.high_watermark, single.core.log_end.offset) == (START, START + 3)
    problem(START + 3, EPOCH + 1)
    problem(START, EPOCH + 2)
    problem(END + 1, LAST_EPOCH)
    acknowledge(single, 2)
    problem(START + 2, EPOCH + 1)
    assert single.core.snapshots == (BOOTSTRAP,)
    for text, found in zip(
        ("above", f"above the high watermark {START}", "no such", "no such", "inside a batch"),
        said,
        strict=True,
    ):
        assert text in (found or "")


# -- the leader answers with a snapshot, or with where the logs part -----------------------------
def parted(epochs: tuple[tuple[int, int], ...], *, cleaned: bool) -> Single:
    """Leader whose log has these epochs, ends at 9, and has the snapshot (3, 1) but no other."""
    log = without_voters(epochs=epochs, end_offset=9, batch_ends=(3, 6, 9))
    single = leader(log=log, static_voters=STATIC)
    acknowledge(single, 2)
    oldest = OffsetAndEpoch(3, 1)
    single.step(SnapshotCreated(oldest))
    if cleaned:
        single.step(CleanTo(oldest))
    assert single.core.snapshots == (oldest,)
    assert single.core.log_start_offset == (3 if cleaned else 0)
    return single


LONG, SHORT = ((1, 0), (3, 6)), ((1, 0), (3, 3))
"""Epoch 1 ends at 6, and at 3."""


@kafka_scenario(
    "KafkaRaftClientSnapshotTest",
    "leaderImmediatelySendsSnapshotId",
    "fetchRequestOffsetLessThanLogStart",
    "fetchRequestOffsetAtZero",
    "fetchRequestTruncateToLogStart",
    "fetchRequestAtLogStartOffsetWithValidEpoch",
    "fetchRequestAtLogStartOffsetWithInvalidEpoch",
    "fetchRequestWithLastFetchedEpochLessThanOldestSnapshot",
)
@pytest.mark.parametrize(
    ("epochs", "cleaned", "place", "snapshot", "diverging"),
    [
        pytest.param(LONG, True, (6, 0), (3, 1), None, id="leaderImmediatelySendsSnapshotId"),
        pytest.param(LONG, True, (1, 1), (3, 1), None, id="OffsetLessThanLogStart"),
        pytest.param(LONG, False, (0, 0), (3, 1), None, id="OffsetAtZero"),
        pytest.param(SHORT, False, (4, 2), None, (3, 1), id="TruncateToLogStart"),
        pytest.param(LONG, False, (3, 1), None, None, id="AtLogStartOffsetWithValidEpoch"),
        pytest.param(LONG, True, (3, 1), None, None, id="...WithValidEpoch (cleaned)"),
        pytest.param(LONG, True, (3, 2), (3, 1), None, id="AtLogStartOffsetWithInvalidEpoch"),
        pytest.param(LONG, False, (10, 0), (3, 1), None, id="EpochLessThanOldestSnapshot"),
    ],
)
def test_fetch_request(epochs, cleaned: bool, place, snapshot, diverging) -> None:
    """fetchRequest...: answered at once, though it would wait; the rest of the name is the id."""
    single = parted(epochs, cleaned=cleaned)
    answer = single.ask(fetch(*place, max_wait_ms=500, high_watermark=1 << 40))
    assert isinstance(answer, FetchResponse)
    assert (answer.error, answer.leader) == (ErrorCode.NONE, OWN)
    assert (answer.snapshot_id, answer.diverging) == (snapshot, diverging)
    assert (answer.records is None) is (snapshot is not None or diverging is not None)


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchRequestTruncateToLogStart")
@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (SNAPSHOT.offset + 1, LAST_EPOCH + 1, (END, LAST_EPOCH)),
        (SNAPSHOT.offset, LAST_EPOCH + 1, (END, LAST_EPOCH)),
        (END + 1, LAST_EPOCH, (END, LAST_EPOCH)),
    ],
)
def test_fetch_request_truncate_to_log_start(
    offset: int, last_epoch: int, diverging: tuple[int, int]
) -> None:
    """Also fetchRequestWithLargerLastFetchedEpoch: an epoch that this log never had."""
    answer = snapshotted(cleaned=False).ask(fetch(offset, last_epoch))
    assert isinstance(answer, FetchResponse)
    assert (answer.diverging, answer.snapshot_id) == (diverging, None)


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchRequestWithLargerLastFetchedEpoch")
def test_fetch_request_with_larger_last_fetched_epoch() -> None:
    single = snapshotted(cleaned=False)
    invalid = single.ask(fetch(SNAPSHOT.offset + 1, EPOCH + 2))
    assert invalid is not None and invalid.error == ErrorCode.INVALID_REQUEST


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchRequestAtLogStartOffsetWithInvalidEpoch")
@pytest.mark.parametrize("last_epoch", [LAST_EPOCH - 1, LAST_EPOCH + 1, OWN.epoch])
def test_fetch_request_at_log_start_offset_with_invalid_epoch(last_epoch: int) -> None:
    """Where the log begins only the snapshot shows which epoch came before: older or newer."""
    answer = snapshotted().ask(fetch(SNAPSHOT.offset, last_epoch, max_wait_ms=0))
    assert isinstance(answer, FetchResponse)
    assert (answer.error, answer.leader) == (ErrorCode.NONE, OWN)
    assert (answer.snapshot_id, answer.diverging, answer.records) == (SNAPSHOT, None, None)


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotRequestAsFollower")
def test_fetch_snapshot_request_as_follower() -> None:
    answer = follower().ask(snapshot_request(epoch=EPOCH))
    assert answer == FetchSnapshotResponse(
        ErrorCode.NOT_LEADER_OR_FOLLOWER, LEADER, leader_endpoints=listeners(2)
    )


@kafka_scenario(
    "KafkaRaftClientSnapshotTest",
    "fetchSnapshotRequestWithOlderEpoch",
    "fetchSnapshotRequestWithNewerEpoch",
)
@pytest.mark.parametrize(
    ("epoch", "error"),
    [(EPOCH, ErrorCode.FENCED_LEADER_EPOCH), (EPOCH + 2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_fetch_snapshot_request_in_another_epoch(epoch: int, error: ErrorCode) -> None:
    """fetchSnapshotRequestWithOlderEpoch, -WithNewerEpoch."""
    answer = snapshotted().ask(snapshot_request(epoch=epoch))
    assert isinstance(answer, FetchSnapshotResponse)
    assert (answer.error, answer.leader) == (error, OWN)


@kafka_scenario(
    "KafkaRaftClientSnapshotTest",
    "leaderShouldResignLeadershipIfNotGetFetchSnapshotRequestFromMajorityVoters",
)
def test_leader_should_resign_if_not_get_fetch_snapshot_request_from_majority_voters() -> None:
    single = snapshotted()
    for node_id in (2, 3, 2):
        single.wait(2900)
        single.ask(snapshot_request(replica=key(node_id)))
        assert single.core.role == "leader"
    single.wait(2900)
    single.ask(snapshot_request(replica=key(9)))
    single.wait(100)
    assert single.core.role == "resigned"


# -- the follower fetches a snapshot -------------------------------------------------------------
@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchResponseWithInvalidSnapshotId")
@pytest.mark.parametrize("snapshot_id", [(100, -1), (-1, 1), (3, LAST_EPOCH)])
def test_fetch_response_with_invalid_snapshot_id(snapshot_id: tuple[int, int]) -> None:
    """Refused: the leader is backed off and asked again; the fetch timer keeps running."""
    single = follower_of_two()
    single.answer(FetchRequest, response(high_watermark=4))
    for _ in range(2):
        before = len(single.sends)
        single.answer(FetchRequest, response(snapshot_id=OffsetAndEpoch(*snapshot_id)))
        single.wait(19)
        assert single.sends[before:] == []
        single.wait(1)
        assert len(sent_since(single, before, FetchRequest)) == 1
    assert single.sent(FetchSnapshotRequest) is None
    single.wait(1959)
    assert single.core.role == "follower"
    single.wait(1)
    assert single.core.role == "prospective"


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotResponseWithInvalidId")
@pytest.mark.parametrize(
    "wrong", [OffsetAndEpoch(-1, LAST_EPOCH), OffsetAndEpoch(20, -1)], ids=["offset", "epoch"]
)
def test_fetch_snapshot_response_with_invalid_id(wrong: OffsetAndEpoch) -> None:
    """The leader does not have it any more: back to the log, at once, as often as need be."""
    single = follower()
    for _ in range(2):
        ready = single.answer(FetchRequest, response(snapshot_id=DOWNLOAD))
        (send,) = ready.sends
        assert isinstance(send.request, FetchSnapshotRequest)
        assert (send.request.snapshot_id, send.request.position) == (DOWNLOAD, 0)
        ready = single.answer(FetchSnapshotRequest, chunk(0, b"", snapshot_id=wrong))
        assert ready.writes == (AbandonSnapshot(DOWNLOAD),)
        (send,) = single.sends[-1:]
        assert send.to == 2 and isinstance(send.request, FetchRequest)
        assert (send.request.offset, send.request.last_fetched_epoch) == (END, LAST_EPOCH)


@kafka_scenario(
    "KafkaRaftClientSnapshotTest", "fetchResponseWithSnapshotId", "fetchSnapshotResponsePartialData"
)
def test_fetch_snapshot_response_partial_data() -> None:
    """Also fetchResponseWithSnapshotId: what is asked for is as the configuration has it."""
    single = follower(snapshot_max_bytes=4)
    single.answer(FetchRequest, response(snapshot_id=DOWNLOAD))
    for position in (0, 4, 8):
        send = single.sent(FetchSnapshotRequest)
        assert send is not None and send.to == 2
        assert send.request == FetchSnapshotRequest(
            CLUSTER_ID, key(1), EPOCH, DOWNLOAD, position, 4
        )
        ready = single.answer(FetchSnapshotRequest, chunk(position, b"1234"[: 10 - position]))
        assert ready.writes[0] == SnapshotChunk(DOWNLOAD, position, b"1234"[: 10 - position])
        assert (InstallSnapshot(DOWNLOAD) in ready.writes) is (position == 8)
    assert single.seq is not None
    single.step(SnapshotInstalled(single.seq, DOWNLOAD, ControlState(1, SET)))
    assert (single.core.log_end, single.core.high_watermark) == (DOWNLOAD, DOWNLOAD.offset)
    send = single.sends[-1]
    assert send.to == 2 and isinstance(send.request, FetchRequest)
    assert (send.request.offset, send.request.last_fetched_epoch) == DOWNLOAD


@kafka_scenario(
    "KafkaRaftClientSnapshotTest",
    "fetchSnapshotResponseFromNewerEpochNotLeader",
    "fetchSnapshotResponseFromNewerEpochLeader",
)
@pytest.mark.parametrize("leader_id", [-1, 2, 3])
def test_fetch_snapshot_response_from_newer_epoch(leader_id: int) -> None:
    """...NotLeader, ...Leader: the download is given up, also where that leader leads again."""
    single = downloading()
    newer = LeaderAndEpoch(leader_id, EPOCH + 1)
    answer = FetchSnapshotResponse(ErrorCode.FENCED_LEADER_EPOCH, newer)
    ready = single.answer(FetchSnapshotRequest, answer)
    assert AbandonSnapshot(DOWNLOAD) in ready.writes
    role = "unattached" if leader_id < 0 else "follower"
    assert state(single) == (role, EPOCH + 1, leader_id)
    send = single.sends[-1]
    assert isinstance(send.request, FetchRequest) and (leader_id < 0 or send.to == leader_id)
    place = (send.request.epoch, send.request.offset, send.request.last_fetched_epoch)
    assert place == (EPOCH + 1, END, LAST_EPOCH)


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotResponseFromOlderEpoch")
def test_fetch_snapshot_response_from_older_epoch() -> None:
    """Ignored; after the backoff it is asked for again."""
    single = downloading()
    older = chunk(0, b"old", leader=LeaderAndEpoch(3, EPOCH - 1))
    unknown = replace(older, error=ErrorCode.UNKNOWN_LEADER_EPOCH)
    for answer in (older, unknown):
        before = len(single.sends)
        ready = single.answer(FetchSnapshotRequest, answer)
        assert ready.writes == () and state(single) == ("follower", EPOCH, 2)
        single.wait(20)
        (send,) = sent_since(single, before, FetchSnapshotRequest)
        assert isinstance(send.request, FetchSnapshotRequest) and send.to == 2
        assert (send.request.snapshot_id, send.request.position) == (DOWNLOAD, 0)


@kafka_scenario("KafkaRaftClientSnapshotTest", "fetchSnapshotResponseToNotFollower")
def test_fetch_snapshot_response_to_not_follower() -> None:
    single = downloading()
    send = single.sent(FetchSnapshotRequest)
    assert send is not None
    single.wait(2100)
    assert single.core.role == "prospective" and single.sent(VoteRequest) is not None
    ready = single.step(Answered(send.correlation, chunk(0, b"1234567890")))
    assert ready.writes == () and single.core.role == "prospective"


# -- KafkaRaftClientFetchTest --------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientFetchTest", "sentFetchUsesQuorumMaxBytesConfiguration")
def test_sent_fetch_uses_quorum_max_bytes_configuration() -> None:
    send = follower(fetch_max_bytes=1024, snapshot_max_bytes=77).sent(FetchRequest)
    assert send is not None and send.request.max_bytes == 1024  # type: ignore[union-attr]


@kafka_scenario("KafkaRaftClientFetchTest", "fetchMaxBytesAlwaysReturnsAllBatchesForLargeMax")
def test_fetch_max_bytes_is_the_askers() -> None:
    """The leader's own configuration does not limit what it sends."""
    answer = led(fetch_max_bytes=1).ask(fetch(END, LAST_EPOCH, max_bytes=12_345))
    assert isinstance(answer, FetchResponse)
    assert answer.records == ReadRange(END, START, 12_345)


@kafka_scenario("KafkaRaftClientFetchTest", "replicationOfHigherPartitionLeaderEpoch")
def test_replication_of_higher_partition_leader_epoch() -> None:
    single = follower()
    good, bad = batch(END, EPOCH, 10), batch(END + 10, EPOCH + 1, 10)
    ready = single.answer(FetchRequest, response(batches=(good, bad)))
    assert ready.writes == (Append((good,)),)
    assert single.core.log_end == (END + 10, EPOCH)


@kafka_scenario("KafkaRaftClientFetchTest", "highWatermarkSentInFetchRequest")
def test_high_watermark_sent_in_fetch_request() -> None:
    single = follower()
    said = []
    for high_watermark in (END, END):
        send = single.sent(FetchRequest)
        assert send is not None and isinstance(send.request, FetchRequest)
        said.append(send.request.high_watermark)
        single.answer(FetchRequest, response(high_watermark=high_watermark))
    assert said == [-1, END]


UNKNOWN, OLD_VERSION = -1, (1 << 63) - 1


@kafka_scenario(
    "KafkaRaftClientFetchTest",
    "defaultHwmDeferred",
    "unknownHwmDeferredWhenLeaderDoesNotKnowHwm",
    "outdatedHwmCompletedWhenLeaderKnowsHwm",
    "unchangedHighWatermarkDeferred",
)
@pytest.mark.parametrize(
    ("make", "known", "deferred"),
    [
        pytest.param(committed, OLD_VERSION, True, id="defaultHwmDeferred"),
        pytest.param(led, UNKNOWN, True, id="unknownHwmDeferredWhenLeaderDoesNotKnowHwm"),
        pytest.param(committed, UNKNOWN, False, id="outdatedHwmCompletedWhenLeaderKnowsHwm"),
        pytest.param(committed, START - 1, False, id="outdatedHwm (older)"),
        pytest.param(committed, START, True, id="unchangedHighWatermarkDeferred"),
    ],
)
def test_fetch_with_high_watermark(make, known: int, deferred: bool) -> None:
    single = make()
    asked = fetch(START, EPOCH + 1, replica=key(9), high_watermark=known, max_wait_ms=60_000)
    answer = single.ask(asked)
    assert (answer is None) is deferred
    if answer is not None:
        assert answer.high_watermark == START


@kafka_scenario("KafkaRaftClientFetchTest", "updatedHighWatermarkCompleted")
def test_updated_high_watermark_completed() -> None:
    single = committed()
    single.step(Propose(0, EPOCH + 1, 1, 1, "x"))
    asked = fetch(START + 1, EPOCH + 1, replica=key(9), high_watermark=START)
    assert single.ask(asked) is None
    number = single.asked
    acknowledge(single, 2)
    assert single.replies[number].high_watermark == START + 1  # type: ignore[union-attr]


def test_unattached_serves_no_snapshot() -> None:
    answer = unattached().ask(snapshot_request(epoch=EPOCH))
    assert answer is not None and answer.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
