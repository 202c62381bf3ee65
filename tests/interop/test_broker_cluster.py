"""Three unmodified Java brokers on three Quorate controllers: one cluster for all tests of this file.

The clients are those of kafka-python. Each test leaves every node running.
"""

import signal
import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest

from interop.kafka import Quorum
from interop.process import wait_for
from retries import DurabilityViolationError
from time_budget import one_day_in

pytestmark = [pytest.mark.interop, pytest.mark.slow]

BROKERS = (11, 12, 13)
PREFERRED = 0
"""ElectLeaders' election type."""
SESSION_CHECK_S = 9 / 8
"""How often a controller of either kind looks for expired sessions: what chance adds to a gap."""
REPLICATED = {
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "transaction.state.log.num.partitions": 2,
}


class Cluster:
    """Controllers and brokers, and an admin client of the brokers."""

    def __init__(self, quorum):
        from kafka.admin import KafkaAdminClient

        self.quorum = quorum
        self.brokers = [quorum.nodes[i] for i in BROKERS]
        self.servers = [broker.address for broker in self.brokers]
        self.admin = KafkaAdminClient(bootstrap_servers=self.servers)

    @contextmanager
    def changes(self):
        """An admin client for one change. Each broker calls any broker the controller.

        kafka-python keeps that broker also when it has stopped.
        """
        from kafka.admin import KafkaAdminClient

        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            yield admin
        finally:
            admin.close()

    def create(self, topic, assignment):
        from kafka.admin import NewTopic

        with self.changes() as admin:
            admin.create_topics([NewTopic(topic, replica_assignments=assignment)])

    def partition(self, topic, index=0):
        """The partition's row of Metadata: leader_id, replica_nodes, isr_nodes.

        None where there is no such partition, or the client asked a broker that is down.
        """
        from kafka.errors import KafkaConnectionError

        try:
            rows = self.admin.describe_topics([topic])[0]["partitions"]
        except KafkaConnectionError:
            return None
        return next((row for row in rows if row["partition_index"] == index), None)

    def wait_for_partition(self, topic, condition, what):
        return wait_for(
            lambda: (row := self.partition(topic)) and condition(row) and row, what, 60, 0.2
        )

    def producer(self, **settings):
        from kafka import KafkaProducer

        return KafkaProducer(
            bootstrap_servers=self.servers, acks="all", retry_backoff_ms=20, **settings
        )

    def send(self, topic, values, **settings):
        producer = self.producer(**settings)
        sent = [producer.send(topic, value, partition=0) for value in values]
        for one in sent:
            one.get(30)
        producer.close()

    def read(self, topic, **settings):
        """The values of partition 0 up to its present end, in the order of their offsets."""
        from kafka import KafkaConsumer, TopicPartition

        place = TopicPartition(topic, 0)
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers, group_id=None, auto_offset_reset="earliest", **settings
        )
        try:
            consumer.assign([place])
            end = consumer.end_offsets([place])[place]
            values: list[bytes] = []

            def at_the_end():
                for messages in consumer.poll(timeout_ms=200).values():
                    values.extend(message.value for message in messages)
                return consumer.position(place) >= end

            wait_for(at_the_end, f"{topic} to be read up to offset {end}", 30)
            return values
        finally:
            consumer.close()


@contextmanager
def started(root, kind):
    """Three controllers of a kind and three Java brokers."""
    with Quorum(root, dict.fromkeys((1, 2, 3), kind)) as quorum:
        quorum.format()
        quorum.start()
        quorum.leader(60)
        for broker in [quorum.add_broker(broker_id, REPLICATED) for broker_id in BROKERS]:
            broker.wait_until_started()
        made = Cluster(quorum)
        yield made
        made.admin.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with started(tmp_path_factory.mktemp("brokers"), "quorate") as made:
        yield made


def numbered(count, word="message"):
    return [f"{word} {i}".encode() for i in range(count)]


def test_a_transaction_that_aborts_leaves_nothing_to_committed_readers(cluster):
    cluster.create("transactions", {0: [11, 12, 13]})
    producer = cluster.producer(transactional_id="mover")
    producer.init_transactions()
    producer.begin_transaction()
    for value in numbered(10, "kept"):
        producer.send("transactions", value, partition=0)
    producer.commit_transaction()
    producer.begin_transaction()
    for value in numbered(10, "dropped"):
        producer.send("transactions", value, partition=0)
    producer.flush(30)
    producer.abort_transaction()
    producer.close()
    assert cluster.read("transactions", isolation_level="read_committed") == numbered(10, "kept")


