"""`quorate pipeline who`: joins changes with what authorizers and controllers logged."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.plural import pluralize
from quorate.cli.columns import table_lines
from quorate.cli.options import ToolCommand
from quorate.cli.pipeline.job import (
    absolute,
    findings_code,
    findings_option,
    job_on_spark,
    job_options,
)
from quorate.cli.pipeline.rows import json_texts, limit_option, shown_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quorate.spark.who import WhoAnswer

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_ASKED: Final = "caused_by IN ('request', 'unknown')"
_SHOWN: Final = (
    *("time", "offset", "event", "what", "who", "confidence", "request", "host", "client_id"),
)
_LOGS: Final = {
    "authorizer": "kafka-authorizer.log, of the controllers and the brokers.",
    "request": "kafka-request.log: it has the requests' bodies, the strongest evidence.",
    "controller": "controller.log, for what controllers did by themselves.",
    "server": "server.log, or any other log that contains such lines.",
}


def _millis(_context: Any, _parameter: Any, text: str) -> int:
    """The ms of `5s`, `200ms`, `2m` or `1h`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if found is None:
        raise click.BadParameter(f"{text}: it must be like 5s, 200ms, 2m or 1h")
    return round(float(found[1]) * _UNITS[found[2]])


def log_options(command: Any) -> Any:
    """Add an option for each kind of log."""
    for kind, text in reversed(_LOGS.items()):
        command = click.option(f"--{kind}-log", metavar="PATH", multiple=True, help=text)(command)
    return command


@click.command(
    cls=ToolCommand,
    epilog="\b\nquorate pipeline who -w warehouse --authorizer-log '/logs/*/kafka-authorizer.log*'"
    "\nquorate pipeline who -w warehouse --tz Europe/Berlin --authorizer-log /logs"
    " --request-log /logs \\\n    --where \"event = 'topic deleted' AND topic_name = 'orders'\"",
)
@job_options
@findings_option
@log_options
@click.option(
    "--cluster", metavar="ID", help="The cluster of the logs; needed if the warehouse has several."
)
@click.option(
    "--tz", metavar="ZONE", default="UTC", show_default=True, help="The time zone of the logs."
)
@click.option(
    "--window",
    metavar="DURATION",
    callback=_millis,
    default="5s",
    show_default=True,
    help="Longest time from an allowed request to its change.",
)
@click.option(
    "--skew",
    metavar="DURATION",
    callback=_millis,
    default="1s",
    show_default=True,
    help="Largest difference between the clocks of two nodes.",
)
@click.option("--pattern", metavar="LAYOUT", help="The log4j layout, if it is not Kafka's own.")
@click.option("--all", "everything", is_flag=True, help="Also print what nodes did by themselves.")
@click.option("--where", metavar="SQL", help="A condition on the columns of the answer.")
@limit_option
@click.option("--out", is_flag=True, help="Keep the whole answer in the warehouse, as table who.")
def who(**words: Any) -> int:
    """Show who made changes, from the logs of the nodes, and how certain that is.

    The authorizer logs allowed requests only at DEBUG of kafka.authorizer.logger. The active
    controller logs a request that a broker forwards, with the client's principal. PATH is a file, a
    pattern, or a directory in which files have Kafka's names (rotated and compressed ones, too).
    Every name has a line of a log as evidence.

    Times are UTC in the answer and in --where; --tz is the zone of the logs. --json prints a line
    for each change, and a last one with the summary. Exit code 1: some lines are unreadable.
    """
    given = {kind: [absolute(path) for path in words[f"{kind}_log"]] for kind in _LOGS}
    if not any(given.values()):
        raise click.UsageError("give at least one log: --authorizer-log PATH")
    with job_on_spark("who", words) as (session, bar):
        from quorate.spark.session import isolated_session
        from quorate.spark.who import LogPaths
        from quorate.spark.who import who as job
        from quorate.spark.who.job import keep, open_warehouse
        from quorate.spark.who.layout import KAFKA
        from quorate.spark.who.logs import Reading

        spark = isolated_session(session)
        reading = Reading(words["pattern"] or KAFKA, words["tz"], words["window"], words["skew"])
        store = open_warehouse(absolute(words["warehouse"]), words["table_format"])
        condition = _condition(spark, words)
        answer = job(
            spark,
            store,
            LogPaths(**given),
            cluster_id=words["cluster"],
            reading=reading,
            notify=bar,
        )
        try:
            rows = answer.rows.where(condition).orderBy("offset", "event", "partition")
            kept = keep(spark, store, answer) if words["out"] else None
            summary = answer.summary() | {"kept_rows": kept}
            if words["as_json"]:
                for text in json_texts(rows, words["limit"], bar.clear):
                    print(text)
                print(
                    json.dumps(
                        {"summary": summary}, default=str, ensure_ascii=False, allow_nan=False
                    )
                )
            else:
                _show(shown_rows(rows, words["limit"], bar.clear), summary)
        finally:
            answer.close()
    for line in _warnings(answer):
        click.echo(line, err=True)
    return findings_code(answer.unread, words)


