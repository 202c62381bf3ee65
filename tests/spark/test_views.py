"""The views and the state at a time, for clusters whose logs Kafka wrote."""

from __future__ import annotations

import itertools
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from metadata.samples import DATA
from quorate.formats.batch import iter_batches
from quorate.metadata.loader import Loader, log_batch
from quorate.spark.history import timetravel
from quorate.spark.history.job import UnknownQuestionError, history, narrow
from quorate.spark.history.timetravel import UnknownStateError, offset_at, state_at
from quorate.spark.history.views import NAMES, VIEWS, register_views
from quorate.spark.tables.control import load_progress
from quorate.spark.tables.image_rows import IMAGE_KINDS, image_rows
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.store import WarehouseError
from spark.fleet import DYNAMIC, LOG, STATIC, rows_of, warehouses
from spark.slice_logs import thing


@pytest.fixture(scope="module")
def fleet(spark, tmp_path_factory):
    store, _ = warehouses(spark, tmp_path_factory)["delta"]
    register_views(spark, store)
    return store


@pytest.fixture
def ask(spark, fleet):
    def asked(sql):
        return [row.asDict(recursive=True) for row in spark.sql(sql).collect()]

    return asked


def test_every_view_answers(spark, fleet):
    """All are executed: no view may name a missing column."""
    for name in VIEWS:
        assert spark.table(name).columns, name


def test_current_rows_are_of_the_same_run_as_the_history(spark, fleet, monkeypatch):
    """Each table is listed once, in one version."""
    listed = []
    version = fleet.version()
    files = version.files

    def files_of(table):
        listed.append(table)
        return files(table)

    monkeypatch.setattr(version, "files", files_of)
    monkeypatch.setattr(fleet, "version", lambda: version)
    register_views(spark, fleet)
    assert sorted(listed) == sorted(TABLES)


def test_who_led_a_partition(ask):
    turns = ask(
        f"SELECT leader, from_offset, to_offset, cause FROM leader_timeline "
        f"WHERE cluster_id = '{DYNAMIC}' AND topic_name = 'orders.eu.2' AND partition = 2 "
        "ORDER BY from_offset"
    )
    assert [(t["leader"], t["from_offset"], t["to_offset"], t["cause"]) for t in turns] == [
        (13, 66, 198, None),
        (11, 198, 243, "leader left the ISR"),
    ]


def test_two_changes_in_one_transaction_are_one_period(spark):
    """They take effect together: the leader of the first change never leads."""
    alone = spark.newSession()
    where = "'c' AS cluster_id, 't' AS topic_id, 'orders' AS topic_name, 0 AS partition,"

    def times(start, end):
        return (
            f"{start} AS valid_from_offset, {end} AS valid_to_offset, timestamp_millis({start}) "
            f"AS valid_from_time, timestamp_millis({end}) AS valid_to_time"
        )

    alone.sql(
        f"SELECT {where} 11 AS leader, 0 AS leader_epoch, {times(4, 12)} "
        f"UNION ALL SELECT {where} 13, 2, {times(12, 'CAST(NULL AS INT)')}"
    ).createOrReplaceTempView("partitions")
    alone.sql(
        " UNION ALL ".join(
            f"SELECT {where} 12 AS effective_offset, 'leader changed' AS event, "
            f"""'{cause}' AS cause, '{{"leader":{leader},"leader_epoch":{epoch}}}' AS after"""
            for leader, epoch, cause in ((12, 1, "first"), (13, 2, "second"))
        )
    ).createOrReplaceTempView("changes")
    turns = {}
    for holes in ("[]", "[[2,4]]", "[[7,12]]", "[[2,4],[7,12]]"):
        alone.sql(f"SELECT 'c' AS cluster_id, '{holes}' AS unknown").createOrReplaceTempView(
            "clusters"
        )
        turns[holes] = alone.sql(VIEWS["leader_timeline"].sql).orderBy("from_offset").collect()
    assert [(t.leader, t.from_offset, t.cause) for t in turns["[]"]] == [
        (11, 4, None),
        (13, 12, "second"),
    ]
    assert {len(found) for found in turns.values()} == {2}
    # how long a turn was that began or ended in a hole of the log is not known
    assert [found[0].seconds for found in turns.values()] == [0.008, None, None, None]


