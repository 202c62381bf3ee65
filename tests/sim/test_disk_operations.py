"""What a disk was in the middle of when it was interrupted, and power cuts that are aimed there."""

from __future__ import annotations

from collections import Counter

import pytest

from quorate.base.ids import Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, ElectionState, Voter
from quorate.sim.coverage.coverage import Coverage
from quorate.sim.plan.plan import LEADER, OPERATIONS, DiskPlan, FaultEvent, Plan
from quorate.sim.run.run import checked, run_plan
from quorate.sim.world.crash_points import PowerCutError, dark_after
from quorate.sim.world.disk_operations import (
    BETWEEN_SEGMENTS,
    INTERRUPTED,
    Operations,
    WatchedStorage,
)
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
    """A storage with eight batches in four segments, and the operations it reported."""

    def __init__(self) -> None:
        self.reported: Counter[str] = Counter()
        self.operations = Operations(lambda what: self.reported.update([what]))
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
def test_each_is_reported_when_it_is_interrupted_in_its_middle(operation: str) -> None:
    reported: Counter[str] = Counter()
    for steps in range(200):
        place = Place()
        place.operations.trouble = dark_after(steps)
        try:
            place.do(operation)
        except PowerCutError:
            reported += place.reported
        else:
            break
    assert steps > 3 and not place.reported, "all of it was done, and nothing interrupted"
    assert reported[operation] > 0


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_power_cut_is_aimed_at_it(operation: str) -> None:
    place = Place()
    place.operations.power_cut_after = operation, 1
    with pytest.raises(PowerCutError):
        place.do(operation)
    assert place.reported[operation] == 1


def test_the_fault_fires_once_at_its_operation() -> None:
    place = Place()
    place.operations.power_cut_after = "clean", 1
    place.do("truncate")
    place.do("replace")
    assert not place.reported
    place.operations.repair()
    place.do("repair")
    assert not place.reported


def test_a_truncation_is_left_between_two_segments() -> None:
    left = 0
    for steps in range(1, 200):
        place = Place()
        place.operations.power_cut_after = "truncate", steps
        try:
            place.do("truncate")
        except PowerCutError:
            assert place.reported["truncate"] == 1
            assert set(place.reported) <= set(INTERRUPTED)
            left += place.reported[BETWEEN_SEGMENTS]
        else:
            break
    assert left > 0 and steps < 199


def test_after_a_truncation_the_power_fails_in_the_next_operation() -> None:
    place = Place()
    place.operations.power_cut_after = "truncate", 25
    place.do("truncate")
    with pytest.raises(PowerCutError):
        for base in range(1, 30):
            place.storage.append([batch(base)])


def test_a_fork_of_the_log_is_truncated_over_segments() -> None:
    """A leader is cut off, writes on, and has to give way to the next one."""
    coverage = Coverage()
    fault_events = (FaultEvent(4000, "fork", (LEADER, 0, 40, 10, 6000)),)
    plan = Plan(
        seed=3, duration_ms=15_000, disk=DiskPlan(segment_bytes=150), fault_events=fault_events
    )
    outcome = run_plan(plan, [*checked(), coverage])
    assert outcome.failure is None
    for name in ("fault: fork", "a follower truncated", f"interrupted: {BETWEEN_SEGMENTS}"):
        assert coverage.coverage[name] > 0, name


def test_a_small_tail_sends_a_leader_to_its_disk() -> None:
    coverage = Coverage()
    fault_events = (
        FaultEvent(3000, "kill", (1, 2000)),
        FaultEvent(3000, "fork", (LEADER, 0, 40, 0, 10)),
    )
    plan = Plan(seed=1, duration_ms=9000, disk=DiskPlan(tail_bytes=300), fault_events=fault_events)
    outcome = run_plan(plan, [*checked(), coverage])
    assert outcome.failure is None
    assert coverage.coverage["the tail in a node's memory was trimmed"] > 0
    assert coverage.coverage["a leader read from its disk what its tail had dropped"] > 0
