"""The metrics of brokers, topics and partitions, by what happens to a cluster."""

from types import SimpleNamespace

from conformance.marker import kafka_scenario
from controller.cluster import SESSION_MS, Cluster
from narrow import as_any
from quorate.base.ids import OffsetAndEpoch
from quorate.controller.brokers import UNREGISTER_BROKER
from quorate.controller.topic_deletion import DELETE_TOPICS
from quorate.metadata.loader import Loader, LogBatch
from quorate.metadata.replay import record_values
from quorate.node.metadata_machine import MetadataMachine
from quorate.replica.state_machine import Now
from quorate.server.broker_metrics import BROKER_METRICS
from quorate.server.controller_metrics import CONTROLLER_METRICS
from quorate.wire.messages import DeleteTopicsRequest, UnregisterBrokerRequest


def scrape(cluster, is_active=True):
    """Kafka's attribute -> value."""
    return scraped(cluster.image, cluster.head.index, cluster.liveness, cluster.now_ms, is_active)


def scraped(image, index, liveness=None, now_ms=0, is_active=False):
    controller = SimpleNamespace(image=image, index=index, liveness=liveness, is_active=is_active)
    scene = SimpleNamespace(controller=controller, now=Now(now_ms, 0))
    return {metric.attribute: metric.read(as_any(scene)) for metric in BROKER_METRICS}


@kafka_scenario(
    "ControllerMetricsChangesTest",
    "initialValues",
    "handleNewUnfencedBroker",
    "handleNewFencedBroker",
    "handleBrokerFencing",
    "handleBrokerControlledShutdown",
    "handleNewTopic",
)
@kafka_scenario(
    "ControllerMetadataMetricsTest",
    "fencedBrokerMetric",
    "activeBrokerCountMetric",
    "controlledShutdownCountMetric",
    "brokerRegistrationStateMetrics",
    "globalTopicCountMetric",
    "globalPartitionCountMetric",
    "offlinePartitionCountMetric",
    "preferredReplicaImbalanceCountMetric",
)
def test_brokers_topics_and_partitions_are_counted():
    cluster = Cluster(3)
    cluster.create("a", assignments=[(1, 2), (2, 3)])
    cluster.create("b", assignments=[(3,)])
    found = scrape(cluster)
    assert (found["GlobalTopicCount"], found["GlobalPartitionCount"]) == (2, 3)
    assert (found["ActiveBrokerCount"], found["FencedBrokerCount"]) == (3, 0)
    assert (found["OfflinePartitionsCount"], found["PreferredReplicaImbalanceCount"]) == (0, 0)
    cluster.lose(3)
    found = scrape(cluster)
    assert (found["ActiveBrokerCount"], found["FencedBrokerCount"]) == (2, 1)
    assert (found["OfflinePartitionsCount"], found["PreferredReplicaImbalanceCount"]) == (1, 1)
    cluster.heartbeat(1, want_shut_down=True)
    found = scrape(cluster)
    assert found["ControlledShutdownBrokerCount"] == 1
    assert found["BrokerRegistrationState"] == [("1", 20.0), ("2", 30.0), ("3", 10.0)]


COUNTS = {
    "ActiveBrokerCount": 2,
    "FencedBrokerCount": 1,
    "GlobalTopicCount": 3,
    "GlobalPartitionCount": 7,
    "OfflinePartitionsCount": 3,
    "PreferredReplicaImbalanceCount": 4,
}


@kafka_scenario(
    "ControllerMetadataMetricsPublisherTest", "metricsBeforePublishing", "publish", "loadSnapshot"
)
def test_a_node_counts_nothing_before_it_has_a_record_and_all_of_a_snapshot():
    machine = MetadataMachine()
    found = scraped(machine.image, machine.head.index)
    assert {name: found[name] for name in COUNTS} == dict.fromkeys(COUNTS, 0)
    cluster = Cluster(3)
    cluster.create("foo", assignments=[(1, 2)])
    cluster.create("bar", assignments=[(1, 2), (2, 1), (3, 1)])
    cluster.create("quux", assignments=[(3,), (3,), (3,)])
    cluster.lose(3)
    machine.begin_load(OffsetAndEpoch(50, 1), 0)
    machine.load(list(record_values(cluster.image)))
    machine.end_load()
    found = scraped(machine.image, machine.head.index)
    assert {name: found[name] for name in COUNTS} == COUNTS


