"""The progress of each cluster: the small tables `clusters` and `epochs`, written by the driver.

They have a row for each cluster and each epoch, as Kafka's leader-epoch-checkpoint has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from quorate.spark.tables.files import TableWriter, file_name, read_file
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.lineage import EpochSpan, covered, join_spans
from quorate.spark.tables.store import RunPlan, TableFiles


@dataclass(frozen=True)
class ClusterProgress:
    """The progress of a cluster: what bronze has of its log, and what silver and gold applied."""

    cluster_id: str
    spans: tuple[EpochSpan, ...] = ()
    applied_end: int | None = None
    applied_time: int = 0
    open_transaction: int | None = None
    slices: int = 1
    unknown: tuple[tuple[int, int], ...] = ()
    """Ranges [start, end) at which the state is not known: gaps that a snapshot replaced."""
    problem: str | None = None
    run: int = 0
    unproven: tuple[tuple[int, int], ...] = ()
    """Ranges [start, end) of the log that are not known to be committed."""

    @property
    def log_end(self) -> int:
        return max((span.end for span in self.spans), default=0)

    @property
    def committed_end(self) -> int:
        """Everything before this offset is known to be committed."""
        return min((start for start, _ in self.unproven), default=self.log_end)

    @property
    def last_time(self) -> int:
        return max((span.last_time for span in self.spans), default=0)

    @property
    def records(self) -> int:
        return sum(span.end - span.start for span in self.spans)

    def with_spans(self, spans: Iterable[EpochSpan]) -> ClusterProgress:
        """The same with more spans of the log."""
        return replace(self, spans=tuple(join_spans([*self.spans, *spans])))


def load_progress(tables: TableFiles) -> dict[str, ClusterProgress]:
    """The progress of each cluster in the warehouse."""
    spans: dict[str, list[EpochSpan]] = {}
    for row in _rows(tables, "epochs"):
        cluster_id, *span = row.values()
        spans.setdefault(cluster_id, []).append(EpochSpan(*span))
    return {
        row["cluster_id"]: _progress(row, spans.get(row["cluster_id"], []))
        for row in _rows(tables, "clusters")
    }


def _progress(row: Mapping[str, Any], spans: Iterable[EpochSpan]) -> ClusterProgress:
    log = tuple(sorted(spans, key=lambda span: span.start))
    unproven = row["unproven"]  # null in a warehouse of a release without that column
    return ClusterProgress(
        row["cluster_id"],
        log,
        row["applied_end_offset"],
        row["applied_time"] or 0,
        row["open_transaction"],
        row["slices"],
        _ranges(row["unknown"]),
        row["problem"],
        row["run"],
        tuple(covered(log)) if unproven is None else _ranges(unproven),
    )


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end in json.loads(text))


def plan_progress(
    tables: TableFiles, plan: RunPlan, progress: Mapping[str, ClusterProgress]
) -> None:
    """Plan that the run replaces the progress of all clusters.

    tables: as the run before it left them
    """
    clusters = TableWriter(tables.root, "clusters", file_name("clusters", plan.run), tables.hidden)
    epochs = TableWriter(tables.root, "epochs", file_name("epochs", plan.run), tables.hidden)
    for cluster_id in sorted(progress):
        known = progress[cluster_id]
        clusters.add(
            (
                cluster_id,
                known.log_end,
                known.applied_end,
                known.open_transaction,
                known.last_time,
                known.applied_time,
                known.slices,
                json.dumps(known.unknown),
                known.records,
                known.problem,
                known.run,
                known.committed_end,
                json.dumps(known.unproven),
            )
        )
        for span in known.spans:
            epochs.add((cluster_id, *span))
    for writer in (clusters, epochs):
        plan.remove(writer.table, [file.path for file in tables.files(writer.table)])
        plan.add(writer.close())


def _rows(tables: TableFiles, table: str) -> list[dict[str, Any]]:
    """The rows of a table, with times as microseconds."""
    found: list[dict[str, Any]] = []
    plain = pa.schema(
        [(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in TABLES[table]]
    )
    for file in tables.files(table):
        found += read_file(tables.root, table, file.path).cast(plain).to_pylist()
    return found
