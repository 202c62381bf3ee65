"""`quorate pipeline stream`: ingests clusters into the warehouse as they go."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorate.base.plural import pluralize
from quorate.cli.options import NumberRange, ToolCommand, WholeNumber
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
)
from quorate.cli.pipeline.summary import cluster_lines

if TYPE_CHECKING:
    from quorate.spark.jobs.follow import FollowSummary


@click.command(cls=ToolCommand)
@click.argument("paths", nargs=-1)
@job_options
@clusters_option
@findings_option
@click.option(
    "--bootstrap-controllers",
    "-b",
    "bootstrap",
    metavar="[LABEL=]HOST:PORT,...",
    multiple=True,
    help="Live controllers of a cluster; once for each cluster, with any labels.",
)
@click.option(
    "--command-config",
    metavar="FILE",
    help="Client properties file: the security of connections to live controllers.",
)
@click.option("--once", is_flag=True, help="Ingest what is committed now, then end.")
@click.option(
    "--every",
    metavar="SECONDS",
    type=NumberRange(min=0),
    default=10.0,
    show_default=True,
    help="Time between the beginnings of two batches.",
)
@click.option(
    "--max-records", type=WholeNumber(min=1), help="The largest number of records of a batch."
)
@click.option("--cluster-id", metavar="ID", help="Refuse controllers of another cluster.")
@click.option("--fail-fast", is_flag=True, help="End when some of the input is bad.")
@click.option(
    "--up-to",
    type=click.Choice(["majority", "snapshot", "end"]),
    help="With PATHS: what counts as committed; majority by default.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=NumberRange(min=0.001),
    default=60.0,
    show_default=True,
    help="End when no controller of a cluster has answered for so long.",
)
@click.option(
    "--on-silence",
    type=click.Choice(["end", "wait"]),
    help="When one of several clusters does not answer: end (default), or continue with the others.",
)
def stream(paths: tuple[str, ...], **words: Any) -> int:
    """Ingest the committed records of clusters into the warehouse as they come.

    They come from live controllers of Kafka or Quorate, or from log directories at PATHS that grow.
    The quorum does not count the reader as a replica. Ctrl-C ends the job after the current batch;
    started again, it continues there.
    """
    options = _options(paths, words)
    with job_on_spark("stream", words) as (spark, notify), _until_stopped() as should_continue:
        from quorate.spark.jobs.follow import follow_clusters
        from quorate.spark.tables.summary import InvalidInputError

        try:
            summary = follow_clusters(
                spark,
                options,
                absolute(words["warehouse"]),
                every_s=None if words["once"] else words["every"],
                table_format=words["table_format"],
                notify=notify,
                should_continue=should_continue,
            )
        except InvalidInputError as error:
            click.echo(error, err=True)
            return BAD_INPUT
    print_result(summary.to_json(), words["as_json"], lambda: _lines(summary))
    return findings_code(summary.bad, words)


def _options(paths: tuple[str, ...], words: dict[str, Any]) -> dict[str, str]:
    """The options of the source."""
    clusters = named_clusters(words)
    if bool(paths or clusters) == bool(words["bootstrap"]):
        raise click.UsageError("give either --bootstrap-controllers or PATHS")
    every = every_path(paths, clusters)
    found = {"timeoutMs": str(round(words["timeout"] * 1000))}
    if words["fail_fast"]:
        found["failFast"] = "true"
    if every:
        found["paths"] = json.dumps(every)
    if clusters:
        found["clusters"] = json.dumps(clusters)
    for text in words["bootstrap"]:
        label, equals, addresses = text.rpartition("=")
        name = f"bootstrap.controllers.{label}" if equals else "bootstrap.controllers"
        if name in found:
            raise click.UsageError(
                f"--bootstrap-controllers {text}: each cluster needs a label of its own"
            )
        found[name] = addresses
    if words["command_config"] is not None:
        found |= _security_options(words["command_config"])
    for name, word in (
        ("maxOffsetsPerTrigger", "max_records"),
        ("clusterId", "cluster_id"),
        ("upTo", "up_to"),
        ("onSilence", "on_silence"),
    ):
        if words[word] is not None:
            found[name] = str(words[word])
    return found


@contextmanager
def _until_stopped() -> Iterator[Callable[[], bool]]:
    """Gives a function that is true until SIGINT or SIGTERM arrives."""
    asked = False

    def end(*_: object) -> None:
        nonlocal asked
        asked = True

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: not asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _lines(summary: FollowSummary) -> list[str]:
    from quorate.spark.jobs.follow import lag_text

    found = [
        f"{pluralize(summary.records, 'record')} and {pluralize(summary.events, 'event')} ingested into "
        f"{summary.warehouse} in {pluralize(summary.batches, 'batch', 'batches')}, {summary.seconds:.1f} s",
        *cluster_lines(summary),
    ]
    if summary.damaged_pieces:
        found.append(
            f"  {pluralize(summary.damaged_pieces, 'note or damaged piece', 'notes and damaged pieces')}, "
            "see `quarantine`"
        )
    found += [f"  not read, since it may still be written: {end}" for end in summary.unread]
    found += [f"  skipped: {archive}" for archive in summary.passed_over]
    found += [
        f"  {cluster_id}: {lag_text(lag)} behind"
        for cluster_id, lag in sorted(summary.lag.items())
        if lag.records
    ]
    found += [f"  no answer from: {cluster}" for cluster in summary.silent]
    return found


def _security_options(file: str) -> dict[str, str]:
    """The keys of a client's file about security, references to config providers as they stand."""
    from quorate.client.security_keys import is_security_key
    from quorate.config.settings import ConfigError, parse_properties

    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"Cannot read {file}: {error.strerror or error}") from None
    found = parse_properties(data, file)
    return {key: one.value for key, one in found.items() if is_security_key(key)}
