"""`quorate pipeline history`: questions of the warehouse, answered as a table or as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.columns import table_lines
from quorate.cli.options import Tool
from quorate.cli.pipeline_job import absolute, job_on_spark, job_options, print_told
from quorate.cli.pipeline_rows import json_texts, limit_option, print_array, shown_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LONGEST_OFFSET: Final = 19
"""Digits of the largest."""


def _then(text: str) -> dict[str, Any]:
    """--at, as `state_at` takes it."""
    if text.isascii() and text.isdigit() and len(text) <= _LONGEST_OFFSET:
        return {"offset": int(text)}
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"--at {text}: it must be an offset or a time like 2026-11-17T09:00:00Z"
        ) from None
    if instant.tzinfo is None:
        example = f"{instant.isoformat()}Z"  # a date takes a zone only behind a time
        raise click.UsageError(f"--at {text}: say the time zone too, for example {example}")
    return {"instant": instant}


@click.command(cls=Tool)
@click.argument("question", required=False)
@job_options
@click.option("--where", metavar="SQL", help="A condition on the answer's columns.")
@click.option("--order-by", metavar="SQL", help="Sort the answer: 'time DESC, offset'.")
@limit_option
@click.option(
    "--at",
    metavar="TIME|OFFSET",
    callback=lambda _context, _option, text: None if text is None else _then(text),
    help="With a kind of things: their state then.",
)
@click.option("--cluster", metavar="ID", help="Of this cluster alone; --at needs it.")
def history(question: str | None, **words: Any) -> int:
    """Answer QUESTION from the warehouse; without one, list the questions.

    QUESTION is the name of a view, of a table, or a query in SQL over them. With --at (an offset,
    or a time like 2026-11-17T09:00:00Z) it is a kind: topics, partitions, brokers, configs, ...

    Times are UTC, in the answer and in SQL. --json prints an array of all rows, a line for each;
    bytes are base64, numbers that JSON does not know are texts.
    """
    if question is None:
        return _list_questions(words["as_json"])
    if words["at"] is not None and words["cluster"] is None:
        raise click.UsageError("--at needs --cluster")
    with job_on_spark("history", words) as (spark, bar):
        from quorate.spark.session import beside

        bar.tell("asking the tables")
        answer = _answer(beside(spark), question, words)
        if words["as_json"]:
            print_array(json_texts(answer, words["limit"], bar.clear))
        else:
            names = answer.columns  # maybe some twice
            numbered = answer.toDF(*map(str, range(len(names))))
            rows = shown_rows(numbered, words["limit"], bar.clear)
            for line in table_lines(names, (row.values() for row in rows)):
                click.echo(line)
    return 0


def _list_questions(as_json: bool) -> int:
    from quorate.spark.session import SparkMissing

    try:
        from quorate.spark.history.views import VIEWS
    except ImportError as error:
        raise SparkMissing(f"{error}: pip install 'quorate[spark]'") from None
    told = [{"name": name, "question": view.question} for name, view in VIEWS.items()]
    print_told(told, as_json, lambda: ["{name:<28}{question}".format(**one) for one in told])
    return 0


def _answer(spark: SparkSession, question: str, words: Mapping[str, Any]) -> DataFrame:
    from quorate.spark.history.job import history as job
    from quorate.spark.history.job import narrowed
    from quorate.spark.history.timetravel import log_ends, state_at
    from quorate.spark.tables.warehouse import open_store

    warehouse, table_format = absolute(words["warehouse"]), words["table_format"]
    if words["at"] is None:
        narrow = {name: words[name] for name in ("cluster", "where", "order_by")}
        return job(spark, warehouse, question, table_format=table_format, **narrow)
    then = words["at"]
    store = open_store(warehouse, table_format)
    answer = state_at(spark, store, question, words["cluster"], **then)
    if "instant" in then:
        end = log_ends(store, words["cluster"])
        if end < then["instant"]:
            ended = end.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            click.echo(f"the log at hand ends at {ended}: this is the state then", err=True)
    return narrowed(answer, None, words["where"], words["order_by"])