def test_why_partitions_got_new_leaders(ask):
    causes = ask(
        f"SELECT cause, sum(elections) AS n FROM election_causes "
        f"WHERE cluster_id = '{DYNAMIC}' GROUP BY cause"
    )
    found = {row["cause"]: row["n"] for row in causes}
    assert found["leader left the ISR"] > 0
    assert sum(found.values()) == len(
        ask(
            f"SELECT 1 FROM changes WHERE cluster_id = '{DYNAMIC}' "
            "AND event IN ('leader changed', 'leader confirmed')"
        )
    )


def test_the_broker_that_was_killed_left_the_isrs_in_a_storm(ask):
    storms = ask(
        f"SELECT * FROM isr_shrink_storms WHERE cluster_id = '{DYNAMIC}' ORDER BY shrinks DESC"
    )
    assert storms[0]["brokers_that_left"] == [13] and storms[0]["partitions"] > 3


def test_the_broker_that_was_killed_is_the_one_that_flaps(ask):
    [row] = ask(
        f"SELECT broker_id, sum(fenced) AS fenced FROM broker_flapping "
        f"WHERE cluster_id = '{DYNAMIC}' GROUP BY broker_id HAVING sum(fenced) > 0"
    )
    assert row == {"broker_id": 13, "fenced": 1}


def over(spark, view, table, columns, rows, clusters=(("c", "[]"),)):
    """What a view answers over a table that holds only these rows, and clusters with holes."""
    alone = spark.newSession()
    known = alone.createDataFrame(clusters, "cluster_id string, unknown string")
    known.createOrReplaceTempView("clusters")
    for kind, schema in (("topics", "topic_name string"), ("brokers", "broker_id int")):
        nothing = alone.createDataFrame([], f"cluster_id string, {schema}")
        nothing.createOrReplaceTempView(f"{kind}_now")
    alone.createDataFrame(rows, columns).createOrReplaceTempView(table)
    return [row.asDict() for row in alone.sql(VIEWS[view].sql).collect()]


def at(hour, minute=0, second=0):
    return datetime(2026, 11, 22, hour, minute, second, tzinfo=UTC)


def flapping(spark, events, unknown="[]"):
    """broker_flapping of events (broker, time, offset, event, fenced before, fenced after).

    The seconds are those until unfenced, until unregistered, and of starts.
    """
    columns = (
        "cluster_id string, node_id int, time timestamp, offset long, event string, "
        "before string, after string"
    )
    rows = [("c", *step, fenced_fact(was), fenced_fact(now)) for *step, was, now in events]
    found = over(spark, "broker_flapping", "changes", columns, rows, [("c", unknown)])
    return [
        (
            *(one["broker_id"], one["fenced"], one["registered"], one["seconds_until_unfenced"]),
            *(one["seconds_until_unregistered"], one["seconds_starting"]),
        )
        for one in sorted(found, key=lambda one: (one["broker_id"], one["hour"]))
    ]


def fenced_fact(fenced):
    return None if fenced is None else json.dumps({"fenced": fenced})


def test_a_broker_is_fenced_until_it_is_unfenced_whatever_happens_between(spark):
    """One that was killed registers anew before it is unfenced; another never comes back.

    A start is no outage, and a broker that is unregistered is not waited for any more.
    """
    events = [
        (1, at(10, 0), 0, "broker registered", None, True),
        (1, at(10, 0, 2), 1, "broker unfenced", True, False),
        (1, at(11, 0), 2, "broker fenced", False, True),
        (1, at(11, 50), 3, "broker registered", True, True),
        (1, at(11, 50, 3), 4, "broker unfenced", True, False),
        (1, at(12, 0), 5, "broker fenced", False, True),
        (1, at(13, 0), 6, "broker unregistered", True, None),
        (2, at(12, 0), 7, "broker fenced", False, True),
        (3, at(12, 1), 8, "broker fenced", False, True),
        # by a controller whose clock is behind
        (3, at(12, 0, 10), 9, "broker unfenced", True, False),
    ]
    assert flapping(spark, events) == [
        (1, 0, 1, None, None, 2.0),
        (1, 1, 1, 3003.0, None, None),
        (1, 1, 0, None, 3600.0, None),
        (1, 0, 0, None, None, None),
        (2, 1, 0, None, None, None),
        (3, 1, 0, 0.0, None, None),
    ]