def test_a_group_goes_on_at_its_committed_offset(cluster):
    from kafka import KafkaConsumer

    cluster.create("grouped", {0: [12, 13, 11]})
    cluster.send("grouped", numbered(20))
    seen: list[bytes] = []
    for _ in range(2):
        consumer = KafkaConsumer(
            "grouped",
            bootstrap_servers=cluster.servers,
            group_id="readers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=10,
        )
        batch = wait_for(lambda c=consumer: c.poll(timeout_ms=500), "a batch", 60)
        seen.extend(message.value for messages in batch.values() for message in messages)
        consumer.commit()
        consumer.close()
    assert seen == numbered(20)


def test_data_follows_a_reassignment(cluster):
    from kafka import TopicPartition

    cluster.create("moved", {0: [11, 12]})
    cluster.send("moved", numbered(500))
    with cluster.changes() as admin:
        admin.alter_partition_reassignments({TopicPartition("moved", 0): [13, 12]})
    row = cluster.wait_for_partition(
        "moved",
        lambda row: row["replica_nodes"] == [13, 12] and set(row["isr_nodes"]) == {12, 13},
        "the reassignment to end",
    )
    assert row["leader_id"] in (12, 13)
    assert cluster.read("moved") == numbered(500)


def test_a_broker_that_shuts_down_hands_over_and_is_preferred_again(cluster):
    cluster.create("led", {0: [12, 13]})
    broker = cluster.quorum.nodes[12]
    broker.kill(signal.SIGTERM, 60)
    cluster.wait_for_partition(
        "led", lambda row: row["leader_id"] == 13 and row["isr_nodes"] == [13], "broker 13 to lead"
    )
    cluster.send("led", numbered(5))
    broker.start()
    broker.wait_until_started()
    cluster.wait_for_partition(
        "led", lambda row: set(row["isr_nodes"]) == {12, 13}, "broker 12 to catch up"
    )
    with cluster.changes() as admin:
        admin.elect_leaders(PREFERRED, {"led": [0]})
    cluster.wait_for_partition("led", lambda row: row["leader_id"] == 12, "broker 12 to lead again")
    assert cluster.read("led") == numbered(5)


def test_a_deleted_topic_leaves_the_disks(cluster):
    cluster.create("gone", {0: [11, 12, 13]})
    cluster.send("gone", numbered(5))
    folders = [broker.data / "gone-0" for broker in cluster.brokers]
    wait_for(lambda: all(folder.exists() for folder in folders), "the replicas to exist")
    with cluster.changes() as admin:
        admin.delete_topics(["gone"])
    wait_for(lambda: not any(folder.exists() for folder in folders), "the replicas to go", 30)
    assert "gone" not in cluster.admin.list_topics()


def gap_when_controller_and_leader_are_killed(cluster, topic):
    """The active controller and the leader of the partition get SIGKILL at the same moment.

    Nothing is lost or doubled. Returns the producer's worst wait for an acknowledgement, s.
    """
    cluster.create(topic, {0: [13, 11, 12]})
    producer = cluster.producer(enable_idempotence=True, delivery_timeout_ms=120_000)
    acknowledged: list[Any] = []
    waits = []
    stop = threading.Event()

    def produce():
        while not stop.is_set():
            value, start = f"message {len(acknowledged)}".encode(), time.monotonic()
            producer.send(topic, value, partition=0).get(120)
            waits.append(time.monotonic() - start)
            acknowledged.append(value)

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        wait_for(lambda: len(acknowledged) > 100, "the first messages")
        controller, broker = cluster.quorum.leader(), cluster.quorum.nodes[13]
        controller.process.kill()
        broker.process.kill()
        controller.wait_for_exit()
        broker.wait_for_exit()
        before = len(acknowledged)
        wait_for(lambda: len(acknowledged) > before + 100, "producing to go on", 60)
    finally:
        stop.set()
        thread.join(130)
        producer.close()
    assert not thread.is_alive()
    controller.start()
    broker.start()
    broker.wait_until_started()
    if cluster.read(topic) != acknowledged or acknowledged != numbered(len(acknowledged)):
        raise DurabilityViolationError(f"{len(acknowledged)} messages acknowledged, others read")
    cluster.wait_for_partition(
        topic, lambda row: set(row["isr_nodes"]) == set(BROKERS), "broker 13 to catch up"
    )
    cluster.quorum.wait_for_commit_by_all(60)
    return max(waits)


def test_nothing_is_lost_or_doubled_when_controller_and_leader_are_killed(cluster):
    gap_when_controller_and_leader_are_killed(cluster, "precious")


@one_day_in(3, 1)
def test_that_gap_is_no_longer_than_with_java_controllers(cluster, tmp_path):
    ours = gap_when_controller_and_leader_are_killed(cluster, "gap")
    with started(tmp_path, "java") as other:
        theirs = gap_when_controller_and_leader_are_killed(other, "gap")
    print(f"worst gap of the producer: Quorate {ours:.2f} s, Java {theirs:.2f} s")
    assert ours <= theirs + SESSION_CHECK_S
