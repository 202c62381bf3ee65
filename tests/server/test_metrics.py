"""Metrics of whole controllers in memory, under the documented names."""

import math
import re
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from conformance.marker import kafka_guarantee, kafka_scenario
from node.world import World
from quorate.base.ids import OffsetAndEpoch
from quorate.replica.disk_jobs import SnapshotFailed, SnapshotWritten
from quorate.security.authorizer import AuthorizerConfig
from quorate.server.meters import Histogram, Meters, Windowed
from quorate.server.metric_table import STATES
from quorate.server.metrics import ALL_METRICS as DEFINITIONS
from quorate.server.metrics import MetricsPage, NodeCollector
from quorate.server.web import Question
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    DescribeClusterRequest,
    UpdateFeaturesRequest,
)

PAGE = Path(__file__).parents[2] / "docs/metrics.md"
QUOTA = AlterClientQuotasRequest.EntryData(
    entity=[AlterClientQuotasRequest.EntryData.EntityData(entity_type="user", entity_name="a")],
    ops=[AlterClientQuotasRequest.EntryData.OpData(key="request_percentage", value=5.0)],
)
RAFT = "kafka_server_raft_metrics_"
CONTROLLER = "kafka_controller_kafka_controller_"
LEADERS_ONLY = {
    "kafka_controller_kafka_controller_time_since_last_heartbeat_received_ms",
    RAFT + "number_of_observers",
    RAFT + "number_of_offline_voters",
    RAFT + "pending_add_voter",
    RAFT + "pending_remove_voter",
    RAFT + "uncommitted_voter_change",
}


class Callers:
    connection_count, incoming, max_incoming = 5, 300, 1000
    failed_authentications = MappingProxyType({"CONTROLLER": 2})


class Measured:
    """A world whose nodes are measured as a driver would, and their pages."""

    def __init__(self, **options):
        self.world = World(**options)
        self.meters = {}
        self.pages = {}
        for node in self.world.nodes.values():
            self.measure(node)

    def measure(self, node):
        world, controller = self.world, node.controller
        meters = Meters(controller.replica, lambda: world.now_ms / 1000)
        step = controller.step

        def measured(happened, now):
            effects = step(happened, now)
            meters.stepped(happened, effects)
            return effects

        controller.step = measured
        self.meters[node.node_id] = meters
        self.pages[node.node_id] = MetricsPage(
            NodeCollector(controller, meters, lambda: world.now, Callers)
        )

    def scrape(self, node):
        """Every sample of a node's page: (name, labels) -> value."""
        page = self.pages[node.node_id](Question({}, {}))
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(page.body.decode())
            for sample in family.samples
        }

    def raft(self, node):
        """The unlabelled raft metrics of a node, by Kafka's attribute in snake case."""
        found = self.scrape(node).items()
        return {key[0].removeprefix(RAFT): v for key, v in found if len(key) == 1}


@pytest.fixture
def measured():
    measured = Measured()
    measured.world.run_until(lambda: measured.world.active)
    measured.world.run(1200)
    return measured


def followers(world):
    return [node for node in world.alive if node is not world.active]


# -- names -------------------------------------------------------------------------------------
def row(definition):
    kafka = f"`{definition.source}` {definition.attribute}" if definition.source else "ours"
    labels = definition.label if isinstance(definition.label, tuple) else (definition.label,)
    label = f" by {', '.join(f'`{each}`' for each in labels)}" if definition.label else ""
    kind = definition.kind + label
    return f"| `{definition.name}` | {kind} | {kafka} | {definition.help} |"


def test_the_table_in_the_docs_is_current():
    table = PAGE.read_text().partition("## Table\n")[2].partition("\n\n`process_*`")[0]
    assert table.split("\n")[3:] == [row(definition) for definition in DEFINITIONS]


@kafka_scenario("KafkaRaftClientTest", "metrics")
def test_a_leader_shows_every_metric_and_a_follower_all_but_the_leaders(measured):
    world = measured.world
    measured.meters[world.active.node_id].request_received(1, 1)
    measured.meters[world.active.node_id].request_answered(1)
    kinds = {d.name.removesuffix("_total"): d.kind for d in DEFINITIONS}

    def shown(node):
        page = measured.pages[node.node_id](Question({}, {})).body.decode()
        families = text_string_to_metric_families(page)
        return {f.name: f.type for f in families if not f.name.startswith("process_")}

    assert shown(world.active) == kinds
    other = followers(world)[0]
    assert set(kinds) - set(shown(other)) == LEADERS_ONLY


