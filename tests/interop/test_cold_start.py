"""Directories that one program formatted and the other runs; brokers; a start from nothing."""

import re

import pytest

from interop.checks import assert_java_is_content, assert_nothing_is_lost
from interop.kafka import Quorum

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("formatter", ["java", "quorate"])
def test_three_start_from_initial_controllers_alone(tmp_path, formatter):
    """One tool formats all three; the bootstrap servers name only the node itself."""
    programs = {1: "quorate", 2: "quorate", 3: "java"}
    with Quorum(tmp_path, dict.fromkeys(programs, formatter)) as quorum:
        quorum.format()
        for node_id, kind in programs.items():
            node = quorum.swap(node_id, kind)
            node.config["controller.quorum.bootstrap.servers"] = node.address
        quorum.start()
        view = quorum.wait_for_commit_by_all()
        status = quorum.lender("java").quorum_tool(*quorum.tool_arguments(), "describe", "--status")
        assert status.returncode == 0, status.stdout + status.stderr
        assert re.search(rf"^LeaderId: +{view.leader}$", status.stdout, re.M)
        for node in quorum.controllers:
            assert f'{{"id": {node.id}, "directoryId": "{node.directory_id_text}"' in status.stdout
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)


def test_a_broker_follows_a_java_leader_beside_our_voter(tmp_path):
    with Quorum(tmp_path, {1: "quorate", 2: "java", 3: "java"}) as quorum:
        quorum.format()
        for node in quorum.controllers:
            node.start()
        quorum.hand_over(quorum.nodes[2])
        broker = quorum.add_broker(11)
        produced = produce_and_consume(quorum, broker, 100)
        assert produced == [f"message {i}".encode() for i in range(100)]
        # Our voter holds the broker's registration and its topic like any other.
        quorum.wait_until(lambda v: 11 in v.observers, "the broker to observe")
        quorum.hand_over(quorum.nodes[3])
        quorum.wait_for_commit_by_all()
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)


def test_a_broker_that_met_our_leader_is_whole_when_a_java_node_leads(tmp_path):
    with Quorum(tmp_path, {1: "quorate", 2: "java", 3: "java"}) as quorum:
        quorum.format()
        for node in quorum.controllers:
            node.start()
        quorum.hand_over(quorum.nodes[1])
        broker = quorum.add_broker(11)
        quorum.wait_until(lambda v: v.leader == 1 and 11 in v.observers, "the broker to observe")
        quorum.hand_over(quorum.nodes[2])
        # Its channel for what it passes on is still the one to node 1.
        produced = produce_and_consume(quorum, broker, 10)
        assert produced == [f"message {i}".encode() for i in range(10)]
        assert_nothing_is_lost(quorum)
        assert_java_is_content(quorum)


def produce_and_consume(quorum, broker, count, topic="messages"):
    """Messages through the broker with kafka-python, in the order they came back."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import KafkaAdminClient, NewTopic

    broker.wait_until_started()
    admin = KafkaAdminClient(bootstrap_servers=broker.address)
    admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=broker.address, acks="all")
    for i in range(count):
        producer.send(topic, f"message {i}".encode())
    producer.flush(30)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.address,
        group_id=None,
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    consumer.assign([TopicPartition(topic, 0)])
    values = []
    for message in consumer:
        values.append(message.value)
        if len(values) == count:
            break
    consumer.close()
    return values
