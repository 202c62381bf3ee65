"""The power is cut, or the process killed, before every single step of every operation.

What comes up again is checked against what each operation may leave behind.
"""

from __future__ import annotations

import random as chance
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import snapshot_name
from quorate.raft.values import ElectionState
from quorate.storage.api import Recovered, Storage, StorageError
from quorate.storage.disk import OsDisk
from quorate.storage.disk_storage import DiskStorage
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk, MemoryStorage
from storage.builders import (
    SMALL,
    data,
    download,
    joined,
    leader_change,
    log_of,
    read_all,
    snapshot_bytes,
    write_snapshot,
)
from storage.watched import PowerCutError, Steps, WatchedDisk
from time_budget import examples, one_in

END = 62
LOG = log_of(END)
"""Six segments: several go at once when the log is truncated, cleaned or replaced."""
SNAPSHOTS = (OffsetAndEpoch(10, 1), OffsetAndEpoch(30, 1))
NEW = OffsetAndEpoch(90, 2)
OLD_VOTE, NEW_VOTE = ElectionState(1, 1, None), ElectionState(2, -1, None)


def prepare(storage: Storage) -> None:
    storage.open()
    storage.append(LOG)
    storage.save_election(OLD_VOTE, 1, ())
    for snapshot_id in SNAPSHOTS:
        write_snapshot(storage, snapshot_id)
    storage.sync()


@dataclass(frozen=True)
class Operation:
    """`run` is interrupted; `check` says whether what was recovered may be there.

    Every operation also may not have happened at all (`untouched`).
    """

    name: str
    run: Callable[[Storage], None]
    check: Callable[[Storage, Recovered], None]

    def __str__(self) -> str:
        return self.name


def log_is(storage: Storage, batches: list[Any]) -> bool:
    return read_all(storage) == joined(batches)


APPENDED = [data(offset) for offset in range(END, END + 15)]
NEXT_EPOCH = log_of(8, 2, END)


def append(storage: Storage) -> None:
    storage.append(APPENDED)
    storage.sync()


def append_next_epoch(storage: Storage) -> None:
    storage.append(NEXT_EPOCH)
    storage.sync()


def is_prefix(rest: list[Any]) -> Callable[[Storage, Recovered], None]:
    def check(storage: Storage, found: Recovered) -> None:
        assert storage.end_offset >= END, "synced records are lost"
        whole = LOG + rest
        assert log_is(storage, whole[: storage.end_offset])
        assert found.log.snapshots == SNAPSHOTS

    return check


def truncate(storage: Storage) -> None:
    storage.truncate(32)


def truncate_and_go_on(storage: Storage) -> None:
    storage.truncate(32)
    storage.append(log_of(12, 2, 32))
    storage.sync()


def is_truncated(storage: Storage, found: Recovered) -> None:
    end = storage.end_offset
    assert end >= 32
    assert found.log.snapshots == SNAPSHOTS
    old, new = LOG[:end], (LOG[:32] + log_of(12, 2, 32))[:end]
    assert log_is(storage, old) or log_is(storage, new)


def vote(storage: Storage) -> None:
    storage.save_election(NEW_VOTE, 1, ())


def own_snapshot(storage: Storage) -> None:
    write_snapshot(storage, OffsetAndEpoch(END, 1))


def has_all_snapshots(storage: Storage, found: Recovered) -> None:
    assert log_is(storage, LOG)
    assert found.log.snapshots[:2] == SNAPSHOTS
    assert found.log.snapshots[2:] in ((), (OffsetAndEpoch(END, 1),))


def install(storage: Storage) -> None:
    download(storage, NEW, snapshot_bytes(NEW))
    storage.install_snapshot(NEW)


INSIDE = OffsetAndEpoch(31, 2)


def install_inside(storage: Storage) -> None:
    """The leader's snapshot ends within our log, which diverges from it."""
    download(storage, INSIDE, snapshot_bytes(INSIDE))
    storage.install_snapshot(INSIDE)


def is_installed_inside(storage: Storage, found: Recovered) -> None:
    if INSIDE in found.log.snapshots:
        assert (storage.start_offset, storage.end_offset) == (31, 31)
    else:
        assert log_is(storage, LOG)


NEWER_TAIL = log_of(8, 3, END)
"""Of a leader that nobody followed: its epoch is newer than the snapshot's, and above the log."""


def install_below_a_newer_epoch(snapshot_id: OffsetAndEpoch) -> Callable[[Storage], None]:
    def run(storage: Storage) -> None:
        storage.append(NEWER_TAIL)
        storage.sync()
        download(storage, snapshot_id, snapshot_bytes(snapshot_id))
        storage.install_snapshot(snapshot_id)

    return run


def is_installed_or_cut(snapshot_id: OffsetAndEpoch) -> Callable[[Storage, Recovered], None]:
    """What contradicts the snapshot may have gone before it came."""

    def check(storage: Storage, found: Recovered) -> None:
        if snapshot_id in found.log.snapshots:
            assert (storage.start_offset, storage.end_offset) == (snapshot_id.offset,) * 2
            return
        is_prefix(NEWER_TAIL)(storage, found)

    return check


