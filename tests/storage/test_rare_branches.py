"""What storage does where a system call fails, and where bytes are not what they must be.

`make guards` found that neither a test nor a world came here.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_batch, encode_keyed_batch
from quorate.formats.files import PARTITION_DIRECTORY
from quorate.raft.durable import DurabilityTracker
from quorate.raft.log_index import LogIndex
from quorate.raft.values import ControlState, RecoveredLog
from quorate.raft.voters import VoterSet
from quorate.replica.disk_jobs import (
    AppendBatches,
    DiskFailed,
    SnapshotFailed,
    Write,
    WriteSnapshot,
)
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.replica.tail import Tail
from quorate.storage.api import AppendedBatch, CorruptLogError, StorageError
from quorate.storage.disk import File, OsDisk
from quorate.storage.memory import MemoryDisk, MemoryStorage
from quorate.storage.scan import CHUNK, find_sound_batch
from storage.builders import data, leader_change

MAGIC_AT = 16
"""The position of the format byte in a batch."""


@pytest.fixture
def disk(tmp_path: Path) -> OsDisk:
    found = OsDisk(tmp_path)
    found.lock()
    return found


def test_a_write_that_makes_no_progress_fails(
    disk: OsDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open("x", create=True)
    counts = iter([1, 2, 0])
    monkeypatch.setattr(os, "pwrite", lambda *_: next(counts))
    with pytest.raises(StorageError, match=r"cannot write .*x: nothing more was written"):
        file.write_at(0, b"12345")


@pytest.mark.parametrize(
    ("call", "act"),
    [
        ("pread", lambda disk, file: file.read_at(0, 1)),
        ("fstat", lambda disk, file: file.size()),
        ("ftruncate", lambda disk, file: file.truncate(0)),
        ("listdir", lambda disk, file: disk.names()),
        ("replace", lambda disk, file: disk.rename("x", "y")),
        ("unlink", lambda disk, file: disk.remove("x")),
        ("chmod", lambda disk, file: disk.set_read_only("x")),
    ],
)
def test_a_failed_call_names_its_file(
    disk: OsDisk, monkeypatch: pytest.MonkeyPatch, call: str, act: object
) -> None:
    file = disk.open("x", create=True)

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(StorageError, match=rf"{PARTITION_DIRECTORY}.*: Input/output error"):
        act(disk, file)  # type: ignore[operator]


def test_a_lock_that_the_system_refuses_for_another_reason_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lockf(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.lockf", lockf)
    with pytest.raises(StorageError, match=r"cannot lock .*: No locks available"):
        OsDisk(tmp_path).lock()


@pytest.mark.parametrize(("call", "what"), [("open", "open"), ("fsync", "sync the directory")])
def test_a_directory_that_cannot_be_taken_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, what: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fails)
        with pytest.raises(StorageError, match=f"cannot {what}"):
            OsDisk(tmp_path).lock()
    OsDisk(tmp_path).lock()


def test_a_finished_snapshot_is_opened_for_reading(
    disk: OsDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write to a read-only file, so the answer of the system is replaced here."""
    disk.open("x", create=True)
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    with pytest.raises(StorageError, match="cannot write"):
        disk.open("x").write_at(0, b"1")


# -- reading a damaged log ---------------------------------------------------------------------
def test_a_header_beyond_the_chunk_belongs_to_the_next_window() -> None:
    log = bytearray(3 * CHUNK)
    log[CHUNK + 100 + MAGIC_AT] = 2
    assert find_sound_batch(written(bytes(log)), 0, len(log), 1) is None


def test_a_batch_that_is_longer_than_a_window_is_found() -> None:
    log = bytes(10) + encode_batch(7, 1, 1000, [bytes(2 * CHUNK)])
    assert find_sound_batch(written(log), 0, len(log), 7) == 10


def test_a_control_record_of_an_unknown_type_is_damage() -> None:
    storage = MemoryStorage()
    storage.open()
    unknown = encode_keyed_batch(0, 1, 1000, [(bytes([0, 0, 0, 99]), b"")])
    storage.append([AppendedBatch(0, 0, 1, unknown), data(1)])
    storage.sync()
    storage.close()
    with pytest.raises(CorruptLogError, match="99"):
        storage.open()


