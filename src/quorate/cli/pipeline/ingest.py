"""`quorate pipeline ingest` and `compact`: ingest logs, and join the small files of the tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from quorate.base.plural import pluralize
from quorate.cli.options import ToolCommand, WholeNumber
from quorate.cli.pipeline.job import (
    BAD_INPUT,
    absolute,
    clusters_option,
    every_path,
    findings_code,
    findings_option,
    job_on_spark,
    job_options,
    named_clusters,
    print_result,
    warehouse_options,
)
from quorate.cli.pipeline.summary import cluster_lines

if TYPE_CHECKING:
    from quorate.spark.tables.summary import IngestSummary


@click.command(cls=ToolCommand)
@click.argument("paths", nargs=-1)
@job_options
@clusters_option
@findings_option
@click.option("--fail-fast", is_flag=True, help="Ingest nothing when some of the input is bad.")
@click.option("--cluster-id", metavar="ID", help="For logs without a meta.properties beside them.")
@click.option(
    "--up-to",
    type=click.Choice(["majority", "snapshot", "end"]),
    default="end",
    show_default=True,
    help="Leave out what neither a majority of the voters nor a snapshot proves to be committed.",
)
def ingest(paths: tuple[str, ...], **words: Any) -> int:
    """Ingest logs and snapshots at PATHS into the warehouse.

    PATHS are log directories, trees or archives of them, segments or snapshots, of one cluster or
    many; several replicas of a cluster give one log. Ingesting the same files again changes
    nothing. Several clusters may have one cluster id: their logs stay apart.
    """
    clusters = named_clusters(words)
    options = {"clusterId": words["cluster_id"]} if words["cluster_id"] else {}
    if clusters:
        options["clusters"] = json.dumps(clusters)
    elif not paths:
        raise click.UsageError("Missing argument 'PATHS...'.")
    every = every_path(paths, clusters)
    with job_on_spark("ingest", words) as (spark, notify):
        from quorate.spark.tables.ingest import ingest as job
        from quorate.spark.tables.summary import InvalidInputError

        try:
            summary = job(
                spark,
                every,
                absolute(words["warehouse"]),
                table_format=words["table_format"],
                fail_fast=words["fail_fast"],
                options=options,
                up_to=words["up_to"],
                notify=notify,
            )
        except InvalidInputError as error:
            click.echo(error, err=True)
            return BAD_INPUT
    print_result(summary.to_json(), words["as_json"], lambda: _ingest_lines(summary, words))
    return findings_code(summary.bad, words)


@click.command(cls=ToolCommand)
@job_options
@click.option(
    "--keep-hours",
    type=WholeNumber(min=0),
    default=168,
    show_default=True,
    help="Delete files that are unused for so long; must exceed the longest running query.",
)
@click.option(
    "--least-files",
    type=WholeNumber(min=2),
    default=4,
    show_default=True,
    help="Join where there are at least so many.",
)
def compact(**words: Any) -> int:
    """Join small files, and delete files that no table uses any more."""
    with job_on_spark("compact", words) as (spark, notify):
        from quorate.spark.jobs.compact import compact_warehouse as job

        summary = job(
            spark,
            absolute(words["warehouse"]),
            table_format=words["table_format"],
            keep_hours=words["keep_hours"],
            least_files=words["least_files"],
            notify=notify,
        )
    from dataclasses import asdict

    result = asdict(summary)
    print_result(
        result, words["as_json"], lambda: [f"{name}: {value}" for name, value in result.items()]
    )
    return 0


def _ingest_lines(summary: IngestSummary, words: Mapping[str, Any]) -> list[str]:
    found = [
        f"{pluralize(summary.records, 'record')} and {pluralize(summary.events, 'event')} ingested into "
        f"{summary.warehouse} in {summary.seconds:.1f} s",
        *cluster_lines(summary),
    ]
    if summary.damaged_pieces:
        found.append(
            f"  {pluralize(summary.damaged_pieces, 'damaged piece')} in the input: "
            f'quorate pipeline history {warehouse_options(words)} "SELECT * FROM quarantine"'
        )
    return found