ACROSS = OffsetAndEpoch(66, 2)
"""Its end is in the newer tail."""


def is_installed(storage: Storage, found: Recovered) -> None:
    if NEW in found.log.snapshots:
        assert (storage.start_offset, storage.end_offset) == (90, 90)
        assert storage.read_snapshot(NEW, 0, 1 << 20) == snapshot_bytes(NEW)
        assert found.log.snapshots == (NEW,)
    else:
        assert log_is(storage, LOG)
        assert found.log.snapshots == SNAPSHOTS


def clean(storage: Storage) -> None:
    storage.clean(SNAPSHOTS[1])


def is_cleaned(storage: Storage, found: Recovered) -> None:
    assert storage.start_offset <= 30
    assert log_is(storage, LOG[storage.start_offset :])
    assert SNAPSHOTS[1] in found.log.snapshots
    if storage.start_offset <= 10 and len(found.log.snapshots) == 2:
        assert found.log.snapshots == SNAPSHOTS


OWN_SNAPSHOT = Operation("own snapshot", own_snapshot, has_all_snapshots)
OPERATIONS = [
    Operation("append", append, is_prefix(APPENDED)),
    Operation("append the next epoch", append_next_epoch, is_prefix(NEXT_EPOCH)),
    Operation("truncate", truncate, is_truncated),
    Operation("truncate and go on", truncate_and_go_on, is_truncated),
    Operation("vote", vote, is_prefix([])),
    OWN_SNAPSHOT,
    Operation("install", install, is_installed),
    Operation("install inside", install_inside, is_installed_inside),
    *(
        Operation(name, install_below_a_newer_epoch(id), is_installed_or_cut(id))
        for name, id in (("install beyond a newer tail", NEW), ("install across one", ACROSS))
    ),
    Operation("clean", clean, is_cleaned),
]


def steps_of(operation: Operation) -> int:
    storage = MemoryStorage(options=SMALL)
    prepare(storage)
    storage.disk.watch = steps = Steps()
    operation.run(storage)
    return len(steps.done)


def recover(storage: DiskStorage, operation: Operation) -> None:
    found = storage.open()
    assert found.election in ((OLD_VOTE, NEW_VOTE) if operation.run is vote else (OLD_VOTE,))
    operation.check(storage, found)
    # and life goes on
    end, epoch = storage.end_offset, 9
    storage.append([leader_change(end, epoch)])
    storage.sync()
    storage.close()


@pytest.mark.parametrize("loose_names", [False, True], ids=["names in order", "any names"])
@pytest.mark.parametrize("operation", one_in(3, OPERATIONS), ids=str)
def test_a_power_cut_at_every_step_leaves_what_was_synced(operation, loose_names):
    steps = steps_of(operation)
    assert steps >= 2
    for stop_at in range(steps):
        for seed in range(examples(12)):
            storage = MemoryStorage(options=SMALL)
            prepare(storage)
            storage.disk.watch = Steps(stop_at)
            with pytest.raises(PowerCutError):
                operation.run(storage)
            random = chance.Random(seed).random if seed else None
            recover(storage.crash(random, loose_names=loose_names), operation)


def unsynced(home: Path) -> OsDisk:
    """What a process wrote stays when it is killed, synced or not."""
    return OsDisk(home, lambda fd: None, lambda fd: None)


@pytest.mark.parametrize("operation", one_in(3, OPERATIONS), ids=str)
def test_a_kill_at_every_step_leaves_what_was_synced(operation, tmp_path):
    """Over real files: what the process wrote stays, the rest never happens."""
    for stop_at in range(steps_of(operation)):
        home = tmp_path / str(stop_at)
        home.mkdir()
        steps = Steps()
        disk = unsynced(home)
        storage = DiskStorage(WatchedDisk(disk, steps), SMALL)
        prepare(storage)
        steps.stop_at = len(steps.done) + stop_at
        with pytest.raises(PowerCutError):
            operation.run(storage)
        disk.unlock()
        recover(DiskStorage(unsynced(home), SMALL), operation)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_after_a_failure_at_any_step_nothing_is_done_until_it_is_opened_again(operation):
    for stop_at in range(steps_of(operation)):
        storage = MemoryStorage(options=SMALL)
        prepare(storage)
        storage.disk.watch = steps = Steps(stop_at, StorageError)
        with pytest.raises(StorageError):
            operation.run(storage)
        steps.stop_at = -1
        if operation.run is not own_snapshot:
            done = len(steps.done)
            refuses_everything(storage)
            assert len(steps.done) == done
        storage.close()
        recover(MemoryStorage(storage.disk, SMALL), operation)


