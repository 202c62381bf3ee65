"""Changes joined with evidence, by key and time.

1. `with_context` adds to each change what happened in the same record or batch.
2. `_wants` gives the keys of evidence that each change looks for.
3. `_candidates` joins them with the log lines. A line covers an interval of time, a change has an
   instant. Each interval goes into buckets as long as a window. So Spark joins by equality, and no
   task sees more than one bucket of a key.
4. `_attributions` names a principal for each change, or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from quorate.spark.tables.layout import CHANGES, WHO
from quorate.spark.tables.read import spark_schema
from quorate.spark.who.attribution import Attribution, EvidenceLine, PrincipalEvidence, attribute
from quorate.spark.who.causes import Cause, ChangeContext, ChangeFacts, cause_of
from quorate.spark.who.keys import BODY, CLUSTER, NAMED, REPORTED, clock_key
from quorate.spark.who.logs import Reading

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STRENGTHS: Final = {
    BODY: "body of the request",
    NAMED: "allowed",
    CLUSTER: "allowed on the cluster",
    REPORTED: "reported by the controller",
}
MOST_CANDIDATES: Final = 50
"""Principals that are kept for an ambiguous change."""

_CONTEXT: Final = (
    "bootstrap",
    "topic_created",
    "topic_deleted",
    "reassigned",
    "upgraded",
    "node_events",
)
_NODE_EVENTS: Final = (
    *("broker fenced", "broker unfenced", "broker registered", "broker unregistered"),
    "broker shutting down",
)
_REASSIGNED: Final = ("reassignment started", "replicas changed")
_ID: Final = (
    *("cluster_id", "offset", "event", "topic_id", "partition", "node_id", "resource_type"),
    *("resource_name", "name", "principal"),
)
_WANTS: Final = pa.schema(
    [("change_id", pa.string()), ("ms", pa.int64()), ("key", pa.string()), ("strength", pa.int32())]
)


def who_did(changes: DataFrame, evidence: DataFrame, reading: Reading) -> DataFrame:
    """The columns of `tables.layout.WHO` for every change.

    changes: of one cluster; evidence: of `logs.read_logs`, from the logs of its nodes
    """
    rows = with_context(changes)
    wanted = rows.mapInArrow(_wants, spark_schema(_WANTS))
    found = _candidates(wanted, evidence, reading)
    return rows.join(found, "change_id", "left").mapInArrow(_attributions, spark_schema(WHO))


def with_context(changes: DataFrame) -> DataFrame:
    """The changes with what happened in the same record or batch, a `change_id`, and `ms`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    batch = Window.partitionBy("cluster_id", "time")
    topic = Window.partitionBy("cluster_id", "time", "topic_name")
    record = Window.partitionBy("cluster_id", "time", "offset")
    event = f.col("event")
    first_version = (event == "feature set") & (f.col("name") == "metadata.version")
    upgrade = (event == "feature set") & (f.col("name") == "kraft.version")
    node_event = f.concat_ws(
        " ", f.lit("broker"), "node_id", f.regexp_replace(event, "broker ", "")
    )
    of_node = f.when(event.isin(*_NODE_EVENTS), node_event)

    def any_of(condition: Column, window: Any) -> Column:
        return f.max(f.coalesce(condition, f.lit(False))).over(window)

    return (
        changes.withColumn("bootstrap", any_of(first_version & f.col("before").isNull(), batch))
        .withColumn("node_events", f.array_sort(f.collect_set(of_node).over(batch)))
        .withColumn("topic_created", any_of(event == "topic created", topic))
        .withColumn("topic_deleted", any_of(event == "topic deleted", record))
        .withColumn("reassigned", any_of(event.isin(*_REASSIGNED), record))
        .withColumn("upgraded", any_of(upgrade, batch))
        .withColumn("ms", f.unix_millis("time"))
        .withColumn("change_id", f.sha2(f.to_json(f.struct(*_ID)), 256))
    )


def clock_shift(changes: DataFrame, evidence: DataFrame) -> int | None:
    """The median of how many ms the clocks of controllers' logs are ahead of the records'.

    Measured by new topics, of which controllers log that they have applied the record; None
    without such a line. A restarted node applies records again: the nearest line counts.
    """
    from pyspark.sql import functions as f

    lines = evidence.where(f.col("key").startswith(clock_key(""))).select("key", "at")
    topics = changes.where("event = 'topic created'").select(
        f.concat(f.lit(clock_key("")), "topic_id").alias("key"), f.unix_millis("time").alias("ms")
    )
    shift = f.col("at") - f.col("ms")
    nearest = topics.join(lines, "key").groupBy("key").agg(f.min_by(shift, f.abs(shift)).alias("d"))
    row = nearest.agg(f.percentile_approx("d", 0.5)).first()
    return None if row is None or row[0] is None else int(row[0])


