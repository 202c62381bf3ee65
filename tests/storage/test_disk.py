"""The operating system's side: errors of a real disk, locks, and the order of syncs."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conformance.marker import kafka_guarantee
from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import iter_batches
from quorate.formats.snapshot import SnapshotEncoder
from quorate.raft.values import ElectionState
from quorate.storage.api import StorageError
from quorate.storage.disk import OsDisk
from quorate.storage.disk_storage import DiskStorage, FileStorage
from quorate.storage.log import LogOptions
from storage.builders import (
    ALL,
    CONTROL,
    SMALL,
    data,
    file_place,
    is_as_built,
    joined,
    log_of,
    read_all,
    snapshot_bytes,
    write_snapshot,
)
from storage.watched import Steps, WatchedDisk

PARTITION = "__cluster_metadata-0"
LOG_FILE = "00000000000000000000.log"
LOG = log_of(5)


def watched(
    directory: Path,
    options: LogOptions = LogOptions(),  # noqa: B008 - it is frozen
) -> tuple[DiskStorage, Steps]:
    steps = Steps()
    storage = DiskStorage(WatchedDisk(OsDisk(directory), steps), options)
    storage.open()
    storage.append(LOG)
    storage.sync()
    steps.done.clear()
    return storage, steps


# -- order -------------------------------------------------------------------------------------
def test_an_append_is_one_write_and_one_sync(tmp_path):
    storage, steps = watched(tmp_path)
    storage.append([data(5), data(6), data(7)])
    storage.append([data(8)])
    storage.sync()
    storage.sync()
    assert steps.done == [("write", LOG_FILE), ("write", LOG_FILE), ("sync", LOG_FILE)]
    storage.close()


@kafka_guarantee("FileQuorumStateStoreTest", "createAndClear")
def test_a_vote_is_synced_before_its_rename_and_the_directory_after(tmp_path):
    storage, steps = watched(tmp_path)
    storage.save_election(ElectionState(7, 1, None), 1, ())
    assert steps.done == [
        ("create", "quorum-state.tmp"),
        ("write", "quorum-state.tmp"),
        ("sync", "quorum-state.tmp"),
        ("rename", "quorum-state.tmp"),
        ("sync directory", ""),
    ]
    storage.close()


def test_a_snapshot_is_synced_and_read_only_before_its_rename(tmp_path):
    storage, steps = watched(tmp_path)
    id = OffsetAndEpoch(5, 1)
    write_snapshot(storage, id)
    part = "00000000000000000005-0000000001-1.checkpoint.part"
    assert steps.done == [
        ("create", part),
        ("write", part),
        ("sync", part),
        ("set read-only", part),
        ("rename", part),
        ("sync directory", ""),
    ]
    path = tmp_path / PARTITION / "00000000000000000005-0000000001.checkpoint"
    assert path.stat().st_mode & 0o777 == 0o400
    storage.close()


def test_a_snapshot_is_its_owners_alone_from_its_first_byte(tmp_path):
    """As Kafka's: it holds the hashes of all passwords."""
    storage, _ = watched(tmp_path)
    writer = storage.create_snapshot(OffsetAndEpoch(5, 1))
    (part,) = (tmp_path / PARTITION).glob("*.part")
    assert part.stat().st_mode & 0o777 == 0o600
    writer.abort()
    storage.close()


def test_a_new_segment_comes_after_the_sync_of_the_old_one(tmp_path):
    steps = Steps()
    storage = DiskStorage(WatchedDisk(OsDisk(tmp_path), steps), SMALL)
    storage.open()
    storage.append(log_of(10))
    storage.sync()
    storage.append([data(10)])
    steps.done.clear()
    storage.append([data(11)])
    second = "00000000000000000011.log"
    interesting = [step for step in steps.done if "index" not in step[1]]
    assert interesting == [
        ("sync", LOG_FILE),
        ("create", second),
        ("truncate", second),
        ("sync directory", ""),
        ("write", second),
    ]
    storage.close()


def test_what_a_killed_process_left_unsynced_is_synced_before_it_counts(tmp_path):
    disk = OsDisk(tmp_path)
    storage = DiskStorage(disk, LogOptions())
    storage.open()
    storage.append(LOG)
    disk.unlock()
    steps = Steps()
    again = DiskStorage(WatchedDisk(OsDisk(tmp_path), steps), LogOptions())
    assert again.open().log.end_offset == 5
    synced = steps.done.index(("sync", LOG_FILE))
    assert steps.done[synced + 1] == ("sync directory", "")
    assert steps.done[-2:] == [("rename", "leader-epoch-checkpoint.tmp"), ("sync directory", "")]
    again.close()