def refuses_everything(storage: Storage) -> None:
    for call in (
        lambda: storage.append([]),
        storage.sync,
        lambda: storage.truncate(35),
        lambda: storage.read(0, 1, 1),
        lambda: storage.save_election(NEW_VOTE, 1, ()),
        lambda: storage.clean(SNAPSHOTS[1]),
    ):
        with pytest.raises(StorageError, match="not used any more since this failed"):
            call()


def test_a_snapshot_that_cannot_be_written_does_not_touch_the_log():
    storage = MemoryStorage(options=SMALL)
    prepare(storage)
    storage.disk.watch = steps = Steps(1, StorageError)
    writer = storage.create_snapshot(OffsetAndEpoch(END, 1))
    with pytest.raises(StorageError):
        writer.append(snapshot_bytes(OffsetAndEpoch(END, 1)))
    steps.stop_at = -1
    writer.abort()
    append(storage)
    assert log_is(storage, LOG + APPENDED)


def test_a_snapshot_that_fails_at_any_step_leaves_nothing_half_made():
    for stop_at in range(steps_of(OWN_SNAPSHOT)):
        storage = MemoryStorage(options=SMALL)
        prepare(storage)
        storage.disk.watch = steps = Steps(stop_at, StorageError)
        writer = None
        with pytest.raises(StorageError):
            writer = storage.create_snapshot(OffsetAndEpoch(END, 1))
            writer.append(snapshot_bytes(OffsetAndEpoch(END, 1)))
            writer.freeze()
        steps.stop_at = -1
        if writer is not None:
            writer.abort()
        assert [name for name in storage.disk.names() if name.endswith(".part")] == [], stop_at


@pytest.mark.parametrize("loose_names", [False, True], ids=["names in order", "any names"])
@pytest.mark.parametrize("newer", [None, NEW, INSIDE], ids=["torn", "newer", "inside"])
@pytest.mark.parametrize("seed", range(4))
def test_recovery_itself_may_be_interrupted_at_every_step(seed, newer, loose_names):
    """A torn tail, a snapshot newer than the log, stale files: repaired in the end."""
    random = chance.Random(seed)
    storage = MemoryStorage(options=SMALL)
    prepare(storage)
    storage.append(APPENDED)
    unfinished = OffsetAndEpoch(END + 15, 1)
    storage.create_snapshot(unfinished).append(snapshot_bytes(unfinished))
    disk = storage.disk
    for name in disk.names():
        if name.endswith("index"):
            disk.put(name, b"rubbish")
    if newer:
        disk.put(snapshot_name(newer), snapshot_bytes(newer))
    disk.put("leader-epoch-checkpoint", b"")
    disk = disk.crash(random.random, loose_names=loose_names)
    stop_at = 0
    while True:
        disk.watch = Steps(stop_at)
        storage = MemoryStorage(disk, SMALL)
        try:
            found = storage.open()
        except PowerCutError:
            disk = disk.crash(random.random, loose_names=loose_names)
            stop_at += 1
            continue
        break
    assert stop_at > 5
    assert found.election == OLD_VOTE
    if newer:
        assert (storage.start_offset, storage.end_offset) == (newer.offset, newer.offset)
        assert newer in found.log.snapshots
    else:
        assert storage.end_offset >= END
        assert log_is(storage, (LOG + APPENDED)[: storage.end_offset])


def test_lost_and_reordered_writes_are_recovered_or_refused_never_served():
    """Writes of one group may reach a medium in any order: a hole with sound batches behind it
    cannot be distinguished from damage, so it is refused."""
    outcomes = set()
    for seed in range(300):
        random = chance.Random(seed)
        storage = MemoryStorage(options=SMALL)
        prepare(storage)
        for batch in APPENDED[: random.randrange(1, 8)]:
            storage.append([batch])
        after = storage.crash(random.random, reorder=True)
        try:
            found = after.open()
        except StorageError as error:
            assert "damaged at byte" in str(error)
            outcomes.add("refused")
            continue
        is_prefix(APPENDED)(after, found)
        outcomes.add("cut" if found.notes else "whole")
    assert outcomes == {"refused", "cut", "whole"}


@pytest.mark.parametrize(("options", "start"), [(SMALL, 22), (LogOptions(), 0)])
def test_what_was_cleaned_does_not_come_back(options, start):
    storage = MemoryStorage(options=options)
    prepare(storage)
    clean(storage)
    found = storage.crash().open()
    assert found.log.snapshots == SNAPSHOTS[1:]
    assert found.log.start_offset == start, "the segment that holds offset 30 is kept whole"


def test_a_dead_storage_stays_dead():
    storage = MemoryStorage(options=SMALL)
    prepare(storage)
    storage.crash()
    with pytest.raises(StorageError, match="the power is off"):
        append(storage)


def test_nothing_unsynced_survives_a_plain_crash():
    storage = MemoryStorage()
    storage.open()
    storage.append(LOG)
    storage.sync()
    storage.append(APPENDED)
    after = storage.crash()
    assert after.open().log.end_offset == END
    assert isinstance(after.disk, MemoryDisk)
