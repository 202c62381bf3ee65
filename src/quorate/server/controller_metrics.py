"""Metrics of the controller's queue, elections, authorizer and voters, with KIP-631's and KIP-853's own.

Source: `QuorumControllerMetrics`, `ControllerMetadataMetrics`, `NodeMetrics`,
`AuthorizerMetrics`, `LinuxIoMetricsCollector`; KIP-631 and KIP-853, "Monitoring", for those that
Kafka never built.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from quorate.controller.counts import ControllerCounts
from quorate.formats.versions import KRAFT_VERSION, supported_features
from quorate.metadata.topics import ElectionCounts
from quorate.server.broker_metrics import AUTHORIZER
from quorate.server.metric_definition import (
    CONTROLLER,
    LOADER,
    RAFT,
    Labelled,
    MetricDefinition,
    Scrape,
    Value,
)

_STATS: Final = "kafka.controller:type=ControllerStats"
_EVENTS: Final = "kafka.controller:type=ControllerEventManager"
_NODE: Final = "kafka.server:type=node-metrics"
_SERVER: Final = "kafka.server:type=ControllerServer"
_IO: Final = Path("/proc/self/io")
_KRAFT_LEVELS: Final = (0, 1)


def _counted(read: Callable[[ControllerCounts], int]) -> Callable[[Scrape], Value | None]:
    def value(scrape: Scrape) -> Value | None:
        counts = scrape.controller.counts
        return None if counts is None else read(counts)

    return value


def _elected(read: Callable[[ElectionCounts], int]) -> Callable[[Scrape], Value | None]:
    def value(scrape: Scrape) -> Value | None:
        elections = scrape.controller.elections
        return None if elections is None else read(elections)

    return value


def _disk(name: str) -> Callable[[Scrape], Value | None]:
    """Read a value of `/proc/self/io`; None where the system does not have it."""

    def value(scrape: Scrape) -> Value | None:
        try:
            lines = _IO.read_text().splitlines()
        except OSError:
            return None
        found = dict(line.split(": ", 1) for line in lines)
        return int(found[name]) if name in found else None

    return value


def _supported(which: int) -> Callable[[Scrape], Value]:
    def value(scrape: Scrape) -> Value:
        ranges = supported_features(scrape.controller.unstable_features)
        ranges.setdefault(KRAFT_VERSION, _KRAFT_LEVELS)
        levels: Labelled = [(name, float(ends[which])) for name, ends in sorted(ranges.items())]
        return levels

    return value


def _duplicate_voters(scrape: Scrape) -> Value:
    ids = [voter.key.id for voter in scrape.core.voters.voters or ()]
    return len(ids) - len(set(ids))


def _pending(kind: str) -> Callable[[Scrape], Value | None]:
    return lambda s: int(s.core.voter_change == kind) if s.leads else None


def _metadata_lag(scrape: Scrape) -> Value:
    return max(scrape.core.known_committed - scrape.controller.replica.applied.offset, 0)


def _snapshot_lag(scrape: Scrape) -> Value:
    snapshots = scrape.core.snapshots
    end = snapshots[-1].offset if snapshots else 0
    return max(scrape.core.high_watermark - end, 0)


CONTROLLER_METRICS: Final[tuple[MetricDefinition, ...]] = (
    MetricDefinition(
        "kafka_controller_controller_stats_unclean_leader_elections_total", "counter", _STATS,
        "UncleanLeaderElectionsPerSec",
        "Leaders elected from outside the ISR: records may be lost",
        _elected(lambda e: e.unclean),
    ),
    MetricDefinition(
        "kafka_controller_controller_stats_election_from_eligible_leader_replicas_total",
        "counter", _STATS, "ElectionFromEligibleLeaderReplicasPerSec",
        "Leaders elected among the eligible leader replicas (KIP-966)",
        _elected(lambda e: e.from_elr),
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_timed_out_broker_heartbeat_total", "counter",
        CONTROLLER, "TimedOutBrokerHeartbeatCount",
        "Heartbeats that waited in the queue for half of broker.heartbeat.interval.ms",
        _counted(lambda c: c.heartbeats_timed_out),
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_event_queue_operations_started_total", "counter",
        CONTROLLER, "EventQueueOperationsStartedCount",
        "Writes that came to the queue, the controller's own included",
        _counted(lambda c: c.operations_started),
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_event_queue_operations_timed_out_total", "counter",
        CONTROLLER, "EventQueueOperationsTimedOutCount",
        "Writes whose deadline passed in the queue", _counted(lambda c: c.operations_timed_out),
    ),
    MetricDefinition(
        "kafka_controller_controller_event_manager_event_queue_time_ms", "histogram", _EVENTS,
        "EventQueueTimeMs", "How long writes waited for their decision",
        lambda s: s.meters.queued_ms,
    ),
    MetricDefinition(
        "kafka_controller_controller_event_manager_event_queue_processing_time_ms", "histogram",
        _EVENTS, "EventQueueProcessingTimeMs",
        "Time of each step of the loop, which takes everything that has arrived",
        lambda s: s.meters.step_ms,
    ),
    MetricDefinition(
        "kafka_controller_controller_event_manager_avg_idle_ratio", "gauge", _EVENTS,
        "AvgIdleRatio", "The same as poll_idle_ratio_avg: there is one loop",
        lambda s: s.idle_ratio,
    ),
    MetricDefinition(
        "kafka_server_metadata_loader_avg_idle_ratio", "gauge", LOADER, "AvgIdleRatio",
        "The same as poll_idle_ratio_avg: there is one loop", lambda s: s.idle_ratio,
    ),
    MetricDefinition(
        "kafka_server_node_metrics_maximum_supported_level", "gauge", _NODE,
        "maximum-supported-level", "Highest level of each feature that this node supports",
        _supported(1), "feature_name",
    ),
    MetricDefinition(
        "kafka_server_node_metrics_minimum_supported_level", "gauge", _NODE,
        "minimum-supported-level", "Lowest level of each feature that this node supports",
        _supported(0), "feature_name",
    ),
    MetricDefinition(
        "kafka_server_controller_server_cluster_id", "gauge", _SERVER, "ClusterId",
        "1 for the id of the cluster", lambda s: [(s.controller.cluster_id, 1.0)], "cluster_id",
    ),
    MetricDefinition(
        "kafka_server_controller_server_linux_disk_read_bytes", "gauge", _SERVER,
        "linux-disk-read-bytes", "Bytes that the process read from disks, on Linux",
        _disk("read_bytes"),
    ),
    MetricDefinition(
        "kafka_server_controller_server_linux_disk_write_bytes", "gauge", _SERVER,
        "linux-disk-write-bytes", "Bytes that the process wrote to disks, on Linux",
        _disk("write_bytes"),
    ),
    MetricDefinition(
        "kafka_server_plugins_authorization_allowed_total", "counter", AUTHORIZER,
        "authorization-allowed-rate-per-minute", "What the authorizer allowed",
        _counted(lambda c: c.allowed),
    ),
    MetricDefinition(
        "kafka_server_plugins_authorization_denied_total", "counter", AUTHORIZER,
        "authorization-denied-rate-per-minute", "What the authorizer refused",
        _counted(lambda c: c.denied),
    ),
    MetricDefinition(
        "kafka_server_plugins_authorization_request_total", "counter", AUTHORIZER,
        "authorization-request-rate-per-minute", "Decisions of the authorizer",
        _counted(lambda c: c.allowed + c.denied),
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_metadata_lag", "gauge", CONTROLLER, "MetadataLag",
        "Committed records that this node has not applied yet (KIP-631)", _metadata_lag,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_metadata_commit_latency_ms", "histogram", CONTROLLER,
        "MetadataCommitLatencyMs", "From append to commit of each batch, on the leader (KIP-631)",
        lambda s: s.meters.commit_ms,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_metadata_commit_rate_total", "counter", CONTROLLER,
        "MetadataCommitRatePerSec", "Records committed as the leader (KIP-631)",
        lambda s: s.meters.committed_records,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_metadata_snapshot_offset_lag", "gauge", CONTROLLER,
        "MetadataSnapshotOffsetLag",
        "Committed records since the newest snapshot, or in all without one (KIP-631)",
        _snapshot_lag,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_duplicate_voter_ids", "gauge", RAFT, "duplicate-voter-ids",
        "Ids that are twice in the voter set (KIP-853); 0, as a quorum refuses the second",
        _duplicate_voters,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_number_of_offline_voters", "gauge", RAFT,
        "number-of-offline-voters",
        "Voters that have not fetched within the fetch timeout (KIP-853); only on the leader",
        lambda s: s.core.offline_voters(s.now.monotonic_ms),
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_pending_add_voter", "gauge", RAFT, "pending-add-voter",
        "1 while a voter is being added (KIP-853); only on the leader", _pending("add"),
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_pending_remove_voter", "gauge", RAFT, "pending-remove-voter",
        "1 while a voter is being removed (KIP-853); only on the leader", _pending("remove"),
    ),
)  # fmt: skip
