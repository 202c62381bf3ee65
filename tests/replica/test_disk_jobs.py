"""Disk jobs over a storage in memory: order, one sync for all, failures, snapshots."""

from itertools import pairwise
from typing import Any

import pytest

from conformance.marker import kafka_scenario
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_batch
from quorate.formats.snapshot import read_snapshot
from quorate.raft.ready import InstallSnapshot, SaveElection, SnapshotChunk, Truncate
from quorate.raft.values import ControlState, ElectionState
from quorate.replica.disk_jobs import (
    AppendBatches,
    DiskFailed,
    Installed,
    InstallRefused,
    LogRead,
    ReadLog,
    ReadSnapshot,
    SnapshotFailed,
    SnapshotRead,
    SnapshotWritten,
    Survey,
    Surveyed,
    Write,
    WriteSnapshot,
    Written,
)
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.storage.api import AppendedBatch, StorageError
from quorate.storage.memory import MemoryDisk, MemoryStorage

ID = OffsetAndEpoch(7, 2)


class Syncs(list[Any]):
    """What was synced; with `fail_on` the operation that fails."""

    fail_on = None

    def __call__(self, operation, name):
        if self.fail_on and operation.startswith(self.fail_on):
            raise StorageError(f"cannot {operation} {name}: no space left on device")
        if operation == "sync":
            self.append(name)


@pytest.fixture
def watch():
    return Syncs()


@pytest.fixture
def storage(watch):
    storage = MemoryStorage(MemoryDisk(watch))
    storage.open()
    watch.clear()
    return storage


def append(seq, base):
    data = encode_batch(base, 1, 1000, [b"value"])
    return Write(seq, (AppendBatches((AppendedBatch(base, base, 1, data),)),))


def test_all_that_is_queued_is_covered_by_one_sync(storage, watch):
    assert DiskWriter(storage).perform([append(1, 0), append(2, 1), append(3, 2)]) == [Written(3)]
    assert watch.count("00000000000000000000.log") == 1
    assert storage.end_offset == 3


def test_a_read_sees_the_writes_before_it(storage):
    disk = DiskWriter(storage)
    results = disk.perform([append(1, 0), ReadLog(9, 0, 1, 1000), append(2, 1)])
    assert results == [LogRead(9, encode_batch(0, 1, 1000, [b"value"])), Written(2)]


def test_a_truncation_is_synced_too(storage, watch):
    disk = DiskWriter(storage)
    disk.perform([append(1, 0), append(2, 1)])
    watch.clear()
    assert disk.perform([Write(3, (Truncate(1),))]) == [Written(3)]
    assert watch and storage.end_offset == 1


def test_the_vote_is_durable_when_it_is_reported(storage):
    state = ElectionState(5, 2, None)
    assert DiskWriter(storage).perform([Write(1, (SaveElection(state, 1),))]) == [Written(1)]
    after = storage.crash()
    assert after.open().election == state


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_after_a_failure_no_further_job_runs(storage, watch, operation):
    disk = DiskWriter(storage)
    watch.fail_on = operation
    (failed,) = disk.perform([append(1, 0)])
    assert isinstance(failed, DiskFailed) and "no space" in failed.reason
    watch.fail_on = None
    assert disk.perform([append(2, 1)]) == []


def snapshot_job(values=(b"one", b"two")):
    return WriteSnapshot(ID, 500, ControlState(1, ()), values, 1000)


def snapshot_bytes():
    other = MemoryStorage()
    other.open()
    write_snapshot(other, snapshot_job())
    return other.read_snapshot(ID, 0, 1 << 20)


def test_a_snapshot_of_our_own(storage):
    paused = []
    result = write_snapshot(storage, snapshot_job(), lambda: paused.append(1))
    data = storage.read_snapshot(ID, 0, 1 << 20)
    assert result == SnapshotWritten(ID, len(data)) and paused
    read = read_snapshot(data, ID)
    assert read.values == (b"one", b"two") and read.last_contained_log_timestamp == 500


