"""KafkaRaftLogTest: places in the log, snapshots of it, and the responses to a fetch of one."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from narrow import not_none
from node.test_controllers_together import quota
from node.world import World, snapshots_of
from quorate.base.errors import ErrorCode, InvariantError
from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.node.raft_rpc_outbound import request_to_wire, response_from_wire
from quorate.raft.inputs import CleanTo, SnapshotCreated
from quorate.raft.log_index import Diverging, LogIndex, NeedsSnapshot
from quorate.raft.messages import FetchRequest, FetchSnapshotRequest, FetchSnapshotResponse
from quorate.raft.snapshots import snapshot_problem
from quorate.raft.values import RecoveredLog
from quorate.replica.disk_jobs import DiskFailed, ReadLog, ReadSnapshot
from quorate.replica.disk_worker import DiskWriter
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.storage.api import CorruptLogError
from quorate.wire.registry import APIS
from raft.conformance.world import response
from raft.single import LAST_EPOCH, follower
from storage.builders import file_place, log_of, memory_place, snapshot_bytes


def log(
    *appended: tuple[int, int], start: int = 0, snapshots: tuple[tuple[int, int], ...] = ()
) -> LogIndex:
    """A log of these (records, epoch) batches, from `start` on."""
    ids = tuple(OffsetAndEpoch(*pair) for pair in snapshots)
    made = LogIndex(RecoveredLog(start, start, (), ids, None, ()))
    for count, epoch in appended:
        made.append(made.end_offset, made.end_offset + count, epoch)
    return made


def diverging(offset: int, epoch: int) -> Diverging:
    return Diverging(OffsetAndEpoch(offset, epoch))


def snapshot(offset: int, epoch: int) -> NeedsSnapshot:
    return NeedsSnapshot(OffsetAndEpoch(offset, epoch))


GAP = log((5, 1), (5, 2), (5, 4), start=10, snapshots=((10, 1),))


def full() -> LogIndex:
    """Ten records of epoch 1 and a snapshot of them, made after they were appended."""
    made = log((10, 1))
    made.add_snapshot(OffsetAndEpoch(10, 1))
    return made


def cleaned() -> LogIndex:
    made = log((2, 1))
    made.add_snapshot(OffsetAndEpoch(2, 1))
    made.clean(OffsetAndEpoch(2, 1))
    return made


@kafka_scenario(
    "KafkaRaftLogTest",
    "validateEpochGreaterThanLastKnownEpoch",
    "validateEpochLessThanOldestSnapshotEpoch",
    "validateOffsetLessThanOldestSnapshotOffset",
    "validateOffsetEqualToOldestSnapshotOffset",
    "validateUnknownEpochLessThanLastKnownGreaterThanOldestSnapshot",
    "validateEpochLessThanFirstEpochInLog",
    "validateOffsetGreatThanEndOffset",
    "validateOffsetLessThanLEO",
    "validateValidEpochAndOffset",
)
@pytest.mark.parametrize(
    ("made", "offset", "epoch", "expected"),
    [
        pytest.param(log((1, 1)), 1, 2, diverging(1, 1), id="EpochGreaterThanLastKnownEpoch"),
        pytest.param(full(), 10, 0, snapshot(10, 1), id="EpochLessThanOldestSnapshotEpoch"),
        pytest.param(cleaned(), 1, 1, snapshot(2, 1), id="OffsetLessThanOldestSnapshotOffset"),
        pytest.param(cleaned(), 2, 1, None, id="OffsetEqualToOldestSnapshotOffset"),
        pytest.param(GAP, 100, 3, diverging(20, 2), id="UnknownEpochLessThanLastKnown..."),
        pytest.param(
            log((5, 3), start=10, snapshots=((10, 1),)),
            100,
            2,
            diverging(10, 1),
            id="EpochLessThanFirstEpochInLog",
        ),
        pytest.param(log((1, 1)), 2, 1, diverging(1, 1), id="OffsetGreatThanEndOffset"),
        pytest.param(log((10, 1), (10, 2)), 11, 1, diverging(10, 1), id="OffsetLessThanLEO"),
        pytest.param(log((5, 1)), 4, 1, None, id="ValidEpochAndOffset"),
        pytest.param(log((5, 2), snapshots=((0, 0),)), 3, 1, diverging(0, 0), id="bootstrap"),
    ],
)
def test_validate(made: LogIndex, offset: int, epoch: int, expected: object) -> None:
    """validate...: the part after the word is the id here."""
    assert made.validate(offset, epoch) == expected


# -- snapshots of one's own ------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftLogTest",
    "createSnapshot",
    "createSnapshotFromEndOffset",
    "createSnapshotInMiddleOfBatch",
    "createSnapshotLaterThanHighWatermark",
    "createSnapshotMuchLaterEpoch",
    "createSnapshotBeforeLogStartOffset",
    "createSnapshotDivergingEpoch",
    "createSnapshotOlderEpoch",
    "createSnapshotWithMissingEpoch",
    "createExistingSnapshot",
)
@pytest.mark.parametrize(
    ("made", "high_watermark", "snapshot_id", "problem"),
    [
        pytest.param(log((10, 1)), 10, (10, 1), None, id="createSnapshotFromEndOffset"),
        pytest.param(log((4, 1), (6, 1)), 10, (4, 1), None, id="createSnapshot"),
        pytest.param(log((4, 1), (6, 1)), 10, (7, 1), "inside", id="createSnapshotInMiddleOfBatch"),
        pytest.param(log((10, 1)), 10, (11, 1), "above", id="createSnapshotLaterThanHighWatermark"),
        pytest.param(log((10, 1)), 5, (10, 1), "above", id="createSnapshotLaterThan... (not end)"),
        pytest.param(log((10, 1)), 10, (10, 2), "no such", id="createSnapshotMuchLaterEpoch"),
        pytest.param(cleaned(), 2, (1, 1), "before", id="createSnapshotBeforeLogStartOffset"),
        pytest.param(log((10, 2)), 10, (10, 1), "no such", id="createSnapshotDivergingEpoch"),
        pytest.param(full(), 10, (10, 0), "no such", id="createSnapshotOlderEpoch"),
        pytest.param(log((5, 1), (5, 3)), 10, (1, 2), "no such", id="...WithMissingEpoch 1"),
        pytest.param(log((5, 1), (5, 3)), 10, (5, 2), "no such", id="...WithMissingEpoch 5"),
        pytest.param(log((5, 1), (5, 3)), 10, (10, 2), "no such", id="...WithMissingEpoch 10"),
        pytest.param(full(), 10, (10, 1), "exists", id="createExistingSnapshot"),
    ],
)
def test_create_snapshot(
    made: LogIndex, high_watermark: int, snapshot_id: tuple[int, int], problem: str | None
) -> None:
    said = snapshot_problem(made, high_watermark, OffsetAndEpoch(*snapshot_id))
    assert said is None if problem is None else problem in (said or "")


@kafka_scenario("KafkaRaftLogTest", "deleteNonExistentSnapshot")
def test_delete_non_existent_snapshot() -> None:
    single = follower()
    single.answer(FetchRequest, response(high_watermark=5))
    ready = single.step(CleanTo(OffsetAndEpoch(2, LAST_EPOCH)))
    assert ready.writes == () and single.core.log_start_offset == 0
    single.step(SnapshotCreated(OffsetAndEpoch(2, LAST_EPOCH)))
    single.step(CleanTo(OffsetAndEpoch(2, LAST_EPOCH)))
    assert single.core.log_start_offset == 2


@kafka_scenario("KafkaRaftLogTest", "doesntTruncateFully")
def test_doesnt_truncate_fully() -> None:
    """A snapshot that is older, by epoch or by offset, does not take the log's place."""
    for older in (OffsetAndEpoch(5, LAST_EPOCH - 1), OffsetAndEpoch(4, LAST_EPOCH)):
        single = follower()
        single.answer(FetchRequest, response(high_watermark=5))
        single.answer(FetchRequest, response(snapshot_id=older))
        assert single.core.log_end == (5, LAST_EPOCH)


