"""The job that answers a question from the tables of a warehouse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.spark.history.views import NAMES, VIEWS, register_views
from quorate.spark.session import active, is_remote, isolated_session
from quorate.spark.tables.store import NoWarehouseError
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
_SPARK_ERROR: Final = re.compile(
    r"(\[[A-Z][A-Z0-9_.]+\] .{0,2000}?) SQLSTATE: (\w\w)\w{3}", re.DOTALL
)
"""An error message of Spark itself, anywhere within a Java stack trace."""
_QUERY: Final = re.compile(r"\W*(SELECT|WITH|FROM|VALUES|TABLE|MAP|REDUCE)\b", re.IGNORECASE)
_QUESTION_SQLSTATES: Final = ("21", "22", "42", "P0")
"""Classes of SQLSTATE (SQL:2016, 24.1) that the question causes: cardinality, data, syntax or names,
and errors raised by the query itself."""


class UnknownQuestionError(QuorateError):
    """There is no view of this name, or the SQL is no query, or it fails."""

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
    """The answer to a question: a view of `views.VIEWS`, a table, or an SQL query over them.

    The SQL is that of a session of its own (`session.isolated_session`): times without a zone are UTC. It has
    only the tables and views of the warehouse that this call names.

    cluster, where, order_by: as for `narrow`

    Raises UnknownQuestionError, and NoWarehouseError where nothing was ingested yet.
    """
    store = open_store(warehouse, table_format)
    store.recover()
    if store.last_run() == 0:
        raise NoWarehouseError(warehouse)
    if question not in NAMES and re.fullmatch(r"[\w-]+", question.strip()):
        tables = [name for name in NAMES if name not in VIEWS]
        raise UnknownQuestionError(
            f"there is no '{question}'; the questions are {', '.join(VIEWS)}, and the tables "
            f"{', '.join(tables)}"
        )
    own = isolated_session(spark)
    with active(own):
        register_views(own, store, " ".join((question, where or "", order_by or "")))
    if question in NAMES:
        answer = own.table(question)
    else:
        with question_errors():
            answer = own.sql(_query(own, question))
    return narrow(answer, cluster, where, order_by)


def _query(spark: SparkSession, question: str) -> str:
    """The question as SQL. Raises UnknownQuestionError where it is no query."""
    from pyspark.errors import ParseException

    query = question.rstrip("; \n\t")
    within = f"WITH asked AS (\n{query}\n) SELECT * FROM asked"  # only a query is valid in WITH
    if is_remote(spark):
        # A client of Spark Connect has no parser, and the server runs a command when it gets one.
        if _QUERY.match(query) is None:
            raise UnknownQuestionError(_no_query(question))
        return within
    parser = spark._jsparkSession.sessionState().sqlParser()
    parser.parsePlan(query)
    try:
        parser.parsePlan(within)
    except ParseException:
        raise UnknownQuestionError(_no_query(question)) from None
    return query


def _no_query(question: str) -> str:
    return f"'{question}' is no query: a query begins with SELECT, WITH, FROM or VALUES"


def narrow(
    answer: DataFrame,
    cluster: str | None = None,
    where: str | None = None,
    order_by: str | None = None,
) -> DataFrame:
    """The rows of one cluster, with a condition and an order (both SQL).

    Raises UnknownQuestionError.
    """
    with question_errors():
        if cluster is not None:
            answer = answer.where(answer["cluster_id"] == cluster)
        if where:
            answer = answer.where(where)
        if order_by:
            answer.createOrReplaceTempView(_ANSWER)
            answer = answer.sparkSession.sql(f"SELECT * FROM {_ANSWER} ORDER BY {order_by}")
    return answer


def json_rows(answer: DataFrame, limit: int | None = None) -> Iterator[str]:
    """The rows of a data frame as JSON, one partition after another; or the first `limit`.

    Times are ISO-8601 in UTC to the millisecond, whatever zone session and machine have; bytes are
    base64, numbers that JSON does not have are strings (`"Infinity"`, `"NaN"`). Raises UnknownQuestionError
    for two columns of one name, and where the SQL behind it cannot be answered.
    """
    from pyspark.sql import functions as F

    for name, count in Counter(answer.columns).items():
        if count > 1:
            raise UnknownQuestionError(f"two columns are called '{name}': rename one with AS")
    with question_errors():
        texts = answer.select(F.to_json(F.struct("*"), _JSON))
        rows = texts.toLocalIterator(True) if limit is None else iter(texts.take(limit))
        for row in rows:
            yield row[0]


@contextmanager
def question_errors(where: str = "") -> Iterator[None]:
    """Raise UnknownQuestionError for errors that the SQL causes; `where` precedes the message."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        first_line = next((line for line in str(error).splitlines() if line.strip()), "")
        raise UnknownQuestionError(where + first_line) from None
    except Exception as error:
        found = _SPARK_ERROR.search(str(error))
        if found is None or found[2] not in _QUESTION_SQLSTATES or "PATH_NOT_FOUND" in found[1]:
            raise
        raise UnknownQuestionError(where + " ".join(found[1].split())) from None
