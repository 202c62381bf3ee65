"""How questions print their rows: some of them for people, all of them for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FOR_PEOPLE: Final = 50

limit_option = click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Rows to print at most.  [default: {_FOR_PEOPLE}; all with --json]",
)


def shown_rows(
    answer: DataFrame, limit: int | None, ready: Callable[[], None]
) -> list[dict[str, Any]]:
    """The first rows of an answer, for people; numbers keep the digits that Spark gave them.

    ready: called before the first word is said, here that there are more rows
    """
    from quorate.spark.history.job import json_rows

    most = _FOR_PEOPLE if limit is None else limit
    found = [json.loads(text, parse_float=str) for text in json_rows(answer, most + 1)]
    ready()
    if len(found) > most:
        _tell_of_more(most)
    return found[:most]


def json_texts(answer: DataFrame, limit: int | None, ready: Callable[[], None]) -> Iterator[str]:
    """Every row of an answer as JSON, as it comes; with a limit the first ones."""
    from quorate.spark.history.job import json_rows

    most = None if limit is None else limit + 1
    for number, text in enumerate(json_rows(answer, most)):
        if number == 0:
            ready()
        if number == limit:
            _tell_of_more(number)
            return
        yield text


def print_array(texts: Iterable[str]) -> None:
    """JSON texts as an array, a line for each; nothing is printed before the first one is there."""
    before = "["
    for text in texts:
        print(before, text, sep="", end="")
        before = ",\n"
    print("]" if before != "[" else "[]")


def _tell_of_more(limit: int) -> None:
    click.echo(f"... more rows: --limit (only {limit} are shown)", err=True)
