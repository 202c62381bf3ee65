"""Logs and trees of files for the tests of the pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats.batch import encode_batch, encode_control_batch, iter_batches
from quorate.formats.files import segment_name, snapshot_name
from quorate.formats.meta_properties import MetaProperties, encode_meta_properties
from quorate.formats.records import FenceBrokerRecord, NoOpRecord, TopicRecord, encode_record
from quorate.formats.snapshot import encode_snapshot
from quorate.raft.values import ControlState, LeaderChange
from quorate.spark.decode.batches import Decoder, decoded_batches
from quorate.spark.decode.rows import Origin
from quorate.spark.files.scan import runs

START_MS = 1_800_000_000_000


def topic(number: int) -> bytes:
    return encode_record(
        TopicRecord(name=f"topic-{number}", topic_id=Uuid(bytes([number % 250]) * 16)), 0
    )


def fence(broker: int) -> bytes:
    return encode_record(FenceBrokerRecord(id=broker, epoch=7), 0)


NO_OP = encode_record(NoOpRecord(), 0)


def batches(
    counts: Iterable[int] = (1, 3, 2, 8, 1, 5), base: int = 0, epoch: int = 1
) -> list[bytes]:
    """A leader change, then batches of this many records, a second apart."""
    out = [encode_control_batch(base, epoch, START_MS, [LeaderChange(1, (1, 2, 3), (1, 2))])]
    offset = base + 1
    for number, count in enumerate(counts, 1):
        values = [(topic, fence)[n % 2](offset + n) for n in range(count)]
        out.append(encode_batch(offset, epoch, START_MS + 1000 * number, values))
        offset += count
    return out


def snapshot(offset: int = 10, epoch: int = 1, topics: int = 4) -> bytes:
    values = [topic(number) for number in range(topics)]
    control = ControlState(0, None)
    return b"".join(
        encode_snapshot(OffsetAndEpoch(offset, epoch), control, START_MS, values, START_MS)
    )


def log_directory(
    home: Path,
    segments: dict[int, bytes],
    snapshots: dict[tuple[int, int], bytes] | None = None,
    cluster: str | None = "cluster-a",
    node: int = 1,
) -> Path:
    """A node's log directory with its metadata log."""
    partition = home / "__cluster_metadata-0"
    partition.mkdir(parents=True)
    for base, data in segments.items():
        (partition / segment_name(base)).write_bytes(data)
    for (offset, epoch), data in (snapshots or {}).items():
        (partition / snapshot_name(OffsetAndEpoch(offset, epoch))).write_bytes(data)
    if cluster is not None:
        meta = MetaProperties(1, cluster, node)
        (home / "meta.properties").write_bytes(encode_meta_properties(meta, START_MS))
    return home


def end_offset(data: bytes) -> int:
    return list(iter_batches(data))[-1].end_offset


def rows_of(
    data: bytes, columns: Iterable[str] | None = None, **words: Any
) -> list[dict[str, Any]]:
    """Every row of a segment's bytes."""
    decoder = Decoder(**words) if columns is None else Decoder(tuple(columns), **words)
    found = runs(lambda position, size: data[position : position + size], len(data))
    origin = Origin("cluster-a", 1, "a.log", 0)
    return [row for batch in decoded_batches(decoder, origin, found) for row in batch.to_pylist()]
