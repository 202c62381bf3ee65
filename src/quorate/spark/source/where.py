"""The option `where`: conditions on the rows that the source returns.

    offset BETWEEN 200 AND 400 AND type IN ('TopicRecord', 'PartitionRecord')

Conditions on columns, joined by AND: `=` (also `==`), `<>` (also `!=`), `<`, `<=`, `>`, `>=`,
`BETWEEN`, `[NOT] IN`, `[NOT] LIKE` with `%` at either end, `IS [NOT] NULL`. They have the meaning
of SQL. Spark's pushdown could give the source the same filters, but Spark keeps one reader for a
data frame: filters of one query would cut the rows of the next (docs/decisions/0011).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import and_
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from quorate.base.times import parse_time
from quorate.spark.decode.columns import in_any_case
from quorate.spark.files.paths import SourceError

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)|(?P<word>\w+)|(?P<sign><>|!=|==|<=|>=|[=<>(),]))"
)
_COMPARED: Final[dict[str, Callable[[tuple[str, ...], Any], Filter]]] = {
    "=": EqualTo,
    "==": EqualTo,
    "<>": lambda column, value: Not(EqualTo(column, value)),
    "!=": lambda column, value: Not(EqualTo(column, value)),
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}
_EXPRESSIONS: Final[dict[type[Filter], Callable[[Any, Any], Any]]] = {
    EqualTo: lambda column, value: column == value,
    LessThan: lambda column, value: column < value,
    LessThanOrEqual: lambda column, value: column <= value,
    GreaterThan: lambda column, value: column > value,
    GreaterThanOrEqual: lambda column, value: column >= value,
    In: lambda column, values: column.isin(list(values)),
    StringStartsWith: lambda column, value: pc.starts_with(column, value),
    StringEndsWith: lambda column, value: pc.ends_with(column, value),
    StringContains: lambda column, value: pc.match_substring(column, value),
    IsNull: lambda column, _: column.is_null(),
    IsNotNull: lambda column, _: column.is_valid(),
}

_CHOOSING: Final = ("in", "like")
_KNOWN: Final = "=, <>, !=, <, <=, >, >=, BETWEEN, [NOT] IN, [NOT] LIKE, IS [NOT] NULL"
_TIME_FORMS: Final = (
    "write '2026-11-21 06:14:00' or a part of it; a zone may follow the seconds: Z, +01:00, "
    "Europe/Berlin"
)
_NOW: Final = re.compile(r"\s*(epoch|now|today|tomorrow|yesterday)\b.*", re.IGNORECASE)
"""What Spark replaces by a time anew for each query, while this condition is of the data frame."""
_PLAIN: Final = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_timestamp,
)


def parse_where(text: str, types: Mapping[str, pa.DataType]) -> tuple[Filter, ...]:
    """The conditions, which must all hold. Raises SourceError, which names the wrong character.

    Times are read as Spark casts texts (`base.times`). Those without a zone stay without one:
    `zones.in_zone` gives them that of the session.

    types: of the columns; a condition may name columns of numbers, texts, times and booleans
    """
    plain = {name: kind for name, kind in types.items() if any(test(kind) for test in _PLAIN)}
    return tuple(_Parser(text, plain).conditions())


def columns_of(filters: Sequence[Filter]) -> set[str]:
    """The columns that the conditions name."""
    return {_column(found) for found in filters}


def passing(batch: pa.RecordBatch, filters: Sequence[Filter]) -> pa.RecordBatch:
    """The rows of a batch for which all conditions hold."""
    holds = reduce(and_, map(_expression, filters))
    found = pa.Table.from_batches([batch]).filter(holds).combine_chunks().to_batches()
    return found[0] if found else batch.slice(0, 0)


def _column(found: Filter) -> str:
    inner = found.child if isinstance(found, Not) else found
    return str(inner.attribute[0])  # type: ignore[attr-defined]


def _expression(found: Filter) -> Any:
    if isinstance(found, Not):
        # In SQL a condition on a null is unknown, also when negated. Arrow says that a null is in
        # no list, so NOT IN would hold for it.
        return ~_expression(found.child) & pc.field(_column(found)).is_valid()
    return _EXPRESSIONS[type(found)](pc.field(_column(found)), getattr(found, "value", None))


@dataclass
class _Parser:
    text: str
    types: Mapping[str, pa.DataType]
    at: int = 0

    def conditions(self) -> Iterator[Filter]:
        yield from self._condition()
        while self.at < len(self.text.rstrip()):
            start = self.at
            if self._next("word sign", "AND").lower() != "and":
                self._refuse(
                    start, "AND is missing: nothing else joins conditions (instead of OR: IN)"
                )
            yield from self._condition()

    def _condition(self) -> Iterator[Filter]:
        start = self.at
        asked = self._next("word", "the name of a column")
        name = in_any_case(asked, self.types)
        if name is None:
            self._refuse(start, f"there is no column '{asked}'; there are {', '.join(self.types)}")
        column, kind = (name,), self.types[name]
        sign = self._next("sign word", f"a comparison ({_KNOWN})").lower()
        if sign in _COMPARED:
            yield _COMPARED[sign](column, self._value(kind))
        elif sign == "between":
            yield GreaterThanOrEqual(column, self._value(kind))
            self._expect("and")
            yield LessThanOrEqual(column, self._value(kind))
        elif sign in _CHOOSING:
            yield self._chosen(sign, column, kind)
        elif sign == "not":
            sign = self._next("word", "IN or LIKE").lower()
            if sign not in _CHOOSING:
                self._refuse(start, "NOT stands before IN and LIKE alone, and after IS")
            yield Not(self._chosen(sign, column, kind))
        elif sign == "is":
            word = self._next("word", "NULL or NOT NULL").lower()
            if word == "not":
                self._expect("null")
                yield IsNotNull(column)
            elif word == "null":
                yield IsNull(column)
            else:
                self._refuse(start, "IS takes NULL or NOT NULL")
        else:
            self._refuse(start, f"'{sign}' is none of {_KNOWN}")

    def _chosen(self, sign: str, column: tuple[str, ...], kind: pa.DataType) -> Filter:
        return In(column, tuple(self._values(kind))) if sign == "in" else self._like(column, kind)

    def _values(self, kind: pa.DataType) -> Iterator[Any]:
        self._expect("(")
        sign = ","
        while sign == ",":
            yield self._value(kind)
            sign = self._next("sign", "',' or ')'")
        if sign != ")":
            self._refuse(self.at, "')' is missing")

    def _like(self, column: tuple[str, ...], kind: pa.DataType) -> Filter:
        start = self.at
        text = self._value(kind)
        if not isinstance(text, str) or set(text.strip("%")) & set("%_\\"):
            self._refuse(start, "LIKE takes a text with % at either end, and without _ and \\")
        match text.startswith("%"), text.endswith("%"):
            case False, False:
                return EqualTo(column, text)
            case False, True:
                return StringStartsWith(column, text.rstrip("%"))
            case True, False:
                return StringEndsWith(column, text.lstrip("%"))
        return StringContains(column, text.strip("%"))

    def _value(self, kind: pa.DataType) -> Any:
        start = self.at
        found = self._next("text number word", "a value")
        if pa.types.is_timestamp(kind):
            return self._time(start, found)
        try:
            if pa.types.is_integer(kind):
                number = int(found)
                if number.bit_length() > 63:
                    raise ValueError(found)
                return number
            if pa.types.is_boolean(kind):
                return {"true": True, "false": False}[found.lower()]
            if found[0] != "'":
                raise ValueError(found)
            return found[1:-1].replace("''", "'")
        except (KeyError, ValueError):
            self._refuse(start, f"{found} is no value of type {kind}")

    def _time(self, start: int, found: str) -> datetime:
        if found.lower() == "timestamp":
            found = self._next("text", "a time in quotes")
        if found[0] != "'":
            self._refuse(start, f"{found} is no value of type timestamp: {_TIME_FORMS}")
        if _NOW.fullmatch(found[1:-1]):
            self._refuse(
                start, f"{found} is another time for each query: use it in .where() instead"
            )
        try:
            return parse_time(found[1:-1])
        except ValueError as error:
            zone = f" ({error})" if "zone" in str(error) else ""
            self._refuse(start, f"{found} is no value of type timestamp{zone}: {_TIME_FORMS}")

    def _expect(self, word: str) -> None:
        start = self.at
        if self._next("word sign", word.upper()).lower() != word:
            self._refuse(start, f"{word.upper()} is missing")

    def _next(self, kinds: str, wanted: str) -> str:
        found = _TOKEN.match(self.text, self.at)
        kind = None if found is None else found.lastgroup
        if found is None or kind not in kinds.split():
            self._refuse(self.at, f"{wanted} is missing")
        self.at = found.end()
        return found[kind]

    def _refuse(self, at: int, why: str) -> NoReturn:
        raise SourceError(f"option where, at character {at + 1} of {self.text!r}: {why}")
