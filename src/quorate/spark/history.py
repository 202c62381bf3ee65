"""The job that answers questions about the past, from the tables of a warehouse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.spark.tables.store import NoWarehouse, open_store
from quorate.spark.views import VIEWS, register_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANSWER: Final = "quorate_answer"


class NoSuchQuestion(QuorateError):
    """There is no view of this name, or the SQL cannot be understood."""


def history(
    spark: SparkSession,
    warehouse: str,
    question: str,
    *,
    where: str | None = None,
    table_format: str = "delta",
) -> DataFrame:
    """The answer to a question: a view of `views.VIEWS`, or any SQL over the tables and views.

    where: a condition in SQL over the answer's columns

    Raises NoSuchQuestion, and NoWarehouse where nothing was taken in yet.
    """
    store = open_store(warehouse, table_format)
    store.recover()
    if store.last_run() == 0:
        raise NoWarehouse(warehouse)
    names = register_views(spark, store)
    if question in names:
        return narrowed(spark.table(question), where=where)
    if " " not in question.strip():
        tables = [name for name in names if name not in VIEWS]
        raise NoSuchQuestion(
            f"there is no '{question}'; there are the questions {', '.join(VIEWS)} and the tables "
            f"{', '.join(tables)}"
        )
    with understood():
        answer = spark.sql(question)
    return narrowed(answer, where=where)


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


@contextmanager
def understood(where: str = "") -> Iterator[None]:
    """SQL that cannot be is the mistake of who asked, `where` it is. Raises NoSuchQuestion."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "")
        raise NoSuchQuestion(where + said) from None
