"""The process that test_kill_nine kills. A module of its own, so that a fork server can hold it."""

from __future__ import annotations

import random as chance
from multiprocessing.connection import Connection
from pathlib import Path

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.values import ElectionState
from quorate.storage.disk_storage import FileStorage
from quorate.storage.log import LogOptions
from storage.builders import data, leader_change, write_snapshot

OPTIONS = LogOptions(segment_bytes=20_000, index_interval=1000)


def work(directory: Path, seed: int, pipe: Connection) -> None:
    """Append, sync, vote, snapshot and clean for ever; say what is durable only when it is."""
    random = chance.Random(seed)
    storage = FileStorage(directory, OPTIONS)
    found = storage.open()
    epoch = (found.election.epoch if found.election else 0) + 1
    storage.save_election(ElectionState(epoch, 1, None), 1, ())
    pipe.send(("vote", epoch))
    storage.append([leader_change(storage.end_offset, epoch)])
    while True:
        end = storage.end_offset
        sizes = [random.randrange(10, 900) for _ in range(random.randrange(1, 12))]
        storage.append([data(end + i, epoch, 1, size) for i, size in enumerate(sizes)])
        storage.sync()
        pipe.send(("end", storage.end_offset))
        if random.random() < 0.05:
            snapshot_id = OffsetAndEpoch(storage.end_offset, epoch)
            write_snapshot(storage, snapshot_id)
            pipe.send(("snapshot", snapshot_id))
            storage.clean(storage.snapshots()[-2:][0].id)
