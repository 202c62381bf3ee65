"""The configuration of a simulated node: the plan's settings, as a node reads them at its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.values import RaftConfig

if TYPE_CHECKING:
    from quorate.sim.process import Process


def raft_config(process: Process, cluster_id: str) -> RaftConfig:
    """As it is now: who is a voter by configuration, and where the others are, changes."""
    world = process.world
    plan, timing = world.plan, world.plan.timing
    return RaftConfig(
        cluster_id=cluster_id,
        node_id=process.id,
        directory_id=process.directory_id,
        can_be_voter=process.can_be_voter,
        listeners=process.listeners,
        static_voters=world.static_voters if process.static else (),
        bootstrap_servers=world.bootstrap_servers(process.id),
        min_kraft_version=int(process.is_young),
        max_kraft_version=int(not process.is_old),
        election_timeout_ms=timing.election_timeout_ms,
        fetch_timeout_ms=timing.fetch_timeout_ms,
        election_backoff_max_ms=timing.election_backoff_max_ms,
        request_timeout_ms=timing.request_timeout_ms,
        retry_backoff_ms=timing.retry_backoff_ms,
        fetch_max_wait_ms=timing.fetch_max_wait_ms,
        fetch_max_bytes=timing.fetch_max_bytes,
        snapshot_max_bytes=timing.snapshot_max_bytes,
        high_watermark_linger_ms=timing.high_watermark_linger_ms,
        auto_join=plan.auto_join and process.can_be_voter,
        limits=plan.limits,
    )
