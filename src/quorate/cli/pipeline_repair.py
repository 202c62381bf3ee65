"""`quorate pipeline repair`: a warehouse that has lost commits or files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from quorate.cli.options import Tool
from quorate.cli.pipeline_job import (
    BAD_INPUT,
    absolute,
    job_on_spark,
    job_options,
    print_told,
)

if TYPE_CHECKING:
    from quorate.spark.jobs.repair import RepairSummary


@click.command(cls=Tool)
@job_options
def repair(**words: Any) -> int:
    """Make again what a disk or a copy lost of the warehouse, or forget it and say so.

    Lost and torn commits are made again. Where data files of silver or gold are gone, the state is
    told anew from bronze. Records that bronze lost are forgotten: exit code 1; `ingest` of a log
    that has them takes them again.
    """
    with job_on_spark("repair", words) as (spark, tell):
        from quorate.spark.jobs.repair import repair as job

        summary = job(
            spark, absolute(words["warehouse"]), table_format=words["table_format"], tell=tell
        )
    print_told(asdict(summary), words["as_json"], lambda: list(_lines(summary)))
    return BAD_INPUT if summary.forgotten else 0


def _lines(summary: RepairSummary) -> Iterator[str]:
    yield from summary.mended
    for table, paths in summary.missing.items():
        yield f"{table}: {len(paths)} data files are gone, the first is {paths[0]}"
    for cluster_id in summary.told_anew:
        yield f"{cluster_id}: its state is told anew from bronze"
    for cluster_id, ranges in summary.forgotten.items():
        told = ", ".join(f"{start} to {end - 1}" for start, end in ranges)
        yield f"{cluster_id}: the records at the offsets {told} are lost: `ingest` a log with them"
    if not (summary.mended or summary.missing):
        yield f"nothing is missing in {summary.warehouse}"
