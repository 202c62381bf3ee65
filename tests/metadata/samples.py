"""The logs and snapshots that Kafka 4.3.1 wrote, in tests/data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quorate.base.ids import OffsetAndEpoch
from quorate.formats.batch import iter_batches
from quorate.formats.snapshot import Snapshot, read_snapshot
from quorate.metadata.loader import LogBatch, Published, SnapshotBuilder, log_batch

DATA = Path(__file__).resolve().parent.parent / "data" / "kafka-4.3.1"
OUTSIDE = DATA.parent / "outside"
"""Two clusters with one id, and a log without meta.properties."""


def snapshot_id(path: Path) -> OffsetAndEpoch:
    offset, epoch = path.stem.split("-")
    return OffsetAndEpoch(int(offset), int(epoch))


# 0-0 holds only what raft needs; bootstrap.checkpoint is no snapshot of the log.
SNAPSHOTS = [path for path in sorted(DATA.rglob("*-*.checkpoint")) if snapshot_id(path).offset > 0]


def label(path: Path) -> str:
    return path.relative_to(DATA).as_posix().replace("__cluster_metadata-0/", "")


def read(path: Path) -> Snapshot:
    return read_snapshot(path.read_bytes(), snapshot_id(path))


def load(path: Path) -> Published:
    """The image that a snapshot of Kafka's holds."""
    snapshot = read(path)
    builder = SnapshotBuilder(snapshot_id(path), snapshot.last_contained_log_timestamp)
    builder.feed(snapshot.values)
    return builder.finish()


def log_beside(path: Path) -> Iterator[LogBatch]:
    """The batches of the log in the snapshot's directory."""
    for log in sorted(path.parent.glob("*.log")):
        yield from map(log_batch, iter_batches(log.read_bytes()))
