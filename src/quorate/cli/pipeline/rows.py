"""Printing of rows: the first ones as a table, or all of them as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.cli.options import WholeNumber

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TABLE_ROWS: Final = 50

limit_option = click.option(
    "--limit",
    type=WholeNumber(min=0),
    help=f"Rows to print at most.  [default: {_TABLE_ROWS}; all with --json]",
)


def shown_rows(
    answer: DataFrame, limit: int | None, ready: Callable[[], None]
) -> list[dict[str, Any]]:
    """The first rows of an answer, for a table; numbers keep the digits that Spark gave them.

    ready: called before anything is printed
    """
    from quorate.spark.history.job import json_rows

    most = _TABLE_ROWS if limit is None else limit
    found = [json.loads(text, parse_float=str) for text in json_rows(answer, most + 1)]
    ready()
    if len(found) > most:
        _report_more(most)
    return found[:most]


def json_texts(answer: DataFrame, limit: int | None, ready: Callable[[], None]) -> Iterator[str]:
    """Every row of an answer as JSON, in a stream; with a limit the first ones."""
    from quorate.spark.history.job import json_rows

    most = None if limit is None else limit + 1
    for number, text in enumerate(json_rows(answer, most)):
        if number == 0:
            ready()
        if number == limit:
            _report_more(number)
            return
        yield text


def print_array(texts: Iterable[str]) -> None:
    """Print JSON texts as an array, one a line; prints nothing before the first one exists."""
    before = "["
    for text in texts:
        print(before, text, sep="", end="")
        before = ",\n"
    print("]" if before != "[" else "[]")


def _report_more(limit: int) -> None:
    click.echo(f"... more rows: --limit (only {limit} are shown)", err=True)
