"""The columns of the source `quorate-metadata`: one row a record, one for each damaged piece."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

COLUMNS: Final = {
    "cluster_id": pa.string(),
    "node_id": pa.int32(),
    "file": pa.string(),
    "kind": pa.string(),
    "snapshot_offset": pa.int64(),
    "snapshot_epoch": pa.int32(),
    "segment": pa.int64(),
    "position": pa.int64(),
    "batch_length": pa.int32(),
    "base_offset": pa.int64(),
    "last_offset": pa.int64(),
    "crc_ok": pa.bool_(),
    "is_control": pa.bool_(),
    "offset": pa.int64(),
    "epoch": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "type": pa.string(),
    "type_id": pa.int32(),
    "version": pa.int32(),
    "topic_name": pa.string(),
    "topic_id": pa.string(),
    "partition": pa.int32(),
    "broker_id": pa.int32(),
    "leader": pa.int32(),
    "partition_epoch": pa.int32(),
    "resource": pa.string(),
    "record": pa.string(),
    "raw": pa.binary(),
    "problem": pa.string(),
}
"""Arrow's type of each column.

cluster_id   of meta.properties beside the log, or of the option clusterId, else 'unknown'
node_id      likewise; -1 when unknown
file         as it is read; a member of an archive is `archive!member`
kind         'log' or 'snapshot'
snapshot_*   end offset (exclusive) and epoch of the snapshot's id; null in a log
segment      base offset in the name of a segment; null in a snapshot
position     byte where the batch, or the damage, begins in the file
batch_length bytes of the whole batch, or of the damage
base_offset, last_offset   of the batch, both inclusive; of damage as far as its header can be read
crc_ok       false: checksum does not match; null: no batch could be made out
offset       of the record; in a snapshot its place in the snapshot
timestamp    of the batch, UTC; ms resolution
type         'TopicRecord', ...; 'LeaderChange', 'SnapshotHeader', ...; 'unknown-99'
version      of the record
topic_name ... resource    what the record itself says, see `facts`
record       JSON of its fields as Kafka's tools print it
raw          the record's bytes: with the option raw, and where they could not be decoded
problem      why this piece could not be read
"""

DECODED: Final = frozenset(
    {
        *("type", "type_id", "version", "topic_name", "topic_id", "partition", "broker_id"),
        *("leader", "partition_epoch", "resource", "record", "raw", "problem"),
    }
)
"""Columns for which records must be looked into; the others are told by batch headers."""

IN_RAW: Final = "; its bytes are in the column raw"
"""How the problem of a record ends that a newer Kafka may have written."""