@kafka_scenario("KafkaRaftLogTest", "snapshotDeletionWithInvalidSnapshotState")
def test_snapshot_deletion_with_invalid_snapshot_state(tmp_path) -> None:
    """A snapshot that was marked to be deleted is none; and a refused directory keeps it."""
    place = file_place(tmp_path)
    place.open()
    wanted = OffsetAndEpoch(100, 1)
    place.storage.append(log_of(3))
    place.storage.write_chunk(wanted, 0, snapshot_bytes(wanted))
    place.storage.install_snapshot(wanted)
    place.storage.close()
    (found,) = tmp_path.rglob("*.checkpoint")
    deleted = found.rename(found.with_name(found.name + ".deleted"))
    with pytest.raises(CorruptLogError, match="begins at offset 100"):
        file_place(tmp_path).open()
    assert deleted.exists()


def frozen(place):
    """The id and the writer of a snapshot that is there for good."""
    place.open()
    wanted = OffsetAndEpoch(10, 1)
    place.storage.append(log_of(10))
    writer = place.storage.create_snapshot(wanted)
    writer.append(snapshot_bytes(wanted))
    writer.freeze()
    return wanted, writer


@kafka_scenario("SnapshotWriterReaderTest", "appendToFrozenSnapshot")
def test_append_to_frozen_snapshot() -> None:
    place = memory_place()
    wanted, writer = frozen(place)
    with pytest.raises(InvariantError):
        writer.append(b"more")
    assert place.storage.read_snapshot(wanted, 0, 1 << 20) == snapshot_bytes(wanted)


