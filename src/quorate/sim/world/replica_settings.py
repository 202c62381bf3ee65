"""The initial state of a replica: the settings of the plan, and a formatted disk."""

from __future__ import annotations

from dataclasses import replace

from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.raft.values import ControlState, RaftConfig, Voter
from quorate.sim.plan.plan import Plan
from quorate.sim.world.disk_operations import WatchedStorage


def with_timing(config: RaftConfig, plan: Plan) -> RaftConfig:
    """The config of a node with the plan's timing and limits."""
    timing = plan.timing
    return replace(
        config,
        election_timeout_ms=timing.election_timeout_ms,
        fetch_timeout_ms=timing.fetch_timeout_ms,
        election_backoff_max_ms=timing.election_backoff_max_ms,
        request_timeout_ms=timing.request_timeout_ms,
        retry_backoff_ms=timing.retry_backoff_ms,
        retry_backoff_max_ms=timing.retry_backoff_max_ms,
        fetch_max_wait_ms=timing.fetch_max_wait_ms,
        fetch_max_bytes=timing.fetch_max_bytes,
        snapshot_max_bytes=timing.snapshot_max_bytes,
        high_watermark_linger_ms=timing.high_watermark_linger_ms,
        limits=plan.limits,
    )


def format_disk(storage: WatchedStorage, voters: tuple[Voter, ...], wall_ms: int) -> None:
    """Write the first voter set as `storage format` does, at this time (ms since 1970)."""
    storage.open()
    writer = storage.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
    for data in encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(1, voters), 0, (), wall_ms):
        writer.append(data)
    writer.freeze()
    storage.close()
