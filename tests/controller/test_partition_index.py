"""The index of partitions by broker equals one that is built anew, whatever happens to the head."""

import random

import pytest
from immutables import Map

from conformance.marker import kafka_scenario
from controller.cluster import Cluster
from controller.test_head import Log, encoded
from controller.test_random_clusters import Requests
from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.controller.partition_index import PartitionIndex
from quorate.controller.replicas import leaderless_places, places_on
from quorate.formats.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.metadata.image import NO_LEADER, Partition, Topic, Topics
from quorate.metadata.replay import record_values
from time_budget import DAY, share


def rebuilt(topics):
    index = PartitionIndex()
    index.rebuild(topics)
    return index


def assert_follows(head):
    assert head.index.content() == rebuilt(head.image.topics).content()


class Records:
    """Draws records of topics that fit what is in an image."""

    def __init__(self, rng):
        self.rng = rng
        self.made = 0

    def some(self, topics):
        draw = self.rng.choice((self.topic, self.change, self.change, self.partition, self.end))
        return draw(topics)

    def topic(self, topics):
        self.made += 1
        topic_id = Uuid(self.made.to_bytes(16, "big"))
        records = [TopicRecord(name=f"t{self.made}", topic_id=topic_id)]
        return records + [self.new(topic_id, i) for i in range(self.rng.randint(1, 3))]

    def partition(self, topics):
        known = list(topics)
        if not known:
            return self.topic(topics)
        topic = self.rng.choice(known)
        return [self.new(topic.id, len(topic.partitions))]

    def new(self, topic_id, index):
        replicas = self.rng.sample(range(1, 6), 3)
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas[:2],
            leader=self.rng.choice((-1, *replicas)),
            leader_epoch=0,
            partition_epoch=0,
        )

    def change(self, topics):
        places = [(topic.id, index) for topic in topics for index in topic.partitions]
        if not places:
            return self.topic(topics)
        topic_id, index = self.rng.choice(places)
        replicas = self.rng.sample(range(1, 6), 2)
        return [
            PartitionChangeRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                leader=self.rng.choice((-1, *replicas)),
                eligible_leader_replicas=self.rng.sample(range(1, 6), self.rng.randint(0, 2)),
            )
        ]

    def end(self, topics):
        known = list(topics)
        if not known or self.rng.random() < 0.4:
            return [ClearElrRecord(topic_name="")]
        return [RemoveTopicRecord(topic_id=self.rng.choice(known).id)]


@pytest.mark.parametrize("number", range(share(100, quick=5, daily=25)))
def test_it_follows_the_head(number):
    """Decided, committed in parts, lost, written by another leader, in transactions, by snapshot."""
    rng = random.Random(DAY * 1000 + number)
    records, log, outstanding, epoch = Records(rng), Log(), [], 1
    log.commit(*encoded([FeatureLevelRecord(name="metadata.version", feature_level=30)]))
    for _ in range(120):
        action = rng.choice(("decide", "decide", "commit", "mark", "foreign", "lose", "load"))
        if action == "decide":
            outstanding.append(log.decide(*records.some(log.head.image.topics)))
        elif action == "mark":
            open_ = log.head.transaction is not None
            ends = rng.choice((EndTransactionRecord, AbortTransactionRecord))
            outstanding.append(log.decide(ends() if open_ else BeginTransactionRecord()))
        elif action == "commit" and outstanding:
            taken = rng.randint(1, len(outstanding))
            log.commit(*(v for part in outstanding[:taken] for v in part), epoch=epoch)
            del outstanding[:taken]
        elif action == "foreign":
            epoch, outstanding = epoch + 1, []
            log.head.revert()
            log.commit(*encoded(records.some(log.head.image.topics)), epoch=epoch)
        elif action == "lose":
            epoch, outstanding = epoch + 2, []
            log.head.revert()
        elif action == "load" and log.head.transaction is None and rng.random() < 0.3:
            outstanding = []
            load(log)
        assert_follows(log.head)


def load(log):
    image = log.machine.image
    log.machine.begin_load(OffsetAndEpoch(log.end, 1), 0)
    log.machine.load(list(record_values(image)))
    log.machine.end_load()


@pytest.mark.parametrize("number", range(share(30, quick=2, daily=6)))
def test_it_follows_a_random_cluster(number):
    requests = Requests(DAY * 1000 + number)
    for step in range(300):
        requests.step()
        if step % 20 == 0:
            assert_follows(requests.cluster.head)
    cluster = requests.cluster
    for broker_id in cluster.image.cluster.brokers:
        led = [
            p for t in cluster.image.topics for p in t.partitions.values() if p.leader == broker_id
        ]
        assert cluster.head.index.leads(broker_id) == len(led)
        has = [
            p
            for t in cluster.image.topics
            for p in t.partitions.values()
            if broker_id in p.replicas or broker_id in p.elr
        ]
        assert cluster.head.index.has(broker_id) == len(has)


