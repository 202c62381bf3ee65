"""What a disk was in the middle of when it was interrupted, and power cuts that are aimed there."""

from __future__ import annotations

from collections import Counter

import pytest

from quorate.base.ids import Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, ElectionState, Voter
from quorate.sim.marks import Marks
from quorate.sim.operations import BETWEEN_SEGMENTS, INTERRUPTED, Operations, WatchedStorage
from quorate.sim.plan import LEADER, OPERATIONS, Deed, DiskPlan, Plan
from quorate.sim.run import checked, run_plan
from quorate.sim.seams import PowerCut, dark_after
from quorate.storage.api import AppendedBatch
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk

SNAPSHOT = OffsetAndEpoch(8, 1)
VOTER = Voter(ReplicaKey(1, Uuid(bytes(range(16)))), (Listener("C", "h", 1),), 0, 1)


def batch(base: int, epoch: int = 1) -> AppendedBatch:
    return AppendedBatch(base, base, epoch, encode_batch(base, epoch, 0, [b"value"]))


def snapshot() -> bytes:
    return b"".join(encode_snapshot(SNAPSHOT, ControlState(1, (VOTER,)), 0, (), 0))


class Place:
    """A storage with eight batches in four segments, and what was told of it."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.operations = Operations(lambda what: self.told.update([what]))
        self.disk = MemoryDisk()
        self.storage = WatchedStorage(self.disk, LogOptions(150), self.operations)
        self.storage.open()
        for base in range(8):
            self.storage.append([batch(base)])
        self.storage.sync()
        assert sum(name.endswith(".log") for name in self.disk.names()) == 4

    def do(self, operation: str) -> None:
        storage = self.storage
        match operation:
            case "truncate":
                storage.truncate(1)
            case "roll":
                storage.append([batch(8), batch(9)])
            case "publish" | "clean":
                writer = storage.create_snapshot(SNAPSHOT)
                writer.append(snapshot())
                writer.freeze()
                storage.clean(SNAPSHOT)
            case "reset":
                storage.write_chunk(SNAPSHOT, 0, snapshot())
                storage.install_snapshot(SNAPSHOT)
            case "replace":
                storage.save_election(ElectionState(3, 1), 1, (1,))
            case _:
                storage.close()
                WatchedStorage(self.disk, LogOptions(150), self.operations).open()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_is_told_when_it_is_interrupted_in_its_middle(operation: str) -> None:
    told: Counter[str] = Counter()
    for steps in range(200):
        place = Place()
        place.operations.trouble = dark_after(steps)
        try:
            place.do(operation)
        except PowerCut:
            told += place.told
        else:
            break
    assert steps > 3 and not place.told, "all of it was done, and nothing interrupted"
    assert told[operation] > 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_power_cut_is_aimed_at_it(operation: str) -> None:
    place = Place()
    place.operations.dark = operation, 1
    with pytest.raises(PowerCut):
        place.do(operation)
    assert place.told[operation] == 1


def test_it_goes_off_once_and_only_there() -> None:
    place = Place()
    place.operations.dark = "clean", 1
    place.do("truncate")
    place.do("replace")
    assert not place.told
    place.operations.mend()
    place.do("repair")
    assert not place.told


def test_a_truncation_is_left_between_two_segments() -> None:
    place = Place()
    place.operations.dark = "truncate", 1
    with pytest.raises(PowerCut):
        place.do("truncate")
    assert place.told == {"truncate": 1, BETWEEN_SEGMENTS: 1}
    assert set(place.told) <= set(INTERRUPTED)


def test_after_a_truncation_the_power_goes_in_what_comes_next() -> None:
    place = Place()
    place.operations.dark = "truncate", 25
    place.do("truncate")
    with pytest.raises(PowerCut):
        for base in range(1, 30):
            place.storage.append([batch(base)])


def test_a_fork_of_the_log_is_truncated_over_segments() -> None:
    """A leader is cut off, writes on, and has to give way to the next one."""
    marks = Marks()
    deeds = (Deed(4000, "fork", (LEADER, 0, 40, 2, 6000)),)
    plan = Plan(seed=3, duration_ms=15_000, disk=DiskPlan(segment_bytes=150), deeds=deeds)
    outcome = run_plan(plan, [*checked(), marks])
    assert outcome.failure is None
    for name in ("fault: fork", "a follower truncated", f"interrupted: {BETWEEN_SEGMENTS}"):
        assert marks.marks[name] > 0, name


def test_a_small_tail_sends_a_leader_to_its_disk() -> None:
    marks = Marks()
    deeds = (Deed(3000, "kill", (1, 2000)), Deed(3000, "fork", (LEADER, 0, 40, 0, 10)))
    plan = Plan(seed=1, duration_ms=9000, disk=DiskPlan(tail_bytes=300), deeds=deeds)
    outcome = run_plan(plan, [*checked(), marks])
    assert outcome.failure is None
    assert marks.marks["the tail in a node's memory was trimmed"] > 0
    assert marks.marks["a leader read from its disk what its tail had dropped"] > 0
