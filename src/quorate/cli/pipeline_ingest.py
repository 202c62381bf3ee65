"""`quorate pipeline ingest` and `compact`: logs into the warehouse, and its small files joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from quorate.base.words import many
from quorate.cli.options import Tool
from quorate.cli.pipeline_job import (
    BAD_INPUT,
    absolute,
    job_on_spark,
    job_options,
    place_of,
    print_told,
)
from quorate.cli.pipeline_summary import cluster_lines

if TYPE_CHECKING:
    from quorate.spark.tables.summary import Summary


@click.command(cls=Tool)
@click.argument("paths", nargs=-1, required=True)
@job_options
@click.option("--fail-fast", is_flag=True, help="Take nothing when some of the input is bad.")
@click.option("--cluster-id", metavar="ID", help="For logs without a meta.properties beside them.")
@click.option(
    "--up-to",
    type=click.Choice(["majority", "snapshot", "end"]),
    default="end",
    show_default=True,
    help="Leave out what neither a majority of the voters nor a snapshot shows to be committed.",
)
def ingest(paths: tuple[str, ...], **words: Any) -> int:
    """Take logs and snapshots at PATHS into the warehouse.

    PATHS are log directories, trees or archives of them, segments or snapshots, of one cluster or
    many; several replicas of a cluster give one log. Taking the same files again changes nothing.
    """
    options = {"clusterId": words["cluster_id"]} if words["cluster_id"] else {}
    with job_on_spark("ingest", words) as (spark, tell):
        from quorate.spark.tables.ingest import ingest as job
        from quorate.spark.tables.summary import BadInput

        try:
            summary = job(
                spark,
                [absolute(path) for path in paths],
                absolute(words["warehouse"]),
                table_format=words["table_format"],
                fail_fast=words["fail_fast"],
                options=options,
                up_to=words["up_to"],
                tell=tell,
            )
        except BadInput as error:
            click.echo(error, err=True)
            return BAD_INPUT
    print_told(summary.to_json(), words["as_json"], lambda: _ingest_lines(summary, words))
    return BAD_INPUT if summary.bad else 0


@click.command(cls=Tool)
@job_options
@click.option(
    "--keep-hours",
    type=click.IntRange(min=0),
    default=168,
    show_default=True,
    help="Delete files unused so long; questions that still run may need those of fewer hours.",
)
@click.option(
    "--least-files",
    type=click.IntRange(min=2),
    default=4,
    show_default=True,
    help="Join when there are so many.",
)
def compact(**words: Any) -> int:
    """Join small files, and delete those that no table has any more."""
    with job_on_spark("compact", words) as (spark, tell):
        from quorate.spark.jobs.compact import compact as job

        summary = job(
            spark,
            absolute(words["warehouse"]),
            table_format=words["table_format"],
            keep_hours=words["keep_hours"],
            least_files=words["least_files"],
            tell=tell,
        )
    told = asdict(summary)
    print_told(told, words["as_json"], lambda: [f"{name}: {value}" for name, value in told.items()])
    return 0


def _ingest_lines(summary: Summary, words: Mapping[str, Any]) -> list[str]:
    found = [
        f"{many(summary.records, 'record')} and {many(summary.events, 'event')} taken into "
        f"{summary.warehouse} in {summary.seconds:.1f} s",
        *cluster_lines(summary),
    ]
    if summary.damaged_pieces:
        found.append(
            f"  {many(summary.damaged_pieces, 'damaged piece')} in the input: "
            f'quorate pipeline history {place_of(words)} "SELECT * FROM quarantine"'
        )
    return found
