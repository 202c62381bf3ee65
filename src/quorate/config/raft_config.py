"""The configuration of the raft core, made from a node's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.base.ids import Listener, Listeners, Uuid
from quorate.config.node_config import NodeConfig
from quorate.raft.values import RaftConfig


def fetch_max_wait_ms(fetch_timeout_ms: int) -> int:
    """How long a leader may hold a Fetch that finds no new records, in ms.

    Kafka always waits 500 ms (`KafkaRaftClient.MAX_FETCH_WAIT_MS`), a quarter of the default fetch
    timeout. With a fetch timeout near 500 ms, followers of an idle leader would time out again and
    again. Quorate waits a quarter of the configured timeout, 500 ms at most.
    """
    return max(1, min(500, fetch_timeout_ms // 4))


HIGH_WATERMARK_LINGER_MS: Final = 2
"""See `RaftConfig.high_watermark_linger_ms`; docs/decisions/0007 has the reason."""


def raft_config(
    config: NodeConfig,
    cluster_id: str,
    directory_id: Uuid,
    listeners: Listeners | None = None,
) -> RaftConfig:
    """The core's configuration.

    `listeners`: the advertised endpoints with resolved hosts and ports; default: as configured.
    """
    return RaftConfig(
        cluster_id=cluster_id,
        node_id=config.node_id,
        directory_id=directory_id,
        can_be_voter=config.is_controller,
        listeners=config.advertised_listeners if listeners is None else listeners,
        static_voters=config.static_voters,
        bootstrap_servers=tuple(
            (address.host, address.port) for address in config.bootstrap_servers
        ),
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        retry_backoff_max_ms=config.controller_quorum_retry_backoff_max_ms or 0,
        fetch_max_wait_ms=fetch_max_wait_ms(config.controller_quorum_fetch_timeout_ms),
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        answer_max_bytes=min(config.controller_quorum_fetch_max_bytes, config.segment_bytes),
        snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        high_watermark_linger_ms=HIGH_WATERMARK_LINGER_MS,
        auto_join=config.controller_quorum_auto_join_enable,
    )


def resolved_listeners(
    config: NodeConfig, bound_ports: Mapping[str, int], hostname: str
) -> Listeners:
    """The advertised listeners, with `hostname` for host "" and the bound port for port 0."""
    return tuple(
        Listener(name, host or hostname, port or bound_ports[name])
        for name, host, port in config.advertised_listeners
    )
