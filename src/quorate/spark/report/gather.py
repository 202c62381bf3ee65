"""The figures of a report, queried from the tables; their number does not grow with the data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from quorate.spark.report.svg import TimeSpan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: Final = 96
"""Columns of time in a picture."""
MOST_CLUSTERS: Final = 20
"""Clusters with a section of their own: those with the most records. The table has all."""
MOST_ROWS: Final = 400
"""Rows of each kind for one cluster: the newest."""
MOST_PARTITIONS: Final = 12
"""Partitions whose leaders are shown: those with the most leader changes."""

Row = dict[str, Any]


@dataclass(slots=True)
class ClusterFigures:
    """The figures of one cluster. Times are ms since 1970."""

    cluster_id: str
    span: TimeSpan | None
    """None where no time is known: nothing of it could be ingested."""
    records: int = 0
    end_offset: int | None = None
    problem: str | None = None
    quarantined: int = 0
    """Rows that are not resolved."""
    resolved: int = 0
    quarantine: list[Row] = field(default_factory=list)
    """By reason: the number of open `rows` and of `resolved` ones, and file, position and problem of
    the `first` one."""
    churn: dict[tuple[str, int], int] = field(default_factory=dict)
    """(kind, column of time): number of changes."""
    isr: dict[tuple[str, int], int] = field(default_factory=dict)
    """(isr shrunk | isr expanded, column of time): number of events."""
    controllers: list[Row] = field(default_factory=list)
    voters: list[Row] = field(default_factory=list)
    leaders: list[Row] = field(default_factory=list)
    """Of the partitions with the most leader changes (`turns`), those with the most first."""
    growth: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Of topics and of partitions: (ms, number from then on)."""


_FLEET: Final = """
    WITH loaded AS (SELECT cluster_id, min(time) AS first, max(time) AS last
                    FROM changes WHERE event = 'snapshot loaded' GROUP BY cluster_id),
         known AS (SELECT cluster_id FROM clusters UNION SELECT cluster_id FROM quarantine)
    SELECT cluster_id, coalesce(c.records, 0L) AS records, c.log_end_offset, c.problem,
           unix_millis(coalesce(min(e.first_time), min(l.first))) AS first,
           unix_millis(coalesce(max(e.last_time), max(l.last))) AS last
    FROM known LEFT JOIN clusters c USING (cluster_id) LEFT JOIN epochs e USING (cluster_id)
         LEFT JOIN loaded l USING (cluster_id)
    GROUP BY ALL ORDER BY records DESC, cluster_id
"""
"""Includes clusters that only have rows in quarantine."""
_QUARANTINED: Final = """
    SELECT cluster_id, reason, count_if(resolved_run IS NULL) AS rows,
           count(resolved_run) AS resolved,
           min(struct(resolved_run IS NOT NULL AS sound, file, position, problem)) AS first
    FROM quarantine GROUP BY cluster_id, reason ORDER BY rows DESC, reason
"""
_SPANS: Final = """
    WITH spans AS (SELECT cluster_id, unix_millis(min(first_time)) AS first,
                          unix_millis(max(last_time)) AS last
                   FROM epochs GROUP BY cluster_id)
"""
_COLUMN: Final = (
    "least({columns} - 1, greatest(0, "
    "cast(floor((unix_millis({time}) - first) * {columns} / (last - first + 1)) AS int)))"
)
_CHURN: Final = (
    _SPANS
    + f"""
    SELECT cluster_id, kind, {_COLUMN.format(columns=COLUMNS, time="time")} AS column,
           CASE WHEN event IN ('isr shrunk', 'isr expanded') THEN event END AS isr,
           count(*) AS changes
    FROM changes JOIN spans USING (cluster_id) WHERE cluster_id IN ({{clusters}})
    GROUP BY ALL
"""
)
_NEWEST: Final = """
    SELECT * FROM (
        SELECT {fields}, unix_millis(valid_from_time) AS start, unix_millis(valid_to_time) AS end,
               row_number() OVER (PARTITION BY cluster_id ORDER BY valid_from_offset DESC) AS place
        FROM {table} WHERE cluster_id IN ({clusters}))
    WHERE place <= {most} ORDER BY cluster_id, start
"""
_LEADERS: Final = f"""
    WITH busy AS (
        SELECT cluster_id, topic_id, partition, turns FROM (
            SELECT *, row_number() OVER (PARTITION BY cluster_id
                                         ORDER BY turns DESC, topic_name, partition) AS place
            FROM (SELECT cluster_id, topic_id, topic_name, partition,
                         count_if(leader <> before) AS turns
                  FROM (SELECT *, lag(leader) OVER (PARTITION BY cluster_id, topic_id, partition
                                                    ORDER BY from_offset) AS before
                        FROM leader_timeline WHERE cluster_id IN ({{clusters}}))
                  GROUP BY cluster_id, topic_id, topic_name, partition)
            WHERE turns > 0)
        WHERE place <= {MOST_PARTITIONS})
    SELECT * FROM (
        SELECT cluster_id, topic_name, partition, turns, leader, leader_epoch, cause,
               unix_millis(from_time) AS start, unix_millis(to_time) AS end,
               row_number() OVER (PARTITION BY cluster_id, topic_id, partition
                                  ORDER BY from_offset DESC) AS place
        FROM leader_timeline JOIN busy USING (cluster_id, topic_id, partition))
    WHERE place <= {MOST_ROWS} ORDER BY cluster_id, turns DESC, topic_name, partition, start
"""
"""A new leader epoch is no leader change: a shrinking ISR may begin one, too."""
_GROWTH: Final = (
    _SPANS
    + f"""
    , steps AS (
        SELECT cluster_id, valid_from_time AS time, 1 AS step FROM topics
        UNION ALL
        SELECT cluster_id, valid_to_time, -1 FROM topics WHERE valid_to_time IS NOT NULL
    )
    SELECT cluster_id, {_COLUMN.format(columns=COLUMNS, time="time")} AS column, sum(step) AS step
    FROM steps JOIN spans USING (cluster_id) WHERE cluster_id IN ({{clusters}})
    GROUP BY ALL ORDER BY cluster_id, column
"""
)
_GROWTH_PARTITIONS: Final = _GROWTH.replace(
    "SELECT cluster_id, valid_from_time AS time, 1 AS step FROM topics",
    "SELECT cluster_id, min(valid_from_time) AS time, 1 AS step FROM partitions "
    "GROUP BY cluster_id, topic_id, partition",
).replace(
    "SELECT cluster_id, valid_to_time, -1 FROM topics WHERE valid_to_time IS NOT NULL",
    "SELECT cluster_id, max(valid_to_time), -1 FROM partitions "
    "GROUP BY cluster_id, topic_id, partition HAVING count(valid_to_time) = count(*)",
)