def snake(name):
    return re.sub(r"\W", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).lower()


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda d: d.name)
def test_names_are_derived_from_kafkas(definition):
    if not definition.source:
        assert definition.name.startswith("quorate_")
        return
    domain, _, kind = definition.source.partition(":type=")
    derived = snake(f"{domain}_{kind}_{definition.attribute}")
    if definition.kind == "counter":
        derived = re.sub(r"(_rate_per_minute|_rate|_count|_per_sec)$", "_total", derived)
    assert definition.name == derived


OF_THE_CONTROLLER = """
    KafkaController: ActiveControllerCount EventQueueOperationsStartedCount
    KafkaController: EventQueueOperationsTimedOutCount LastAppliedRecordLagMs
    KafkaController: LastAppliedRecordOffset LastAppliedRecordTimestamp LastCommittedRecordOffset
    KafkaController: NewActiveControllersCount TimedOutBrokerHeartbeatCount
    KafkaController: TimeSinceLastHeartbeatReceivedMs FencedBrokerCount ActiveBrokerCount
    KafkaController: ControlledShutdownBrokerCount BrokerRegistrationState GlobalTopicCount
    KafkaController: GlobalPartitionCount OfflinePartitionsCount PreferredReplicaImbalanceCount
    KafkaController: MetadataErrorCount IgnoredStaticVoters
    ControllerEventManager: EventQueueProcessingTimeMs EventQueueTimeMs AvgIdleRatio
    ControllerStats: UncleanLeaderElectionsPerSec ElectionFromEligibleLeaderReplicasPerSec
"""


@kafka_scenario("QuorumControllerMetricsTest", "metricNames")
@kafka_scenario("ControllerMetadataMetricsTest", "metricNames")
def test_every_metric_of_kafkas_controller_is_there():
    known = {(definition.source, definition.attribute) for definition in DEFINITIONS}
    for line in OF_THE_CONTROLLER.split("\n"):
        kind, _, attributes = line.strip().partition(": ")
        for attribute in attributes.split():
            assert (f"kafka.controller:type={kind}", attribute) in known


def test_openmetrics_is_negotiated(measured):
    page = measured.pages[1](
        Question({"accept": "application/openmetrics-text; version=1.0.0"}, {})
    )
    assert page.content_type.startswith("application/openmetrics-text")
    names = {family.name for family in parse_openmetrics(page.body.decode())}
    assert RAFT + "current_epoch" in names


def test_a_node_without_the_listener_does_not_load_prometheus():
    code = "import sys, quorate.server.app; print('prometheus_client' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


# -- values ------------------------------------------------------------------------------------
def test_all_nodes_agree_on_the_quorum(measured):
    world = measured.world
    leader = world.active
    for node in world.alive:
        metrics = measured.raft(node)
        assert metrics["current_leader"] == leader.node_id
        assert metrics["current_epoch"] == leader.core.epoch
        assert metrics["log_end_offset"] == node.core.log_end.offset > 0
        assert metrics["log_end_epoch"] == leader.core.epoch
        assert metrics["high_watermark"] == node.core.high_watermark > 0
        assert metrics["number_of_voters"] == 3
        assert metrics["number_unknown_voter_connections"] == 0
        assert metrics[CONTROLLER + "active_controller_count"] == (node is leader)
        assert metrics["kafka_server_metadata_loader_current_metadata_version"] == 30
        assert metrics["kafka_server_socket_server_metrics_connection_count"] == 5
        assert metrics["kafka_network_socket_server_memory_pool_used"] == 300
        assert metrics["kafka_network_socket_server_memory_pool_available"] == 700
    assert measured.raft(leader)["current_vote"] == leader.node_id


def test_the_state_is_one_of_kafkas(measured):
    world = measured.world
    leader = world.active
    other, lonely = followers(world)

    def state(node):
        metrics = measured.scrape(node)
        values = {name: metrics[RAFT + "current_state", name] for name in STATES}
        assert sum(values.values()) == 1
        return max(values, key=values.__getitem__)

    assert (state(leader), state(other)) == ("leader", "follower")
    world.cut = {lonely.node_id}
    world.run_until(lambda: lonely.core.role == "prospective")
    assert state(lonely) in ("prospective", "prospective-voted")


def test_records_are_counted_where_they_are_appended(measured):
    world = measured.world
    world.run_until(lambda: len({node.core.log_end for node in world.alive}) == 1)
    end = world.active.core.log_end.offset
    metrics = measured.raft(world.active)
    assert (metrics["append_records_total"], metrics["fetch_records_total"]) == (end, 0)
    for node in followers(world):
        metrics = measured.raft(node)
        assert (metrics["append_records_total"], metrics["fetch_records_total"]) == (0, end)


