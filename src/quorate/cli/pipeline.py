"""`quorate pipeline`: jobs on Spark over metadata logs. Each job is also a plain function.

Exit codes: 0 all went well, 1 some input was bad (the good part was taken, the rest is in
quarantine), 2 the command line or a path in it is wrong, 70 the job could not be done (a full disk,
a lost worker).
"""

from __future__ import annotations

import json
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.options import CONTEXT, OrderedGroup, json_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quorate.cli.pipeline_progress import Bar
    from quorate.spark.audit import Report
    from quorate.spark.tables.summary import ClusterSummary, Summary

BAD_INPUT: Final = 1
WRONG: Final = 2
_KILLED: Final = 128
"""The exit code of what a signal ends is so much more than its number."""
_LOG4J: Final = Path(__file__).parents[1].joinpath("spark", "log4j2.properties").as_uri()


@click.group(cls=OrderedGroup, context_settings=CONTEXT)
def pipeline() -> None:
    """Metadata logs as tables, history and answers, on Spark.

    Needs the extra: pip install 'quorate[spark]'. Warehouses are Delta Lake tables below one
    folder; every job may be killed and started again.
    """


def place_options(command: Any) -> Any:
    """Add what every job takes: where it runs, and how it tells what it does."""
    for option in (
        json_option,
        click.option("--quiet", is_flag=True, help="No progress on stderr."),
        click.option(
            "--storage-option",
            metavar="NAME=VALUE",
            multiple=True,
            help="A setting of an object store, named as in its environment (AWS_ENDPOINT_URL).",
        ),
        click.option("--conf", metavar="NAME=VALUE", multiple=True, help="A setting of Spark."),
        click.option("--master", metavar="URL", help="Spark's master; local[*] by default."),
    ):
        command = option(command)
    return command


def job_options(command: Any) -> Any:
    """Add what every job over a warehouse takes."""
    command = place_options(command)
    for option in (
        click.option(
            "--format",
            "table_format",
            type=click.Choice(["delta", "parquet"]),
            default="delta",
            show_default=True,
            help="How the tables are kept.",
        ),
        click.option("--warehouse", "-w", metavar="DIR", required=True, help="Where they are."),
    ):
        command = option(command)
    return command


@pipeline.command()
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
    with _job("ingest", words) as (spark, tell):
        from quorate.spark.tables.ingest import ingest as job
        from quorate.spark.tables.summary import BadInput

        try:
            summary = job(
                spark,
                [_local(path) for path in paths],
                _local(words["warehouse"]),
                table_format=words["table_format"],
                fail_fast=words["fail_fast"],
                options=options,
                up_to=words["up_to"],
                tell=tell,
            )
        except BadInput as error:
            click.echo(error, err=True)
            return BAD_INPUT
    _print(summary.to_json(), words["as_json"], lambda: _ingest_lines(summary))
    return BAD_INPUT if summary.bad else 0


@pipeline.command()
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
    with _job("compact", words) as (spark, tell):
        from quorate.spark.compact import compact as job

        summary = job(
            spark,
            _local(words["warehouse"]),
            table_format=words["table_format"],
            keep_hours=words["keep_hours"],
            least_files=words["least_files"],
            tell=tell,
        )
    told = asdict(summary)
    _print(told, words["as_json"], lambda: [f"{name}: {value}" for name, value in told.items()])
    return 0