def noting(directory: Path) -> tuple[FileStorage, list[str]]:
    """A storage that is not open yet, and a list that gets what it syncs."""
    synced: list[str] = []

    def note(kind: str):
        return lambda fd: synced.append(f"{kind} {os.readlink(f'/proc/self/fd/{fd}')}")

    return FileStorage(directory, sync=note("file"), sync_directory=note("directory")), synced


def test_a_new_directory_has_a_durable_name_before_anything_is_in_it(tmp_path):
    """Else a power cut could take it away, and the vote in it."""
    storage, synced = noting(tmp_path)
    storage.open()
    assert synced[0] == f"directory {tmp_path}"
    storage.close()


def test_so_has_a_directory_that_a_killed_process_made(tmp_path):
    (tmp_path / PARTITION).mkdir()
    storage, synced = noting(tmp_path)
    storage.open()
    assert synced[0] == f"directory {tmp_path}"
    storage.close()


def test_the_syncs_reach_the_right_descriptors(tmp_path):
    storage, synced = noting(tmp_path)
    storage.open()
    storage.append(LOG)
    storage.sync()
    storage.append([data(5)])
    synced.clear()
    storage.sync()
    storage.save_election(ElectionState(7, 1, None), 1, ())
    home = tmp_path / PARTITION
    assert synced == [
        f"file {home / LOG_FILE}",
        f"file {home / 'quorum-state.tmp'}",
        f"directory {home}",
    ]
    storage.close()


# -- errors ------------------------------------------------------------------------------------
def test_a_file_that_cannot_grow_is_an_error_that_says_what_to_do(tmp_path):
    """RLIMIT_FSIZE: the system itself cuts the write short, then refuses it."""
    place = file_place(tmp_path, LogOptions())
    place.open()
    place.storage.append(LOG)
    place.storage.sync()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(joined(LOG)) + 50, limits[1]))
    try:
        with pytest.raises(StorageError, match=r"cannot write .*00\.log: File too large; raise"):
            place.storage.append([data(5)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(StorageError, match="is not used any more since this failed: cannot write"):
        place.storage.sync()
    found = place.reopen()
    assert "cut a torn tail of 50 bytes" in found.notes[0]
    assert read_all(place.storage) == joined(LOG)
    place.storage.close()


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.ENOSPC, "No space left on device; the disk is full: free space"),
        (errno.EIO, "Input/output error; the device failed"),
        (errno.EROFS, "Read-only file system; the file system is mounted read-only"),
        (errno.EACCES, "Permission denied; let the user that runs this node own"),
        (errno.ENXIO, "look at the system's log"),
    ],
)
@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "fsync", "ftruncate", "replace", "open"])
def test_every_failing_call_names_the_file_and_the_way_out(
    tmp_path, monkeypatch, call, code, advice
):
    place = file_place(tmp_path, LogOptions())
    place.open()
    place.storage.append(LOG)
    place.storage.sync()

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StorageError) as caught:
        place.storage.append([data(5)])
        place.storage.sync()
        place.storage.truncate(3)
        place.storage.save_election(ElectionState(), 1, ())
    monkeypatch.undo()
    assert str(tmp_path / PARTITION) in str(caught.value)
    assert advice in str(caught.value)
    with pytest.raises(StorageError, match="not used any more"):
        place.storage.append([data(5)])
    place.reopen()
    place.storage.close()


def test_a_disk_that_fills_up_while_a_snapshot_is_written_leaves_the_log_alone(
    tmp_path, monkeypatch
):
    place = file_place(tmp_path, LogOptions())
    place.open()
    place.storage.append(LOG)
    writer = place.storage.create_snapshot(OffsetAndEpoch(5, 1))

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError, match="the disk is full"):
        writer.append(snapshot_bytes(OffsetAndEpoch(5, 1)))
    monkeypatch.undo()
    writer.abort()
    place.storage.append([data(5)])
    place.storage.sync()
    assert not list((tmp_path / PARTITION).glob("*.part"))
    place.storage.close()


def test_a_short_write_is_carried_on(tmp_path, monkeypatch):
    place = file_place(tmp_path, LogOptions())
    place.open()
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, bytes(data)[:7], at))
    place.storage.append(LOG)
    monkeypatch.undo()
    assert place.reopen().log.end_offset == 5
    place.storage.close()


def test_a_directory_that_is_missing_or_no_directory_is_refused(tmp_path):
    with pytest.raises(StorageError, match=r"is not a directory: create it and format it"):
        FileStorage(tmp_path / "missing").open()
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"is not a directory"):
        FileStorage(tmp_path / "file").open()
    (tmp_path / PARTITION).write_text("")
    with pytest.raises(StorageError, match=r"cannot create .*__cluster_metadata-0: File exists"):
        FileStorage(tmp_path).open()


