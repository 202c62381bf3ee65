"""`quorate pipeline history`: answers questions from the warehouse, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.times import parse_time
from quorate.cli.columns import fold, table_lines
from quorate.cli.options import ToolCommand
from quorate.cli.pipeline.job import absolute, job_on_spark, job_options, print_result
from quorate.cli.pipeline.rows import json_texts, limit_option, print_array, shown_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LONGEST_OFFSET: Final = 19
"""Digits of the largest offset."""


def _then(text: str) -> dict[str, Any]:
    """--at as arguments of `state_at`."""
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_OFFSET:
        return {"offset": int(text)}
    try:
        instant = parse_time(text)
    except ValueError:
        raise click.UsageError(
            f"--at {text}: it must be an offset or a time like 2026-11-17T09:00:00Z or "
            "'2026-11-17 09:00:00 Europe/Berlin'"
        ) from None
    if instant.tzinfo is None:
        example = f"{instant.isoformat()}Z"  # isoformat adds a time to a date, which a zone needs
        raise click.UsageError(f"--at {text}: add the time zone, for example {example}")
    return {"instant": instant}


@click.command(cls=ToolCommand)
@click.argument("question", required=False)
@job_options
@click.option("--where", metavar="SQL", help="A condition on the columns of the answer.")
@click.option("--order-by", metavar="SQL", help="Sort the answer: 'time DESC, offset'.")
@limit_option
@click.option(
    "--at",
    metavar="TIME|OFFSET",
    callback=lambda _context, _option, text: None if text is None else _then(text),
    help="With a kind: its state at that time, or after the record at that offset (inclusive).",
)
@click.option("--cluster", metavar="ID", help="Only this cluster; --at needs it.")
def history(question: str | None, **words: Any) -> int:
    """Answer QUESTION from the warehouse; without one, list the questions.

    QUESTION is the name of a view or a table, or an SQL query over them. With --at (an offset, or a
    time like 2026-11-17T09:00:00Z) it is a kind: topics, partitions, brokers, configs, ...

    Times are UTC, in the answer and in SQL. --json prints an array of all rows, one a line;
    bytes are base64, numbers that JSON does not have are strings.
    """
    if question is None:
        return _list_questions(words["as_json"])
    if words["at"] is not None and words["cluster"] is None:
        raise click.UsageError("--at needs --cluster")
    with job_on_spark("history", words) as (spark, bar):
        from quorate.spark.session import isolated_session

        bar.notify("querying the tables")
        answer = _answer(isolated_session(spark), question, words)
        if words["as_json"]:
            print_array(json_texts(answer, words["limit"], bar.clear))
        else:
            names = answer.columns  # may contain duplicates, which a dict of a row would lose
            numbered = answer.toDF(*map(str, range(len(names))))
            rows = shown_rows(numbered, words["limit"], bar.clear)
            for line in table_lines(names, (row.values() for row in rows)):
                click.echo(line)
    return 0


def _list_questions(as_json: bool) -> int:
    from quorate.spark.session import SparkMissingError

    try:
        from quorate.spark.history.views import VIEWS
    except ImportError as error:
        raise SparkMissingError(f"{error}: pip install 'quorate[spark]'") from None
    views = [{"name": name, "question": view.question} for name, view in VIEWS.items()]
    lines = ["{name:<28}{question}".format(**one) for one in views]
    print_result(views, as_json, lambda: fold(lines))
    return 0


def _answer(spark: SparkSession, question: str, words: Mapping[str, Any]) -> DataFrame:
    from quorate.spark.history.job import history as job
    from quorate.spark.history.job import narrow
    from quorate.spark.history.timetravel import log_ends, state_at
    from quorate.spark.tables.warehouse import open_store

    warehouse, table_format = absolute(words["warehouse"]), words["table_format"]
    if words["at"] is None:
        conditions = {name: words[name] for name in ("cluster", "where", "order_by")}
        return job(spark, warehouse, question, table_format=table_format, **conditions)
    then = words["at"]
    store = open_store(warehouse, table_format)
    answer = state_at(spark, store, question, words["cluster"], **then)
    if "instant" in then:
        end = log_ends(store, words["cluster"])
        if end < then["instant"]:
            ended = end.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            click.echo(f"the ingested log ends at {ended}: this is the state at its end", err=True)
    return narrow(answer, None, words["where"], words["order_by"])