def test_the_fenced_time_of_a_broker_that_came_back_in_a_hole_is_unknown(spark):
    """So is that of a broker that was fenced in the hole; later periods are known."""
    events = [
        (1, at(8), 5, "broker fenced", False, True),
        (1, at(14), 101, "broker fenced", False, True),
        (1, at(14, 0, 3), 102, "broker unfenced", True, False),
        (2, at(8), 6, "broker fenced", False, True),
        (2, at(8, 0, 2), 7, "broker unfenced", True, False),
        (2, at(8, 1), 8, "broker fenced", False, True),  # one that is not known invalidates the sum
        (2, at(14), 103, "broker registered", True, True),
        (2, at(14, 1), 104, "broker unfenced", True, False),
        (3, at(14), 105, "broker unfenced", True, False),
        (4, at(8), 1, "broker fenced", False, True),
        (4, at(8, 0, 2), 2, "broker unfenced", True, False),
        (4, at(8, 1), 3, "broker registered", False, True),  # only its start is not known
    ]
    assert flapping(spark, events, "[[9,99]]") == [
        *((1, 1, 0, None, None, None), (1, 1, 0, 3.0, None, None)),
        *((2, 2, 0, None, None, None), (2, 0, 1, None, None, None)),
        (3, 0, 0, None, None, None),
        (4, 1, 1, 2.0, None, None),
    ]


def storms(spark, shrinks):
    """isr_shrink_storms of shrinks (seconds, topic, partition, ISR before, ISR after)."""
    columns = (
        "cluster_id string, time timestamp, offset long, event string, topic_id string, "
        "partition int, before string, after string"
    )
    rows = [
        (
            *("c", at(10) + timedelta(seconds=seconds), offset, "isr shrunk", topic, partition),
            *(f'{{"isr":{isr}}}' for isr in (was, now)),
        )
        for offset, (seconds, topic, partition, was, now) in enumerate(shrinks)
    ]
    found = over(spark, "isr_shrink_storms", "changes", columns, rows)
    return sorted(found, key=lambda one: one["first_offset"])


def test_a_partition_that_shrinks_twice_counts_once_in_a_storm(spark):
    shrinks = [(0, "a", 0, [1, 2, 3], [1, 3]), (0, "a", 0, [1, 3], [1])]
    shrinks += [(0, "b", number, [2, 1], [1]) for number in range(4)]
    [storm] = storms(spark, shrinks)
    assert (storm["shrinks"], storm["partitions"], storm["topics"]) == (6, 5, 2)
    assert storm["brokers_that_left"] == [2, 3]


def test_a_storm_ends_with_a_gap_whatever_the_clock_shows(spark):
    """Few partitions are no storm."""
    apart = [-3, 5, 20, 34, 30, 45]  # a new leader's clock is behind
    shrinks = [(seconds, "a", number, [1, 2], [1]) for number, seconds in enumerate(apart)]
    shrinks += [(45 + 16, "a", number, [1, 3], [1]) for number in range(4)]
    shrinks += [(45 + 32, "a", number, [1, 4], [1]) for number in range(5)]
    first, second = storms(spark, shrinks)
    assert (first["first_offset"], first["last_offset"], first["partitions"]) == (0, 5, 6)
    assert (first["to_time"] - first["from_time"]).total_seconds() == 48
    assert (second["partitions"], second["brokers_that_left"]) == (5, [4])


