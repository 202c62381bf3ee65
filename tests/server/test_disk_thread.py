"""The disk thread: results arrive on the loop in order, and no error is lost."""

import asyncio
import shutil
import threading
from typing import Any

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import encode_batch
from quorate.raft.values import ControlState
from quorate.replica.disk_jobs import (
    AppendBatches,
    DiskFailed,
    SnapshotFailed,
    SnapshotWritten,
    Survey,
    Write,
    WriteSnapshot,
    Written,
)
from quorate.server.disk import DiskThread, SnapshotAbandonedError, SnapshotThrottle, run_in_thread
from quorate.storage.api import AppendedBatch
from quorate.storage.disk_storage import FileStorage
from quorate.storage.memory import MemoryDisk, MemoryStorage


def append(seq):
    data = encode_batch(seq, 1, 1000, [b"value"])
    return Write(seq, (AppendBatches((AppendedBatch(seq, seq, 1, data),)),))


def snapshot(values):
    return WriteSnapshot(OffsetAndEpoch(5, 1), 0, ControlState(0, None), values, 0)


class Bench:
    """A disk thread over memory; `gate` holds back its syncs."""

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.syncs = 0
        self.sync_seconds = []
        self.results = []
        self.threads = set()

    async def __aenter__(self):
        self.loop = asyncio.get_running_loop()
        self.storage = MemoryStorage(MemoryDisk(self.watch))
        self.storage.open()
        self.syncs = 0
        self.disk = DiskThread(self.storage, self.loop, self.deliver, self.sync_seconds.append)
        self.disk.start()
        return self

    async def __aexit__(self, *_):
        self.gate.set()
        self.disk.close()

    def watch(self, operation, name):
        if operation == "sync" and name.endswith(".log"):
            self.gate.wait()
            self.syncs += 1

    def deliver(self, results):
        self.threads.add(threading.current_thread())
        self.results += results

    async def wait_for(self, kind):
        async with asyncio.timeout(5):
            while not any(isinstance(result, kind) for result in self.results):
                await asyncio.sleep(0.001)


def test_jobs_queued_during_a_sync_share_the_next_one():
    async def run():
        async with Bench() as bench:
            bench.gate.clear()
            bench.disk.submit([append(0)])
            for seq in range(1, 50):
                bench.disk.submit([append(seq)])
            bench.gate.set()
            async with asyncio.timeout(5):
                while Written(49) not in bench.results:
                    await asyncio.sleep(0.001)
            assert bench.syncs <= 3
            assert [r.seq for r in bench.results] == sorted(r.seq for r in bench.results)
            assert bench.threads == {threading.main_thread()}

    asyncio.run(run())


def test_the_loop_goes_on_while_the_disk_hangs():
    async def run():
        async with Bench() as bench:
            bench.gate.clear()
            bench.disk.submit([append(0)])
            turns = 0
            for _ in range(100):
                await asyncio.sleep(0)
                turns += 1
            assert turns == 100 and bench.results == []

    asyncio.run(run())


def test_a_removed_directory_is_a_fault_even_without_writes(tmp_path, monkeypatch):
    monkeypatch.setattr("quorate.server.disk._CHECK_INTERVAL_S", 0.01)
    (tmp_path / "data").mkdir()

    async def run():
        storage = FileStorage(tmp_path / "data")
        events: asyncio.Queue[Any] = asyncio.Queue()
        storage.open()
        disk = DiskThread(storage, asyncio.get_running_loop(), events.put_nowait)
        disk.start()
        shutil.rmtree(tmp_path / "data")
        async with asyncio.timeout(5):
            [failed] = await events.get()
        assert isinstance(failed, DiskFailed) and "someone removed it" in failed.reason
        disk.close()
        storage.close()

    asyncio.run(run())


def test_a_hanging_disk_is_busy_and_an_idle_one_is_not():
    async def run():
        async with Bench() as bench:
            assert bench.disk.busy_s == 0
            bench.gate.clear()
            bench.disk.submit([append(0)])
            async with asyncio.timeout(5):
                while bench.disk.busy_s < 0.05:
                    await asyncio.sleep(0.001)
            bench.gate.set()
            await bench.wait_for(Written)
            async with asyncio.timeout(5):
                while bench.disk.busy_s:
                    await asyncio.sleep(0.001)
            assert len(bench.sync_seconds) == 1 and bench.sync_seconds[0] >= 0.05
            bench.disk.close()
            assert bench.disk.busy_s == float("inf")

    asyncio.run(run())


def test_closing_performs_what_is_queued():
    async def run():
        async with Bench() as bench:
            for seq in range(10):
                bench.disk.submit([append(seq)])
            bench.disk.close()
            assert bench.storage.end_offset == 10

    asyncio.run(run())


def test_writing_a_snapshot_pauses_twice_as_long_as_it_works():
    class Closing(threading.Event):
        def wait(self, timeout=None):
            pauses.append(timeout)
            return self.is_set()

    pauses: list[float] = []
    worked = [0.0]
    closing = Closing()
    pace = SnapshotThrottle(closing, lambda: worked[0])
    for work in (0.0004, 0.0004, 0.0004, 0.004, 3.0):
        worked[0] += work
        pace.pause()
    assert pauses == pytest.approx([0.0024, 0.008, 0.05])
    closing.set()
    with pytest.raises(SnapshotAbandonedError, match="stopping"):
        pace.pause()


def test_a_snapshot_is_written_beside_the_log():
    async def run():
        async with Bench() as bench:
            half = threading.Event()

            def values():
                yield b"one"
                half.wait()
                yield b"two"

            bench.disk.submit([snapshot(values()), append(0)])
            await bench.wait_for(Written)
            half.set()
            await bench.wait_for(SnapshotWritten)

    asyncio.run(run())


def test_closing_abandons_an_unfinished_snapshot():
    async def run():
        async with Bench() as bench:

            def values():
                while True:
                    yield b"and so on"

            bench.disk.submit([snapshot(values())])
            bench.disk.close()
            assert bench.storage.snapshots() == ()

    asyncio.run(run())


def test_an_error_in_a_snapshot_is_reported(caplog):
    async def run():
        async with Bench() as bench:
            bench.disk.submit([snapshot(iter([b"one", 2]))])
            await bench.wait_for(SnapshotFailed)
            assert bench.results[0].reason.startswith("unexpected TypeError: ")
            assert not [name for name in bench.storage.disk.names() if name.endswith(".part")]

    asyncio.run(run())
    assert any(record.exc_info for record in caplog.records)


def test_an_error_in_the_storage_is_a_failed_disk(caplog):
    async def run():
        async with Bench() as bench:
            bench.disk.submit([append(7)])  # not the next one
            await bench.wait_for(DiskFailed)
            assert bench.results[0].reason.startswith("internal error: InvariantError: ")
            bench.disk.submit([append(0), Survey()])
            bench.disk.close()
            assert bench.storage.end_offset == 0 and len(bench.results) == 1

    asyncio.run(run())
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_cancelled_caller_waits_for_the_end_of_the_work(times):
    began, may_end = threading.Event(), threading.Event()
    ended = []

    def work():
        began.set()
        may_end.wait()
        ended.append(True)

    async def run():
        waiting = asyncio.ensure_future(run_in_thread(work))
        try:
            await asyncio.to_thread(began.wait)
            for _ in range(times):
                waiting.cancel()
                for _ in range(5):
                    await asyncio.sleep(0)
                assert not waiting.done()
        finally:
            may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended

    asyncio.run(run())