def _candidates(wanted: DataFrame, evidence: DataFrame, reading: Reading) -> DataFrame:
    """change_id and its candidates: one for each principal, with the best of its lines.

    Of several lines of a principal the best is, in this order: the strongest evidence; a request
    within which the record was written; the line of the node that received the request from the
    client, which has its host; the nearest in time.
    """
    from pyspark.sql import functions as f

    width = max(reading.window_ms + 2 * reading.skew_ms, 1000)
    buckets = f.sequence(f.floor(f.col("lo") / width), f.floor(f.col("hi") / width))
    offers = evidence.where(f.col("key").isNotNull()).withColumn("bucket", f.explode(buckets))
    fitting = (
        wanted.withColumn("bucket", f.floor(f.col("ms") / width))
        .join(offers, ["key", "strength", "bucket"])
        .where("ms BETWEEN lo AND hi")
    )
    inside = f.coalesce(f.expr("ms BETWEEN begun AND at"), f.lit(False))
    order = (
        (-f.col("strength")).alias("weakness"),
        (~inside).alias("outside"),
        f.coalesce("forwarded", f.lit(False)).alias("forwarded"),
        f.abs(f.col("ms") - f.col("at")).alias("away"),
    )
    best = f.min(
        f.struct(
            *order,
            *("file", "position", "host", "client_id", "request", "text", "came_twice"),
        )
    )
    people = fitting.groupBy("change_id", "principal").agg(
        f.max("strength").alias("strength"),
        f.max(f.col("strength") == 0).alias("mentions"),
        f.count("*").alias("lines"),
        f.array_sort(f.collect_set("request")).alias("requests"),
        best.alias("best"),
        f.max(inside).alias("inside"),
    )
    one = f.struct(
        (-f.col("strength")).alias("weakness"),
        *("principal", "strength", "mentions", "lines", "requests", "best", "inside"),
    )
    some = f.slice(f.array_sort(f.collect_list(one)), 1, MOST_CANDIDATES)
    return people.groupBy("change_id").agg(some.alias("found"))


def _wants(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = []
        for row in _plain(batch):
            for want in _cause(row).wants:
                rows.append((row["change_id"], row["ms"], *want))
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(_WANTS)
        arrays = [pa.array(c, one.type) for c, one in zip(columns, _WANTS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_WANTS)


def _attributions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = []
        for row in _plain(batch):
            found = [_candidate(one) for one in row["found"] or ()]
            attribution = attribute(_cause(row), found)
            rows.append(
                {name: row[name] for name in CHANGES.names} | attribution_columns(attribution)
            )
        yield pa.RecordBatch.from_pylist(rows, WHO)


def _plain(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def _cause(row: Mapping[str, Any]) -> Cause:
    facts = (json.loads(row[side]) if row[side] else {} for side in ("before", "after"))
    return cause_of(
        row, ChangeFacts(*facts), ChangeContext(**{name: row[name] for name in _CONTEXT})
    )


def _candidate(found: Mapping[str, Any]) -> PrincipalEvidence:
    best = found["best"]
    witness = EvidenceLine(*(best[name] for name in EvidenceLine._fields))
    words = ("principal", "strength", "mentions", "lines", "requests", "inside")
    return PrincipalEvidence(**{name: found[name] for name in words}, best=witness)


def attribution_columns(attribution: Attribution) -> dict[str, Any]:
    """An attribution as the columns that WHO has besides those of a change."""
    best = attribution.best
    return {
        "caused_by": attribution.cause,
        "who": attribution.who,
        "confidence": attribution.confidence,
        "reason": attribution.reason,
        **(_seen(best) if best is not None else {}),
        "candidates": [
            {
                "principal": one.principal,
                "evidence": STRENGTHS[one.rank],
                "lines": one.lines,
                **_seen(one),
            }
            for one in attribution.candidates
        ],
    }


def _seen(one: PrincipalEvidence) -> dict[str, Any]:
    best = one.best
    return {
        "request": best.request,
        "host": best.host,
        "client_id": best.client_id,
        "file": best.file,
        "position": best.position,
        "line": best.text,
    }