def gather(spark: SparkSession, only: Sequence[str] = ()) -> list[ClusterFigures]:
    """The clusters of the warehouse whose views are registered, or `only` those that are named.

    Those beyond MOST_CLUSTERS have their totals only.
    """
    clusters = [
        ClusterFigures(
            *(row["cluster_id"], _span(row)),
            *(row["records"], row["log_end_offset"], row["problem"]),
        )
        for row in _ask(spark, _FLEET)
        if not only or row["cluster_id"] in only
    ]
    known = {one.cluster_id: one for one in clusters}
    for row in _ask(spark, _QUARANTINED):
        if (one := known.get(row["cluster_id"])) is not None:
            one.quarantined += row["rows"]
            one.resolved += row["resolved"]
            one.quarantine.append({**row, "first": row["first"].asDict()})
    shown = {one.cluster_id: one for one in clusters[:MOST_CLUSTERS] if one.span is not None}
    if not shown:
        return clusters
    _churn(spark, shown)
    fields = {
        "controllers": ("leaders", "cluster_id, leader_id, leader_epoch"),
        "voters": ("voters", "cluster_id, voter_id, directory_id"),
    }
    for name, (table, columns) in fields.items():
        for row in _ask(spark, _NEWEST, shown, table=table, fields=columns, most=MOST_ROWS):
            getattr(shown[row["cluster_id"]], name).append(row)
    for row in _ask(spark, _LEADERS, shown):
        shown[row["cluster_id"]].leaders.append(row)
    for name, sql in (("topics", _GROWTH), ("partitions", _GROWTH_PARTITIONS)):
        _grow(spark, shown, name, sql)
    return clusters


def _span(row: Row) -> TimeSpan | None:
    first, last = row["first"], row["last"]
    return None if first is None else (first, max(last, first + 1))


def _churn(spark: SparkSession, shown: dict[str, ClusterFigures]) -> None:
    for row in _ask(spark, _CHURN, shown):
        one = shown[row["cluster_id"]]
        cell = row["kind"], row["column"]
        one.churn[cell] = one.churn.get(cell, 0) + row["changes"]
        if row["isr"] is not None:
            one.isr[row["isr"], row["column"]] = row["changes"]


def _grow(spark: SparkSession, shown: dict[str, ClusterFigures], name: str, sql: str) -> None:
    sums: dict[str, int] = defaultdict(int)
    for row in _ask(spark, sql, shown):
        one = shown[row["cluster_id"]]
        sums[one.cluster_id] += row["step"]
        first, last = one.span or (0, 1)
        when = first + (last - first) * row["column"] // COLUMNS
        one.growth.setdefault(name, []).append((when, sums[one.cluster_id]))


def _ask(
    spark: SparkSession, sql: str, shown: dict[str, ClusterFigures] | None = None, **words: Any
) -> list[Row]:
    if shown is not None:
        quoted = ", ".join(map(_literal, shown))
        sql = sql.format(clusters=quoted, **words)
    return [row.asDict() for row in spark.sql(sql).collect()]


def _literal(text: str) -> str:
    """A string literal; meta.properties may have any text as cluster id."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
