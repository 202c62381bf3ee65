"""How far each cluster has come: the small tables `clusters` and `epochs`, kept by the driver.

They grow by a row for each cluster and each epoch, as Kafka's own leader-epoch-checkpoint does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from quorate.spark.tables.files import TableWriter, file_name, read_file
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.lineage import Span, covered, join_spans
from quorate.spark.tables.store import Plan, Store


@dataclass(frozen=True)
class Progress:
    """One cluster: what bronze has of its log, and up to where silver and gold have come."""

    cluster_id: str
    spans: tuple[Span, ...] = ()
    applied_end: int | None = None
    applied_time: int = 0
    open_transaction: int | None = None
    slices: int = 1
    unknown: tuple[tuple[int, int], ...] = ()
    """Offsets at which the state is not known: what came before a snapshot. End exclusive."""
    problem: str | None = None
    run: int = 0
    unproven: tuple[tuple[int, int], ...] = ()
    """Offsets of the log that nothing shows to be committed. End exclusive."""

    @property
    def log_end(self) -> int:
        return max((span.end for span in self.spans), default=0)

    @property
    def committed_end(self) -> int:
        """Everything of the log before it is known to be committed."""
        return min((start for start, _ in self.unproven), default=self.log_end)

    @property
    def last_time(self) -> int:
        return max((span.last_time for span in self.spans), default=0)

    @property
    def records(self) -> int:
        return sum(span.end - span.start for span in self.spans)

    def with_spans(self, spans: Iterable[Span]) -> Progress:
        """The same with more of the log."""
        return replace(self, spans=tuple(join_spans([*self.spans, *spans])))


def load_progress(store: Store) -> dict[str, Progress]:
    """Every cluster of the warehouse."""
    spans: dict[str, list[Span]] = {}
    for row in _rows(store, "epochs"):
        cluster_id, *span = row.values()
        spans.setdefault(cluster_id, []).append(Span(*span))
    return {
        row["cluster_id"]: _progress(row, spans.get(row["cluster_id"], []))
        for row in _rows(store, "clusters")
    }


def _progress(row: Mapping[str, Any], spans: Iterable[Span]) -> Progress:
    log = tuple(sorted(spans, key=lambda span: span.start))
    told = row["unproven"]  # a warehouse of before that column tells nothing
    return Progress(
        row["cluster_id"],
        log,
        row["applied_end_offset"],
        row["applied_time"] or 0,
        row["open_transaction"],
        row["slices"],
        _ranges(row["unknown"]),
        row["problem"],
        row["run"],
        tuple(covered(log)) if told is None else _ranges(told),
    )


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    return tuple((start, end) for start, end in json.loads(text))


def plan_progress(store: Store, plan: Plan, progress: Mapping[str, Progress]) -> None:
    """Let the run write the progress of all clusters anew."""
    clusters = TableWriter(store.root, "clusters", file_name("clusters", plan.run), store.hidden)
    epochs = TableWriter(store.root, "epochs", file_name("epochs", plan.run), store.hidden)
    for cluster_id in sorted(progress):
        told = progress[cluster_id]
        clusters.add(
            (
                cluster_id,
                told.log_end,
                told.applied_end,
                told.open_transaction,
                told.last_time,
                told.applied_time,
                told.slices,
                json.dumps(told.unknown),
                told.records,
                told.problem,
                told.run,
                told.committed_end,
                json.dumps(told.unproven),
            )
        )
        for span in told.spans:
            epochs.add((cluster_id, *span))
    for writer in (clusters, epochs):
        plan.remove(writer.table, [file.path for file in store.files(writer.table)])
        plan.add(writer.close())


def _rows(store: Store, table: str) -> list[dict[str, Any]]:
    """Rows with times as microseconds."""
    found: list[dict[str, Any]] = []
    plain = pa.schema(
        [(f.name, pa.int64() if pa.types.is_timestamp(f.type) else f.type) for f in TABLES[table]]
    )
    for file in store.files(table):
        found += read_file(store.root, table, file.path).cast(plain).to_pylist()
    return found
