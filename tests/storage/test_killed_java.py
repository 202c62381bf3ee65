"""What a Java node leaves when it is killed within a snapshot install, or before an epoch's first batch.

The steps are those of `LocalLog.truncateFullyAndStartAt`, `UnifiedLog.truncateFullyAndStartAt`,
`KafkaRaftLog.truncateToLatestSnapshot` and `UnifiedLog.append` (Kafka 4.3.1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from random import Random

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.base.notes import Warn
from quorate.raft.values import ElectionState
from quorate.storage.api import CorruptLogError, StorageError
from quorate.storage.inspection import InspectedStorage
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryStorage
from storage.builders import data, joined, leader_change, log_of, read_all, snapshot_bytes
from storage.test_lost_records import (
    BASES,
    EPOCHS,
    HARMS,
    LOGS,
    OPTIONS,
    SNAPSHOT_FILE,
    Files,
    Model,
    base_of,
    check,
    disk_with,
    harmed,
    outcome,
    whole,
)

SUFFIXES = (".log", ".index", ".timeindex")
SAME_EPOCH = OffsetAndEpoch(30, 3)
"""Of the log's last epoch, and beyond its end 24."""
INSTALLS = (
    SAME_EPOCH,
    OffsetAndEpoch(30, 5),
    OffsetAndEpoch(24, 5),
    OffsetAndEpoch(BASES[3] + 1, 5),
    OffsetAndEpoch(BASES[3], 5),
    OffsetAndEpoch(BASES[2], 5),
    OffsetAndEpoch(BASES[1] - 1, 5),
)
"""Beyond the log, at its end, within its last segment, at the base of one, and within an earlier one:
where the snapshot's epoch is newer, the records behind it diverged."""


def checkpoint(snapshot_id: OffsetAndEpoch) -> str:
    return f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}.checkpoint"


def old_log(snapshot_id: OffsetAndEpoch, last_empty: bool = False) -> Files:
    """Of a follower, with the producer states of a Java node; what it has snapshots of is committed."""
    files = dict(whole())
    if snapshot_id.offset < 8:
        del files[SNAPSHOT_FILE]
    if last_empty:  # rolled, and killed before the first batch
        files[LOGS[-1]] = b""
        del files[LOGS[-1].replace("log", "index")], files[LOGS[-1].replace("log", "timeindex")]
    ends = [*BASES[1:], *([] if last_empty else [24])]
    return files | {f"{end:020d}.snapshot": b"producers" for end in ends}


def install(files: Files, snapshot_id: OffsetAndEpoch) -> Iterator[tuple[str, Files]]:
    """What the directory holds after each step of a Java node's install, with the step's name."""
    files = dict(files)
    files[checkpoint(snapshot_id)] = snapshot_bytes(snapshot_id)
    yield "snapshot", dict(files)
    bases = sorted(base_of(name) for name in files if name.endswith(".log"))
    new = f"{snapshot_id.offset:020d}.log"

    def rename(base: int) -> Iterator[tuple[str, Files]]:
        for suffix in SUFFIXES:
            name = f"{base:020d}{suffix}"
            if name in files:
                files[name + ".deleted"] = files.pop(name)
                yield name, dict(files)

    for base in bases[:-1]:
        yield from rename(base)
    if snapshot_id.offset == bases[-1]:
        yield from rename(bases[-1])
    files[new] = b""
    yield "new segment", dict(files)
    if snapshot_id.offset != bases[-1]:
        yield from rename(bases[-1])
    files[EPOCHS] = b"0\n0\n"
    yield EPOCHS, dict(files)
    for name in sorted(files):
        if name.endswith(".snapshot"):
            del files[name]
            yield name, dict(files)
    if SNAPSHOT_FILE in files:
        files[SNAPSHOT_FILE + ".deleted"] = files.pop(SNAPSHOT_FILE)
        yield SNAPSHOT_FILE, dict(files)


@pytest.mark.parametrize("last_empty", [False, True], ids=["", "last segment is empty"])
@pytest.mark.parametrize("snapshot_id", INSTALLS, ids=str)
def test_an_install_that_was_killed_after_any_step_is_finished(snapshot_id, last_empty):
    steps = 0
    for step, files in install(old_log(snapshot_id, last_empty), snapshot_id):
        steps += 1
        disk = disk_with(files)
        read = InspectedStorage(disk, OPTIONS).recovered.log
        storage = MemoryStorage(disk, OPTIONS)
        found = storage.open()
        log = found.log
        assert (read.start_offset, read.end_offset) == (log.start_offset, log.end_offset), step
        assert (log.start_offset, log.end_offset, log.epochs) == (
            snapshot_id.offset,
            snapshot_id.offset,
            (),
        ), step
        assert log.snapshots == (snapshot_id,), step
        storage.append([leader_change(snapshot_id.offset, 6)])
        storage.close()
        left = {name for name in disk.names() if name.endswith(".log")}
        assert left == {f"{snapshot_id.offset:020d}.log"}
        again = MemoryStorage(disk, OPTIONS)
        assert again.open().notes == ()
        assert again.end_offset == snapshot_id.offset + 1
    assert steps > 10