def test_commits_and_elections_are_timed(measured):
    world = measured.world
    metrics = measured.raft(world.active)
    # A millisecond each way, and one for the disk's answer; the first one waits for the followers.
    assert 1 <= metrics["commit_latency_avg"] <= 4
    assert metrics["commit_latency_avg"] <= metrics["commit_latency_max"] <= 10
    assert 0 < metrics["election_latency_avg"] <= metrics["election_latency_max"] < 3000
    assert metrics["quorate_commit_seconds_count"] > 0
    other = measured.raft(followers(world)[0])
    assert math.isnan(other["commit_latency_avg"])
    assert other["quorate_commit_seconds_count"] == 0


def test_old_latencies_leave_the_window(measured):
    world = measured.world
    leader = world.active
    assert not math.isnan(measured.raft(leader)["election_latency_max"])
    world.now_ms += 61_000
    assert math.isnan(measured.raft(leader)["election_latency_max"])


@kafka_scenario(
    "QuorumControllerMetricsIntegrationTest", "failingOverIncrementsNewActiveControllerCount"
)
def test_a_new_leader_is_counted(measured):
    world = measured.world
    old = world.active
    before = measured.raft(followers(world)[0])[CONTROLLER + "new_active_controllers_total"]
    world.cut = {old.node_id}
    world.run_until(lambda: world.active not in (None, old))
    world.run(100)
    for node in (n for n in world.alive if n is not old):
        metrics = measured.raft(node)[CONTROLLER + "new_active_controllers_total"]
        assert metrics == before + 1


@kafka_scenario("SnapshotGeneratorTest", "emitterProblem")
@kafka_scenario("ControllerMetadataMetricsTest", "metadataErrorCount")
def test_snapshots_and_their_failures_are_counted(measured):
    world, meters = measured.world, measured.meters[1]
    effects = world.nodes[1].controller.step((), world.now)
    meters.stepped([SnapshotWritten(OffsetAndEpoch(3, 1), 777)], effects)
    meters.stepped([SnapshotFailed(OffsetAndEpoch(3, 1), "disk full")], effects)
    world.now_ms += 1500
    metrics = measured.raft(world.nodes[1])
    assert metrics["kafka_server_snapshot_emitter_latest_snapshot_generated_bytes"] == 777
    assert metrics["kafka_server_snapshot_emitter_latest_snapshot_generated_age_ms"] == 1500
    assert metrics[CONTROLLER + "metadata_error_total"] == 1


@kafka_guarantee("ControllerApisTest", "fetchLocalTimeComputedCorrectly")
def test_requests_are_counted_and_timed_by_api(measured):
    meters = measured.meters[1]
    meters.request_received(1, 1)
    measured.world.now_ms += 40
    meters.request_received(2, 1)
    meters.request_received(3, 55)
    meters.request_answered(1)
    meters.request_dropped(2)
    metrics = measured.scrape(measured.world.nodes[1])
    name = "kafka_network_request_metrics_"
    assert metrics[name + "requests_total", "Fetch"] == 2
    assert metrics[name + "requests_total", "DescribeQuorum"] == 1
    assert metrics[name + "total_time_ms_count", "Fetch"] == 1
    assert metrics[name + "total_time_ms_sum", "Fetch"] == pytest.approx(40)
    assert metrics[name + "total_time_ms_bucket", "25.0", "Fetch"] == 0
    assert metrics[name + "total_time_ms_bucket", "50.0", "Fetch"] == 1


@kafka_scenario(
    "QuorumControllerMetricsTest",
    "updateEventQueueTime",
    "updateEventQueueProcessingTime",
)
@kafka_scenario("QuorumControllerMetricsIntegrationTest", "eventQueueOperationsStartedMetric")
def test_the_queue_of_writes_is_measured(measured):
    world = measured.world
    leader = world.active
    before = measured.raft(leader)
    world.ask(leader.node_id, AlterClientQuotasRequest(entries=[QUOTA]), 1)
    world.run(50)
    after = measured.raft(leader)
    started = CONTROLLER + "event_queue_operations_started_total"
    assert after[started] > before[started] > 0
    waited = "kafka_controller_controller_event_manager_event_queue_time_ms_count"
    assert after[waited] > before[waited] > 0
    committed = CONTROLLER + "metadata_commit_rate_total"
    assert after[committed] == leader.core.high_watermark
    assert after[CONTROLLER + "metadata_commit_latency_ms_count"] > 0
    assert after[CONTROLLER + "metadata_snapshot_offset_lag"] == leader.core.high_watermark
    assert after[CONTROLLER + "metadata_lag"] == 0


