"""The job that answers questions about the past, from the tables of a warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.errors import QuorateError
from quorate.spark.tables.store import WarehouseError, open_store
from quorate.spark.views import VIEWS, register_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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

    where: a condition in SQL over the view's columns

    Raises NoSuchQuestion, and WarehouseError where nothing was taken in yet.
    """
    from pyspark.errors import AnalysisException, ParseException

    store = open_store(warehouse, table_format)
    store.recover()
    if store.last_run() == 0:
        raise WarehouseError(f"{warehouse}: there is no warehouse here: `quorate pipeline ingest`")
    names = register_views(spark, store)
    try:
        if question in names:
            answer = spark.table(question)
            return answer.where(where) if where else answer
        if " " not in question.strip():
            raise NoSuchQuestion(f"there is no '{question}'; there are {', '.join(VIEWS)}")
        return spark.sql(question)
    except (AnalysisException, ParseException) as error:
        raise NoSuchQuestion(str(error).partition("\n")[0]) from None
