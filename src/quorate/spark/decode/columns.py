"""The columns of the source `quorate-metadata`: a row for each record and each damaged piece."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from quorate.formats.errors import NewerRecordError, RecordError

_TEXT: Final = pa.string()
_INT: Final = pa.int32()
_LONG: Final = pa.int64()
_DEFINITIONS: Final = {
    "cluster_id": (_TEXT, "by meta.properties beside the log, or clusterId; or 'unknown'"),
    "node_id": (_INT, "by meta.properties beside the log, or the option nodeId; or -1"),
    "file": (_TEXT, "as it is read; a member of an archive is archive!member"),
    "kind": (_TEXT, "'log' or 'snapshot'"),
    "snapshot_offset": (_LONG, "end offset (exclusive) of the snapshot; null in a log"),
    "snapshot_epoch": (_INT, "epoch of the snapshot; null in a log"),
    "segment": (_LONG, "base offset in the name of the segment; null in a snapshot"),
    "position": (_LONG, "byte of the file where the batch, or the damage, begins"),
    "batch_length": (_INT, "bytes of the whole batch, or of the damage"),
    "base_offset": (_LONG, "first offset of the batch; of damage as far as can be read"),
    "last_offset": (_LONG, "last offset of the batch, inclusive; of damage as far as can be read"),
    "crc_ok": (pa.bool_(), "false: the checksum does not match; null: no batch could be made out"),
    "crc": (_LONG, "checksum of the batch, as its header has it"),
    "is_control": (pa.bool_(), "a record of the quorum itself, as LeaderChange and KRaftVoters"),
    "offset": (_LONG, "of the record; in a snapshot its place in the snapshot"),
    "epoch": (_INT, "leader epoch of the batch"),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        "of the batch, to the millisecond; beyond years 1 to 9999 the nearest that can be shown",
    ),
    "type": (_TEXT, "'TopicRecord', ...; 'LeaderChange', 'SnapshotHeader', ...; 'unknown-99'"),
    "type_id": (_INT, "the number of the type"),
    "version": (_INT, "of the record"),
    "topic_name": (_TEXT, "where the record itself says it"),
    "topic_id": (_TEXT, "where the record itself says it, as Kafka prints it"),
    "partition": (_INT, "where the record itself says it"),
    "broker_id": (_INT, "where the record itself says it"),
    "leader": (_INT, "where the record itself says it; null where it leaves the leader as it is"),
    "partition_epoch": (_INT, "where the record itself says it"),
    "resource": (_TEXT, "what else it is about: topic/orders, user/ann, feature/metadata.version"),
    "record": (_TEXT, "JSON of its fields as Kafka's tools print it"),
    "raw": (pa.binary(), "its bytes: with the option raw, and where they could not be decoded"),
    "problem": (_TEXT, "why this piece could not be read; null in all good rows"),
}  # fmt: skip

COLUMNS: Final = {name: kind for name, (kind, _) in _DEFINITIONS.items()}
"""The Arrow type of each column."""
COMMENTS: Final = {name: comment for name, (_, comment) in _DEFINITIONS.items()}
"""The comment of each column, as DESCRIBE shows it."""

DECODED: Final = frozenset(
    {
        *("type", "type_id", "version", "topic_name", "topic_id", "partition", "broker_id"),
        *("leader", "partition_epoch", "resource", "record", "raw", "problem"),
    }
)
"""Columns that need decoded records; batch headers fill the others."""

IN_RAW: Final = "; its bytes are in the column raw"
"""Ends the problem of a record that a newer Kafka may have written."""

_NEWER: Final = "a newer Kafka may have written it"


def problem_of(error: RecordError) -> str:
    """Why a record could not be decoded. One of a later release is kept in the column raw."""
    text = str(error)
    if not isinstance(error, NewerRecordError):
        return text
    return f"{text}{'' if _NEWER in text else f': {_NEWER}'}{IN_RAW}"


def in_any_case(asked: str, names: Iterable[str]) -> str | None:
    """The name that is equal without regard to case, as in Spark; None when there is none."""
    return {name.lower(): name for name in names}.get(asked.lower())