# -- locks -------------------------------------------------------------------------------------
HOLD = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("operation", ["moved", "removed", "replaced"])
def test_a_directory_that_is_gone_is_noticed(tmp_path, operation):
    """Files that are open take writes and syncs as before, and no restart finds them."""
    storage = FileStorage(tmp_path / "data")
    (tmp_path / "data").mkdir()
    storage.open()
    storage.look()
    if operation == "removed":
        shutil.rmtree(tmp_path / "data")
    else:
        (tmp_path / "data").rename(tmp_path / "gone")
    if operation == "replaced":
        (tmp_path / "data" / PARTITION).mkdir(parents=True)
    said = (
        "another directory than the one that was opened"
        if operation == "replaced"
        else "cannot find"
    )
    with pytest.raises(StorageError, match=said) as raised:
        storage.look()
    assert str(tmp_path / "data" / PARTITION) in str(raised.value)
    with pytest.raises(StorageError):
        storage.append(log_of(1))
    storage.close()


def test_a_directory_locked_by_another_process_is_refused(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(StorageError, match=r"cannot lock .*\.lock: another node uses"):
            FileStorage(tmp_path).open()
        assert not (tmp_path / PARTITION).exists()
    finally:
        holder.communicate()
    storage = FileStorage(tmp_path)
    storage.open()
    with pytest.raises(StorageError, match="another node uses"):
        FileStorage(tmp_path).open()
    refused = subprocess.run(
        [sys.executable, "-c", HOLD, str(tmp_path / ".lock")], input=b"", capture_output=True
    )
    assert b"BlockingIOError" in refused.stderr, "our lock keeps other processes out"
    storage.close()
    again = FileStorage(tmp_path)
    again.open()
    again.close()


# -- a truncation beside a read ----------------------------------------------------------------
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("offset", [5, 15])
def test_a_read_that_finds_the_log_truncated_meanwhile_begins_anew(
    tmp_path, monkeypatch, moment, offset
):
    """`moment`: of the truncation, as the bytes see it that the system reads."""
    place = file_place(tmp_path, LogOptions())
    place.open()
    old, new = log_of(20), log_of(3, 2, 7)
    place.storage.append(old)
    real = os.pread

    def meanwhile(fd: int, size: int, at: int) -> bytes:
        monkeypatch.undo()
        found = real(fd, size, at)
        place.storage.truncate(7)
        place.storage.append(new)
        return found if moment == "after" else real(fd, size, at)

    monkeypatch.setattr(os, "pread", meanwhile)
    found = place.storage.read(offset, ALL, ALL)
    assert found == (joined([*old[5:7], *new]) if offset == 5 else b"")
    place.storage.close()


# -- threads -----------------------------------------------------------------------------------
@pytest.mark.slow
def test_readers_beside_the_writer_never_see_a_mix(tmp_path):
    """Followers are served while the log grows, is truncated, written over and cleaned."""
    storage = FileStorage(tmp_path, SMALL)
    storage.open()
    stop = threading.Event()
    failures: list[BaseException] = []
    reads = 0

    def read() -> None:
        nonlocal reads
        position = 0
        try:
            while not stop.is_set():
                start, end = storage.start_offset, storage.end_offset
                position = start + (position * 7 + 13) % max(end - start, 1)
                check_one_history(storage.read(position, 1 << 40, 3000))
                reads += 1
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for epoch in range(1, 31):
        end = storage.end_offset
        storage.append(log_of(40, epoch, end))
        storage.truncate(end + 17)
        if epoch % 10 == 0:
            id = OffsetAndEpoch(end, epoch - 1)
            write_snapshot(storage, id)
            storage.clean(id)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert reads > 50
    storage.close()


def check_one_history(found: bytes) -> None:
    """Offsets follow each other, epochs never go back, and every record is what it says."""
    end = epoch = -1
    for view in iter_batches(found):
        assert end in (-1, view.base_offset)
        assert view.epoch >= epoch
        assert is_as_built(view)
        end, epoch = view.end_offset, view.epoch


def test_a_long_snapshot_is_synced_while_it_is_written(tmp_path):
    """So that no sync of the log has to wait for all of it; and no more often than that needs."""
    options = LogOptions(sync_every=100_000)
    storage, steps = watched(tmp_path, options)
    id = OffsetAndEpoch(5, 1)
    writer = storage.create_snapshot(id)
    encoder = SnapshotEncoder(id, CONTROL, 5005, max_batch_size=15_000)
    batches = [encoder.begin(9000)]
    batches += (batch for _ in range(200) if (batch := encoder.add(bytes(10_000), 9000)))
    unsynced = syncs = 0
    for batch in (*batches, encoder.finish(9000)):
        steps.done.clear()
        writer.append(batch)
        synced = any(operation == "sync" for operation, _ in steps.done)
        unsynced = 0 if synced else unsynced + len(batch)
        assert unsynced < options.sync_every
        syncs += synced
    assert 15 < syncs <= 20
    writer.freeze()
    size = storage.snapshot_size(id)
    assert size is not None and size > 2_000_000
    storage.close()
