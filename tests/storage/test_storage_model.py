"""Random operations and crashes, compared with a reference model: a list of batches."""

from __future__ import annotations

import random as chance
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.raft.values import ElectionState
from quorate.storage.api import AppendedBatch, Recovered
from quorate.storage.disk import OsDisk
from quorate.storage.disk_storage import DiskStorage
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryStorage
from storage.builders import (
    ALL,
    data,
    download,
    joined,
    leader_change,
    read_all,
    snapshot_bytes,
    write_snapshot,
)
from time_budget import examples

OPTIONS = LogOptions(segment_bytes=700, segment_ms=40, index_interval=150)


class StorageModel(RuleBasedStateMachine):
    """Over memory; FileModel runs the same over files."""

    storage: DiskStorage

    def __init__(self) -> None:
        super().__init__()
        self.log: list[AppendedBatch] = []
        self.start = 0
        self.base = 0
        """Where the log began when it was last reset."""
        self.epoch = 1
        self.durable_end = 0
        self.snapshots: list[OffsetAndEpoch] = []
        self.election: ElectionState | None = None

    def make(self) -> DiskStorage:
        return MemoryStorage(options=OPTIONS)

    def after_crash(self, seed: int) -> DiskStorage:
        assert isinstance(self.storage, MemoryStorage)
        return self.storage.crash(chance.Random(seed).random if seed else None)

    def after_close(self) -> DiskStorage:
        assert isinstance(self.storage, MemoryStorage)
        return MemoryStorage(self.storage.disk, OPTIONS)

    @initialize()
    def begin(self) -> None:
        self.storage = self.make()
        self.storage.open()

    @property
    def end(self) -> int:
        return self.log[-1].last_offset + 1 if self.log else self.base

    @property
    def newest(self) -> int:
        return self.snapshots[-1].offset if self.snapshots else 0

    # -- the rules ---------------------------------------------------------------------------
    @rule(
        sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 300)), max_size=5),
        new_epoch=st.booleans(),
    )
    def append(self, sizes: list[tuple[int, int]], new_epoch: bool) -> None:
        fresh = []
        end = self.end
        if new_epoch or not self.log:
            self.epoch += 1
            fresh.append(leader_change(end, self.epoch))
            end += 1
        for count, size in sizes:
            fresh.append(data(end, self.epoch, count, size + 10))
            end += count
        self.storage.append(fresh)
        self.log += fresh

    @rule()
    def sync(self) -> None:
        self.storage.sync()
        self.durable_end = self.end

    @precondition(lambda self: self.end > max(self.newest, self.start))
    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        low = max(self.newest, self.start)
        to = low + int(where * (self.end - low))
        self.storage.truncate(to)
        self.log = [batch for batch in self.log if batch.last_offset < to]
        self.durable_end = min(self.durable_end, self.end)
        self.epoch += 1

    @rule(epoch=st.integers(0, 99), version=st.integers(0, 1))
    def vote(self, epoch: int, version: int) -> None:
        self.election = ElectionState(epoch, -1, ReplicaKey(epoch))
        self.storage.save_election(self.election, version, (1, 2))

    @precondition(lambda self: bool(self.log) and self.end > self.newest)
    @rule(where=st.floats(0, 1))
    def own_snapshot(self, where: float) -> None:
        self.sync()
        later = [batch for batch in self.log if batch.last_offset >= max(self.newest, self.start)]
        batch = later[int(where * (len(later) - 1))]
        id = OffsetAndEpoch(batch.last_offset + 1, batch.epoch)
        write_snapshot(self.storage, id)
        self.snapshots.append(id)

    @precondition(lambda self: len(self.snapshots) > 0)
    @rule(where=st.floats(0, 1))
    def clean(self, where: float) -> None:
        index = int(where * (len(self.snapshots) - 1))
        self.storage.clean(self.snapshots[index])
        self.start = max(self.start, self.snapshots[index].offset)
        self.snapshots = self.snapshots[index:]

    @rule(ahead=st.integers(1, 50), step=st.integers(30, 500))
    def install(self, ahead: int, step: int) -> None:
        self.epoch += 1
        id = OffsetAndEpoch(self.end + ahead, self.epoch)
        download(self.storage, id, snapshot_bytes(id), step)
        self.storage.install_snapshot(id)
        self.log, self.snapshots = [], [id]
        self.base = self.start = self.durable_end = id.offset

    @rule(where=st.floats(0, 1), span=st.integers(0, 60), max_bytes=st.integers(0, 2000))
    def read(self, where: float, span: int, max_bytes: int) -> None:
        offset = self.start + int(where * (self.end - self.start))
        end = offset + span
        expected = b""
        for batch in self.log:
            if batch.last_offset < offset:
                continue
            fits = not expected or len(expected) + len(batch.data) <= max_bytes
            if batch.last_offset >= end or not fits:
                break
            expected += batch.data
        assert self.storage.read(offset, end, max_bytes) == expected

    @rule()
    def reopen(self) -> None:
        self.storage.close()
        self.storage = self.after_close()
        self.check_recovered(self.storage.open(), self.end)

    @rule(seed=st.integers(0, 1000))
    def crash(self, seed: int) -> None:
        self.storage = self.after_crash(seed)
        found = self.storage.open()
        self.check_recovered(found, self.durable_end)
        self.log = [batch for batch in self.log if batch.last_offset < found.log.end_offset]
        self.durable_end = self.end

    def check_recovered(self, found: Recovered, at_least: int) -> None:
        log = found.log
        assert at_least <= log.end_offset <= self.end
        assert log.start_offset <= self.start, "of the first segment that is kept"
        assert log.snapshots == tuple(self.snapshots)
        assert found.election == self.election
        self.start = max(log.start_offset, self.base)
        self.log = [batch for batch in self.log if batch.last_offset < log.end_offset]
        self.snapshots = list(log.snapshots)
        kept = [batch for batch in self.log if batch.base_offset >= log.start_offset]
        assert log.batch_ends == tuple(batch.last_offset + 1 for batch in kept)
        starts: dict[int, int] = {}
        for batch in kept:
            starts.setdefault(batch.epoch, batch.base_offset)
        assert dict(log.epochs) == starts

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "storage"):
            return
        assert (self.storage.start_offset, self.storage.end_offset) == (self.start, self.end)
        kept = [batch for batch in self.log if batch.base_offset >= self.start]
        assert read_all(self.storage) == joined(kept)
        assert [info.id for info in self.storage.snapshots()] == self.snapshots
        assert self.storage.read(self.end, ALL, ALL) == b""


class FileModel(StorageModel):
    """Over real files; a crash is the death of the process, which loses nothing it wrote."""

    def make(self) -> DiskStorage:
        self.home = tempfile.TemporaryDirectory()
        return self.after_close()

    def after_close(self) -> DiskStorage:
        # Syncs are left out for speed: their place is tested in test_disk, their effect in memory.
        self.disk = OsDisk(Path(self.home.name), lambda fd: None, lambda fd: None)
        return DiskStorage(self.disk, OPTIONS)

    def after_crash(self, seed: int) -> DiskStorage:
        self.disk.unlock()
        return self.after_close()

    def teardown(self) -> None:
        if hasattr(self, "home"):
            self.storage.close()
            self.home.cleanup()


QUICK = settings(
    max_examples=examples(40),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("machine", [StorageModel, FileModel])
def test_random_operations_agree_with_the_reference_model(machine):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(machine, settings=QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [StorageModel, FileModel])
def test_many_random_operations_agree_with_the_reference_model(machine):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=150))
