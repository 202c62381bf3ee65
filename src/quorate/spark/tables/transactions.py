"""Metadata transactions (KIP-868): where they are in the log, and when their records take effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quorate.spark.tables.lineage import chunk_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def transactions(log: DataFrame, after_holes: Mapping[str, Sequence[int]]) -> DataFrame:
    """Each metadata transaction: its start and finish offsets, and how and when it ended.

    `finish` is null when it has not ended, or when its end is in a gap of the log.

    after_holes: by cluster, the offsets at which its log continues after a gap
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    marks = log.where(F.col("type").like("%TransactionRecord"))
    after = Window.partitionBy("cluster_id", _holes_before(after_holes)).orderBy("offset")
    return (
        marks.withColumn("finish", F.lead("offset").over(after))
        .withColumn("how", F.lead("type").over(after))
        .withColumn("at", F.lead("time").over(after))
        .where("type = 'BeginTransactionRecord'")
        .select("cluster_id", F.col("offset").alias("start"), "finish", "how", "at")
    )


def _holes_before(after_holes: Mapping[str, Sequence[int]]) -> Column:
    """The number of gaps before an offset, so that no marker pairs with one beyond a gap."""
    from pyspark.sql import functions as F

    cases = [
        F.when(F.col("cluster_id") == id, sum((F.col("offset") >= at).cast("int") for at in starts))
        for id, starts in after_holes.items()
        if starts
    ]
    return F.coalesce(*cases, F.lit(0))


def in_transactions(
    steps: DataFrame, log: DataFrame, holes: Mapping[str, Sequence[int]]
) -> DataFrame:
    """The steps with effective offsets: records of a transaction take effect at its end.

    Records of an aborted transaction are left out. Records of the quorum itself (LeaderChange and
    the like) are never part of a transaction.
    """
    from pyspark.sql import functions as F

    found = transactions(log, holes).withColumnRenamed("cluster_id", "of")
    found = found.where("finish IS NOT NULL")
    # Join by chunk of offsets: the number of transactions grows with the log, so they cannot be
    # broadcast, and a join on a range alone would compare each record with each transaction.
    chunks = F.expr(f"explode(sequence({chunk_of('start')}, {chunk_of('finish')}))")
    found = found.withColumn("at_chunk", chunks)
    steps = steps.withColumn("chunk", F.expr(chunk_of("offset")))
    inside = (
        (steps.cluster_id == found.of)
        & (steps.chunk == found.at_chunk)
        & (steps["offset"] > found.start)
        & (steps["offset"] < found.finish)
        & ~steps.type.isin("LeaderChange", "KRaftVersion", "KRaftVoters")
    )
    joined = steps.join(found, inside, "left")
    joined = joined.where("how IS NULL OR how <> 'AbortTransactionRecord'")
    ended = F.unix_micros("at")
    return (
        joined.withColumn("effective_offset", F.coalesce("finish", "effective_offset"))
        .withColumn("effective_time", F.coalesce(ended, "effective_time"))
        .drop("of", "start", "finish", "how", "at", "at_chunk", "chunk")
    )
