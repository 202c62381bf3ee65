"""What a node's configuration means to its parts: the controller, its snapshots, its listeners."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from immutables import Map

from quorate.base.errors import QuorateError
from quorate.base.java_address import java_address
from quorate.config.node_config import NodeConfig
from quorate.config.validation import OVERRIDES
from quorate.controller.context import ControllerConfig
from quorate.controller.token_config import TokenConfig
from quorate.replica.snapshot_policy import SnapshotPolicy
from quorate.security.authorizer import AuthorizerConfig
from quorate.server.descriptors import max_connections_for, soft_limit
from quorate.server.limits import ConnectionLimits
from quorate.server.policies import alter_config_policy, create_topic_policy
from quorate.server.sockets import backlog


def controller_config(config: NodeConfig, cluster_id: str) -> ControllerConfig:
    """What the controller's decisions follow of the node's configuration.

    Raises ConfigError for a policy that cannot be loaded.
    """
    return ControllerConfig(
        node_id=config.node_id,
        cluster_id=cluster_id,
        unstable_features=config.unstable_feature_versions_enable,
        register_observer=config.quorate_register_observer,
        file=Map({**config.file, **dict.fromkeys(("node.id", "broker.id"), str(config.node_id))}),
        create_topic_policy=create_topic_policy(config),
        alter_config_policy=alter_config_policy(config),
        default_replication_factor=config.default_replication_factor,
        num_partitions=config.num_partitions,
        delete_topic_enable=config.delete_topic_enable,
        heartbeat_interval_ms=config.broker_heartbeat_interval_ms,
        session_timeout_ms=config.broker_session_timeout_ms,
        auto_leader_rebalance_enable=config.auto_leader_rebalance_enable,
        imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * 1000,
        unclean_election_interval_ms=config.unclean_leader_election_interval_ms,
        performance_period_ms=config.controller_performance_sample_period_ms,
        slow_event_ms=config.controller_performance_always_log_threshold_ms,
        authorizer=AuthorizerConfig(config.super_users, config.allow_everyone_if_no_acl_found)
        if config.authorizer
        else None,
        audited=bool(config.audit_dir),
        mutation_quota_windows=config.controller_quota_window_num,
        mutation_quota_window_s=config.controller_quota_window_size_seconds,
        quota_windows=config.quota_window_num,
        quota_window_s=config.quota_window_size_seconds,
        tokens=TokenConfig(
            config.delegation_token_secret_key or None,
            config.delegation_token_max_lifetime_ms,
            config.delegation_token_expiry_time_ms,
            config.delegation_token_expiry_check_interval_ms,
        ),
        security_protocols=Map(config.security_protocols),
        max_idle_ms=config.metadata_max_idle_interval_ms,
    )


def snapshot_policy(config: NodeConfig) -> SnapshotPolicy:
    """When to write snapshots and delete old ones, from `metadata.log.*` and `metadata.max.*`."""
    return SnapshotPolicy(
        config.metadata_log_max_record_bytes_between_snapshots,
        config.metadata_log_max_snapshot_interval_ms,
        config.metadata_max_retention_bytes,
        config.metadata_max_retention_ms,
    )


def limits(config: NodeConfig) -> ConnectionLimits:
    """The listeners' limits. Raises QuorateError for a host name that cannot be resolved."""
    return ConnectionLimits(
        max_request_bytes=config.socket_request_max_bytes,
        max_connections=config.max_connections,
        max_connections_per_ip=config.max_connections_per_ip,
        max_connections_by_ip=addresses_of(config.max_connections_by_host),
        max_idle_ms=config.connections_max_idle_ms,
        backlog=backlog(config),
        max_descriptor_connections=max_connections_for(soft_limit()),
        max_incoming_bytes=_max_incoming_bytes(config),
    )


def addresses_of(by_host: Mapping[str, int]) -> dict[str, int]:
    """Resolve hosts: each IP address of a host gets the host's limit; later hosts override.

    Raises QuorateError for a host name that cannot be resolved.
    """
    return {ip: most for host, most in by_host.items() for ip in _addresses(host)}


def _addresses(host: str) -> tuple[str, ...]:
    if not host:  # Java resolves "" to the loopback address, but it is more likely a mistake
        raise QuorateError(
            f"{OVERRIDES} has a limit without a host: write host:limit, with localhost for this "
            "machine"
        )
    try:
        return tuple(java_address(str(found[4][0])) for found in socket.getaddrinfo(host, None))
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "this is not a valid host name"
        raise QuorateError(f"{OVERRIDES} names the host {host}: {why}") from None


def _max_incoming_bytes(config: NodeConfig) -> int:
    """Return `queued.max.request.bytes`; without a limit there, ours, but room for a whole request."""
    if config.queued_max_request_bytes > 0:
        return config.queued_max_request_bytes
    return max(ConnectionLimits().max_incoming_bytes, config.socket_request_max_bytes)