@pytest.mark.parametrize("snapshot_id", INSTALLS, ids=str)
def test_the_recovery_of_an_install_may_be_interrupted_too(snapshot_id):
    for step, files in install(old_log(snapshot_id), snapshot_id):
        if step not in ("snapshot", "new segment", EPOCHS):
            continue
        left, count = 0, 0

        def watch(operation: str, name: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(5, "the power is gone")

        while left <= 0:
            disk = disk_with(files)
            disk.watch = watch
            storage = MemoryStorage(disk, OPTIONS)
            left = count
            try:
                storage.open()
                break
            except (OSError, StorageError):
                pass
            left = 10_000
            again = storage.crash(Random(count).random if count % 2 else None)
            assert again.open().log.end_offset == snapshot_id.offset, (step, count)
            left = 0
            count += 1
        assert count > 5


# -- a Java node that was started on it, and went on -----------------------------------------------
INSTALLED = OffsetAndEpoch(20, 1)
OLD = log_of(14)
NEW = [*(data(at) for at in range(20, 24)), leader_change(24, 3), *(data(at, 3) for at in (25, 26))]


@cache
def holed() -> Files:
    """The old log ends at 14, the new one begins at the snapshot: Java keeps both until it cleans."""
    old = MemoryStorage(options=OPTIONS)
    old.open()
    old.append(OLD)
    old.save_election(ElectionState(3, 1, None), 1, ())
    old.close()
    files = {name: old.disk.content(name) for name in old.disk.names()}
    new = MemoryStorage(disk_with({checkpoint(INSTALLED): snapshot_bytes(INSTALLED)}), OPTIONS)
    new.open()
    new.append(NEW)
    new.close()
    files |= {name: new.disk.content(name) for name in new.disk.names() if name != "quorum-state"}
    return files | {EPOCHS: b"0\n2\n1 0\n3 24\n"}


def test_what_a_java_node_appended_behind_the_snapshot_is_kept():
    storage = MemoryStorage(disk_with(holed()), OPTIONS)
    found = storage.open()
    assert (found.log.start_offset, found.log.end_offset) == (20, 27)
    assert read_all(storage) == joined(NEW)
    (said,) = found.notes
    assert isinstance(said, Warn) and "ended at offset 14 and goes on at 20" in said
    names = storage.disk.names()
    assert min(base_of(name) for name in names if name.endswith((".log", "index"))) == 20


def test_a_hole_that_no_snapshot_ends_at_is_refused():
    newer, older = OffsetAndEpoch(22, 1), OffsetAndEpoch(20, 0)
    for files in (
        {checkpoint(newer): snapshot_bytes(newer)},
        {checkpoint(older): snapshot_bytes(older)},
    ):
        left = {name: whole for name, whole in holed().items() if name != checkpoint(INSTALLED)}
        assert "records are missing between" in outcome(left | files)[0]


def test_an_empty_segment_at_the_snapshot_is_no_excuse_for_a_log_that_is_newer():
    """The log reaches the snapshot's epoch and end, so no install had to replace it."""
    for offset in (20, BASES[3]):
        snapshot_id = OffsetAndEpoch(offset, 3)
        files = whole() | {checkpoint(snapshot_id): snapshot_bytes(snapshot_id)}
        files[f"{offset:020d}.log"] = b""
        if offset == BASES[3]:
            assert "may be lost" in outcome(files)[0]
        else:
            assert "records are missing between" in outcome(files)[0]


def test_combinations_of_a_log_with_such_a_hole_drawn_at_random():
    rng = Random(25)
    names = [name for name in sorted(holed()) if name.endswith(("log", "index", "checkpoint"))]
    assert len({base_of(name) for name in names if name.endswith(".log")}) >= 3
    refused = []
    for _ in range(2500):
        weights = rng.choice([(9, 1, 1, 1), (3, 1, 1, 1), (1, 3, 1, 1), (1, 1, 1, 1)])
        files = harmed({name: rng.choices(HARMS, weights)[0] for name in names}, holed())
        refused.append(check(files, Model(files, holed(), INSTALLED)))
    assert refused.count(False) > 100 and refused.count(True) > 1000


# -- the entry of an epoch before its first batch --------------------------------------------------
FULL = {".index": bytes(10_485_760), ".timeindex": bytes(10_485_756)}
VOTE = (
    b'{"leaderId":2,"leaderEpoch":%d,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    b'"data_version":1}'
)


