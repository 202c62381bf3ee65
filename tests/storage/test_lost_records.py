"""Every combination of missing, empty and cut files: what may be lost is refused (decision 8).

The directory has four segments in two epochs, and a snapshot in the second one. `Model` says from the
bytes that are left what each file knows; it shares no code with the recovery. What a Java node leaves
when it is killed is in `test_killed_java`.
"""

from __future__ import annotations

import itertools
import json
import struct
from dataclasses import dataclass, field
from functools import cache
from random import Random

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.files import PARTITION_DIRECTORY, snapshot_name
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, ElectionState
from quorate.sim.scenario.names import voter
from quorate.storage.api import CorruptLogError
from quorate.storage.disk import OsDisk
from quorate.storage.disk_storage import FileStorage
from quorate.storage.inspection import InspectedStorage
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk, MemoryStorage
from storage.builders import data, leader_change, log_of, snapshot_bytes, write_snapshot

OPTIONS = LogOptions(segment_bytes=600, index_interval=150)
SNAPSHOT = OffsetAndEpoch(8, 1)
SNAPSHOT_FILE = "00000000000000000008-0000000001.checkpoint"
EPOCHS = "leader-epoch-checkpoint"
HARMS = ("keep", "miss", "empty", "cut")
BATCHES = [*log_of(14), leader_change(14, 3), *(data(offset, 3) for offset in range(15, 24))]
Files = dict[str, bytes]


@cache
def whole() -> Files:
    """A directory that was closed; nothing was cleaned."""
    storage = MemoryStorage(options=OPTIONS)
    storage.open()
    storage.append(BATCHES)
    storage.sync()
    write_snapshot(storage, SNAPSHOT)
    storage.save_election(ElectionState(3, 1, None), 1, ())
    storage.close()
    return {name: storage.disk.content(name) for name in storage.disk.names()}


def base_of(name: str) -> int:
    return int(name.partition(".")[0])


LOGS = sorted(name for name in whole() if name.endswith(".log"))
BASES = [base_of(name) for name in LOGS]
"""Of the four segments; the snapshot ends within the second one."""


def harmed(harms: dict[str, str], files: Files | None = None) -> Files:
    files = dict(whole() if files is None else files)
    for name, harm in harms.items():
        content = files.pop(name)
        if harm != "miss":
            cut = len(content) * 2 // 3
            files[name] = {"keep": content, "empty": b"", "cut": content[:cut]}[harm]
    return files


def batches(content: bytes) -> list[tuple[int, int, int]]:
    """(base offset, end offset, epoch) of each whole batch."""
    found, at = [], 0
    while at + 61 <= len(content):
        base, length, epoch = struct.unpack_from(">qii", content, at)
        delta = struct.unpack_from(">i", content, at + 23)[0]
        if at + 12 + length > len(content):
            break
        found.append((base, base + delta + 1, epoch))
        at += 12 + length
    return found


def is_cut(content: bytes) -> bool:
    """Do bytes follow the last whole batch?"""
    at = 0
    while len(content) - at >= 12:
        at += 12 + struct.unpack_from(">i", content, at + 8)[0]
    return at != len(content)


