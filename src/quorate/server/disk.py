"""The disk thread: performs jobs in order, everything that is queued under one sync.

The loop never waits for it: results come back through a callback on the loop.
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
from quorate.node.disk import Disk, write_snapshot
from quorate.node.jobs import (
    DiskFailed,
    Job,
    Result,
    SnapshotFailed,
    SnapshotWritten,
    WriteSnapshot,
)
from quorate.server.logs import LOG
from quorate.storage.api import Storage

R = TypeVar("R")

_PATIENCE_S: Final = 10.0
"""How long an ending node waits for a disk that does not answer."""
_LOOK_S: Final = 1.0
"""How often it is asked whether the directory is still there."""
_STRETCH_S: Final = 0.001
"""Of processor time, that a snapshot takes in a row."""
_REST: Final = 2
_LONGEST_REST_S: Final = 0.05
"""Sorting a large state is one long stretch, and over when this comes."""


class SnapshotAbandoned(QuorateError):
    """The node closes while a snapshot is being written; it is thrown away."""


class Pace:
    """How fast a thread writes a snapshot: nobody waits for it, and commits want the processor."""

    def __init__(
        self, closing: threading.Event, clock: Callable[[], float] = time.thread_time
    ) -> None:
        """closing: the node ends, and the work with it. clock: this thread's processor time, s."""
        self._closing = closing
        self._clock = clock
        self._rested_at = clock()

    def rest(self) -> None:
        """After some work rest for twice as long. Raises SnapshotAbandoned when the node closes."""
        worked = self._clock() - self._rested_at
        if worked >= _STRETCH_S:
            self._closing.wait(min(_REST * worked, _LONGEST_REST_S))
            self._rested_at = self._clock()
        if self._closing.is_set():
            raise SnapshotAbandoned("the node is closing")


class DiskThread:
    """Owner of a storage while it runs; `deliver` is called on the loop."""

    def __init__(
        self,
        storage: Storage,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Sequence[Result]], None],
        on_sync: Callable[[float], None] | None = None,
    ) -> None:
        """on_sync: told on the disk's thread how many seconds each sync of the log took."""
        self._storage = storage
        self._disk = Disk(storage, None if on_sync is None else _timed(storage.sync, on_sync))
        self._busy_since: float | None = None
        self._loop = loop
        self._deliver = deliver
        self._queue: SimpleQueue[list[Job] | None] = SimpleQueue()
        self._closing = threading.Event()
        self._worker = threading.Thread(target=self._run, name="quorate-disk", daemon=True)
        self._snapshots: list[threading.Thread] = []

    def start(self) -> None:
        self._worker.start()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs; those for the log keep their order."""
        ordered: list[Job] = []
        for job in jobs:
            if isinstance(job, WriteSnapshot):
                self._begin_snapshot(job)
            else:
                ordered.append(job)
        if ordered:
            self._queue.put(ordered)

    def close(self) -> bool:
        """Perform what is queued, abandon a snapshot in the making, end the threads.

        Blocks for as long as the disk takes, 10 s at most. False: it did not answer, and a thread
        still uses the storage.
        """
        self._closing.set()
        self._queue.put(None)
        threads = [self._worker, *self._snapshots]
        until = time.monotonic() + _PATIENCE_S
        for thread in threads:
            thread.join(max(until - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in threads)

    def _run(self) -> None:
        closing = False
        looked_at = time.monotonic()
        while not closing:
            taken = self._next()
            if time.monotonic() - looked_at >= _LOOK_S:
                self._report(self._disk.look())
                looked_at = time.monotonic()
            while not self._queue.empty():
                taken.append(self._queue.get())
            closing = None in taken
            jobs = [job for some in taken if some is not None for job in some]
            if jobs:
                self._report(self._perform(jobs))

    def _next(self) -> list[list[Job] | None]:
        """What was queued first; nothing when nothing was for a while."""
        try:
            return [self._queue.get(timeout=_LOOK_S)]
        except Empty:
            return []

    @property
    def busy_s(self) -> float:
        """For how long the present jobs have taken; infinite when the thread has ended."""
        if not self._worker.is_alive():
            return inf
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def _perform(self, jobs: Sequence[Job]) -> list[Result]:
        self._busy_since = time.monotonic()
        try:
            return self._disk.perform(jobs)
        except Exception as defect:
            # Whatever it was, nothing is known to be durable now.
            LOG.exception("The disk thread met a defect")
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
        self._report([attempt_snapshot(self._storage, job, Pace(self._closing).rest)])

    def _report(self, results: Sequence[Result]) -> None:
        if results and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, results)


async def off_the_loop(work: Callable[[], R]) -> R:
    """Do on a thread what waits for a disk. Who is cancelled meanwhile, however often, still sees
    it end."""
    done = asyncio.get_running_loop().run_in_executor(None, work)
    cancelled: asyncio.CancelledError | None = None
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        done.exception()  # seen: what it was is of no concern to who was told to stop
        raise cancelled
    return done.result()


def attempt_snapshot(
    storage: Storage, job: WriteSnapshot, pause: Callable[[], None] = lambda: None
) -> SnapshotWritten | SnapshotFailed:
    """As `write_snapshot`; a mistake of the state machine is logged and a failure too."""
    try:
        return write_snapshot(storage, job, pause)
    except Exception as defect:
        LOG.exception("The state could not be written to a snapshot")
        reason = f"unexpected {type(defect).__name__}: {defect}"
        return SnapshotFailed(job.snapshot_id, reason)


def _timed(sync: Callable[[], None], tell: Callable[[float], None]) -> Callable[[], None]:
    def timed() -> None:
        start = time.perf_counter()
        sync()
        tell(time.perf_counter() - start)

    return timed
