"""A leader of three voters, and helpers for its Fetches, rows and snapshots."""

from __future__ import annotations

from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from quorate.raft.inputs import (
    CleanTo,
    SnapshotCreated,
)
from quorate.raft.messages import (
    FetchSnapshotRequest,
)
from quorate.raft.values import Voters
from quorate.sim.scenario.names import CLUSTER_ID, key, voter
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    Single,
    fetch,
    leader,
    recovered,
)

OWN = LeaderAndEpoch(1, EPOCH + 1)
START = END + 1
"""Log end of a leader whose first batch is a LeaderChange alone."""


def led(**config: object) -> Single:
    """Leader of epoch 5 whose log has a voter set: its first batch is one record."""
    control = ((4, Voters(tuple(voter(i) for i in (1, 2, 3)))),)
    single = leader(log=recovered(control_records=control), **config)
    assert single.core.log_end == (START, EPOCH + 1)
    return single


def committed(**config: object) -> Single:
    """As `led`, with a high watermark: node 2 has everything."""
    single = led(**config)
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    assert single.core.high_watermark == START
    return single


def snapshotted(*, cleaned: bool, **config: object) -> Single:
    """Leader with a snapshot (3, 3), and with `cleaned` a log that starts there."""
    single = committed(**config)
    snapshot_id = OffsetAndEpoch(3, LAST_EPOCH)
    single.step(SnapshotCreated(snapshot_id))
    if cleaned:
        single.step(CleanTo(snapshot_id))
    assert single.core.snapshots[-1] == snapshot_id
    return single


def snapshot_request(**changes: object) -> FetchSnapshotRequest:
    fields: dict[str, object] = {
        "cluster_id": CLUSTER_ID,
        "replica": key(3),
        "epoch": EPOCH + 1,
        "snapshot_id": OffsetAndEpoch(3, LAST_EPOCH),
        "position": 10,
        "max_bytes": 100,
    }
    return FetchSnapshotRequest(**(fields | changes))  # type: ignore[arg-type]


UNKNOWN_REPLICAS = (key(2, 1), key(3, 1), ReplicaKey(2))
"""Replaced disks, and one that does not report its directory id: none is the voter (KIP-853)."""
