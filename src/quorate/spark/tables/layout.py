"""The tables of a warehouse and their columns.

    log         bronze: every record of the log, one row for each (cluster, offset)
    snapshots   bronze: the records of the snapshots that stand in for a missing part of a log
    quarantine  rows that were not taken, with their place and the reason
    changes     silver: typed events
    topics, partitions, brokers, ...   gold, one for each kind: present state and history
    who         gold: changes and who made them
    epochs      which epoch wrote which offsets of the log
    clusters    the progress of each cluster

Offsets `*_offset` named `end` or `valid_to` are exclusive, all others inclusive. `timestamp` is
what the leader wrote. `time` of the log is the same but never goes back behind what was taken
before. The times of gold never do, in whatever order logs are taken. `time` of `changes` is what the
leader wrote: that is compared with the logs of the controllers.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from quorate.spark.tables.kinds import INT, KINDS, LONG, TEXT, ThingKind

TIME: Final = pa.timestamp("us", "UTC")

LOG: Final = pa.schema(
    [
        ("cluster_id", TEXT),
        ("offset", LONG),
        ("epoch", INT),
        ("time", TIME),
        ("timestamp", TIME),
        ("type", TEXT),
        ("type_id", INT),
        ("version", INT),
        ("is_control", pa.bool_()),
        ("topic_name", TEXT),
        ("topic_id", TEXT),
        ("partition", INT),
        ("broker_id", INT),
        ("leader", INT),
        ("resource", TEXT),
        ("record", TEXT),
        ("raw", pa.binary()),
        ("problem", TEXT),
        ("base_offset", LONG),
        ("node_id", INT),
        ("file", TEXT),
        ("position", LONG),
    ]
)
"""`raw` only holds what could not be decoded; `file` and `position` are its origin."""

SNAPSHOTS: Final = pa.schema(
    [("cluster_id", TEXT), ("snapshot_offset", LONG), ("snapshot_epoch", INT), *list(LOG)[1:]]
)

QUARANTINE: Final = pa.schema(
    [
        ("cluster_id", TEXT),
        ("reason", TEXT),
        ("offset", LONG),
        ("epoch", INT),
        ("type", TEXT),
        ("record", TEXT),
        ("problem", TEXT),
        ("node_id", INT),
        ("file", TEXT),
        ("position", LONG),
        ("batch_length", INT),
        ("timestamp", TIME),
        ("run", LONG),
        ("resolved_run", LONG),
    ]
)
REASONS: Final = {
    "damaged": "bytes that cannot be read",
    "divergent": "an offset that the committed log has from a later leader",
    "disagrees": "same offset and epoch as in the committed log, another content",
    "superseded": "was taken for committed until a log of a later epoch said otherwise",
    "misfit": "a record that does not fit the state that the log before it makes",
    "unknown": "a record of a type or version that this program does not know",
}


CHANGES: Final = pa.schema(
    [
        ("cluster_id", TEXT),
        ("offset", LONG),
        ("effective_offset", LONG),
        ("epoch", INT),
        ("time", TIME),
        ("event", TEXT),
        ("kind", TEXT),
        ("cause", TEXT),
        ("topic_id", TEXT),
        ("topic_name", TEXT),
        ("partition", INT),
        ("node_id", INT),
        ("resource_type", TEXT),
        ("resource_name", TEXT),
        ("name", TEXT),
        ("principal", TEXT),
        ("before", TEXT),
        ("after", TEXT),
    ]
)
"""`effective_offset` differs from `offset` in a metadata transaction: there it is its end."""

_SEEN: Final = [
    *((name, TEXT) for name in ("request", "host", "client_id", "file")),
    ("position", LONG),
    ("line", TEXT),
]
_CANDIDATE: Final = pa.struct(
    [("principal", TEXT), ("evidence", TEXT), ("lines", LONG), *_SEEN],
)
WHO: Final = pa.schema(
    [
        *CHANGES,
        *((name, TEXT) for name in ("caused_by", "who", "confidence", "reason")),
        *_SEEN,
        ("candidates", pa.list_(_CANDIDATE)),
    ]
)
"""Changes with who did them, kept by `who` when asked to; `line` at byte `position` of `file`."""

EPOCHS: Final = pa.schema(
    [
        ("cluster_id", TEXT),
        ("epoch", INT),
        ("start_offset", LONG),
        ("end_offset", LONG),
        ("first_time", TIME),
        ("last_time", TIME),
        ("first_crc", LONG),
        ("last_crc", LONG),
    ]
)
"""`first_crc` and `last_crc`: checksums of the batches with the first and the last record. They
identify the history of a cluster."""
CLUSTERS: Final = pa.schema(
    [
        ("cluster_id", TEXT),
        ("log_end_offset", LONG),
        ("applied_end_offset", LONG),
        ("open_transaction", LONG),
        ("last_time", TIME),
        ("applied_time", TIME),
        ("slices", INT),
        ("unknown", TEXT),
        ("records", LONG),
        ("problem", TEXT),
        ("run", LONG),
        ("committed_end_offset", LONG),
        ("unproven", TEXT),
    ]
)
"""
applied_end_offset  up to where silver and gold have come; null before the first state is known
open_transaction    offset of the beginning of a transaction that has not ended
slices              into how many parts the cluster's state is cut
unknown             JSON: ranges of offsets (end exclusive) at which the state is not known
problem             why silver and gold cannot go on
committed_end_offset  all of the log before it is known to be committed
unproven            JSON: ranges of the log (end exclusive) that nothing shows to be committed
"""

RUNS: Final = pa.schema(
    [("run", LONG), ("job", TEXT), ("at", TIME), ("plan", TEXT), ("summary", TEXT)]
)
"""Of the record of runs, which is no table that runs change; `plan` names a file in `control`."""

VALIDITY: Final = (
    ("valid_from_offset", LONG),
    ("valid_to_offset", LONG),
    ("valid_from_time", TIME),
    ("valid_to_time", TIME),
    ("is_current", pa.bool_()),
    ("from_snapshot", pa.bool_()),
)
"""A version holds from an offset (inclusive) to another (exclusive, null while it still holds).

from_snapshot: it was found in a snapshot; when it really began is not known.
"""


def gold_schema(kind: ThingKind) -> pa.Schema:
    """The columns of a kind's gold table."""
    return pa.schema([("cluster_id", TEXT), *kind.fields, *VALIDITY])


TABLES: Final[dict[str, pa.Schema]] = {
    "log": LOG,
    "snapshots": SNAPSHOTS,
    "quarantine": QUARANTINE,
    "changes": CHANGES,
    **{name: gold_schema(kind) for name, kind in KINDS.items()},
    "who": WHO,
    "epochs": EPOCHS,
    "clusters": CLUSTERS,
}
STATE: Final = ("changes", *KINDS)
"""Tables that can be rebuilt from bronze."""
BRONZE: Final = ("log", "snapshots", "quarantine")
CONTROL: Final = ("clusters", "epochs")
"""Tables that a run replaces as a whole."""
FOLDERS: Final = {
    **dict.fromkeys(BRONZE, "bronze"),
    "changes": "silver",
    **dict.fromkeys((*KINDS, "who"), "gold"),
    **dict.fromkeys(CONTROL, "control"),
}


def table_path(table: str) -> str:
    """The folder of a table inside the warehouse."""
    return f"{FOLDERS[table]}/{table}"
