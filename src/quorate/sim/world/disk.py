"""The simulated disk of a process: the duration of its jobs, and its faults.

Jobs that arrive while it is busy are performed together, with one sync.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.raft.inputs import CleanTo
from quorate.raft.ready import InstallSnapshot, SnapshotChunk
from quorate.replica.disk_jobs import Installed, InstallRefused, Job, Write, WriteSnapshot, Written
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.replica.replica import Input
from quorate.sim.prng import Prng
from quorate.sim.world.crash_points import PowerCutError, dark_after, untroubled
from quorate.sim.world.disk_operations import Operations, WatchedStorage
from quorate.sim.world.dispatch import Dispatcher
from quorate.sim.world.durable_state import DurableState
from quorate.sim.world.observable import SimulatedNode
from quorate.sim.world.observer import ViolationError
from quorate.storage.api import Recovered, StorageError
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk, ShortWriteError

_READ_US: Final = 40
_LOOK_US: Final = 1_000_000
_HEAD_AND_FOOT: Final = 250
"""Approximate bytes of a snapshot beside its values."""
_SCARCE: Final = 10_000
"""A retention of at most this size often removes segments right after a snapshot."""


class DiskOwner(SimulatedNode):
    """The process that owns a disk."""

    def __init__(self, node_id: int, directory_id: Uuid, rng: Prng) -> None:
        super().__init__(node_id, directory_id)
        self.rng = rng
        self.paused_us = 0
        """The process is paused until this time."""

    def post(self, *items: Input) -> None:
        """Add inputs that arrived together. The next step takes them."""
        raise NotImplementedError

    def power_cut(self) -> None:
        """The power fails within a disk operation."""
        raise NotImplementedError


class SimulatedDisk:
    """Owned by its process; `memory` is the medium, `storage` is what an incarnation has open."""

    def __init__(self, world: Dispatcher, process: DiskOwner) -> None:
        plan = world.plan
        self._process = process
        self._world = world
        self._plan = plan.disk
        disk = plan.disk
        self._options = LogOptions(
            disk.segment_bytes,
            disk.segment_ms,
            disk.index_interval,
            needs_vote=True,
            node_id=process.id,
            sync_every=disk.sync_every,
        )
        self._short_rng = Prng(plan.seed, "short writes", process.id)
        self._snapshot_rng = Prng(plan.seed, "snapshots", process.id)
        self.memory = MemoryDisk(where=f"node-{process.id}")
        self.operations = Operations(self._interrupted)
        self.storage = WatchedStorage(self.memory, LogOptions(), self.operations)
        self._disk = DiskWriter(self.storage)
        self.durable_state = DurableState()
        self.sync_us, self.byte_us = plan.disk.sync_us, plan.disk.byte_us
        self._downloaded = 0
        """Bytes of the newest snapshot download."""
        self.full = False
        self._fail_in = 0
        self._fail_with: type[BaseException] = StorageError
        self._fail_for_ms: int | None = None
        self._down_ms: int | None = None
        self.expects_failure = False
        """Whether the disk has a known fault, so that its process may end by itself."""
        self._queue: list[Job] = []
        self._performing: list[Job] | None = None
        self._writing: list[WriteSnapshot] = []

    # -- an incarnation -----------------------------------------------------------------------
    def open(self) -> Recovered:
        """Recover the disk for a new incarnation. Raises StorageError where that fails."""
        self.expects_failure = self._process.damage is not None or self._fail_in > 0 or self.full
        self.storage = WatchedStorage(self.memory, self._options, self.operations)
        return self.storage.open()

    def begin(self, recovered: Recovered) -> None:
        """Accept the jobs of the recovered incarnation."""
        self._disk = DiskWriter(self.storage)
        self.durable_state = DurableState(recovered)
        self._down_ms = None

    def stop(self, rng: Prng, *, whole: bool = False) -> None:
        """Interrupt the jobs in progress at a random step; with `whole`, complete them first."""
        jobs, self._performing, self._queue = self._performing, None, []
        snapshots, self._writing = self._writing, []
        for job in jobs or ():
            if isinstance(job, Write):
                self.durable_state.interrupted(job)
        disk = DiskWriter(self.storage)
        if jobs:
            self._interrupt(rng, whole, disk.perform, jobs)
        for snapshot in snapshots:
            self._interrupt(rng, whole, write_snapshot, self.storage, snapshot)
        self._set_watch()

    def _interrupt(
        self, rng: Prng, whole: bool, work: Callable[..., object], *args: object
    ) -> None:
        if not whole:
            self.operations.trouble = dark_after(rng.skewed(0, 16))
        with suppress(PowerCutError):
            work(*args)

    def keep(self) -> None:
        """Only the process ended: the page cache still has all written data."""
        self.memory.unlock()

    def cut_power(self, rng: Prng, *, torn: bool, reorder: bool = False) -> None:
        """Lose the unsynced data; with `torn`, a part of it may survive."""
        self.memory = self.memory.crash(
            rng.random if torn else None, reorder=reorder, loose_names=self._plan.loose_names
        )
        self._set_watch()

    def become(self, copy: Mapping[str, bytes]) -> None:
        """Replace the contents by an older copy."""
        self.memory = MemoryDisk(where=self.memory.where)
        for name, data in copy.items():
            self.memory.put(name, data)
        self._set_watch()
        self.durable_state = DurableState()

    def replace(self) -> None:
        """Replace the disk by an empty one."""
        self.memory = MemoryDisk(where=self.memory.where)
        self.durable_state = DurableState()

    # -- faults -------------------------------------------------------------------------------
    def fail(self, step: int, error: type[BaseException], down_ms: int | None = None) -> None:
        """The `step`-th change from now on raises `error`. A node that ends by it stays down for
        `down_ms`."""
        self._fail_in, self._fail_with, self._fail_for_ms = step, error, down_ms
        self.expects_failure = True
        self._set_watch()

    def take_down_ms(self) -> int | None:
        """The downtime that the fault event set for the node of this failed disk; None: unset."""
        down_ms, self._down_ms = self._down_ms, None
        return down_ms

    def fill(self, full: bool) -> None:
        self.full = full
        self._set_watch()

    def repair(self) -> None:
        """End all faults of the disk."""
        self._fail_in, self.full = 0, False
        self.operations.repair()
        self.sync_us, self.byte_us = self._plan.sync_us, 0
        self._set_watch()

    def _set_watch(self) -> None:
        armed = self._fail_in > 0 or self.full
        self.operations.trouble = self._watch if armed else untroubled

    def _interrupted(self, operation: str) -> None:
        self._world.fault("interrupted", (self._process.id, operation))

    def _watch(self, action: str, name: str) -> None:
        if self.full and action in ("write", "create"):
            self.expects_failure = True
            said = f"cannot {action} {name}: the disk is full"
            if action == "write" and self._plan.short_writes:
                self._world.fault("short write", (self._process.id, name))
                raise ShortWriteError(said, self._short_rng.random())
            raise StorageError(said)
        if self._fail_in > 0:
            self._fail_in -= 1
            if self._fail_in == 0:
                self._set_watch()
                self._down_ms = self._fail_for_ms
                raise self._fail_with(f"cannot {action} {name}: the device failed")

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
        """The duration that depends on the size of the snapshot."""
        return self.byte_us * (_HEAD_AND_FOOT + sum(map(len, job.values))) if self.byte_us else 0

    def _install_time(self, jobs: Sequence[Job]) -> int:
        """The duration of an install, which depends on the size of the download. In some cases a
        retention survey arrives meanwhile."""
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
        if took and self._snapshot_rng.happens(0.3):
            world.push(world.now_us + took // 2, self._clean, process.turn)
        return took

    def _clean(self, turn: int) -> None:
        world, process = self._world, self._process
        if process.is_running(turn) and process.core.snapshots and not world.in_liveness_phase:
            world.fault("cleaned while it installs", (process.id,))
            process.post(CleanTo(process.core.snapshots[-1]))

    def _sync_time(self) -> int:
        plan, rng = self._plan, self._process.rng
        took = 1 + int(self.sync_us * (0.5 + rng.random()))
        if plan.slow and not self._world.in_liveness_phase and rng.random() < plan.slow:
            took += rng.between(0, plan.slow_ms * 1000)
        return took

    def _snapshot_time(self) -> int:
        """A few syncs. One snapshot in eight takes so long that many events happen meanwhile."""
        rng = self._snapshot_rng
        took = int(self.sync_us * 4 * (0.5 + rng.random()))
        return 1 + took * (rng.between(1, 4000) if rng.happens(0.12) else 1)

    def _jobs_done(self, turn: int) -> None:
        world, process, plan = self._world, self._process, self._plan
        if not process.is_running(turn):
            return
        if world.now_us < process.paused_us:
            world.push(self._next_look(), self._jobs_done, turn)
            return
        jobs = self._performing
        assert jobs is not None
        if plan.failure and not world.in_liveness_phase and process.rng.random() < plan.failure:
            world.fault("disk failed at random", (process.id,))
            self.fail(process.rng.between(1, 4), StorageError)
        try:
            results = self._disk.perform(jobs)
        except PowerCutError:
            process.power_cut()
            return
        except Exception as error:
            raise ViolationError("defect", f"disk of node {process.id}: {_words(error)}") from error
        self._performing = None
        done = 0
        for result in results:
            if isinstance(result, Written | Installed | InstallRefused):
                done = result.seq
                self.durable_state.done(jobs, done, self._has_snapshot)
                world.durable(process, done)
        for job in jobs:
            if isinstance(job, Write) and job.seq > done:
                self.durable_state.interrupted(job)
        world.performed(process, jobs, results)
        if self._queue:
            self._begin_jobs()
        process.post(*results)

    def _next_look(self) -> int:
        """The time of the next look at whether the process is paused. A pause may end early."""
        return min(self._process.paused_us, self._world.now_us + _LOOK_US)

    def _has_snapshot(self, snapshot_id: OffsetAndEpoch) -> bool:
        return self.storage.snapshot_size(snapshot_id) is not None

    def _snapshot_done(self, turn: int, job: WriteSnapshot) -> None:
        world, process = self._world, self._process
        if not process.is_running(turn):
            return
        if world.now_us < process.paused_us:
            world.push(self._next_look(), self._snapshot_done, turn, job)
            return
        try:
            result = write_snapshot(self.storage, job)
        except PowerCutError:
            process.power_cut()
            return
        except Exception as error:
            raise ViolationError(
                "defect", f"snapshot of node {process.id}: {_words(error)}"
            ) from error
        self._writing.remove(job)
        world.performed(process, [job], [result])
        self._down_ms = None  # a failed snapshot does not end the process
        if self._plan.retention_bytes <= _SCARCE and self._snapshot_rng.happens(0.4):
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