def test_a_producer_state_beyond_the_log_is_a_loss() -> None:
    """Kafka writes one at each roll; the log must reach its offset."""
    storage = MemoryStorage()
    storage.open()
    storage.append([data(0), data(1)])
    storage.sync()
    storage.disk.open("00000000000000000009.snapshot", create=True).write_at(0, b"state")
    storage.disk.sync()
    storage.close()
    with pytest.raises(CorruptLogError, match=r"0009\.snapshot knows offset 8"):
        storage.open()


def written(log: bytes) -> File:
    file = MemoryDisk().open("x", create=True)
    file.write_at(0, log)
    return file


def test_unlocking_twice_is_harmless(disk: OsDisk) -> None:
    disk.unlock()
    disk.unlock()
    disk.lock()


def test_a_missing_file_in_memory_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match=r"cannot open memory/.*x: No such file"):
        MemoryDisk().open("x")


def test_bytes_that_are_no_batches_are_no_snapshot() -> None:
    storage = MemoryStorage()
    storage.open()
    writer = storage.create_snapshot(OffsetAndEpoch(1, 1))
    sound = encode_batch(0, 1, 1000, [b"value"])
    with pytest.raises(InvariantError, match="bytes for a snapshot are not sound"):
        writer.append(sound[:-1] + bytes([sound[-1] ^ 1]))
    writer.abort()


def test_a_snapshot_whose_name_is_not_durable_leaves_no_file() -> None:
    """Found by the simulator: the file stayed beside the log until the next start."""
    fails = iter([StorageError("the device failed")])

    def watch(operation: str, name: str) -> None:
        if operation == "sync directory" and armed:
            raise next(fails)

    armed = False
    storage = MemoryStorage(MemoryDisk(watch))
    storage.open()
    before, armed = storage.disk.names(), True
    job = WriteSnapshot(OffsetAndEpoch(1, 1), 0, ControlState(0, ()), [b"value"], 0)
    assert isinstance(write_snapshot(storage, job), SnapshotFailed)
    assert storage.disk.names() == before and not storage.snapshots()


# -- the replica's part ------------------------------------------------------------------------
def test_nothing_is_looked_at_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    storage.open()
    writer = DiskWriter(storage)
    data = encode_batch(5, 1, 1000, [b"value"])
    storage.close()
    (failed,) = writer.perform([Write(1, (AppendBatches((AppendedBatch(5, 5, 1, data),)),))])
    assert isinstance(failed, DiskFailed)
    assert writer.look() == [] and writer.perform([Write(2, ())]) == []


def test_a_snapshot_is_no_job_of_the_log_s_writer() -> None:
    storage = MemoryStorage()
    storage.open()
    job = WriteSnapshot(OffsetAndEpoch(1, 1), 0, ControlState(0, ()), [], 0)
    with pytest.raises(AssertionError, match="written beside the log"):
        DiskWriter(storage).perform([job])


def test_an_empty_tail_starts_at_its_end() -> None:
    assert Tail(7, 100).start_offset == 7


def test_an_epoch_that_only_the_checkpoint_announces_is_taken() -> None:
    """Its first batch is no LeaderChange: the checkpoint was written first, and vouches for it."""
    disk = MemoryDisk()
    storage = MemoryStorage(disk)
    storage.open()
    storage.append([leader_change(0, 1), data(1, 4)])
    storage.close()
    assert MemoryStorage(disk).open().log.epochs == ((1, 0), (4, 1))


def test_a_directory_that_was_there_is_not_removed_where_its_parent_cannot_be_synced(
    tmp_path: Path,
) -> None:
    (tmp_path / PARTITION_DIRECTORY).mkdir()

    def fails(descriptor: int) -> None:
        raise OSError(errno.EIO, "the device failed")

    with pytest.raises(StorageError):
        OsDisk(tmp_path, sync_directory=fails).lock()
    assert (tmp_path / PARTITION_DIRECTORY).is_dir()


# -- the core's part ------------------------------------------------------------------------------
def test_an_install_keeps_newer_snapshots() -> None:
    ids = (OffsetAndEpoch(3, 1), OffsetAndEpoch(9, 2))
    index = LogIndex(RecoveredLog(0, 9, ((1, 0),), ids, None, ()))
    index.install(OffsetAndEpoch(5, 1))
    assert index.snapshots == [OffsetAndEpoch(5, 1), OffsetAndEpoch(9, 2)]


def test_a_durable_log_is_not_stalled() -> None:
    tracker = DurabilityTracker(3)
    assert tracker.log_stalled_since_ms(77) == 77


def test_a_voter_set_equals_voter_sets_only() -> None:
    assert VoterSet() == VoterSet() and VoterSet() != () and VoterSet() != 0
