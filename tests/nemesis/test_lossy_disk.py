"""A disk that loses unsynced writes when its process is killed."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.nemesis.disk import DiskFaults, LossyDisk
from quorate.storage.api import StorageError
from time_budget import examples


def never_early():
    return 1.0


def always_early():
    return 0.0


def disk_of(directory, faults=None, uniform=never_early):
    disk = LossyDisk(directory, faults or DiskFaults(), uniform)
    disk.lock()
    return disk


def after_a_kill(disk):
    """The disk that a new process finds, without the unsynced writes of the old one."""
    disk.unlock()
    return disk_of(disk._disk._parent)


def content(disk, name="file"):
    file = disk.open(name)
    return file.read_at(0, file.size())


def test_a_kill_loses_what_was_not_synced(tmp_path):
    disk = disk_of(tmp_path)
    file = disk.open("file", create=True)
    file.write_at(0, b"synced")
    file.sync()
    file.write_at(6, b" and not")
    assert content(disk) == b"synced and not"
    assert content(after_a_kill(disk)) == b"synced"


def test_a_file_opened_again_has_its_unsynced_writes(tmp_path):
    disk = disk_of(tmp_path)
    file = disk.open("file", create=True)
    file.write_at(0, b"waits")
    file.close()
    disk.rename("file", "other")
    disk.open("other").sync()
    assert content(after_a_kill(disk), "other") == b"waits"


def test_unsynced_writes_may_reach_the_medium_early(tmp_path):
    disk = disk_of(tmp_path, uniform=always_early)
    disk.open("file", create=True).write_at(0, b"early")
    assert content(after_a_kill(disk)) in (b"early", b"")


def test_a_new_file_has_no_unsynced_writes_of_a_removed_one(tmp_path):
    disk = disk_of(tmp_path)
    disk.open("file", create=True).write_at(0, b"old")
    disk.remove("file")
    assert disk.open("file", create=True).size() == 0


@pytest.mark.parametrize("fails", ["write", "sync"])
def test_a_fault_is_a_storage_error_that_says_it_was_injected(tmp_path, fails):
    faults = DiskFaults()
    file = disk_of(tmp_path, faults).open("file", create=True)
    file.write_at(0, b"x")
    faults.fails = fails
    with pytest.raises(StorageError, match=rf"cannot {fails} file: a fault was injected"):
        (file.sync if fails == "sync" else lambda: file.write_at(1, b"y"))()


def test_a_slow_sync_takes_its_time(tmp_path):
    file = disk_of(tmp_path, DiskFaults(slow_s=0.05)).open("file", create=True)
    start = time.monotonic()
    file.sync()
    assert time.monotonic() - start >= 0.05


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 40), st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("truncate"), st.integers(0, 40), st.just(b"")),
        st.tuples(st.just("sync"), st.just(0), st.just(b"")),
    )
)


@settings(max_examples=examples(30))
@given(steps, st.randoms(use_true_random=False))
def test_a_running_process_sees_all_its_writes(tmp_path_factory, steps, rng):
    disk = disk_of(tmp_path_factory.mktemp("disk"), uniform=rng.random)
    file = disk.open("file", create=True)
    plain = bytearray()
    for operation, at, data in steps:
        if operation == "write":
            at = min(at, len(plain))
            file.write_at(at, data)
            plain[at : at + len(data)] = data
        elif operation == "truncate":
            size = min(at, len(plain))
            file.truncate(size)
            del plain[size:]
        else:
            file.sync()
        assert file.size() == len(plain)
        assert file.read_at(0, 100) == plain
        assert file.read_at(3, 5) == plain[3:8]
    file.sync()
    assert content(after_a_kill(disk)) == plain
