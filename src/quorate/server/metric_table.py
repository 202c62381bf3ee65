"""The table of metrics: name, kind, Kafka's name, help text and how to read the value.

A name is Kafka's MBean domain, type and attribute in snake case. In a counter's name, `_total` stands for
Kafka's `-rate`, `Count` or `PerSec`. `docs/metrics.md` shows the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.base.ids import ZERO_UUID, Uuid, uuid_to_text
from quorate.formats.versions import KRAFT_VERSION, METADATA_VERSION
from quorate.raft.core import RaftCore
from quorate.server.certificates import CertificateState
from quorate.server.metric_definition import (
    CONTROLLER,
    EMITTER,
    LOADER,
    MEMORY,
    OURS,
    RAFT,
    REQUESTS,
    SOCKETS,
    Labelled,
    MetricDefinition,
    Scrape,
    Value,
)
from quorate.wire.registry import api

STATES: Final = (
    *("leader", "prospective", "prospective-voted", "candidate", "unattached-voted"),
    *("follower", "observer", "unattached"),
)


def state_of(core: RaftCore) -> str:
    """The role in the words of `KafkaRaftMetrics`; `/readyz` uses them too."""
    role, voted = core.role, core.election.voted is not None
    if role in ("prospective", "unattached"):
        return f"{role}-voted" if voted else role
    if role == "follower":
        return role if core.is_voter else "observer"
    return "unattached" if role == "resigned" else role


def _certificates(read: Callable[[CertificateState], float | None]) -> Callable[[Scrape], Value]:
    def value(scene: Scrape) -> Value:
        found = [(use, read(state)) for use, state in scene.certificates.items()]
        return [(use, number) for use, number in found if number is not None]

    return value


def _failed_authentications(scene: Scrape) -> Value:
    return [(name, float(n)) for name, n in sorted(scene.callers.failed_authentications.items())]


def _states(scene: Scrape) -> Value:
    present = state_of(scene.core)
    return [(state, float(state == present)) for state in STATES]


def _vote(scene: Scrape) -> tuple[int, Uuid]:
    core = scene.core
    if core.role in ("leader", "candidate"):
        config = scene.controller.replica.config
        return config.node_id, config.directory_id
    voted = core.election.voted
    return (voted.id, voted.directory_id) if voted is not None else (-1, ZERO_UUID)


def _observers(scene: Scrape) -> Value | None:
    described = scene.core.describe(scene.now.monotonic_ms)
    return None if described is None else len(described.observers)


def _unknown_voters(scene: Scrape) -> Value:
    config = scene.controller.replica.config
    names = {listener.name for listener in config.listeners[:1]}
    return sum(
        voter.key.id != config.node_id and names.isdisjoint(end.name for end in voter.listeners)
        for voter in scene.core.voters.voters or ()
    )


def _applied_lag_ms(scene: Scrape) -> Value:
    since = scene.controller.replica.applied_timestamp_ms
    return 0 if scene.leads or not since else max(scene.now.wall_ms - since, 0)


def _levels(scene: Scrape) -> Value:
    features = scene.controller.image.features
    levels: Labelled = [(name, float(level)) for name, level in sorted(features.levels.items())]
    if features.metadata_version is not None:
        levels.append((METADATA_VERSION, float(features.metadata_version)))
    return [*levels, (KRAFT_VERSION, float(scene.controller.applied_control.kraft_version))]


def _metadata_version(scene: Scrape) -> Value:
    return int(scene.controller.image.features.metadata_version or 0)


def _requests(scene: Scrape) -> Value:
    counted = sorted(scene.meters.requests.items())
    return [(api(key).name, float(count)) for key, count in counted]


def _request_times(scene: Scrape) -> Value:
    return [(api(key).name, found) for key, found in sorted(scene.meters.request_ms.items())]


DEFINITIONS: Final[tuple[MetricDefinition, ...]] = (
    MetricDefinition(
        "kafka_server_raft_metrics_current_state", "gauge", RAFT, "current-state",
        "1 for the state of this node, 0 for the others", _states, "state",
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_current_leader", "gauge", RAFT, "current-leader",
        "Node id of the leader, -1 unknown", lambda s: s.core.election.leader_id,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_current_vote", "gauge", RAFT, "current-vote",
        "Node id that this node votes for in its epoch, -1 none", lambda s: _vote(s)[0],
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_current_vote_directory_id", "gauge", RAFT,
        "current-vote-directory-id", "1 for the directory id that this node votes for",
        lambda s: [(uuid_to_text(_vote(s)[1]), 1.0)], "directory_id",
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_current_epoch", "gauge", RAFT, "current-epoch",
        "Epoch of the quorum as this node knows it", lambda s: s.core.epoch,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_high_watermark", "gauge", RAFT, "high-watermark",
        "Offset up to which the log is known to be committed (exclusive), -1 unknown",
        lambda s: s.core.high_watermark,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_log_end_offset", "gauge", RAFT, "log-end-offset",
        "Offset of the next record of the log", lambda s: s.core.log_end.offset,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_log_end_epoch", "gauge", RAFT, "log-end-epoch",
        "Epoch of the last record of the log", lambda s: s.core.log_end.epoch,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_number_unknown_voter_connections", "gauge", RAFT,
        "number-unknown-voter-connections",
        "Voters without an address on this node's listener", _unknown_voters,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_number_of_voters", "gauge", RAFT, "number-of-voters",
        "Voters in the current voter set", lambda s: len(s.core.voters.voters or ()),
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_number_of_observers", "gauge", RAFT, "number-of-observers",
        "Observers that fetched within 5 minutes; only on the leader", _observers,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_uncommitted_voter_change", "gauge", RAFT,
        "uncommitted-voter-change", "1 while a voter change is under way; only on the leader",
        lambda s: int(s.core.changes_voters) if s.leads else None,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_commit_latency_avg", "gauge", RAFT, "commit-latency-avg",
        "Mean ms from append to commit, per record, of the last minute; NaN without any",
        lambda s: s.meters.commit_latency_ms.average(s.meters.clock()),
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_commit_latency_max", "gauge", RAFT, "commit-latency-max",
        "Longest ms from append to commit, per record, of the last minute; NaN without any",
        lambda s: s.meters.commit_latency_ms.maximum(s.meters.clock()),
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_election_latency_avg", "gauge", RAFT, "election-latency-avg",
        "Mean ms from a candidacy of this node to a leader, of the last minute; NaN without any",
        lambda s: s.meters.election_latency_ms.average(s.meters.clock()),
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_election_latency_max", "gauge", RAFT, "election-latency-max",
        "Longest ms from a candidacy of this node to a leader, of the last minute; NaN without any",
        lambda s: s.meters.election_latency_ms.maximum(s.meters.clock()),
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_fetch_records_total", "counter", RAFT, "fetch-records-rate",
        "Records appended from the leader", lambda s: s.meters.fetched_records,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_append_records_total", "counter", RAFT, "append-records-rate",
        "Records appended as the leader, control records included",
        lambda s: s.meters.appended_records,
    ),
    MetricDefinition(
        "kafka_server_raft_metrics_poll_idle_ratio_avg", "gauge", RAFT, "poll-idle-ratio-avg",
        "Share of the time since the last scrape in which the loop's thread used no CPU",
        lambda s: s.idle_ratio,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_active_controller_count", "gauge", CONTROLLER,
        "ActiveControllerCount", "1 where this node is the active controller",
        lambda s: int(s.controller.is_active),
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_new_active_controllers_total", "counter", CONTROLLER,
        "NewActiveControllersCount", "Leaders that this node has seen elected",
        lambda s: s.meters.new_leaders,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_metadata_error_total", "counter", CONTROLLER,
        "MetadataErrorCount",
        "Failed decisions of the active controller, and snapshots that could not be written or were "
        "damaged; an error in the log stops the node",
        lambda s: s.meters.errors,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_ignored_static_voters", "gauge", CONTROLLER,
        "IgnoredStaticVoters", "1 where controller.quorum.voters is set, but the log has its own",
        lambda s: int(s.core.ignores_static_voters),
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_last_applied_record_offset", "gauge", CONTROLLER,
        "LastAppliedRecordOffset", "Offset of the last record that was applied, -1 none",
        lambda s: s.controller.replica.applied.offset - 1,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_last_committed_record_offset", "gauge", CONTROLLER,
        "LastCommittedRecordOffset", "Offset of the last record known to be committed, -1 none",
        lambda s: max(s.core.high_watermark - 1, -1),
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_last_applied_record_timestamp", "gauge", CONTROLLER,
        "LastAppliedRecordTimestamp", "When the last applied record was appended, ms since 1970",
        lambda s: s.controller.replica.applied_timestamp_ms,
    ),
    MetricDefinition(
        "kafka_controller_kafka_controller_last_applied_record_lag_ms", "gauge", CONTROLLER,
        "LastAppliedRecordLagMs", "Age of the last applied record; 0 on the leader",
        _applied_lag_ms,
    ),
    MetricDefinition(
        "kafka_server_metadata_loader_current_metadata_version", "gauge", LOADER,
        "CurrentMetadataVersion", "Level of metadata.version, 0 before there is one",
        _metadata_version,
    ),
    MetricDefinition(
        "kafka_server_metadata_loader_current_controller_id", "gauge", LOADER,
        "CurrentControllerId", "Node id of the leader as the state machine sees it, -1 unknown",
        lambda s: s.core.leader.leader_id,
    ),
    MetricDefinition(
        "kafka_server_metadata_loader_handle_load_snapshot_total", "counter", LOADER,
        "HandleLoadSnapshotCount", "Snapshots loaded, at the start or from a leader",
        lambda s: s.controller.snapshots_loaded,
    ),
    MetricDefinition(
        "kafka_server_metadata_loader_finalized_level", "gauge", LOADER, "FinalizedLevel",
        "Finalized level of each feature", _levels, "feature_name",
    ),
    MetricDefinition(
        "kafka_server_snapshot_emitter_latest_snapshot_generated_bytes", "gauge", EMITTER,
        "LatestSnapshotGeneratedBytes", "Size of the newest snapshot of our own, 0 before",
        lambda s: s.meters.snapshot_bytes,
    ),
    MetricDefinition(
        "kafka_server_snapshot_emitter_latest_snapshot_generated_age_ms", "gauge", EMITTER,
        "LatestSnapshotGeneratedAgeMs", "Since our newest snapshot was written, or since the start",
        lambda s: int((s.meters.clock() - s.meters.snapshot_at_s) * 1000),
    ),
    MetricDefinition(
        "kafka_server_socket_server_metrics_connection_count", "gauge", SOCKETS,
        "connection-count", "Inbound connections",
        lambda s: s.callers.connection_count,
    ),
    MetricDefinition(
        "kafka_server_socket_server_metrics_failed_authentication_total", "counter", SOCKETS,
        "failed-authentication-rate", "Inbound connections that failed the TLS handshake or SASL",
        _failed_authentications, "listener",
    ),
    MetricDefinition(
        "kafka_network_socket_server_memory_pool_used", "gauge", MEMORY, "MemoryPoolUsed",
        "Bytes of requests that are incomplete or not yet processed", lambda s: s.callers.incoming,
    ),
    MetricDefinition(
        "kafka_network_socket_server_memory_pool_available", "gauge", MEMORY,
        "MemoryPoolAvailable",
        "How many more fit before the connection that holds the most is closed",
        lambda s: max(s.callers.max_incoming - s.callers.incoming, 0),
    ),
    MetricDefinition(
        "kafka_network_request_metrics_requests_total", "counter", REQUESTS, "RequestsPerSec",
        "Requests received", _requests, "request",
    ),
    MetricDefinition(
        "kafka_network_request_metrics_total_time_ms", "histogram", REQUESTS, "TotalTimeMs",
        "From the last byte of a request to its response; a Fetch may wait for 500 ms",
        _request_times, "request",
    ),
    MetricDefinition(
        "quorate_commit_seconds", "histogram", OURS, "",
        "From append to commit of each batch, on the leader", lambda s: s.meters.commit_seconds,
    ),
    MetricDefinition(
        "quorate_signs_of_copies_total", "counter", OURS, "",
        "Fetches below an offset that the voter had acknowledged, and alternating addresses of "
        "one voter; on the leader", lambda s: s.core.duplicate_replica_signs,
    ),
    MetricDefinition(
        "quorate_disk_sync_seconds", "histogram", OURS, "",
        "Each sync of the log", lambda s: s.meters.sync_seconds,
    ),
    MetricDefinition(
        "quorate_certificate_days_to_expiry", "gauge", OURS, "",
        "Days until the certificate of a listener, or of connections to controllers, expires; "
        "negative: it has", _certificates(lambda c: c.days_to_expiry), "use",
    ),
    MetricDefinition(
        "quorate_certificate_fault", "gauge", OURS, "",
        "1 while a changed key store or trust store cannot be used, and the old one stays",
        _certificates(lambda c: float(c.fault is not None)), "use",
    ),
    MetricDefinition(
        "quorate_certificate_refused_changes_total", "counter", OURS, "",
        "Changed key stores and trust stores that could not be used",
        _certificates(lambda c: float(c.refused_changes)), "use",
    ),
)  # fmt: skip