def test_a_config_with_the_value_not_set_differs_from_no_config(spark):
    columns = (
        "cluster_id string, resource_type string, resource_name string, name string, value string"
    )
    rows = [("c", "topic", "t", "x", "not set"), ("c", "topic", "t", "y", "1")]
    rows.append(("d", "topic", "t", "y", "1"))
    clusters = [("c", "[]"), ("d", "[]")]
    [drift] = over(spark, "config_drift", "configs_now", columns, rows, clusters=clusters)
    assert (drift["name"], drift["different_values"]) == ("x", 2)
    assert drift["value_by_cluster"] == {"c": "not set", "d": "(not set)"}
    assert drift["clusters_without_it"] == []


def test_a_missing_topic_is_no_config_drift(spark):
    """Nor is a missing broker; all clusters have the default of all brokers."""
    alone = spark.newSession()
    tables = {
        "clusters": ("", [("c",), ("d",), ("e",)]),
        "topics_now": ("topic_name string", [("c", "t"), ("c", "only"), ("d", "t")]),
        "brokers_now": ("broker_id int", [("c", 1), ("d", 2), ("e", 2)]),
        "configs_now": (
            "resource_type string, resource_name string, name string, value string",
            [
                ("c", "topic", "t", "x", "1"),
                ("c", "topic", "only", "x", "1"),
                ("c", "broker", "1", "x", "1"),
                ("d", "broker", "2", "x", "1"),
                ("e", "broker", "", "x", "1"),
            ],
        ),
    }
    for name, (columns, rows) in tables.items():
        schema = ", ".join(filter(None, ("cluster_id string", columns)))
        alone.createDataFrame(rows, schema).createOrReplaceTempView(name)
    found = alone.sql(VIEWS["config_drift"].sql).orderBy("resource_type", "resource_name").collect()
    assert [(r.resource_name, r.value_by_cluster, r.clusters_without_it) for r in found] == [
        ("", {"c": "(not set)", "d": "(not set)", "e": "1"}, []),
        ("2", {"d": "1", "e": "(not set)"}, ["c"]),
        ("t", {"c": "1", "d": "(not set)"}, ["e"]),
    ]


def test_the_lifetime_of_a_topic_older_than_the_log_is_unknown(spark):
    columns = (
        "cluster_id string, topic_name string, topic_id string, from_snapshot boolean, "
        "valid_from_time timestamp, valid_to_time timestamp, valid_from_offset long, "
        "valid_to_offset long"
    )
    begin, end = datetime(2026, 11, 22, tzinfo=UTC), datetime(2026, 11, 23, tzinfo=UTC)
    rows = [("c", name, name, name == "old", begin, end, 5, 9) for name in ("old", "new")]
    found = over(spark, "topics_created_and_deleted", "topics", columns, rows)
    assert {one["topic_name"]: one["seconds"] for one in found} == {"old": None, "new": 86400.0}
    found = over(spark, "topics_created_and_deleted", "topics", columns, rows, [("c", "[[7,9]]")])
    assert [(one["seconds"], one["deleted_unseen"]) for one in found] == [(None, True)] * 2


def test_the_beginning_of_an_epoch_in_a_hole_is_unknown(spark):
    def at(second):
        return datetime(2026, 11, 22, 10, 0, second, tzinfo=UTC)

    spans = [(1, 0, 5, at(0), at(4)), (2, 5, 9, at(6), at(8)), (4, 20, 30, at(20), at(30))]
    # of controllers whose clocks are behind, and of which parts came in disorder
    spans += [(5, 30, 35, at(31), at(31)), (5, 35, 40, at(25), at(27)), (6, 40, 45, at(29), at(36))]
    alone = spark.newSession()
    alone.createDataFrame(
        [("c", *span) for span in spans],
        "cluster_id string, epoch int, start_offset long, end_offset long, first_time timestamp, "
        "last_time timestamp",
    ).createOrReplaceTempView("epochs")
    leaders = alone.sql("SELECT 'c' AS cluster_id, 3 AS leader_id, 2 AS leader_epoch")
    leaders.createOrReplaceTempView("leaders")
    found = alone.sql(VIEWS["controller_failovers"].sql).orderBy("epoch").collect()
    assert [(t.elected is not None, t.controller, t.seconds_without_records) for t in found] == [
        (True, None, None),
        (True, 3, 2.0),
        (False, None, None),
        (True, None, 1.0),
        (True, None, 0.0),
    ]
    assert [t.seconds_in_office for t in found] == [4.0, 2.0, None, 0.0, 5.0]