def entries(content: bytes, form: str) -> list[tuple[int, ...]]:
    size = struct.calcsize(form)
    return list(struct.iter_unpack(form, content[: len(content) // size * size]))


@dataclass
class Model:
    """What is left of a directory."""

    files: Files
    before: Files = field(default_factory=whole)
    """Undamaged."""
    snapshot_id: OffsetAndEpoch = SNAPSHOT

    def refused(self) -> str | None:
        """Why no node may start on it; None if nothing shows a loss."""
        file = f"{self.snapshot_id.offset:020d}-{self.snapshot_id.epoch:010d}.checkpoint"
        snapshot = self.files.get(file)
        if snapshot is not None and snapshot != self.before[file]:
            return "snapshot"
        covered = 0 if snapshot is None else self.snapshot_id.offset
        logs = sorted(name for name in self.files if name.endswith(".log"))
        if not logs and not covered:
            return "vote without a log"
        end = base_of(logs[0]) if logs else 0
        kept = 0
        if logs and end > covered:
            return "the log's start is in no snapshot"
        for at, name in enumerate(list(logs)):
            if base_of(name) != end:
                # The snapshot holds what is before its end, and an install leaves such a hole.
                if not end < base_of(name) == covered:
                    return "hole"
                if is_cut(self.files[logs[at - 1]]) and self.files[name]:
                    return "damage before sound segments"
                kept = at
            found = batches(self.files[name])
            end = found[-1][1] if found else end
        end = max(end, covered)
        return self._witness(end, logs[kept:])

    def _witness(self, end: int, logs: list[str]) -> str | None:
        for name, content in self.files.items():
            if name.endswith(".index"):
                known = [base_of(name) + relative for relative, _ in entries(content, ">ii")]
            elif name.endswith(".timeindex"):
                known = [base_of(name) + relative for _, relative in entries(content, ">qi")]
            elif name == EPOCHS:
                known = [start - 1 for _, start in self.epochs()]
                # At the end of the log a crash may leave the entry of an epoch without a batch.
                is_later = any(epoch > self.snapshot_id.epoch for epoch, _ in self.epochs())
                is_gone = is_later and not self._reaches_epoch_3(logs)
                if is_gone and (end <= self.snapshot_id.offset or not logs):
                    return f"{name} knows epoch 3"
            else:
                continue
            if name.endswith("index"):
                own = name.rpartition(".")[0] + ".log"
                known += [base_of(name) - 1]
                if own not in self.files and base_of(name):
                    known += [base_of(name)]
            if known and max(known) >= end:
                return f"{name} knows {max(known)}"
        return None

    def _reaches_epoch_3(self, logs: list[str]) -> bool:
        return any(epoch == 3 for name in logs for _, _, epoch in batches(self.files[name]))

    def epochs(self) -> list[tuple[int, int]]:
        """Of a checkpoint that can be read."""
        try:
            version, count, *lines = self.files.get(EPOCHS, b"").decode().splitlines()
            found = [(int(a), int(b)) for a, b in (line.split() for line in lines)]
        except ValueError:
            return []
        return found if version == "0" and len(found) == int(count) else []


def disk_with(files: Files) -> MemoryDisk:
    disk = MemoryDisk()
    disk.lock()
    disk.unlock()
    for name, content in files.items():
        disk.put(name, content)
    return disk


def outcome(files: Files, options: LogOptions = OPTIONS) -> tuple[str, int]:
    """refused with the reason, or started with the log's end; a refusal changes nothing."""
    disk = disk_with(files)
    storage = MemoryStorage(disk, options)
    try:
        found = storage.open()
    except CorruptLogError as error:
        assert {name: disk.content(name) for name in disk.names()} == files
        return str(error), -1
    end = found.log.end_offset
    storage.close()
    return "", end


def check(files: Files, model: Model | None = None) -> bool:
    expected = (model or Model(files)).refused()
    said, end = outcome(files)
    assert bool(said) == bool(expected), (expected, said, end, sorted(files))
    return bool(said)


def last_segments(count: int) -> list[str]:
    return [
        name
        for base in BASES[-count:]
        for name in sorted(whole())
        if name.startswith(f"{base:020d}.")
    ]


def test_the_directory_is_as_the_model_says():
    assert len(LOGS) == 4 and BASES[1] < SNAPSHOT.offset < BASES[2]
    assert Model(whole()).refused() is None
    assert outcome(whole()) == ("", 24)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["keep", "miss", "empty", "cut"])
def test_every_combination_of_the_last_two_segments(side):
    """4 harms for each of six files, four for the checkpoint, two for the snapshot."""
    names = last_segments(2)
    assert len(names) == 6
    refused = started = 0
    for harms in itertools.product(HARMS, repeat=6):
        for snapshot in ("keep", "miss"):
            files = harmed(
                dict(zip(names, harms, strict=True)) | {EPOCHS: side, SNAPSHOT_FILE: snapshot}
            )
            if check(files):
                refused += 1
            else:
                started += 1
    assert refused > 1000 and started > 20


def test_combinations_of_all_files_drawn_at_random():
    rng = Random(24)
    names = [name for name in sorted(whole()) if name.endswith(("log", "index", "checkpoint"))]
    results = []
    for _ in range(3000):
        weights = rng.choice([(9, 1, 1, 1), (3, 1, 1, 1), (1, 3, 1, 1), (1, 1, 1, 1)])
        harms = {name: rng.choices(HARMS, weights)[0] for name in names}
        results.append(check(harmed(harms)))
    assert results.count(False) > 30


def test_a_lone_voter_without_its_newest_segments_does_not_start():
    """Found by a trial: it started with a warning, and gave offsets 16 to 23 to other records."""
    for gone in ({LOGS[2]: "cut", LOGS[3]: "miss"}, {LOGS[2]: "miss", LOGS[3]: "miss"}):
        said, _ = outcome(harmed(gone))
        assert "records that were acknowledged may be lost" in said
        assert ".index knows offset" in said
    only_snapshot = dict.fromkeys(LOGS[1:], "miss") | {LOGS[0]: "empty"}
    assert "may be lost" in outcome(harmed(only_snapshot))[0]


NODE = LogOptions(needs_vote=True)


@pytest.mark.parametrize("left", [(), ("partition.metadata",)])
def test_an_emptied_directory_of_a_node_is_refused(tmp_path, left):
    """A lone voter would elect itself again, and give the offsets of what it acknowledged anew."""
    storage = FileStorage(tmp_path, NODE)
    storage.open()
    storage.close()
    partition = tmp_path / PARTITION_DIRECTORY
    for file in partition.iterdir():
        if file.name not in left:
            file.unlink()
    for _ in range(2):
        with pytest.raises(CorruptLogError, match="records that were acknowledged may be lost"):
            FileStorage(tmp_path, NODE).open()
        assert {file.name for file in partition.iterdir()} == set(left)
    with pytest.raises(CorruptLogError, match="records that were acknowledged may be lost"):
        InspectedStorage(OsDisk(tmp_path), NODE)


@pytest.mark.parametrize("is_dynamic", [True, False])
def test_a_directory_as_it_is_formatted_is_begun(tmp_path, is_dynamic):
    """With the snapshot of the initial voters, or without the directory of the partition."""
    if is_dynamic:
        partition = tmp_path / PARTITION_DIRECTORY
        partition.mkdir()
        first = OffsetAndEpoch(0, 0)
        (partition / snapshot_name(first)).write_bytes(snapshot_bytes(first))
    storage = FileStorage(tmp_path, NODE)
    assert storage.open().log.end_offset == 0
    storage.close()


# -- what quorum-state knows -----------------------------------------------------------------------
LEADER, FOLLOWER = (
    LogOptions(
        segment_bytes=600,
        index_interval=150,
        needs_vote=True,
        node_id=node_id,
        static_voter_ids=(1,),
    )
    for node_id in (1, 2)
)
"""Node 1 is the only voter, and `whole` names it as the leader."""
INDEXES = [name for name in whole() if name.endswith(("index", "timeindex"))]
LOST = [LOGS, LOGS[1:]]


@pytest.mark.parametrize("logs", LOST, ids=["all segments", "the newest segments"])
def test_nobody_sends_a_snapshot_to_the_only_voter(logs):
    """Its log ended beyond the snapshot. On another node the same files are an interrupted install."""
    files = harmed(dict.fromkeys([*logs, *INDEXES, EPOCHS], "miss"))
    said, _ = outcome(files, LEADER)
    assert "this node, the only voter, led epoch 3" in said
    assert "records that were acknowledged may be lost" in said
    assert outcome(files, FOLLOWER) == ("", SNAPSHOT.offset)


@pytest.mark.parametrize("logs", LOST, ids=["all segments", "the newest segments"])
def test_a_leader_may_snapshot_what_only_the_other_voters_have_on_disk(logs):
    """Its disk is slow, they commit without it, and it is killed: nothing is lost."""
    files = harmed(dict.fromkeys([*logs, *INDEXES, EPOCHS], "miss"))
    three = ControlState(1, tuple(voter(each) for each in (1, 2, 3)))
    files[SNAPSHOT_FILE] = b"".join(encode_snapshot(SNAPSHOT, three, 5000, (b"one",), 9000))
    assert outcome(files, LEADER) == ("", SNAPSHOT.offset)


def test_the_only_voter_goes_on_behind_its_snapshot_when_the_loss_is_accepted():
    """The steps of docs/recovery.md: the last one takes the leader out of quorum-state."""
    files = harmed(dict.fromkeys([*LOGS[1:], *INDEXES, EPOCHS], "miss") | {LOGS[0]: "cut"})
    assert "may be lost" in outcome(files, LEADER)[0]
    state = json.loads(files["quorum-state"])
    assert state["leaderId"] == 1
    files["quorum-state"] = json.dumps(state | {"leaderId": -1}).encode()
    assert outcome(files, LEADER) == ("", SNAPSHOT.offset)


def test_a_snapshot_without_a_vote_is_refused():
    """A snapshot of an epoch proves that quorum-state existed."""
    files = harmed(dict.fromkeys([*LOGS, *INDEXES, EPOCHS, "quorum-state"], "miss"))
    said, _ = outcome(files, FOLLOWER)
    assert "quorum-state is missing, but the newest snapshot reaches epoch 1" in said


@pytest.mark.parametrize("left", ["empty", "cut"])
def test_an_empty_log_of_the_only_voter_is_warned_of(left):
    """A crash before its first record leaves that, and so does the loss of all."""
    gone = dict.fromkeys([*LOGS[1:], *INDEXES, EPOCHS, SNAPSHOT_FILE], "miss")
    files = harmed(gone | {LOGS[0]: "empty"})
    if left == "cut":
        files[LOGS[0]] = whole()[LOGS[0]][:40]
    for options, expected in ((LEADER, 1), (FOLLOWER, 0)):
        notes = MemoryStorage(disk_with(files), options).open().notes
        assert len([note for note in notes if "unless its first start was" in note]) == expected