def test_there_is_a_pause_every_few_records_of_a_batch(storage):
    seen = []

    def values():
        for number in range(1000):  # all of them fit into one batch
            seen.append(number)
            yield b"value"

    pauses = []
    write_snapshot(storage, snapshot_job(values()), lambda: pauses.append(len(seen)))
    assert len(pauses) > 10 and all(b - a <= 64 for a, b in pairwise([0, *pauses]))


@kafka_scenario("SnapshotGeneratorTest", "emitterProblem")
def test_a_snapshot_that_cannot_be_written_leaves_nothing(storage, watch):
    watch.fail_on = "write"
    result = write_snapshot(storage, snapshot_job())
    assert isinstance(result, SnapshotFailed) and "no space" in result.reason
    assert storage.snapshots() == ()


def raising():
    yield b"one"
    raise ValueError("a mistake in the state machine")


@pytest.mark.parametrize("values", [raising(), [b"one", "two"], [b"one", None], 5])
def test_a_mistake_in_the_state_leaves_no_part_of_a_snapshot(storage, values):
    with pytest.raises((ValueError, TypeError)):
        write_snapshot(storage, snapshot_job(values))
    assert not [name for name in storage.disk.names() if name.endswith(".part")]
    assert isinstance(write_snapshot(storage, snapshot_job()), SnapshotWritten)


def test_a_chunk_that_fits_no_batch_is_refused_with_its_size(storage):
    result = write_snapshot(storage, snapshot_job([b"x" * (8 << 20)]))
    assert isinstance(result, SnapshotFailed) and "8388608 bytes does not fit" in result.reason
    assert not [name for name in storage.disk.names() if name.endswith(".part")]


def test_chunks_of_a_snapshot_and_its_size(storage):
    write_snapshot(storage, snapshot_job())
    size = storage.snapshot_size(ID)
    whole = storage.read_snapshot(ID, 0, size)
    results = DiskWriter(storage).perform(
        [
            ReadSnapshot(1, ID, 0, 10),
            ReadSnapshot(2, ID, 10, size),
            ReadSnapshot(3, ID, size, 10),
            ReadSnapshot(4, OffsetAndEpoch(99, 1), 0, 10),
        ]
    )
    assert results == [
        SnapshotRead(1, size, whole[:10]),
        SnapshotRead(2, size, whole[10:]),
        SnapshotRead(3, size, b""),
        SnapshotRead(4, None, b""),
    ]


def test_a_downloaded_snapshot_is_installed(storage):
    data = snapshot_bytes()
    results = DiskWriter(storage).perform(
        [
            Write(1, (SnapshotChunk(ID, 0, data[:20]),)),
            Write(2, (SnapshotChunk(ID, 20, data[20:]), InstallSnapshot(ID))),
            Write(3, (SaveElection(ElectionState(2), 1),)),
        ]
    )
    assert results == [Written(1), Installed(2, ID, ControlState(1, ())), Written(3)]
    assert (storage.start_offset, storage.end_offset) == (7, 7)


def test_a_damaged_download_is_refused_and_the_log_continues(storage):
    disk = DiskWriter(storage)
    disk.perform([append(1, 0)])
    data = bytearray(snapshot_bytes())
    data[-3] ^= 1
    results = disk.perform(
        [Write(2, (SnapshotChunk(ID, 0, bytes(data)), InstallSnapshot(ID))), append(3, 1)]
    )
    assert isinstance(results[1], InstallRefused) and results[-1] == Written(3)
    assert storage.end_offset == 2


def test_a_survey_has_sizes(storage):
    disk = DiskWriter(storage)
    disk.perform([append(1, 0)])
    write_snapshot(storage, snapshot_job())
    (survey,) = disk.perform([Survey()])
    assert isinstance(survey, Surveyed)
    assert survey.log_size == storage.size and [s.id for s in survey.snapshots] == [ID]