@kafka_scenario("QuorumControllerMetricsTest", "lastAppliedRecordMetrics")
def test_the_last_record_is_shown_as_committed_and_as_applied(measured):
    world = measured.world
    world.run_until(lambda: len({node.controller.replica.applied for node in world.alive}) == 1)
    for node in world.alive:
        metrics = measured.raft(node)
        last = node.core.high_watermark - 1
        appended = node.controller.replica.applied_timestamp_ms
        assert metrics[CONTROLLER + "last_committed_record_offset"] == last
        assert metrics[CONTROLLER + "last_applied_record_offset"] == last
        assert metrics[CONTROLLER + "last_applied_record_timestamp"] == appended > 0
        lag = 0 if node is world.active else world.now.wall_ms - appended
        assert metrics[CONTROLLER + "last_applied_record_lag_ms"] == lag


@kafka_scenario("MetadataLoaderTest", "kRaftVersionFinalizedLevelMetric")
def test_the_levels_of_features_are_shown_with_the_kraft_version(measured):
    """kraft.version is known by its control records alone."""
    world = measured.world
    finalized = "kafka_server_metadata_loader_finalized_level"
    world.run(3_000)
    node = world.active
    metrics = measured.scrape(node)
    assert metrics[finalized, "metadata.version"] == 30
    assert metrics[finalized, "kraft.version"] == 0
    upgrade = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="kraft.version", max_version_level=1, upgrade_type=1
    )
    request = UpdateFeaturesRequest(feature_updates=[upgrade])
    assert world.ask(node.node_id, request).error_code == 0
    world.run(100)
    for node in world.alive:
        assert measured.scrape(node)[finalized, "kraft.version"] == 1


@kafka_scenario("QuorumControllerMetricsTest", "avgIdleRatio")
def test_the_idle_ratio_is_that_since_the_last_scrape(measured, monkeypatch):
    now, worked = [100.0], [3.0]
    clocks = SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: worked[0])
    monkeypatch.setattr("quorate.server.metrics.time", clocks)
    measured.measure(measured.world.nodes[1])

    def ratio():
        return measured.raft(measured.world.nodes[1])["poll_idle_ratio_avg"]

    assert ratio() == 1
    for passed, busy, idle in ((0.04, 0.02, 0.5), (0.02, 0.019, 0.05), (0.02, 0.02, 0)):
        now[0] += passed
        worked[0] += busy
        assert ratio() == pytest.approx(idle)


@kafka_scenario("StandardAuthorizerTest", "authorizerMetrics")
def test_decisions_of_the_authorizer_are_counted():
    measured = Measured(authorizer=AuthorizerConfig(frozenset({"User:ANONYMOUS"})))
    world = measured.world
    world.run_until(lambda: world.active and world.active.image.features.metadata_version)
    node = world.leader
    names = ("allowed_total", "denied_total", "request_total")

    def counts():
        found = measured.raft(node)
        return [found[f"kafka_server_plugins_authorization_{name}"] for name in names]

    allowed, denied, asked = counts()
    assert asked == allowed + denied and allowed > 0
    assert measured.raft(node)["kafka_server_plugins_acls_total_count"] == 0
    world.ask(node.node_id, DescribeClusterRequest(endpoint_type=2), principal="User:alice")
    later = counts()
    assert later[1] == denied + 1 and later[2] == sum(later[:2])


def test_voters_that_do_not_fetch_are_offline(measured):
    world = measured.world
    leader = world.active
    assert measured.raft(leader)["number_of_offline_voters"] == 0
    assert measured.raft(leader)["duplicate_voter_ids"] == 0
    world.crash(followers(world)[0].node_id)
    world.run(3_000)
    assert world.active is leader
    metrics = measured.raft(leader)
    assert metrics["number_of_offline_voters"] == 1
    assert (metrics["pending_add_voter"], metrics["pending_remove_voter"]) == (0, 0)


# -- instruments -------------------------------------------------------------------------------
def test_a_window_has_two_samples():
    window = Windowed()
    assert math.isnan(window.average(0)) and math.isnan(window.maximum(0))
    window.record(10, 100)
    window.record(2, 110)
    window.record(3, 131)
    assert (window.average(131), window.maximum(131)) == (5, 10)
    window.record(5, 165)
    assert (window.average(165), window.maximum(165)) == (4, 5)
    assert math.isnan(window.average(300))


def test_a_histogram_counts_bounds_inclusively():
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.observe(value)
    assert histogram.counts == [2, 2, 1]
    assert histogram.sum == 14.0
