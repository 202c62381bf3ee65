"""Each wrong belief of core and storage is named, at the step that makes it wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_batch
from quorate.formats.files import PARTITION_DIRECTORY
from quorate.raft.ready import Clean, InstallSnapshot, SnapshotChunk, Truncate
from quorate.raft.values import ControlState, RecoveredLog
from quorate.replica.disk_jobs import (
    AppendBatches,
    DiskFailed,
    Installed,
    Job,
    Result,
    SnapshotWritten,
    Survey,
    Surveyed,
    Write,
    WriteSnapshot,
)
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.storage.api import AppendedBatch
from quorate.storage.disk_storage import FileStorage
from quorate.storage.log import LogOptions
from quorate.verify.log_audit import LogAudit, LogBeliefError
from quorate.verify.medium import (
    Medium,
    PathDirectory,
    SegmentOnMedium,
    header_timestamp,
    read_batches,
)

CONTROL = ControlState(0, ())


def batch(base: int, count: int = 1, epoch: int = 1, time: int = 0) -> AppendedBatch:
    data = encode_batch(base, epoch, time or 1000 + base, [b"value"] * count)
    return AppendedBatch(base, base + count - 1, epoch, data)


class Bench:
    """A storage over files, its audit, and the log that a faultless core would have."""

    def __init__(self, path: Path) -> None:
        self.storage = FileStorage(path, LogOptions(segment_bytes=200))
        self.log = self.storage.open().log
        self.disk = DiskWriter(self.storage)
        self.directory = path / PARTITION_DIRECTORY
        self.audit = LogAudit(self.storage, Medium(PathDirectory(self.directory)), self.log)
        self.audit.recovered()
        self.seq = 0

    def write(self, *writes: object) -> list[Job]:
        self.seq += 1
        return [Write(self.seq, writes)]  # type: ignore[arg-type]

    def perform(self, jobs: Sequence[Job]) -> list[Result]:
        self.audit.performing(jobs)
        return self.perform_unseen(jobs)

    def perform_unseen(self, jobs: Sequence[Job]) -> list[Result]:
        """As the simulator: nothing looks before the jobs."""
        results = self.disk.perform(jobs)
        self.audit.performed(jobs, results)
        return results

    def append(self, *batches: AppendedBatch) -> None:
        self.perform(self.write(AppendBatches(batches)))

    def snapshot(self, offset: int, epoch: int = 1, time: int = 77) -> OffsetAndEpoch:
        job = WriteSnapshot(OffsetAndEpoch(offset, epoch), time, CONTROL, [b"state"], 5)
        self.audit.begun([job])
        self.audit.performed([job], [write_snapshot(self.storage, job)])
        return job.snapshot_id

    def begin_snapshot(self, offset: int) -> WriteSnapshot:
        job = WriteSnapshot(OffsetAndEpoch(offset, 1), 77, CONTROL, [b"state"], 5)
        self.audit.begun([job])
        return job


def core(start: int, end: int, epoch: int, *snapshots: tuple[int, int]) -> SimpleNamespace:
    return SimpleNamespace(
        log_start_offset=start,
        log_end=OffsetAndEpoch(end, epoch),
        snapshots=[OffsetAndEpoch(*one) for one in snapshots],
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def wrong(text: str) -> pytest.RaisesContext[LogBeliefError]:  # type: ignore[name-defined]
    return pytest.raises(LogBeliefError, match=text)


# -- the core ------------------------------------------------------------------------------------
def audit(*snapshots: tuple[int, int]) -> LogAudit:
    log = RecoveredLog(0, 4, ((1, 0),), tuple(OffsetAndEpoch(*one) for one in snapshots), None, ())
    return LogAudit(SimpleNamespace(), Medium(PathDirectory(Path())), log)


def test_a_core_that_follows_its_jobs() -> None:
    one = audit()
    jobs: list[Job] = [Write(1, (AppendBatches((batch(4, 2, epoch=3),)),))]
    one.stepped([], jobs, core(0, 6, 3))
    one.stepped([], [Write(2, (Truncate(4),))], core(0, 4, 1))
    one.stepped([SnapshotWritten(OffsetAndEpoch(2, 1), 9)], [], core(0, 4, 1, (2, 1)))
    one.stepped([], [Write(3, (Clean(OffsetAndEpoch(2, 1)),))], core(2, 4, 1, (2, 1)))
    one.stepped([Installed(4, OffsetAndEpoch(9, 5), CONTROL)], [], core(9, 9, 5, (9, 5)))


@pytest.mark.parametrize(
    ("believed", "said"),
    [
        (core(0, 4, 1, (2, 1), (3, 1)), "the core's log start: 0, and it must be 3"),
        (core(3, 5, 1, (3, 1)), "the core's log end: 5, and it must be 4"),
        (core(3, 4, 2, (3, 1)), "the core's last epoch: 2, and it must be 1"),
        (core(3, 4, 1, (2, 1), (3, 1)), "the core's snapshots: .*, and it must be "),
    ],
)
def test_a_core_whose_belief_is_stale_after_cleaning(believed: SimpleNamespace, said: str) -> None:
    jobs: list[Job] = [Write(1, (Clean(OffsetAndEpoch(3, 1)),))]
    with wrong(said):
        audit((2, 1), (3, 1)).stepped([], jobs, believed)


def test_a_core_that_keeps_a_replaced_snapshot() -> None:
    with wrong(r"the core's snapshots: \[\(2, 1\), \(9, 5\)\], and it must be \[\(9, 5\)\]"):
        audit((2, 1)).stepped(
            [Installed(1, OffsetAndEpoch(9, 5), CONTROL)], [], core(9, 9, 5, (2, 1), (9, 5))
        )


# -- the medium ----------------------------------------------------------------------------------
def test_a_storage_that_follows_its_jobs(bench: Bench) -> None:
    bench.append(*(batch(n) for n in range(6)))
    assert len(bench.storage.segments()) > 1
    bench.perform(bench.write(Truncate(3), AppendBatches((batch(3, epoch=2, time=500),))))
    oldest, newest = bench.snapshot(2), bench.snapshot(3)
    assert oldest < newest
    bench.perform(bench.write(Clean(newest)))
    assert isinstance(bench.perform([Survey()])[0], Surveyed)


def test_an_install_takes_the_place_of_the_log(bench: Bench, tmp_path: Path) -> None:
    bench.append(batch(0))
    (tmp_path / "other").mkdir()
    other = FileStorage(tmp_path / "other")
    other.open()
    job = WriteSnapshot(OffsetAndEpoch(8, 2), 77, CONTROL, [b"state"], 5)
    write_snapshot(other, job)
    data = other.read_snapshot(job.snapshot_id, 0, 10_000)
    chunk, install = SnapshotChunk(job.snapshot_id, 0, data), InstallSnapshot(job.snapshot_id)
    assert any(isinstance(r, Installed) for r in bench.perform(bench.write(chunk, install)))
    bench.append(batch(8, epoch=2))


def test_a_snapshot_may_appear_while_it_is_written(bench: Bench) -> None:
    bench.append(batch(0), batch(1))
    job = bench.begin_snapshot(2)
    bench.append(batch(2))  # it is not there yet
    write_snapshot(bench.storage, job)
    bench.append(batch(3))  # it is
    bench.append(batch(4))


def test_a_lost_snapshot_is_named(bench: Bench) -> None:
    bench.append(batch(0), batch(1))
    bench.snapshot(2)
    next(bench.directory.glob("*.checkpoint")).unlink()
    with wrong(r"the snapshots on the medium: \[\], and it must be \[\(2, 1\)\]"):
        bench.append(batch(2))


def test_a_snapshot_of_other_bytes_is_named(bench: Bench) -> None:
    bench.append(batch(0), batch(1))
    bench.snapshot(2)
    file = next(bench.directory.glob("*.checkpoint"))
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-1])
    with wrong("the storage's snapshots"):
        bench.append(batch(2))


def cut(file: Path, less: int) -> None:
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size - less)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut to nothing": lambda file: cut(file, file.stat().st_size),
    "cut in its last batch": lambda file: cut(file, 10),
    "garbage appended": lambda file: file.write_bytes(file.read_bytes() + b"x" * 30),
    "much garbage appended": lambda file: file.write_bytes(file.read_bytes() + b"x" * 300),
    "other bytes at its end": lambda file: file.write_bytes(file.read_bytes()[:-4] + b"xxxx"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_of_the_active_segment_is_named_before_a_write_hides_it(
    bench: Bench, damage: str
) -> None:
    bench.append(*(batch(n) for n in range(5)))
    active = max(bench.directory.glob("*.log"))
    DAMAGE[damage](active)
    with wrong(f"the log was changed by another program: {active.name}"):
        bench.append(batch(5))


@pytest.mark.parametrize("damage", sorted(DAMAGE.keys() - {"garbage appended"}))
def test_damage_of_the_active_segment_is_named_after_a_write_too(bench: Bench, damage: str) -> None:
    """Little garbage is overwritten: the write leaves no damage."""
    bench.append(*(batch(n) for n in range(5)))
    active = max(bench.directory.glob("*.log"))
    DAMAGE[damage](active)
    with wrong("was changed by another program|the bytes after the segment from 4 on"):
        bench.perform_unseen(bench.write(AppendBatches((batch(5),))))


def test_a_cut_log_is_named(bench: Bench) -> None:
    bench.append(*(batch(n) for n in range(3)))
    cut(bench.directory / f"{0:020d}.log", len(batch(1).data))
    with wrong("the segment from 0 on was changed by another program"):
        bench.append(batch(3))
    medium = Medium(PathDirectory(bench.directory))
    with wrong("the end of a segment that is followed: 1, and it must be 2"):
        LogAudit(bench.storage, medium, bench.log).recovered()


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("size", 1, "the storage's log size: "),
        ("start_offset", 1, "the storage's log start: 1, and it must be 2"),
    ],
)
def test_a_wrong_belief_of_the_storage_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, attribute: str, value: int, said: str
) -> None:
    bench.append(*(batch(n) for n in range(5)))
    newest = bench.snapshot(2)
    jobs = bench.write(Clean(newest))
    results = bench.disk.perform(jobs)
    monkeypatch.setattr(FileStorage, attribute, property(lambda self: value))
    with wrong(said):
        bench.audit.performed(jobs, results)


def test_a_wrong_survey_is_named(bench: Bench) -> None:
    bench.append(batch(0))
    with wrong("the surveyed log size: 1, and it must be "):
        bench.audit.performed([Survey()], [Surveyed(1, ())])


def test_lost_batches_at_the_end_are_named(bench: Bench) -> None:
    bench.append(batch(0))
    jobs = bench.write(AppendBatches((batch(1),)))
    results = bench.disk.perform(jobs)
    with (bench.directory / f"{0:020d}.log").open("r+b") as file:
        file.truncate(len(batch(0).data))
    with wrong("the end of the log on the medium: 1, and it must be 2"):
        bench.audit.performed(jobs, results)


def test_a_segment_that_was_not_removed_is_named(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.append(*(batch(n) for n in range(8)))
    monkeypatch.setattr(FileStorage, "start_offset", property(lambda self: 6))
    with wrong("the log starts at 6, and the segment from 0 on is not removed"):
        bench.audit.performed(bench.write(Clean(bench.snapshot(6))), [])


def test_a_log_that_begins_after_its_start_is_named(bench: Bench) -> None:
    bench.append(*(batch(n) for n in range(8)))
    bench.disk.perform(bench.write(Clean(bench.snapshot(6))))
    with wrong("the log starts at 0, its first segment at "):
        bench.audit.recovered()


def test_nothing_is_compared_after_a_failure(bench: Bench) -> None:
    bench.append(batch(0))
    for file in bench.directory.glob("*.log"):
        file.unlink()
    bench.audit.performed(bench.write(AppendBatches((batch(1),))), [DiskFailed("full")])
    bench.audit.performed(bench.write(), [])


def test_a_log_without_a_segment_is_named(bench: Bench) -> None:
    for file in bench.directory.glob("*.log"):
        file.unlink()
    with wrong("the log has no segment on the medium"):
        bench.audit.recovered()


# -- bytes ---------------------------------------------------------------------------------------
def test_a_segment_is_read_on_from_where_it_was_read() -> None:
    data = batch(5, 2, epoch=3, time=40).data + batch(7, epoch=4, time=30).data
    segment = SegmentOnMedium(5, 5)
    read_batches(segment, data[:-1])
    assert (segment.end_offset, segment.max_timestamp) == (7, 40)
    read_batches(segment, data[segment.size :])
    assert segment.end_offset == 8 and segment.size == len(data)
    assert (segment.first_timestamp, segment.max_timestamp) == (40, 40)
    assert segment.epochs == [(3, 5), (4, 7)]


def test_a_file_without_a_header_has_no_timestamp() -> None:
    assert header_timestamp(b"") is None
    assert header_timestamp(bytes(70)) is None