def test_a_topic_with_more_partitions_on_a_broker_than_two_bytes_count():
    place = Partition((1,), (Uuid(bytes(16)),), (1,), (), (), 1, 0, 0, 0)
    topic = Topic(Uuid(b"t" * 16), "t", Map(dict.fromkeys(range(65540), place)))
    topics = Topics(Map({topic.id: topic}), Map({"t": topic.id}))
    index = rebuilt(topics)
    assert index.leads(1) == index.has(1) == 65_540 and index.content() == rebuilt(topics).content()
    fewer = topic._replace(partitions=topic.partitions.delete(65_539))
    after = Topics(Map({topic.id: fewer}), topics.ids)
    index.advance(topics, after, {topic.id: {65_539}})
    assert index.content() == rebuilt(after).content() != rebuilt(topics).content()
    index.advance(after, Topics(), {topic.id: set()})
    assert index.content() == PartitionIndex().content() and list(index.topics_of(1)) == []


# -- what it answers -----------------------------------------------------------------------------
def names(head, places, is_meant):
    topics = head.image.topics.by_id
    found = {(topics[topic_id], index) for topic_id, index in places}
    return {(topic.name, index) for topic, index in found if is_meant(topic.partitions[index])}


def in_sync_on(head, broker_id):
    return names(head, places_on(head, broker_id), lambda found: broker_id in found.isr)


def eligible_on(head, broker_id):
    return names(head, places_on(head, broker_id), lambda found: broker_id in found.elr)


def leaderless(head):
    return names(head, leaderless_places(head), lambda found: found.leader == NO_LEADER)


def changed(cluster, topic, index, **fields):
    topic_id = cluster.image.topics.named(topic).id
    cluster.write([PartitionChangeRecord(topic_id=topic_id, partition_id=index, **fields)])


@kafka_scenario("BrokersToIsrsTest", "iterator")
def test_the_partitions_that_have_a_broker_in_sync():
    cluster = Cluster(5)
    assert in_sync_on(cluster.head, 1) == set()
    cluster.create("a", assignments=[(1, 2, 3)])
    cluster.create("b", assignments=[(4, 2, 3), (4, 2, 3)])
    assert in_sync_on(cluster.head, 1) == {("a", 0)}
    assert in_sync_on(cluster.head, 2) == {("a", 0), ("b", 0), ("b", 1)}
    assert in_sync_on(cluster.head, 4) == {("b", 0), ("b", 1)}
    assert in_sync_on(cluster.head, 5) == set()
    changed(cluster, "b", 1, isr=[4, 3])
    assert in_sync_on(cluster.head, 2) == {("a", 0), ("b", 0)}


@kafka_scenario("BrokersToIsrsTest", "leadersOnlyIterator", "noLeader")
def test_whom_a_broker_leads_and_what_has_no_leader():
    cluster = Cluster(4)
    cluster.create("a", assignments=[(1, 2, 3)])
    cluster.create("b", assignments=[(4, 2, 3)])
    index = cluster.head.index
    assert [index.leads(broker) for broker in (1, 2, 4)] == [1, 0, 1]
    changed(cluster, "a", 0, leader=2)
    assert [index.leads(broker) for broker in (1, 2, 4)] == [0, 1, 1]
    assert leaderless(cluster.head) == set()
    changed(cluster, "a", 0, leader=-1)
    assert index.leads(2) == 0 and leaderless(cluster.head) == {("a", 0)}


@kafka_scenario("BrokerToElrsTest", "iterator")
def test_the_partitions_for_which_a_broker_is_eligible():
    cluster = Cluster(4, elr=True)
    assert eligible_on(cluster.head, 1) == set()
    cluster.create("a", assignments=[(1, 2, 3)])
    cluster.create("b", assignments=[(4, 2, 3), (3, 2, 1)])
    changed(cluster, "a", 0, isr=[1], eligible_leader_replicas=[2, 3])
    changed(cluster, "b", 0, isr=[4], eligible_leader_replicas=[2])
    assert eligible_on(cluster.head, 1) == set()
    assert eligible_on(cluster.head, 2) == {("a", 0), ("b", 0)}
    assert eligible_on(cluster.head, 3) == {("a", 0)}
    changed(cluster, "b", 1, isr=[3], eligible_leader_replicas=[1, 2])
    assert eligible_on(cluster.head, 2) == {("a", 0), ("b", 0), ("b", 1)}
