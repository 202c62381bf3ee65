"""The disk thread: performs jobs in order, with one sync for everything that is queued.

The event loop never waits for it: results arrive through a callback on the loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from math import inf
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.replica.disk_jobs import (
    DiskFailed,
    Job,
    Result,
    SnapshotFailed,
    SnapshotWritten,
    WriteSnapshot,
)
from quorate.replica.disk_worker import DiskWriter, write_snapshot
from quorate.server.logs import LOG
from quorate.storage.api import Storage

R = TypeVar("R")

_CLOSE_TIMEOUT_S: Final = 10.0
"""How long a stopping node waits for a disk that hangs."""
_CHECK_INTERVAL_S: Final = 1.0
"""How often to check that the log directory still exists."""
_WORK_SLICE_S: Final = 0.001
"""Processor time that a snapshot uses before it pauses."""
_PAUSE_FACTOR: Final = 2
"""Pause twice as long as the work took: a snapshot gets a third of one processor at most."""
_MAX_PAUSE_S: Final = 0.05
"""Sorting a large state cannot pause; a proportional pause after it would only delay the snapshot."""


class SnapshotAbandonedError(QuorateError):
    """The node stops while it writes a snapshot, which is discarded."""


class SnapshotThrottle:
    """Slows the writing of a snapshot down: commits need the processor more urgently."""

    def __init__(
        self, closing: threading.Event, clock: Callable[[], float] = time.thread_time
    ) -> None:
        """`closing` is set when the node stops. `clock`: this thread's processor time in s."""
        self._closing = closing
        self._clock = clock
        self._paused_at = clock()

    def pause(self) -> None:
        """Pause, if there was enough work since the last pause.

        Raises SnapshotAbandonedError when the node stops.
        """
        worked = self._clock() - self._paused_at
        if worked >= _WORK_SLICE_S:
            self._closing.wait(min(_PAUSE_FACTOR * worked, _MAX_PAUSE_S))
            self._paused_at = self._clock()
        if self._closing.is_set():
            raise SnapshotAbandonedError("the node is stopping")


class DiskThread:
    """Owns a storage while it runs. `deliver` gets the results, on the loop."""

    def __init__(
        self,
        storage: Storage,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Sequence[Result]], None],
        on_sync: Callable[[float], None] | None = None,
    ) -> None:
        """`on_sync` gets the duration of each sync of the log in s, on the disk thread."""
        self._storage = storage
        self._disk = DiskWriter(storage, None if on_sync is None else _timed(storage.sync, on_sync))
        self._busy_since: float | None = None
        self._loop = loop
        self._deliver = deliver
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._closing = threading.Event()
        self._worker = threading.Thread(target=self._run, name="quorate-disk", daemon=True)
        self._snapshots: list[threading.Thread] = []
        self.on_performing: Callable[[Sequence[Job]], None] | None = None
        """Called on the disk thread before jobs; an exception stops the node. Set it before `start`."""
        self.on_performed: Callable[[Sequence[Job], Sequence[Result]], None] | None = None
        """Called on the disk thread after jobs; an exception stops the node. Set it before `start`."""

    def start(self) -> None:
        """Start the thread; jobs that were submitted before wait for it."""
        self._worker.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs. Jobs for the log keep their order; a snapshot gets a thread of its own."""
        ordered: list[Job] = []
        for job in jobs:
            if isinstance(job, WriteSnapshot):
                self._begin_snapshot(job)
            else:
                ordered.append(job)
        if ordered:
            self._queue.put(ordered)

    def close(self) -> bool:
        """Perform what is queued, abandon unfinished snapshots and end the threads.

        Blocks for 10 s at most. Returns False when the disk hangs: then a thread still uses the
        storage.
        """
        self._closing.set()
        self._queue.put(None)
        threads = [self._worker, *self._snapshots]
        until = time.monotonic() + _CLOSE_TIMEOUT_S
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in threads)

    def _run(self) -> None:
        closing = False
        checked_at = time.monotonic()
        while not closing:
            # 1. Wait for jobs, or for the time of the next check.
            taken = self._next()
            # 2. A removed or replaced directory does not fail open files: look, or a node would continue
            #    acknowledging records that no restart can find.
            if time.monotonic() - checked_at >= _CHECK_INTERVAL_S:
                self._report(self._disk.look())
                checked_at = time.monotonic()
            # 3. Group commit: whatever was queued meanwhile shares one sync. None marks the end.
            while not self._queue.empty():
                taken.append(self._queue.get())
            closing = None in taken
            jobs = [job for some in taken if some is not None for job in some]
            # 4. Perform them and report the results to the loop.
            if jobs:
                self._report(self._perform(jobs))

    def _next(self) -> list[list[Job] | None]:
        """The first queued jobs; an empty list when none came in time."""
        try:
            return [self._queue.get(timeout=_CHECK_INTERVAL_S)]
        except Empty:
            return []

    @property
    def busy_s(self) -> float:
        """How long the current jobs have taken, in s; infinite when the thread has ended."""
        if not self._worker.is_alive():
            return inf
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def _perform(self, jobs: Sequence[Job]) -> list[Result]:
        self._busy_since = time.monotonic()
        try:
            if self.on_performing is not None:
                self.on_performing(jobs)
            results = self._disk.perform(jobs)
            if self.on_performed is not None:
                self.on_performed(jobs, results)
            return results
        except Exception as defect:
            # After an unexpected error nothing is known to be durable: the node must stop.
            LOG.exception("Internal error in the disk thread")
            return [DiskFailed(f"internal error: {type(defect).__name__}: {defect}")]
        finally:
            self._busy_since = None

    def _begin_snapshot(self, job: WriteSnapshot) -> None:
        self._snapshots = [thread for thread in self._snapshots if thread.is_alive()]
        thread = threading.Thread(
            target=self._write_snapshot, args=(job,), name="quorate-snapshot", daemon=True
        )
        self._snapshots.append(thread)
        thread.start()

    def _write_snapshot(self, job: WriteSnapshot) -> None:
        self._report([attempt_snapshot(self._storage, job, SnapshotThrottle(self._closing).pause)])

    def _report(self, results: Sequence[Result]) -> None:
        if results and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, results)


async def run_in_thread(work: Callable[[], R]) -> R:
    """Run blocking work on a thread and return its result.

    A cancelled caller still waits for the end of the work, however often it is cancelled: the work
    uses files that the caller releases next.
    """
    done = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        done.exception()  # mark it as retrieved: a cancelled caller does not need it
        raise cancelled
    return done.result()


def attempt_snapshot(
    storage: Storage, job: WriteSnapshot, pause: Callable[[], None] = lambda: None
) -> SnapshotWritten | SnapshotFailed:
    """Do as `write_snapshot`, but return SnapshotFailed for an exception of the state machine."""
    try:
        return write_snapshot(storage, job, pause)
    except Exception as defect:
        LOG.exception("The state could not be written to a snapshot")
        reason = f"unexpected {type(defect).__name__}: {defect}"
        return SnapshotFailed(job.snapshot_id, reason)


def _timed(sync: Callable[[], None], observe: Callable[[float], None]) -> Callable[[], None]:
    def timed() -> None:
        start = time.perf_counter()
        sync()
        observe(time.perf_counter() - start)

    return timed
