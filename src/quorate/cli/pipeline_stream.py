"""`quorate pipeline stream`: clusters that are followed into the warehouse."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from quorate.base.words import many
from quorate.cli.options import NumberRange, Tool
from quorate.cli.pipeline_job import (
    BAD_INPUT,
    absolute,
    job_on_spark,
    job_options,
    print_told,
)
from quorate.cli.pipeline_summary import cluster_lines

if TYPE_CHECKING:
    from quorate.spark.jobs.follow import Followed


@click.command(cls=Tool)
@click.argument("paths", nargs=-1)
@job_options
@click.option(
    "--bootstrap-controllers",
    "-b",
    "bootstrap",
    metavar="[LABEL=]HOST:PORT,...",
    multiple=True,
    help="Live controllers of a cluster; once for each cluster, with labels of your choice.",
)
@click.option("--once", is_flag=True, help="Up to what is committed now, then end.")
@click.option(
    "--every",
    metavar="SECONDS",
    type=NumberRange(min=0),
    default=10.0,
    show_default=True,
    help="Between the beginnings of two batches.",
)
@click.option("--max-records", type=click.IntRange(min=1), help="Of one batch.")
@click.option("--cluster-id", metavar="ID", help="Refuse controllers of another cluster.")
@click.option("--fail-fast", is_flag=True, help="End when some of the input is bad.")
@click.option(
    "--up-to",
    type=click.Choice(["majority", "snapshot", "end"]),
    help="With PATHS: what of them counts as committed; majority by default.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=NumberRange(min=0.001),
    default=60.0,
    show_default=True,
    help="Give up when no controller of a cluster has answered for so long.",
)
@click.option(
    "--on-silence",
    type=click.Choice(["end", "wait"]),
    help="Of one cluster of several: end (by default), or go on with the others and wait for it.",
)
def stream(paths: tuple[str, ...], **words: Any) -> int:
    """Follow clusters into the warehouse: what is committed comes into the tables.

    From live controllers, of Kafka or Quorate, or from log directories at PATHS that grow. Nobody
    in the quorum counts the reader. Ctrl-C ends it after the batch that runs; started again, it
    goes on where it was.
    """
    options = _options(paths, words)
    with job_on_spark("stream", words) as (spark, tell), _until_stopped() as go_on:
        from quorate.spark.jobs.follow import follow
        from quorate.spark.tables.summary import BadInput

        try:
            told = follow(
                spark,
                options,
                absolute(words["warehouse"]),
                every_s=None if words["once"] else words["every"],
                table_format=words["table_format"],
                tell=tell,
                go_on=go_on,
            )
        except BadInput as error:
            click.echo(error, err=True)
            return BAD_INPUT
    print_told(told.to_json(), words["as_json"], lambda: _lines(told))
    return BAD_INPUT if told.bad else 0


def _options(paths: tuple[str, ...], words: dict[str, Any]) -> dict[str, str]:
    """The options of the source."""
    if bool(paths) == bool(words["bootstrap"]):
        raise click.UsageError("give either --bootstrap-controllers or PATHS")
    found = {"timeoutMs": str(round(words["timeout"] * 1000))}
    if words["fail_fast"]:
        found["failFast"] = "true"
    if paths:
        found["paths"] = json.dumps([absolute(path) for path in paths])
    for text in words["bootstrap"]:
        label, equals, addresses = text.rpartition("=")
        name = f"bootstrap.controllers.{label}" if equals else "bootstrap.controllers"
        if name in found:
            raise click.UsageError(
                f"--bootstrap-controllers {text}: each cluster needs a label of its own"
            )
        found[name] = addresses
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
    """Whether nobody has asked the job to end, by SIGINT or SIGTERM."""
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


def _lines(told: Followed) -> list[str]:
    found = [
        f"{many(told.records, 'record')} and {many(told.events, 'event')} taken into "
        f"{told.warehouse} in {many(told.batches, 'batch', 'batches')}, {told.seconds:.1f} s",
        *cluster_lines(told),
    ]
    if told.damaged_pieces:
        found.append(
            f"  {many(told.damaged_pieces, 'note or damaged piece', 'notes and damaged pieces')}, "
            "see `quarantine`"
        )
    found += [f"  not read, for it may still be written: {end}" for end in told.unread]
    found += [f"  passed over: {archive}" for archive in told.passed_over]
    found += [f"  waited for: {cluster}" for cluster in told.silent]
    return found