def test_configs_that_differ_between_the_clusters(ask, fleet):
    drift = ask("SELECT * FROM config_drift")
    now = {
        cluster: {
            (r["resource_type"], r["resource_name"], r["name"]): r["value"]
            for r in rows_of(fleet, "configs")
            if r["is_current"] and r["cluster_id"] == cluster
        }
        for cluster in (DYNAMIC, STATIC)
    }
    there = {cluster: {name[:2] for name in now[cluster]} for cluster in now}
    for kind, word, column in (
        ("topics", "topic", "topic_name"),
        ("brokers", "broker", "broker_id"),
    ):
        for row in rows_of(fleet, kind):
            if row["is_current"]:
                there[row["cluster_id"]].add((word, str(row[column])))
    for resources in there.values():
        resources.add(("broker", ""))
    names = set(now[DYNAMIC]) | set(now[STATIC])
    names = {name for name in names if all(name[:2] in some for some in there.values())}
    wanted = {name for name in names if now[DYNAMIC].get(name) != now[STATIC].get(name)}
    assert {(r["resource_type"], r["resource_name"], r["name"]) for r in drift} == wanted
    assert wanted
    for row in drift:
        assert set(row["value_by_cluster"]) == {DYNAMIC, STATIC}


def test_topics_created_and_deleted(ask):
    rows = ask(f"SELECT * FROM topics_created_and_deleted WHERE cluster_id = '{DYNAMIC}'")
    dead = [row for row in rows if row["deleted"] is not None]
    assert "orders.eu.2" in {row["topic_name"] for row in dead}
    assert all(row["created"] < row["deleted"] and row["seconds"] > 0 for row in dead)
    assert len(rows) == len(
        ask(f"SELECT 1 FROM changes WHERE event = 'topic created' AND cluster_id = '{DYNAMIC}'")
    )


def test_voter_changes_name_the_controller(ask):
    rows = ask(
        f"SELECT offset, event, voter_id, under_controller FROM voter_changes "
        f"WHERE cluster_id = '{DYNAMIC}' AND offset > 2 ORDER BY offset"
    )
    changes = [(row["event"], row["voter_id"]) for row in rows]
    assert ("voter added", 4) in changes and any(event == "voter removed" for event, _ in changes)
    assert all(row["under_controller"] is not None for row in rows)


def test_controllers_that_failed_over(ask, fleet):
    rows = ask(f"SELECT * FROM controller_failovers WHERE cluster_id = '{DYNAMIC}' ORDER BY epoch")
    epochs = [row["epoch"] for row in rows_of(fleet, "epochs") if row["cluster_id"] == DYNAMIC]
    assert [row["epoch"] for row in rows] == sorted(epochs)
    assert rows[0]["controller_before"] is None
    for before, after in itertools.pairwise(rows):
        assert after["controller_before"] == before["controller"]
        assert after["seconds_without_records"] >= 0
        assert after["start_offset"] == before["end_offset"]