# -- a snapshot, asked of a whole controller -------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientSnapshotTest",
    "fetchSnapshotRequestAsLeader",
    "partialFetchSnapshotRequestAsLeader",
    "fetchSnapshotRequestWithPartialData",
    "fetchSnapshotRequestWithInvalidPosition",
)
@pytest.mark.parametrize(
    ("where", "error"),
    [
        (lambda size: 0, ErrorCode.NONE),
        (lambda size: size - 1, ErrorCode.NONE),
        (lambda size: size, ErrorCode.POSITION_OUT_OF_RANGE),
        (lambda size: size + 1, ErrorCode.POSITION_OUT_OF_RANGE),
        (lambda size: -1, ErrorCode.POSITION_OUT_OF_RANGE),
    ],
)
def test_fetch_snapshot_request_as_leader(controllers: World, where, error: ErrorCode) -> None:
    """Also: partial..., ...WithPartialData, ...WithInvalidPosition."""
    node = controllers.leader
    snapshot_id = snapshots_of(node)[-1]
    size = not_none(node.storage.snapshot_size(snapshot_id))
    answer = ask(controllers, snapshot_id, where(size))
    assert answer.error == error
    if error == ErrorCode.NONE:
        whole = node.storage.read_snapshot(snapshot_id, 0, size)
        assert (answer.size, answer.chunk) == (size, whole[where(size) :][:100])


@kafka_scenario("KafkaRaftLogTest", "readMissingSnapshot")
def test_read_missing_snapshot(controllers: World) -> None:
    answer = ask(controllers, OffsetAndEpoch(7, 1), 0)
    assert answer.error == ErrorCode.SNAPSHOT_NOT_FOUND


@kafka_scenario("KafkaRaftLogTest", "readMissingSnapshotFile")
def test_read_missing_snapshot_file(tmp_path) -> None:
    """Kafka answers that it has none. Here it is known to be there: a disk that has lost it is
    trusted no more, as after any failed read, and the reason names the file."""
    place = file_place(tmp_path)
    wanted, _ = frozen(place)
    (found,) = tmp_path.rglob("*.checkpoint")
    found.unlink()
    disk = DiskWriter(place.storage)
    (failed,) = disk.perform([ReadSnapshot(1, wanted, 0, 100)])
    assert isinstance(failed, DiskFailed)
    assert found.name in failed.reason and "someone removed it" in failed.reason
    assert disk.perform([ReadLog(2, 0, 10, 100)]) == []


def ask(world: World, snapshot_id: OffsetAndEpoch, position: int) -> FetchSnapshotResponse:
    epoch = world.leader.core.epoch
    request = FetchSnapshotRequest("world", ReplicaKey(9), epoch, snapshot_id, position, 100)
    message = request_to_wire(request, APIS[59].max_version)
    answer = response_from_wire(world.ask(world.leader.node_id, message), "CONTROLLER")
    assert isinstance(answer, FetchSnapshotResponse)
    return answer


@pytest.fixture(scope="module")
def controllers() -> World:
    """One active controller with a snapshot of its own."""
    world = World((1,), policy=SnapshotPolicy(max_bytes=1000))
    world.run_until(lambda: world.active)
    for i in range(20):
        world.ask(world.leader.node_id, quota(f"user-{i}", 1.0))
    world.run_until(lambda: snapshots_of(world.leader))
    return world
