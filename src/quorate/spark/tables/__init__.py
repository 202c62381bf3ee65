"""The warehouse: every record (bronze), its changes (silver), state and history (gold).

Storage:
layout          the tables and their columns
kinds           the kinds of things in the metadata, and their gold columns
store           the interface of a warehouse, its runs and plans; the Parquet format
delta           the Delta Lake format; `delta_log` reads and writes its logs, `delta_repair` repairs
files           data files of tables; `file_tasks` runs tasks on whole files
read            tables as data frames
warehouse       opens a warehouse
control         the progress of each cluster

Ingest:
ingest          the job: input to bronze, bronze to silver and gold
survey          what batch headers say about the input
lineage         which records of many replicas are the committed log
proof           which offsets are known to be committed
continuity      whether a log is the one that was ingested before; `log_starts` where it may begin
findings        bad input that an earlier job has already quarantined
bronze          the log without duplicates; `secrets` removes secret values
summary         the result of a job

State:
offset_ranges   which part of the log to apply next, and from which snapshot
apply_log       the run that applies it; `state` distributes records to slices
transactions    metadata transactions (KIP-868)
slices          the state of a slice; `rules`, `events`, `versions`, `parse`, `orphans` serve it
rewind          removes a part of the log or of the state again
log_rebuild     bronze from the files that are left
image_rows      an image in gold's columns, for comparison
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.lazy import load_lazily

if TYPE_CHECKING:
    from quorate.spark.tables.control import ClusterProgress, load_progress, plan_progress
    from quorate.spark.tables.store import (
        NoWarehouseError,
        RunPlan,
        StoredFile,
        TableStore,
        WarehouseError,
    )
    from quorate.spark.tables.summary import ClusterSummary, IngestSummary, InvalidInputError
    from quorate.spark.tables.warehouse import open_store
else:
    __getattr__ = load_lazily(
        __name__,
        {
            "warehouse": "open_store",
            "store": "NoWarehouseError RunPlan StoredFile TableStore WarehouseError",
            "control": "ClusterProgress load_progress plan_progress",
            "summary": "ClusterSummary IngestSummary InvalidInputError",
        },
    )

__all__ = [
    "ClusterProgress",
    "ClusterSummary",
    "IngestSummary",
    "InvalidInputError",
    "NoWarehouseError",
    "RunPlan",
    "StoredFile",
    "TableStore",
    "WarehouseError",
    "load_progress",
    "open_store",
    "plan_progress",
]
