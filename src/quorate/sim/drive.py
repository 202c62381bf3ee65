"""The disk of a process: what it is asked for takes time, and what befalls it.

Jobs that came while it was busy are performed together, under one sync.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from quorate.base.ids import OffsetAndEpoch
from quorate.node.disk import Disk, write_snapshot
from quorate.node.jobs import Installed, InstallRefused, Job, Write, WriteSnapshot, Written
from quorate.raft.inputs import CleanTo
from quorate.raft.ready import InstallSnapshot, SnapshotChunk
from quorate.sim.account import Account
from quorate.sim.chance import Chance
from quorate.sim.observe import Violation
from quorate.sim.operations import Operations, WatchedStorage
from quorate.sim.seams import PowerCut, dark_after, untroubled
from quorate.storage.api import Recovered, StorageError
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk, ShortWrite

if TYPE_CHECKING:
    from quorate.sim.process import Process

_READ_US: Final = 40
_LOOK_US: Final = 1_000_000
_HEAD_AND_FOOT: Final = 250
"""Bytes of a snapshot beside its values, about."""
_SCARCE: Final = 10_000
"""With a retention of so many bytes the log is often cleaned as soon as a snapshot is written."""


class Drive:
    """Owned by its process; `memory` is the medium, `storage` what a life has open on it."""

    def __init__(self, process: Process) -> None:
        plan = process.world.plan
        self._process = process
        self._world = process.world
        self._plan = plan.disk
        disk = plan.disk
        self._options = LogOptions(
            disk.segment_bytes, disk.segment_ms, needs_vote=True, sync_every=disk.sync_every
        )
        self._short_luck = Chance(plan.seed, "short writes", process.id)
        self._snapshot_luck = Chance(plan.seed, "snapshots", process.id)
        self.memory = MemoryDisk(where=f"node-{process.id}")
        self.operations = Operations(self._interrupted)
        self.storage = WatchedStorage(self.memory, LogOptions(), self.operations)
        self._disk = Disk(self.storage)
        self.account = Account()
        self.sync_us, self.byte_us = plan.disk.sync_us, plan.disk.byte_us
        self._downloaded = 0
        """Bytes of the download that its disk was asked to write last."""
        self.full = False
        self._fail_in = 0
        self._fail_with: type[BaseException] = StorageError
        self._fail_for_ms: int | None = None
        self._down_ms: int | None = None
        self.expects_failure = False
        """Has it a known fault, so that its process may well end by itself?"""
        self._queue: list[Job] = []
        self._performing: list[Job] | None = None
        self._writing: list[WriteSnapshot] = []

    # -- a life -------------------------------------------------------------------------------
    def open(self) -> Recovered:
        """What a new life finds. Raises StorageError where it cannot be read."""
        self.expects_failure = self._process.damage is not None or self._fail_in > 0 or self.full
        self.storage = WatchedStorage(self.memory, self._options, self.operations)
        return self.storage.open()

    def begin(self, recovered: Recovered) -> None:
        """The life is fine: take its jobs."""
        self._disk = Disk(self.storage)
        self.account = Account(recovered)
        self._down_ms = None

    def stop(self, luck: Chance, *, whole: bool = False) -> None:
        """Interrupt what it is at, anywhere in the middle (`whole`: let it end first)."""
        jobs, self._performing, self._queue = self._performing, None, []
        snapshots, self._writing = self._writing, []
        for job in jobs or ():
            if isinstance(job, Write):
                self.account.interrupted(job)
        disk = Disk(self.storage)
        if jobs:
            self._interrupt(luck, whole, disk.perform, jobs)
        for snapshot in snapshots:
            self._interrupt(luck, whole, write_snapshot, self.storage, snapshot)
        self._set_watch()

    def _interrupt(
        self, luck: Chance, whole: bool, deed: Callable[..., object], *args: object
    ) -> None:
        if not whole:
            self.operations.trouble = dark_after(luck.skewed(0, 16))
        with suppress(PowerCut):
            deed(*args)

    def keep(self) -> None:
        """Only the process ended: the system still has all that was written."""
        self.memory.unlock()

    def cut_power(self, luck: Chance, *, torn: bool, reorder: bool = False) -> None:
        """What was not synced is lost, or survives in part."""
        self.memory = self.memory.crash(
            luck.random if torn else None, reorder=reorder, loose_names=self._plan.loose_names
        )
        self._set_watch()

    def become(self, copy: Mapping[str, bytes]) -> None:
        """All that it has is an old copy of itself."""
        self.memory = MemoryDisk(where=self.memory.where)
        for name, data in copy.items():
            self.memory.put(name, data)
        self._set_watch()
        self.account = Account()

    def replace(self) -> None:
        """By an empty one."""
        self.memory = MemoryDisk(where=self.memory.where)
        self.account = Account()

    # -- faults -------------------------------------------------------------------------------
    def fail(self, step: int, error: type[BaseException], down_ms: int | None = None) -> None:
        """The `step`-th change from now on raises this; a node that ends by it is down so long."""
        self._fail_in, self._fail_with, self._fail_for_ms = step, error, down_ms
        self.expects_failure = True
        self._set_watch()

    def take_down_ms(self) -> int | None:
        """For how long the node stays down that its disk has just failed; None: nobody said so."""
        down_ms, self._down_ms = self._down_ms, None
        return down_ms

    def fill(self, full: bool) -> None:
        self.full = full
        self._set_watch()

    def mend(self) -> None:
        """No more faults of its own."""
        self._fail_in, self.full = 0, False
        self.operations.mend()
        self.sync_us, self.byte_us = self._plan.sync_us, 0
        self._set_watch()

    def _set_watch(self) -> None:
        armed = self._fail_in > 0 or self.full
        self.operations.trouble = self._watch if armed else untroubled

    def _interrupted(self, operation: str) -> None:
        self._world.fault("interrupted", (self._process.id, operation))

    def _watch(self, deed: str, name: str) -> None:
        if self.full and deed in ("write", "create"):
            self.expects_failure = True
            said = f"cannot {deed} {name}: the disk is full"
            if deed == "write" and self._plan.short_writes:
                self._world.fault("short write", (self._process.id, name))
                raise ShortWrite(said, self._short_luck.random())
            raise StorageError(said)
        if self._fail_in > 0:
            self._fail_in -= 1
            if self._fail_in == 0:
                self._set_watch()
                self._down_ms = self._fail_for_ms
                raise self._fail_with(f"cannot {deed} {name}: the device failed")

    # -- jobs ---------------------------------------------------------------------------------
    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if isinstance(job, WriteSnapshot):
                self._writing.append(job)
                at = self._world.now_us + self._snapshot_time() + self._time_of(job)
                self._world.push(at, self._snapshot_done, self._process.turn, job)
            else:
                self._queue.append(job)
        if self._performing is None and self._queue:
            self._begin_jobs()

    def _begin_jobs(self) -> None:
        jobs, self._queue = self._queue, []
        self._performing = jobs
        took = self._sync_time() if _writes(jobs) else _READ_US
        if self.byte_us:
            took += self._install_time(jobs)
        self._world.push(self._world.now_us + took, self._jobs_done, self._process.turn)

    def _time_of(self, job: WriteSnapshot) -> int:
        """What its size adds."""
        return self.byte_us * (_HEAD_AND_FOOT + sum(map(len, job.values))) if self.byte_us else 0

    def _install_time(self, jobs: Sequence[Job]) -> int:
        """What the size adds of a download that takes the log's place. Now and then somebody
        wants the log cleaned meanwhile."""
        took = 0
        for job in jobs:
            if not isinstance(job, Write):
                continue
            for write in job.writes:
                if isinstance(write, SnapshotChunk):
                    self._downloaded = write.position + len(write.chunk)
                elif isinstance(write, InstallSnapshot):
                    took += self.byte_us * self._downloaded
        world, process = self._world, self._process
        if took > world.plan.timing.fetch_timeout_ms * 1000:
            world.fault("an install outlasts the fetch timeout", (process.id,))
        if took and self._snapshot_luck.happens(0.3):
            world.push(world.now_us + took // 2, self._clean, process.turn)
        return took

    def _clean(self, turn: int) -> None:
        world, process = self._world, self._process
        if process.lives(turn) and process.core.snapshots and not world.is_healing:
            world.fault("cleaned while it installs", (process.id,))
            process.post(CleanTo(process.core.snapshots[-1]))

    def _sync_time(self) -> int:
        plan, luck = self._plan, self._process.luck
        took = 1 + int(self.sync_us * (0.5 + luck.random()))
        if plan.slow and not self._world.is_healing and luck.random() < plan.slow:
            took += luck.between(0, plan.slow_ms * 1000)
        return took

    def _snapshot_time(self) -> int:
        """A few syncs; one in eight takes so long that much happens meanwhile."""
        luck = self._snapshot_luck
        took = int(self.sync_us * 4 * (0.5 + luck.random()))
        return 1 + took * (luck.between(1, 4000) if luck.happens(0.12) else 1)

    def _jobs_done(self, turn: int) -> None:
        world, process, plan = self._world, self._process, self._plan
        if not process.lives(turn):
            return
        if world.now_us < process.paused_us:
            world.push(self._next_look(), self._jobs_done, turn)
            return
        jobs = self._performing
        assert jobs is not None
        if plan.failure and not world.is_healing and process.luck.random() < plan.failure:
            world.fault("disk failed by chance", (process.id,))
            self.fail(process.luck.between(1, 4), StorageError)
        try:
            results = self._disk.perform(jobs)
        except PowerCut:
            world.faults.cut_power_inside(process)
            return
        except Exception as error:
            raise Violation("defect", f"disk of node {process.id}: {_words(error)}") from error
        self._performing = None
        done = 0
        for result in results:
            if isinstance(result, Written | Installed | InstallRefused):
                done = result.seq
                self.account.done(jobs, done, self._has_snapshot)
                world.durable(process, done)
        for job in jobs:
            if isinstance(job, Write) and job.seq > done:
                self.account.interrupted(job)
        if self._queue:
            self._begin_jobs()
        process.post(*results)

    def _next_look(self) -> int:
        """Whether the process stands still: that may end before it was to."""
        return min(self._process.paused_us, self._world.now_us + _LOOK_US)

    def _has_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        return self.storage.snapshot_size(snapshot_id) is not None

    def _snapshot_done(self, turn: int, job: WriteSnapshot) -> None:
        world, process = self._world, self._process
        if not process.lives(turn):
            return
        if world.now_us < process.paused_us:
            world.push(self._next_look(), self._snapshot_done, turn, job)
            return
        try:
            result = write_snapshot(self.storage, job)
        except PowerCut:
            world.faults.cut_power_inside(process)
            return
        except Exception as error:
            raise Violation("defect", f"snapshot of node {process.id}: {_words(error)}") from error
        self._writing.remove(job)
        self._down_ms = None  # who cannot write a snapshot goes on
        if self._plan.retention_bytes <= _SCARCE and self._snapshot_luck.happens(0.4):
            process.post(result, CleanTo(job.snapshot_id))
        else:
            process.post(result)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _writes(jobs: Sequence[Job]) -> bool:
    for job in jobs:  # noqa: SIM110 - compiled, a generator is an object of its own
        if isinstance(job, Write):
            return True
    return False