@pipeline.command()
@click.argument("paths", nargs=-1, required=True)
@place_options
@click.option("--fail-fast", is_flag=True, help="Stop at the first damage in a log.")
@click.option("--cluster-id", metavar="ID", help="For logs without a meta.properties beside them.")
@click.option("--out", metavar="DIR", help="Write report.json there too.")
def audit(paths: tuple[str, ...], **words: Any) -> int:
    """Hold the replicas at PATHS against each other: is all well, what diverged, at which byte?

    PATHS are copied log directories of controllers and brokers (trees or archives of them), of one
    cluster or many. Exit code 1 tells of damage or of replicas that contradict each other; an
    uncommitted tail is none of that.
    """
    with _job("audit", words) as (spark, tell):
        from quorate.spark.audit.job import audit as job

        report = job(
            spark,
            [_local(path) for path in paths],
            cluster_id=words["cluster_id"],
            fail_fast=words["fail_fast"],
            out=words["out"],
            tell=tell,
        )
    _print(report.to_json(), words["as_json"], lambda: _audit_lines(report))
    return 0 if report.ok else BAD_INPUT


@pipeline.command()
@job_options
@click.option("--out", metavar="FILE", required=True, help="The HTML page to write.")
@click.option("--audit", metavar="FILE", help="A report.json of `audit --out`, shown too.")
@click.option("--cluster", "clusters", metavar="ID", multiple=True, help="Only this one.")
def report(clusters: tuple[str, ...], **words: Any) -> int:
    """Write one self-contained HTML page with pictures of what the warehouse knows."""
    with _job("report", words) as (spark, tell):
        from quorate.spark.report.job import report as job

        shown = job(
            spark,
            _local(words["warehouse"]),
            words["out"],
            audit=words["audit"],
            clusters=clusters,
            table_format=words["table_format"],
            tell=tell,
        )
    told = {"out": words["out"], "clusters": [one.cluster_id for one in shown]}
    _print(told, words["as_json"], lambda: [f"{len(shown)} clusters told in {words['out']}"])
    return 0


@contextmanager
def _job(name: str, words: Mapping[str, Any]) -> Iterator[tuple[SparkSession, Bar]]:
    """A session and a progress bar for a job; what Spark raises becomes one line."""
    from quorate.cli.pipeline_progress import progress
    from quorate.spark.session import session
    from quorate.spark.tables.store import plain_reason

    conf = dict(_setting("--conf", text) for text in words["conf"])
    storage = dict(_setting("--storage-option", text) for text in words["storage_option"])
    conf.setdefault("spark.ui.showConsoleProgress", "false")
    if "spark.log.level" not in conf:
        conf.setdefault("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={_LOG4J}")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # it is told below
    with progress(name, quiet=words["quiet"]) as bar, _left_at_once(bar.clear) as arm:
        bar.tell("starting Spark")
        spark = session(f"quorate {name}", words["master"], storage=storage, **conf)
        arm()  # anew: PySpark has put its own handler there
        bar.watch(spark)
        try:
            yield spark, bar
        except BrokenPipeError:
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise JobFailed(f"{where}{error.strerror or plain_reason(error)}") from error
        except Exception as error:
            if type(error).__module__.startswith(("pyspark", "py4j")):
                if "PATH_NOT_FOUND" in str(error) or "FileNotFoundError" in str(error):
                    raise FileLost(_spark_says(error), words.get("warehouse", "DIR")) from error
                raise JobFailed(_spark_says(error)) from error
            raise
        finally:
            bar.stop()
            spark.stop()


@contextmanager
def _left_at_once(tidy: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Let Ctrl-C and SIGTERM end the process on the spot; gives what does so again where another
    has taken the signals.

    Runs happen as a whole or not at all and the JVM goes with its parent, so there is nothing to
    clear up; while an exception in the middle of what is said to the JVM, as by PySpark's own
    handler, ends in pages of tracebacks.
    """

    def leave(number: int, _: object) -> None:
        tidy()
        why = b"interrupted" if number == signal.SIGINT else b"stopped"
        os.write(2, why + b": what was under way counts for nothing; start it again\n")
        os._exit(_KILLED + number)

    def arm() -> None:
        for number in before:
            signal.signal(number, leave)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    arm()
    try:
        yield arm
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class JobFailed(QuorateError):
    """Spark gave up on a job."""

    exit_code = 70


class FileLost(JobFailed):
    """A table names a file that is not there."""

    exit_code = WRONG

    def __init__(self, what: str, warehouse: str) -> None:
        super().__init__(f"{what}: a file is gone: quorate pipeline repair -w {warehouse}")


def _spark_says(error: Exception) -> str:
    """The first lines of a message that may hold a page of Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("at ", "File "))]
    return "the job failed: " + " ".join(told[:2])[:500]