@contextmanager
def elsewhere(spark):
    """A session with the time zone of Nepal that treats timestamps as local times."""
    keys = {
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    }
    before = {key: spark.conf.get(key) for key in keys}
    try:
        for key, value in keys.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def test_the_state_at_an_instant_is_that_at_its_offset(spark, fleet, monkeypatch):
    views = list(iter_batches((DATA / "e-truncated/node1" / LOG).read_bytes()))
    loader = Loader()
    middle = next(v for v in views if v.base_offset > 200 and not v.is_control)
    for view in views:
        if view.base_offset > middle.base_offset:
            break
        loader.feed(log_batch(view))
    instant = datetime.fromtimestamp(middle.max_timestamp / 1000, UTC)
    later = [v for v in views if v.max_timestamp > middle.max_timestamp]
    wanted_offset = later[0].base_offset - 1
    assert offset_at(spark, fleet, DYNAMIC, instant) == wanted_offset
    assert offset_at(spark, fleet, DYNAMIC, instant.replace(tzinfo=None)) == wanted_offset
    with elsewhere(spark):
        assert offset_at(spark, fleet, DYNAMIC, instant) == wanted_offset
    wanted = image_rows(loader.published.image)
    for kind in IMAGE_KINDS[:3]:
        rows = state_at(spark, fleet, kind.name, DYNAMIC, offset=middle.last_offset).collect()
        got = dict(thing(kind, row.asDict(recursive=True)) for row in rows)
        assert got == wanted[kind.name]
    asked = []

    def noted(version):
        asked.append(version)
        return load_progress(version)

    monkeypatch.setattr(timetravel, "load_progress", noted)
    rows = state_at(spark, fleet, kind.name, DYNAMIC, instant=instant).collect()
    assert dict(thing(kind, row.asDict(recursive=True)) for row in rows) == got
    assert [version.store for version in asked] == [fleet]


def test_unknown_states_are_refused(spark, fleet):
    before = datetime(2020, 1, 1, tzinfo=UTC)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"kind": "moods", "cluster_id": DYNAMIC}, "there is no kind 'moods'"),
        ({"kind": "topics", "cluster_id": "nobody"}, "it has no state of cluster"),
        ({"kind": "topics", "cluster_id": DYNAMIC, "offset": 10_000}, "is not applied yet"),
        ({"kind": "topics", "cluster_id": DYNAMIC, "instant": before}, "begins after"),
        (
            {"kind": "topics", "cluster_id": DYNAMIC, "instant": before, "offset": 1},
            "not both",
        ),
    ]
    for words, message in wrong:
        with pytest.raises(UnknownStateError, match=message):
            state_at(spark, fleet, **words)


def test_now_is_the_last_instant(spark, fleet):
    now = state_at(spark, fleet, "partitions", STATIC).count()
    future = datetime.now(UTC) + timedelta(days=4000)
    assert state_at(spark, fleet, "partitions", STATIC, instant=future).count() == now
    current = [r for r in rows_of(fleet, "partitions") if r["is_current"]]
    assert now == len([r for r in current if r["cluster_id"] == STATIC])


def test_history_accepts_a_view_or_a_query(spark, fleet, tmp_path, monkeypatch):
    where = f"cluster_id = '{DYNAMIC}' AND broker_id = 13"
    assert history(spark, fleet.root, "brokers_now", where=where).count() in (0, 1)
    # the session has them too, and making them takes longer than an answer
    monkeypatch.setattr("quorate.spark.history.job.register_views", lambda *_: list(NAMES))
    assert history(spark, fleet.root, "SELECT count(*) AS n FROM log").collect()[0].n > 300
    answer = narrow(history(spark, fleet.root, "brokers_now"), DYNAMIC, None, "broker_id DESC")
    ids = [(row.cluster_id, row.broker_id) for row in answer.collect()]
    assert ids and ids == sorted(((DYNAMIC, number) for _, number in ids), reverse=True)
    few = history(spark, fleet.root, "SELECT * FROM log", where="offset < 3")
    [most] = few.agg({"offset": "max"}).collect()
    assert most[0] == 2
    with pytest.raises(
        UnknownQuestionError, match="there is no 'leader_timelin'; the questions are leader_"
    ):
        history(spark, fleet.root, "leader_timelin")
    with pytest.raises(UnknownQuestionError, match=r"and the tables log, .*brokers_now"):
        history(spark, fleet.root, "leader_timelin")
    with pytest.raises(UnknownQuestionError, match="Syntax error at or near 'SELEC'"):
        history(spark, fleet.root, "SELEC 1")
    with pytest.raises(UnknownQuestionError, match="nope"):
        narrow(history(spark, fleet.root, "brokers_now"), order_by="nope")
    with pytest.raises(UnknownQuestionError, match="nowhere"):
        history(spark, fleet.root, "SELECT * FROM nowhere")
    with pytest.raises(WarehouseError, match="there is no warehouse here"):
        history(spark, str(tmp_path / "empty"), "leader_timeline")
