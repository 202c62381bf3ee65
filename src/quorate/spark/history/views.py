"""Ready SQL views for the questions that people ask of the history.

    register_views(spark, open_store("/data/warehouse"))
    spark.sql("SELECT * FROM leader_timeline WHERE topic_name = 'orders' AND partition = 0").show()

Every table of the warehouse is a view of its name too, and `<kind>_now` is a kind's state as of
now. The views show the warehouse as it is when they are registered. Where the clock of a leader is
behind its predecessor's, what began with the one and ended with the other took no time. Days and
hours are those of UTC, whatever zone the session has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.spark.history.timetravel import current
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import RUNS, TABLES
from quorate.spark.tables.read import read_files, spark_schema
from quorate.spark.tables.store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORD: Final = re.compile(r"\w+")


class QuestionView(NamedTuple):
    """A question, and the SQL over the tables that answers it."""

    question: str
    sql: str


_HOLES: Final = """holes AS (
            SELECT cluster_id,
                   transform(from_json(unknown, 'array<array<bigint>>'), hole -> hole[1]) AS ends
            FROM clusters
        )"""
"""The ends of holes, where the log continues after a missing part. A snapshot has the state at such
an offset, but not when within the hole a version began or the one before it ended."""

STORM_GAP_MS: Final = 15_000
"""A storm of shrinks ends when no other follows within this time. Kafka's leaders check for lagging
followers every replica.lag.time.max.ms / 2 (`ReplicaManager`; 15 s by default), so all leaders shrink
the ISRs of one hanging broker within it. A broker that dies leaves all ISRs at once."""
STORM_PARTITIONS: Final = 5
"""Fewer partitions are no storm: they may come from one lagging follower or a reassignment."""

VIEWS: Final[dict[str, QuestionView]] = {
    "leader_timeline": QuestionView(
        "Who led each partition, since when, for how long, and why did that begin?",
        f"""
        WITH {_HOLES}, runs AS (
            SELECT *, sum(turn) OVER w AS number FROM (
                SELECT cluster_id, topic_id, topic_name, partition, leader, leader_epoch,
                       valid_from_offset, valid_from_time, valid_to_offset, valid_to_time,
                       CASE WHEN leader_epoch = lag(leader_epoch) OVER v THEN 0 ELSE 1 END AS turn
                FROM partitions
                WINDOW v AS (PARTITION BY cluster_id, topic_id, partition
                             ORDER BY valid_from_offset))
            WINDOW w AS (PARTITION BY cluster_id, topic_id, partition ORDER BY valid_from_offset)
        ), turns AS (
            SELECT cluster_id, topic_id, topic_name, partition, number,
                   max(leader) AS leader, max(leader_epoch) AS leader_epoch,
                   min(valid_from_offset) AS from_offset, min(valid_from_time) AS from_time,
                   CASE WHEN count(valid_to_offset) = count(*) THEN max(valid_to_offset) END
                       AS to_offset,
                   CASE WHEN count(valid_to_offset) = count(*) THEN max(valid_to_time) END
                       AS to_time
            FROM runs GROUP BY cluster_id, topic_id, topic_name, partition, number
        )
        SELECT t.cluster_id, t.topic_name, t.partition, t.leader, t.leader_epoch, t.from_time,
               t.to_time,
               CASE WHEN NOT coalesce(arrays_overlap(h.ends, array(t.from_offset, t.to_offset)),
                                      false)
                    THEN (unix_millis(t.to_time) - unix_millis(t.from_time)) / 1000 END AS seconds,
               c.cause, t.from_offset, t.to_offset, t.topic_id
        FROM turns t LEFT JOIN holes h ON h.cluster_id = t.cluster_id
        LEFT JOIN changes c
          ON c.cluster_id = t.cluster_id AND c.topic_id = t.topic_id AND c.partition = t.partition
         AND c.effective_offset = t.from_offset
         AND c.event IN ('leader changed', 'leader confirmed')
         AND from_json(c.after, 'leader_epoch int').leader_epoch = t.leader_epoch
        """,
    ),
    "isr_shrink_storms": QuestionView(
        "When did ISRs of many partitions shrink together, and which brokers left them?",
        f"""
        WITH shrinks AS (
            SELECT *, CASE WHEN unix_millis(time) - lag(unix_millis(time)) OVER w <= {STORM_GAP_MS}
                           THEN 0 ELSE 1 END AS begins
            FROM changes WHERE event = 'isr shrunk'
            WINDOW w AS (PARTITION BY cluster_id ORDER BY offset, topic_id, partition)
        ), numbered AS (
            SELECT *, sum(begins) OVER (PARTITION BY cluster_id
                                        ORDER BY offset, topic_id, partition) AS storm
            FROM shrinks
        )
        SELECT cluster_id, min(time) AS from_time, max(time) AS to_time,
               count(*) AS shrinks,
               count(DISTINCT topic_id, partition) AS partitions,
               count(DISTINCT topic_id) AS topics,
               array_sort(array_distinct(flatten(collect_list(
                   array_except(from_json(before, 'isr array<int>').isr,
                                from_json(after, 'isr array<int>').isr))))) AS brokers_that_left,
               min(offset) AS first_offset, max(offset) AS last_offset
        FROM numbered GROUP BY cluster_id, storm
        HAVING count(DISTINCT topic_id, partition) >= {STORM_PARTITIONS}
        """,
    ),
    "election_causes": QuestionView(
        "Why did partitions get new leaders, day by day?",
        """
        SELECT cluster_id, day, cause, count(*) AS elections,
               count(DISTINCT topic_id, partition) AS partitions,
               min(time) AS first_time, max(time) AS last_time
        FROM (SELECT *, date_from_unix_date(int(floor(unix_millis(time) / 86400000))) AS day
              FROM changes WHERE event IN ('leader changed', 'leader confirmed'))
        GROUP BY cluster_id, day, cause
        """,
    ),
    "broker_flapping": QuestionView(
        "Which brokers came and went, how often within an hour, and how long were they fenced?",
        f"""
        WITH {_HOLES}, steps AS (
            SELECT c.cluster_id, c.node_id AS broker_id, c.time, c.offset, c.event,
                   timestamp_millis(unix_millis(c.time) - pmod(unix_millis(c.time), 3600000))
                       AS hour,
                   coalesce(from_json(c.before, 'fenced boolean').fenced, false) AS was_fenced,
                   coalesce(from_json(c.after, 'fenced boolean').fenced, false) AS is_fenced,
                   array_max(filter(h.ends, hole -> hole < c.offset)) AS hole_before,
                   coalesce(exists(h.ends, hole -> hole >= c.offset), false) AS hole_follows
            FROM changes c LEFT JOIN holes h ON h.cluster_id = c.cluster_id
            WHERE c.event IN ('broker fenced', 'broker unfenced', 'broker registered',
                              'broker unregistered')
        ), turns AS (
            SELECT *, lead(time) OVER w AS until,
                   lead(event) OVER w = 'broker unregistered' AS gone,
                   event = 'broker registered' AS starts
            FROM steps WHERE is_fenced <> was_fenced
            WINDOW w AS (PARTITION BY cluster_id, broker_id, hole_before ORDER BY offset, event)
        ), fences AS (
            SELECT cluster_id, broker_id, hour,
                   CASE WHEN NOT bool_or(unseen AND NOT starts)
                        THEN sum(if(NOT gone AND NOT starts, ms, NULL)) / 1000 END
                       AS seconds_until_unfenced,
                   CASE WHEN NOT bool_or(unseen) THEN sum(if(gone, ms, NULL)) / 1000 END
                       AS seconds_until_unregistered,
                   CASE WHEN NOT bool_or(unseen AND starts)
                        THEN sum(if(NOT gone AND starts, ms, NULL)) / 1000 END
                       AS seconds_starting
            FROM (SELECT *, hole_follows AND until IS NULL AS unseen,
                         greatest(0, unix_millis(until) - unix_millis(time)) AS ms
                  FROM turns WHERE is_fenced AND (until IS NOT NULL OR hole_follows))
            GROUP BY cluster_id, broker_id, hour
        ), counts AS (
            SELECT cluster_id, broker_id, hour,
                   count_if(event = 'broker fenced') AS fenced,
                   count_if(event = 'broker unfenced') AS unfenced,
                   count_if(event = 'broker registered') AS registered
            FROM steps GROUP BY cluster_id, broker_id, hour
        )
        SELECT * FROM counts LEFT JOIN fences USING (cluster_id, broker_id, hour)
        """,
    ),
    "config_drift": QuestionView(
        "Which configs of things that several clusters have differ between them?",
        """
        WITH known AS (SELECT DISTINCT cluster_id FROM clusters),
        resources AS (
            SELECT cluster_id, 'topic' AS resource_type, topic_name AS resource_name FROM topics_now
            UNION SELECT cluster_id, 'broker', CAST(broker_id AS STRING) FROM brokers_now
            UNION SELECT cluster_id, 'broker', '' FROM known
            UNION SELECT cluster_id, resource_type, resource_name FROM configs_now
        ), named AS (SELECT DISTINCT resource_type, resource_name, name FROM configs_now),
        filled AS (
            SELECT n.resource_type, n.resource_name, n.name, r.cluster_id, c.value
            FROM named n JOIN resources r
              ON r.resource_type = n.resource_type AND r.resource_name = n.resource_name
            LEFT JOIN configs_now c
              ON c.cluster_id = r.cluster_id AND c.resource_type = n.resource_type
             AND c.resource_name = n.resource_name AND c.name = n.name
        )
        SELECT resource_type, resource_name, name,
               count(DISTINCT coalesce(concat('=', value), 'not set')) AS different_values,
               map_from_entries(array_sort(collect_list(
                   struct(cluster_id, coalesce(value, '(not set)'))))) AS value_by_cluster,
               sort_array(array_except((SELECT collect_list(cluster_id) FROM known),
                                       collect_list(cluster_id))) AS clusters_without_it
        FROM filled GROUP BY resource_type, resource_name, name
        HAVING count(DISTINCT coalesce(concat('=', value), 'not set')) > 1
        """,
    ),
    "topics_created_and_deleted": QuestionView(
        "Which topics were created and deleted, and how long did they live?",
        f"""
        WITH {_HOLES}, seen AS (
            SELECT t.*, coalesce(array_contains(h.ends, t.valid_to_offset), false)
                       AS deleted_unseen
            FROM topics t LEFT JOIN holes h ON h.cluster_id = t.cluster_id
        )
        SELECT cluster_id, topic_name, topic_id,
               CASE WHEN from_snapshot THEN NULL ELSE valid_from_time END AS created,
               valid_to_time AS deleted,
               CASE WHEN NOT from_snapshot AND NOT deleted_unseen
                    THEN (unix_millis(valid_to_time) - unix_millis(valid_from_time)) / 1000 END
                   AS seconds,
               valid_from_offset AS created_offset, valid_to_offset AS deleted_offset,
               from_snapshot AS older_than_the_log, deleted_unseen
        FROM seen
        """,
    ),
    "voter_changes": QuestionView(
        "Which voters were added, removed and updated, under which controller?",
        """
        SELECT c.cluster_id, c.time, c.offset, c.epoch, c.event, c.node_id AS voter_id,
               l.leader_id AS under_controller, c.before, c.after
        FROM changes c LEFT JOIN leaders l
          ON l.cluster_id = c.cluster_id AND l.valid_from_offset <= c.effective_offset
         AND (l.valid_to_offset IS NULL OR l.valid_to_offset > c.effective_offset)
        WHERE c.event IN ('voter added', 'voter removed', 'voter updated')
        """,
    ),
    "controller_failovers": QuestionView(
        "When did the active controller change, and how long had nothing been written before?",
        """
        WITH steady AS (
            SELECT cluster_id, epoch, start_offset, end_offset,
                   greatest(first_time, max(last_time) OVER before) AS first_time,
                   greatest(last_time, max(last_time) OVER before) AS last_time
            FROM epochs WINDOW before AS (PARTITION BY cluster_id ORDER BY start_offset
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ), terms AS (
            SELECT cluster_id, epoch, min(first_time) AS first_time, max(last_time) AS last_time,
                   min(start_offset) AS start_offset, max(end_offset) AS end_offset
            FROM steady GROUP BY cluster_id, epoch
        ), seen AS (
            SELECT t.*, l.leader_id, coalesce(lag(t.end_offset) OVER w, 0) = t.start_offset
                       AS from_its_beginning
            FROM terms t LEFT JOIN leaders l
              ON l.cluster_id = t.cluster_id AND l.leader_epoch = t.epoch
            WINDOW w AS (PARTITION BY t.cluster_id ORDER BY t.epoch)
        )
        SELECT cluster_id, CASE WHEN from_its_beginning THEN first_time END AS elected, epoch,
               leader_id AS controller,
               lag(leader_id) OVER w AS controller_before,
               lag(last_time) OVER w AS last_record_before,
               CASE WHEN from_its_beginning
                    THEN (unix_millis(first_time) - unix_millis(lag(last_time) OVER w)) / 1000 END
                   AS seconds_without_records,
               CASE WHEN from_its_beginning THEN epoch - lag(epoch) OVER w - 1 END
                   AS epochs_without_leader,
               CASE WHEN from_its_beginning
                    THEN (unix_millis(last_time) - unix_millis(first_time)) / 1000 END
                   AS seconds_in_office,
               start_offset, end_offset
        FROM seen WINDOW w AS (PARTITION BY cluster_id ORDER BY epoch)
        """,
    ),
}


RUNS_TABLE: Final = "runs"
NAMES: Final = (*TABLES, RUNS_TABLE, *(f"{kind}_now" for kind in KINDS), *VIEWS)
"""The names that `register_views` defines."""


def register_views(spark: SparkSession, store: TableStore, sql: str | None = None) -> list[str]:
    """Define the tables and views of a warehouse for SQL in this session; returns their names.

    sql: define only those that this text may use, which takes less time

    All of them show the warehouse as one run left it. Finishes the last run.
    """
    tables = store.version()
    wanted = set(NAMES) if sql is None else _names_in(sql)
    for table in TABLES:
        now = f"{table}_now"
        if wanted.isdisjoint((table, now)):
            continue
        files = tables.files(table)
        if table in wanted:
            read_files(spark, tables, table, files).createOrReplaceTempView(table)
        if now in wanted:
            current(spark, tables, table, files).createOrReplaceTempView(now)
    if RUNS_TABLE in wanted:
        rows = spark.createDataFrame(store.runs(), spark_schema(RUNS))
        rows.createOrReplaceTempView(RUNS_TABLE)
    for name in VIEWS:
        if name in wanted:
            spark.sql(VIEWS[name].sql).createOrReplaceTempView(name)
    return [name for name in NAMES if name in wanted]


def _names_in(sql: str) -> set[str]:
    """The names that occur in the text, and those that their own SQL needs; perhaps too many."""
    words = set(_WORD.findall(sql.lower()))
    if "identifier" in words:
        return set(NAMES)  # IDENTIFIER('lo' || 'g') computes a name
    found = words.intersection(NAMES)
    return found.union(*(_names_in(VIEWS[name].sql) for name in found if name in VIEWS))