def _setting(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{option} {text}: it must be NAME=VALUE")
    return name, value


def _local(path: str) -> str:
    """A local path made absolute: executors may run elsewhere."""
    return path if "://" in path else str(Path(path).absolute())


def _print(told: Any, as_json: bool, lines: Callable[[], list[str]]) -> None:
    if as_json:
        click.echo(json.dumps(told, default=str, ensure_ascii=False, allow_nan=False))
    else:
        for line in lines():
            click.echo(line)


def _ingest_lines(summary: Summary) -> list[str]:
    found = [
        f"{summary.records} records and {summary.events} events taken into {summary.warehouse} "
        f"in {summary.seconds:.1f} s",
        *cluster_lines(summary),
    ]
    if summary.damaged_pieces:
        found.append(
            f"  {summary.damaged_pieces} damaged pieces in the input: "
            f'quorate pipeline history -w {summary.warehouse} "SELECT * FROM quarantine"'
        )
    return found


def cluster_lines(summary: Summary) -> list[str]:
    """What was taken of each cluster, and what was not."""
    found = []
    for cluster_id, one in sorted(summary.clusters.items()):
        found.append(f"  {cluster_id}: {_taken(one)}")
        if one.unproven:
            found.append(
                f"    nothing shows that these offsets are committed: {_ranges(one.unproven)}; a "
                "later log may take them back"
            )
        if one.left_out:
            found.append(f"    not taken, for nothing shows it committed: {_ranges(one.left_out)}")
        if one.quarantined:
            reasons = ", ".join(f"{count} {why}" for why, count in one.quarantined.items())
            found.append(f"    in quarantine: {reasons}")
        found += [f"      {why}: {text}" for why, text in one.examples.items()]
        found += [f"    nothing of {path}: {why}" for path, why in one.strangers.items()]
        if one.problem:
            found.append(f"    {one.problem}")
    return found


def _taken(one: ClusterSummary) -> str:
    if one.log_end_offset == 0 and one.applied_end_offset is None:
        return "nothing could be taken"
    return (
        f"{one.records} records, {one.events} events; the log ends at offset {one.log_end_offset}, "
        f"the state at {one.applied_end_offset}"
    )


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{start} to {end - 1}" for start, end in ranges)


def _audit_lines(report: Report) -> list[str]:
    found = []
    for cluster in report.clusters:
        end = cluster.committed_end
        known = (
            "too few voters are here to say what is committed"
            if end is None
            else f"committed up to offset {end}, epoch {cluster.committed_epoch}"
        )
        found.append(f"cluster {cluster.cluster_id}: {known}")
        for one in cluster.replicas:
            end_text = "no log" if one.end is None else f"offsets {one.start} to {one.end}"
            who = "unknown node" if one.node_id < 0 else f"node {one.node_id}"
            found.append(f"  {who}: {one.state} ({end_text}) {one.path}")
            for finding in one.findings:
                more = f" (and {finding.more} more like it)" if finding.more else ""
                found.append(f"    {finding}{more}")
    return [*found, "all is well" if not report.findings else _audit_sum(report)]


def _audit_sum(report: Report) -> str:
    states = Counter(one.state for one in report.replicas)
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))


from quorate.cli import (  # noqa: E402 - in files of their own
    pipeline_campaign,  # noqa: F401
    pipeline_history,  # noqa: F401
    pipeline_repair,  # noqa: F401
    pipeline_stream,  # noqa: F401
    pipeline_who,  # noqa: F401
)
