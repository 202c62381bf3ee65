"""The job that writes the report as an HTML page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.base.atomic_write import write_atomically
from quorate.base.errors import QuorateError
from quorate.spark.files.paths import as_local
from quorate.spark.history.views import register_views
from quorate.spark.report.gather import ClusterFigures, gather
from quorate.spark.report.page import page
from quorate.spark.tables.store import NoWarehouseError
from quorate.spark.tables.warehouse import open_store
from quorate.spark.write_errors import DiskWriteError, error_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ReportError(QuorateError):
    """The audit's report is unreadable, a cluster is missing, or the page cannot be written."""

    exit_code = 2


def report(
    spark: SparkSession,
    warehouse: str,
    out: str,
    *,
    audit: str | None = None,
    clusters: Sequence[str] = (),
    table_format: str = "delta",
    notify: Callable[[str], None] = lambda _: None,
) -> list[ClusterFigures]:
    """Write the HTML page `out` about the clusters of a warehouse, or about those that are named.

    audit: a `report.json` of `audit`, whose verdicts are shown too (for `clusters` where some are
    named). Returns the figures that are shown.
    Raises NoWarehouseError where nothing was ingested yet, ReportError, and DiskWriteError where the
    disk of `out` is full.
    """
    verdicts = None if audit is None else _read(audit)
    store = open_store(warehouse, table_format)
    store.recover()
    if store.last_run() == 0:
        raise NoWarehouseError(warehouse)
    register_views(spark, store)
    notify("querying the tables")
    found = gather(spark, clusters)
    for name in clusters:
        if name not in {one.cluster_id for one in found}:
            raise ReportError(f"{warehouse}: there is no cluster {name} in it")
    if verdicts is not None and clusters:
        chosen = [one for one in verdicts["clusters"] if one["cluster_id"] in clusters]
        verdicts = {**verdicts, "clusters": chosen}
    try:
        write_atomically(Path(as_local(out)), page(found, verdicts))
    except OSError as error:
        if error_number(error) is not None:
            raise DiskWriteError(out, error) from None
        raise ReportError(f"{out}: cannot be written: {error.strerror}") from None
    return found


def _read(path: str) -> Mapping[str, Any]:
    try:
        report = json.loads(Path(as_local(path)).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path}: cannot be read: {error}") from None
    if not (isinstance(report, dict) and isinstance(report.get("clusters"), list)):
        raise ReportError(f"{path}: is no report.json of `quorate pipeline audit --out`")
    return report