@kafka_scenario("QuorumControllerMetricsTest", "timeSinceLastHeartbeatReceivedMs")
def test_only_the_active_controller_knows_heartbeats():
    """A session that has expired shows its timeout, however long ago that was."""

    def since():
        return scrape(cluster)["TimeSinceLastHeartbeatReceivedMs"]

    cluster = Cluster(2)
    cluster.now_ms += 1000
    assert since() == [("1", 1000.0), ("2", 1000.0)]
    cluster.now_ms += SESSION_MS
    cluster.heartbeat(2)
    cluster.now_ms += 5
    assert since() == [("1", SESSION_MS), ("2", 5.0)]
    assert scrape(cluster, is_active=False)["TimeSinceLastHeartbeatReceivedMs"] is None


def elections(cluster):
    """(unclean, from the ELR), as an active controller counts them; a standby counts the same."""
    standby = Loader()
    standby.feed(LogBatch(0, len(flat(cluster)) - 1, 1, 0, flat(cluster)))
    for values in cluster.written:
        assert cluster.head.commit(values) is not None
    assert cluster.head.elections == standby.elections
    scene = SimpleNamespace(controller=SimpleNamespace(elections=standby.elections))
    found = {
        m.attribute: m.read(as_any(scene)) for m in CONTROLLER_METRICS if "Election" in m.attribute
    }
    return (
        found["UncleanLeaderElectionsPerSec"],
        found["ElectionFromEligibleLeaderReplicasPerSec"],
    )


def flat(cluster):
    return [value for values in cluster.written for value in values]


def lose_the_isr(cluster, **configs):
    """Broker 2 falls out of the ISR and comes back, then broker 1 is lost."""
    names = {name.replace("_", "."): value for name, value in configs.items()}
    cluster.create("a", assignments=[(1, 2)], configs=names)
    cluster.lose(2)
    cluster.unfence(2)
    cluster.lose(1)


@kafka_scenario("ControllerMetricsChangesTest", "topicElectionResult")
@kafka_scenario("ControllerMetadataMetricsTest", "updateUncleanLeaderElection")
def test_unclean_elections_are_counted():
    cluster = Cluster(2)
    lose_the_isr(cluster, unclean_leader_election_enable="true")
    assert cluster.partition("a").leader == 2
    assert elections(cluster) == (1, 0)


def test_elections_of_the_isr_are_not_counted():
    cluster = Cluster(2)
    cluster.create("a", assignments=[(1, 2)])
    cluster.lose(1)
    assert cluster.partition("a").leader == 2
    assert elections(cluster) == (0, 0)


@kafka_scenario("ControllerMetadataMetricsTest", "updateElectionFromEligibleLeaderReplicasCount")
def test_elections_among_the_eligible_replicas_are_counted():
    cluster = Cluster(2, elr=True)
    lose_the_isr(cluster, min_insync_replicas="2")
    assert cluster.partition("a").leader == 2
    assert elections(cluster) == (0, 1)


@kafka_scenario(
    "ControllerMetricsChangesTest",
    "handleBrokerInControlledShutdownFencing",
    "handleBrokerUnfencing",
    "handleUnregisterBroker",
    "handleDeletedTopic",
    "topicChange",
)
def test_the_counts_follow_what_becomes_of_brokers_and_topics():
    def counts():
        names = "ActiveBrokerCount", "ControlledShutdownBrokerCount", "FencedBrokerCount"
        partitions = "GlobalTopicCount", "GlobalPartitionCount", "OfflinePartitionsCount"
        imbalanced = "PreferredReplicaImbalanceCount"
        found = scrape(cluster)
        return [found[name] for name in (*names, *partitions, imbalanced)]

    cluster = Cluster(2)
    cluster.create("a", assignments=[(1, 2), (2, 1)])
    assert counts() == [2, 0, 0, 1, 2, 0, 0]
    cluster.heartbeat(1, want_shut_down=True)
    assert counts() == [1, 1, 0, 1, 2, 0, 1]
    cluster.lose(1)
    assert counts() == [1, 0, 1, 1, 2, 0, 1]
    cluster.register(1)
    cluster.unfence(1)
    assert counts() == [2, 0, 0, 1, 2, 0, 1]
    cluster.decide(UNREGISTER_BROKER, UnregisterBrokerRequest(broker_id=2))
    assert counts() == [1, 0, 0, 1, 2, 2, 2]
    cluster.decide(DELETE_TOPICS, DeleteTopicsRequest(topic_names=["a"]), 3)
    assert counts() == [1, 0, 0, 0, 0, 0, 0]
