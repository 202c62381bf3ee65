"""Who made a change, from logs that Kafka 4.3.1 writes while the test runs."""

from __future__ import annotations

import pytest

from data.who.record import ACLS, TOPICS, ZONE, AuditedKafka
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.warehouse import open_store
from quorate.spark.who import LogPaths, who
from quorate.spark.who.logs import Reading
from time_budget import one_day_in

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@one_day_in(2, 0)
def test_logs_of_a_running_kafka_show_who_made_changes(spark, tmp_path):
    cluster = AuditedKafka(tmp_path / "kafka")
    try:
        cluster.start(brokers=(11,))
        orders = ("--topic", "orders", "--resource-pattern-type", "prefixed")
        rights = ("--allow-principal", "User:alice", "--operation", "Create")
        cluster.run("admin", ACLS, "--add", *rights, *orders)
        create = ("--create", "--partitions", "1", "--replication-factor", "1", "--topic")
        cluster.run("alice", TOPICS, *create, "orders.eu")
        assert "Authorization failed" in cluster.run("bob", TOPICS, *create, "orders.bob")
        cluster.quorum.nodes[1].kill(15)
    finally:
        cluster.stop()
    warehouse = str(tmp_path / "warehouse")
    ingest(spark, [str(cluster.node(1).data)], warehouse)
    home = [str(tmp_path / "kafka")]
    seen = {}
    for name, logs in {
        "likely": LogPaths(authorizer=home),
        "certain": LogPaths(authorizer=home, request=home, controller=home),
    }.items():
        answer = who(spark, open_store(warehouse), logs, reading=Reading(zone=ZONE))
        rows = answer.rows.where("caused_by = 'request'").orderBy("offset").collect()
        seen[name] = [(row.event, row.who, row.confidence, row.request) for row in rows]
        assert answer.unread == 0
        answer.close()
    for confidence, found in seen.items():
        assert found == [
            ("acl added", "User:admin", confidence, "CreateAcls"),
            ("topic created", "User:alice", confidence, "CreateTopics"),
            ("partition created", "User:alice", confidence, "CreateTopics"),
        ]