def _condition(spark: SparkSession, words: dict[str, Any]) -> str:
    """The condition of the rows to print. Raises UnknownQuestionError before anything is read."""
    from quorate.spark.history.job import question_errors
    from quorate.spark.tables.layout import WHO
    from quorate.spark.tables.read import spark_schema

    condition = words["where"] or ("true" if words["everything"] else _ASKED)
    with question_errors("--where: "):
        _ = spark.createDataFrame([], spark_schema(WHO)).where(condition).columns
    return str(condition)


def _show(rows: list[dict[str, Any]], summary: dict[str, Any]) -> None:
    cells = [row | {"what": subject(row), "who": principal_text(row)} for row in rows]
    lines = table_lines(_SHOWN, ([row[name] for name in _SHOWN] for row in cells))
    for line in lines if cells else ["no such change"]:
        click.echo(line)
    causes, sure = (
        ", ".join(f"{count} {name}" for name, count in summary[column].items())
        for column in ("caused_by", "confidence")
    )
    click.echo(f"{summary['changes']} changes of {summary['cluster_id']}: {causes}; {sure}")
    unknown = next((row for row in cells if row["confidence"] == "unknown"), None)
    if unknown is not None:
        click.echo(
            f"unknown, for example {unknown['event']} at offset {unknown['offset']}: {unknown['reason']}"
        )
    if summary["kept_rows"] is not None:
        click.echo(f"{summary['kept_rows']} rows kept as table who")


def subject(row: dict[str, Any]) -> str:
    """The subject of a change: `orders-0`, `topic/orders retention.ms`, `node 12`."""
    if row["partition"] is not None:
        return f"{row['topic_name']}-{row['partition']}"
    if row["resource_type"] is not None:
        name = row["resource_name"] or "<default>"
        more = row["name"] or row["principal"]
        return f"{row['resource_type']}/{name}" + (f" {more}" if more else "")
    if row["node_id"] is not None:
        return f"node {row['node_id']}"
    return row["topic_name"] or " ".join(filter(None, (row["principal"], row["name"]))) or "-"


def principal_text(row: dict[str, Any]) -> str | None:
    """The principal; a node's cause in brackets; candidates with question marks."""
    if row["who"] is not None:
        return str(row["who"])
    if row["confidence"] == "ambiguous":
        return " ".join(f"{one['principal']}?" for one in row["candidates"][:3])
    return None if row["confidence"] == "unknown" else f"({row['caused_by']})"


def _warnings(answer: WhoAnswer) -> list[str]:
    found = list(answer.notes)
    for one in answer.files:
        if one.unread:
            position, text = one.first_unread[0]
            kind = f" ({one.not_utf8} are no UTF-8)" if one.not_utf8 else ""
            found.append(
                f"{one.path}: {pluralize(one.unread, 'line')} could not be read{kind}; the first, at "
                f"byte {position}: {text!r}"
            )
    return found
