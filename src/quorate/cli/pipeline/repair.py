"""`quorate pipeline repair`: repairs a warehouse that has lost commits or files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from quorate.base.plural import pluralize
from quorate.cli.options import ToolCommand
from quorate.cli.pipeline.job import (
    BAD_INPUT,
    absolute,
    job_on_spark,
    job_options,
    print_result,
)

if TYPE_CHECKING:
    from quorate.spark.jobs.repair import RepairSummary


@click.command(cls=ToolCommand)
@job_options
def repair(**words: Any) -> int:
    """Restore lost commits and files of the warehouse, or remove what cannot be restored.

    Lost and torn commits are written again. Where data files of silver or gold are lost, the state
    is derived again from bronze; so it is where two jobs at once wrote history twice, as releases up
    to 0.1 could. Records that bronze lost are removed, with exit code 1: ingest a
    log that has them. Checksums of epochs that are missing are read again from the ingested logs.
    """
    with job_on_spark("repair", words) as (spark, notify):
        from quorate.spark.jobs.repair import repair_warehouse as job

        summary = job(
            spark, absolute(words["warehouse"]), table_format=words["table_format"], notify=notify
        )
    from dataclasses import asdict

    print_result(asdict(summary), words["as_json"], lambda: list(_lines(summary)))
    return BAD_INPUT if summary.forgotten else 0


def _lines(summary: RepairSummary) -> Iterator[str]:
    yield from summary.repaired
    for table, paths in summary.missing.items():
        yield lost_files_line(table, paths)
    for cluster_id in summary.doubled:
        yield f"{cluster_id}: two jobs at once wrote its history twice: it is derived again"
    for cluster_id in summary.rebuilt:
        yield f"{cluster_id}: its state is derived again from bronze"
    for cluster_id, count in summary.checksums.items():
        yield (
            f"{cluster_id}: {pluralize(count, 'checksum')} of epochs {'is' if count == 1 else 'are'} "
            "read again from the ingested logs"
        )
    for cluster_id, ranges in summary.forgotten.items():
        lost = ", ".join(f"{start} to {end - 1}" for start, end in ranges)
        yield f"{cluster_id}: the records at the offsets {lost} are lost: ingest a log with them"
    if not (summary.repaired or summary.missing or summary.doubled or summary.checksums):
        yield f"nothing is missing in {summary.warehouse}, and nothing is doubled"


def lost_files_line(table: str, paths: list[str]) -> str:
    """Name a table that has lost data files, and the first of them."""
    if len(paths) == 1:
        return f"{table}: 1 data file is lost: {paths[0]}"
    return f"{table}: {len(paths)} data files are lost, the first is {paths[0]}"