def begun(
    start: int, epochs: bytes, vote: int | None, index: bytes | None, time_index: bytes | None
) -> Files:
    """A log that begins at `start` and has no batch; None: the file is missing."""
    files: dict[str, bytes | None] = {
        f"{start:020d}.log": b"",
        f"{start:020d}.index": index,
        f"{start:020d}.timeindex": time_index,
        EPOCHS: epochs,
        "quorum-state": None if vote is None else VOTE % vote,
    }
    if start:
        snapshot_id = OffsetAndEpoch(start, 1)
        files[checkpoint(snapshot_id)] = snapshot_bytes(snapshot_id)
    return {name: content for name, content in files.items() if content is not None}


@pytest.mark.parametrize("start", [0, 30])
def test_an_entry_at_the_end_of_an_empty_log_is_what_a_killed_java_node_leaves(start):
    """Only of the node's epoch or an older one, and only one that begins where the log ends."""
    for epochs, vote, is_left in (
        (((2, start),), 2, True),
        (((2, start),), 3, True),
        (((1, 0), (2, start)), 2, start > 0),
        (((2, start),), 1, False),
        (((2, start),), None, False),
        (((2, start + 1),), 2, False),
        (((2, start), (3, start + 5)), 3, False),
        (((2, start), (3, start)), 3, False),
    ):
        lines = "".join(f"{epoch} {at}\n" for epoch, at in epochs)
        saved = f"0\n{len(epochs)}\n{lines}".encode()
        files = begun(start, saved, vote, *FULL.values())
        said, end = outcome(files)
        assert (said == "") == is_left, (epochs, vote, said)
        if is_left:
            assert end == start
            storage = MemoryStorage(disk_with(files), OPTIONS)
            (note,) = [note for note in storage.open().notes if isinstance(note, Warn)]
            assert f"knows epoch 2 from offset {start} on" in note
            assert storage.disk.content(EPOCHS) == b"0\n0\n"
        else:
            assert "may be lost" in said


def test_an_empty_log_with_an_entry_needs_the_indexes_of_a_node_that_ran():
    """They show that few batches were ever there. Quorate writes indexes without room for more."""
    entry = {".index": bytes(3) + b"\x05" + bytes(3) + b"\x01", ".timeindex": bytes(7) + b"\x01"}
    kinds = {
        suffix: (
            full,
            b"",
            None,
            entry[suffix] + full[len(entry[suffix]) :],
            full[:-12],
            full[:800],
        )
        for suffix, full in FULL.items()
    }
    for index, time_index in itertools.product(kinds[".index"], kinds[".timeindex"]):
        said, _ = outcome(begun(0, b"0\n1\n2 0\n", 2, index, time_index))
        assert (said == "") == (index == FULL[".index"] and time_index == FULL[".timeindex"])


def test_both_kills_may_follow_each_other():
    """The node started on an install that was killed, and was killed again before an epoch's batch."""
    files = {name: held for name, held in holed().items() if (base_of_or_none(name) or 0) < 20}
    files[checkpoint(INSTALLED)] = holed()[checkpoint(INSTALLED)]
    files["00000000000000000020.log"] = b""
    files[EPOCHS] = b"0\n2\n1 0\n3 20\n"
    assert "knows epoch 3" in outcome(files)[0]
    files |= {f"{20:020d}{suffix}": content for suffix, content in FULL.items()}
    assert outcome(files) == ("", 20)
    files[EPOCHS] = b"0\n2\n1 0\n3 21\n"
    assert "knows epoch 3" in outcome(files)[0]


def base_of_or_none(name: str) -> int | None:
    stem = name.partition(".")[0]
    return int(stem) if stem.isdecimal() else None


def test_the_only_voter_gets_no_snapshot_from_anyone():
    """Old segments and an empty one at the snapshot are then the loss of what was behind it."""
    alone = LogOptions(
        segment_bytes=600, index_interval=150, node_id=1, static_voter_ids=(1,), needs_vote=True
    )
    states = dict(install(old_log(SAME_EPOCH), SAME_EPOCH))
    with pytest.raises(CorruptLogError, match="the only voter, led epoch 3"):
        MemoryStorage(disk_with(states["new segment"]), alone).open()
