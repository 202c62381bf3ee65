"""The change of the voter set that is in force but not committed yet (KIP-853).

DescribeQuorum has no field for it. The leader returns records above the high watermark to who fetches the
metadata log, so an uncommitted VotersRecord is read there, from Kafka's leaders too.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.base.ids import ReplicaKey
from quorate.client import QuorumInfo
from quorate.client.admin import ClientConfig
from quorate.client.errors import LoginError
from quorate.client.leader import Controllers, LeaderError
from quorate.client.log_fetcher import LogFetcher
from quorate.formats.batch import control_records, iter_batches
from quorate.raft.values import Voters


class UncommittedChange(NamedTuple):
    """The voters that the uncommitted voter set adds and removes; at most one change is pending."""

    added: tuple[ReplicaKey, ...] = ()
    removed: tuple[ReplicaKey, ...] = ()


def uncommitted_change(config: ClientConfig, quorum: QuorumInfo) -> UncommittedChange:
    """Ask the leader for the records above the high watermark.

    Nothing is found through brokers, which do not serve the log, and where the caller may not fetch it
    (ClusterAction on Cluster).
    """
    end, committed = quorum.leader.log_end_offset, quorum.high_watermark
    if not config.controllers or not 0 <= committed < end:
        return UncommittedChange()
    controllers = Controllers(
        config.bootstrap, timeout_ms=config.retry_backoff_max_ms, security=config.security
    )
    try:
        with LogFetcher(controllers) as fetcher:
            got = fetcher.fetch(committed)
            above = [
                record
                for batch in iter_batches(got.records)
                if batch.is_control and batch.base_offset >= got.high_watermark
                for record in control_records(batch)
                if isinstance(record, Voters)
            ]
            return _difference(controllers, above[-1]) if above else UncommittedChange()
    except (LeaderError, LoginError):
        return UncommittedChange()


def _difference(controllers: Controllers, pending: Voters) -> UncommittedChange:
    """Compare with the committed voter set: that of the snapshot and the committed log."""
    # Imported here: to follow the log loads all of the metadata, and a pending change is rare.
    from quorate.shell.following import QuorumFollower

    follower = QuorumFollower(controllers)
    try:
        before = [voter.key for voter in follower.catch_up().control.state.voters or ()]
    finally:
        follower.close()
    after = [voter.key for voter in pending.voters]
    return UncommittedChange(
        tuple(key for key in after if key not in before),
        tuple(key for key in before if key not in after),
    )
