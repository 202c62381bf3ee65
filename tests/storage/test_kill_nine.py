"""kill -9 at random moments: no acknowledged record is ever lost, no vote forgotten."""

from __future__ import annotations

import multiprocessing
import os
import random as chance
import signal
from pathlib import Path
from typing import Any

import pytest

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import iter_batches
from quorate.storage.disk_storage import FileStorage
from storage.builders import ALL, is_as_built, snapshot_bytes
from storage.killed_worker import OPTIONS, work
from time_budget import DAY, share

ROUNDS = share(200, quick=50, daily=80)
AT_MOST = 2000  # rounds, to meet a kill in the middle of something


@pytest.mark.slow
def test_no_acknowledged_record_is_lost_to_kill_nine(tmp_path):
    random = chance.Random(DAY)
    reported: dict[str, Any] = {"vote": 0, "end": 0, "snapshot": OffsetAndEpoch(0, 0)}
    rounds = repairs = 0
    while rounds < ROUNDS or (repairs == 0 and rounds < AT_MOST):
        rounds += 1
        reported.update(run_and_kill(tmp_path, random))
        storage = FileStorage(tmp_path, OPTIONS)
        found = storage.open()
        assert found.log.end_offset >= reported["end"]
        assert found.election is not None
        assert found.election.epoch >= reported["vote"]
        newest = reported["snapshot"]
        if newest != (0, 0):
            assert found.log.snapshots[-1] >= newest
            if found.log.snapshots[-1] == newest:
                assert storage.read_snapshot(newest, 0, ALL) == snapshot_bytes(newest)
        check_content(storage)
        repairs += len(found.notes)
        storage.close()
    assert reported["end"] > 5 * ROUNDS
    assert reported["vote"] > ROUNDS // 2
    assert repairs > 0, "no kill came in the middle of something: the test shows nothing"


def run_and_kill(directory: Path, random: chance.Random) -> list[tuple[str, int]]:
    """What a worker acknowledged before it was killed at a random moment."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["quorate.storage.disk_storage", "quorate.formats.snapshot"])
    reader, writer = context.Pipe(duplex=False)
    worker = context.Process(target=work, args=(directory, random.randrange(1 << 30), writer))
    worker.start()
    writer.close()
    acknowledged = [reader.recv() for _ in range(random.randrange(1, 16))]
    for _ in range(int(10 ** random.uniform(2, 5))):
        pass  # somewhere between two acknowledgements, on a fast machine as on a slow one
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    try:
        while True:
            acknowledged.append(reader.recv())
    except EOFError:
        return acknowledged


def check_content(storage: FileStorage) -> None:
    """Every record is there once, and says where it belongs."""
    end = storage.start_offset
    for view in iter_batches(storage.read(end, ALL, ALL)):
        assert view.base_offset == end
        assert is_as_built(view)
        end = view.end_offset
    assert end == storage.end_offset
