"""One test for each sentence about the leader's snapshots: asked for, and made (5.8)."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.raft.inputs import (
    Propose,
)
from quorate.raft.messages import (
    FetchSnapshotResponse,
    ReadChunk,
)
from raft.leader_scenarios import (
    OWN,
    START,
    UNKNOWN_REPLICAS,
    committed,
    snapshot_request,
    snapshotted,
)
from raft.single import (
    BOOTSTRAP,
    EPOCH,
    LAST_EPOCH,
    fetch,
)


# -- FetchSnapshot, asked ------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientSnapshotTest",
    "fetchSnapshotRequestMissingSnapshot",
    "fetchSnapshotRequestBootstrapSnapshot",
)
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": EPOCH}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": EPOCH + 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"snapshot_id": OffsetAndEpoch(4, 3)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"snapshot_id": BOOTSTRAP}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"position": -1}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({}, ErrorCode.NONE),
    ],
)
def test_fetch_snapshot(changes: dict[str, object], error: ErrorCode) -> None:
    answer = snapshotted(cleaned=False).ask(snapshot_request(**changes))
    assert isinstance(answer, FetchSnapshotResponse)
    assert answer.error == error
    if error == ErrorCode.NONE:
        assert answer.chunk == ReadChunk(OffsetAndEpoch(3, LAST_EPOCH), 10, 100)
        assert (answer.leader, answer.position) == (OWN, 10)


@pytest.mark.parametrize(("asked", "sent"), [(-5, 0), (0, 0), (50, 50), (1 << 31, 77)])
def test_a_chunk_is_no_larger_than_what_the_leader_would_ask_for(asked: int, sent: int) -> None:
    single = snapshotted(cleaned=False, snapshot_max_bytes=77)
    answer = single.ask(snapshot_request(max_bytes=asked))
    assert answer.chunk == ReadChunk(OffsetAndEpoch(3, LAST_EPOCH), 10, sent)  # type: ignore[union-attr]


def test_fetch_snapshot_counts_for_check_quorum() -> None:
    single = snapshotted(cleaned=False)
    single.now += 2999
    single.ask(snapshot_request())
    single.wait(1)
    assert single.core.role == "leader"


@pytest.mark.parametrize("replica", UNKNOWN_REPLICAS)
def test_a_snapshot_fetch_of_another_directory_does_not_count_for_check_quorum(
    replica: ReplicaKey,
) -> None:
    single = snapshotted(cleaned=False)
    single.now += 2999
    single.ask(snapshot_request(replica=replica))
    single.wait(1)
    assert single.core.role == "resigned"


# -- own snapshots -------------------------------------------------------------------------------
@kafka_scenario("KafkaRaftClientSnapshotTest", "createSnapshotAsLeaderWithInvalidSnapshotId")
@pytest.mark.parametrize(
    ("snapshot_id", "why"),
    [
        ((4, LAST_EPOCH), None),
        ((START, EPOCH + 1), None),
        ((START + 1, EPOCH + 1), "high watermark"),
        ((4, LAST_EPOCH - 1), "no such"),
        ((4, EPOCH), "no such"),
        ((3, LAST_EPOCH), "exists"),
        ((2, LAST_EPOCH), "start"),
    ],
)
def test_when_a_snapshot_may_be_made(snapshot_id: tuple[int, int], why: str | None) -> None:
    problem = snapshotted(cleaned=True).core.snapshot_problem(OffsetAndEpoch(*snapshot_id))
    assert problem is None if why is None else why in (problem or "")


def test_a_snapshot_ends_at_a_batch_boundary() -> None:
    single = committed()
    single.step(Propose(0, EPOCH + 1, 3, 30, "three"))
    single.ask(fetch(START + 3, EPOCH + 1, max_wait_ms=0))
    assert "inside a batch" in (
        single.core.snapshot_problem(OffsetAndEpoch(START + 1, EPOCH + 1)) or ""
    )
    assert single.core.snapshot_problem(OffsetAndEpoch(START + 3, EPOCH + 1)) is None
