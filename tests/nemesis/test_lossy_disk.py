"""The disk for which a kill is a power cut."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from quorate.nemesis.disk import DiskFaults, LossyDisk
from quorate.storage.api import StorageError


def never():
    return 1.0


def always():
    return 0.0


def disk_of(directory, faults=None, chance=never):
    disk = LossyDisk(directory, faults or DiskFaults(), chance)
    disk.lock()
    return disk


def after_a_kill(disk):
    """What a new process finds: nothing of what the old one kept to itself."""
    disk.unlock()
    return disk_of(disk._disk._parent)


def content(disk, name="file"):
    file = disk.open(name)
    return file.read_at(0, file.size())


def test_what_was_synced_is_there_after_a_kill_and_nothing_else(tmp_path):
    disk = disk_of(tmp_path)
    file = disk.open("file", create=True)
    file.write_at(0, b"synced")
    file.sync()
    file.write_at(6, b" and not")
    assert content(disk) == b"synced and not"
    assert content(after_a_kill(disk)) == b"synced"


def test_a_file_opened_again_still_has_what_waits(tmp_path):
    disk = disk_of(tmp_path)
    file = disk.open("file", create=True)
    file.write_at(0, b"waits")
    file.close()
    disk.rename("file", "other")
    disk.open("other").sync()
    assert content(after_a_kill(disk), "other") == b"waits"


def test_a_kernel_may_write_early(tmp_path):
    disk = disk_of(tmp_path, chance=always)
    disk.open("file", create=True).write_at(0, b"early")
    assert content(after_a_kill(disk)) in (b"early", b"")


def test_a_name_that_is_used_anew_has_nothing_of_the_old_file(tmp_path):
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


def test_the_planted_lie_is_told_of_logs_only(tmp_path):
    disk = disk_of(tmp_path, DiskFaults(forgets_log=True))
    for name in ("00000000000000000000.log", "quorum-state.tmp"):
        file = disk.open(name, create=True)
        file.write_at(0, b"x")
        file.sync()
    found = after_a_kill(disk)
    assert content(found, "00000000000000000000.log") == b""
    assert content(found, "quorum-state.tmp") == b"x"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 40), st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("truncate"), st.integers(0, 40), st.just(b"")),
        st.tuples(st.just("sync"), st.just(0), st.just(b"")),
    )
)


@settings(max_examples=examples(30))
@given(steps, st.randoms(use_true_random=False))
def test_a_running_process_sees_a_plain_file(tmp_path_factory, steps, chance):
    disk = disk_of(tmp_path_factory.mktemp("disk"), chance=chance.random)
    file = disk.open("file", create=True)
    plain = bytearray()
    for deed, at, data in steps:
        if deed == "write":
            at = min(at, len(plain))
            file.write_at(at, data)
            plain[at : at + len(data)] = data
        elif deed == "truncate":
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
