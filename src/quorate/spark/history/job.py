"""The job that answers questions about the past, from the tables of a warehouse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.spark.history.views import NAMES, VIEWS, register_views
from quorate.spark.session import active, beside
from quorate.spark.tables.store import NoWarehouse
from quorate.spark.tables.warehouse import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANSWER: Final = "quorate_answer"
_JSON: Final = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "dateFormat": "yyyy-MM-dd",
    "ignoreNullFields": "false",
}
_SAID: Final = re.compile(r"(\[[A-Z][A-Z0-9_.]+\] .{0,2000}?) SQLSTATE: (\w\w)\w{3}", re.DOTALL)
"""What Spark says of an error of its own, wherever it stands among what Java says."""
_OF_THE_QUESTION: Final = ("21", "22", "42", "P0")
"""Classes of SQLSTATE (SQL:2016, 24.1) that are the mistake of who asked: cardinality, data, syntax
or names, raised on purpose."""


class NoSuchQuestion(QuorateError):
    """There is no view of this name, or the SQL is no query or cannot be answered."""

    exit_code = 2


def history(
    spark: SparkSession,
    warehouse: str,
    question: str,
    *,
    cluster: str | None = None,
    where: str | None = None,
    order_by: str | None = None,
    table_format: str = "delta",
) -> DataFrame:
    """The answer to a question: a view of `views.VIEWS`, or any SQL query over tables and views.

    The SQL is that of a session of its own (`session.beside`): times without a zone are UTC. Of the
    warehouse it has the tables and views that this call names, and no others.

    cluster, where, order_by: as of `narrowed`

    Raises NoSuchQuestion, and NoWarehouse where nothing was taken in yet.
    """
    store = open_store(warehouse, table_format)
    store.recover()
    if store.last_run() == 0:
        raise NoWarehouse(warehouse)
    if question not in NAMES and re.fullmatch(r"[\w-]+", question.strip()):
        tables = [name for name in NAMES if name not in VIEWS]
        raise NoSuchQuestion(
            f"there is no '{question}'; there are the questions {', '.join(VIEWS)} and the tables "
            f"{', '.join(tables)}"
        )
    own = beside(spark)
    with active(own):
        register_views(own, store, " ".join((question, where or "", order_by or "")))
    if question in NAMES:
        answer = own.table(question)
    else:
        with understood():
            answer = own.sql(_query(own, question))
    return narrowed(answer, cluster, where, order_by)


def _query(spark: SparkSession, question: str) -> str:
    """The question, if it is a query: nothing that changes anything. Raises NoSuchQuestion."""
    from pyspark.errors import ParseException

    query = question.rstrip("; \n\t")
    parser = spark._jsparkSession.sessionState().sqlParser()
    parser.parsePlan(query)
    try:
        parser.parsePlan(f"WITH asked AS (\n{query}\n) SELECT * FROM asked")  # a query alone fits
    except ParseException:
        raise NoSuchQuestion(
            f"'{question}' is no question: only a query is (SELECT, WITH, FROM, VALUES)"
        ) from None
    return query


def narrowed(
    answer: DataFrame,
    cluster: str | None = None,
    where: str | None = None,
    order_by: str | None = None,
) -> DataFrame:
    """Of one cluster, under a condition, sorted (both in SQL). Raises NoSuchQuestion."""
    with understood():
        if cluster is not None:
            answer = answer.where(answer["cluster_id"] == cluster)
        if where:
            answer = answer.where(where)
        if order_by:
            answer.createOrReplaceTempView(_ANSWER)
            answer = answer.sparkSession.sql(f"SELECT * FROM {_ANSWER} ORDER BY {order_by}")
    return answer


def json_rows(answer: DataFrame, limit: int | None = None) -> Iterator[str]:
    """The rows of any data frame as JSON texts, one partition after another; or the first `limit`.

    Times are ISO-8601 in UTC to the millisecond, whatever zone session and machine have; bytes are
    base64, numbers that JSON does not know are texts (`"Infinity"`, `"NaN"`). Raises NoSuchQuestion
    for two columns of one name, and where the SQL behind it cannot be answered.
    """
    from pyspark.sql import functions as F

    for name, count in Counter(answer.columns).items():
        if count > 1:
            raise NoSuchQuestion(f"two columns are called '{name}': tell them apart by AS")
    with understood():
        texts = answer.select(F.to_json(F.struct("*"), _JSON))
        rows = texts.toLocalIterator(True) if limit is None else iter(texts.take(limit))
        for row in rows:
            yield row[0]


@contextmanager
def understood(where: str = "") -> Iterator[None]:
    """SQL that cannot be is the mistake of who asked, `where` it is. Raises NoSuchQuestion."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        raise NoSuchQuestion(where + said) from None
    except Exception as error:
        found = _SAID.search(str(error))
        if found is None or found[2] not in _OF_THE_QUESTION or "PATH_NOT_FOUND" in found[1]:
            raise
        raise NoSuchQuestion(where + " ".join(found[1].split())) from None
