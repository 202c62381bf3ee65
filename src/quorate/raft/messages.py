"""What replicas say to each other, in the core's own words: one partition, no wire versions.

`node/raft_rpc_inbound.py` turns these into Kafka's messages and back. A field that the wire version
of a peer lacks arrives as the default here. Epochs, offsets and positions are ints, offsets named
`end` or `position` exclusive; times are milliseconds. Sources: KIP-595, KIP-630, KIP-853, KIP-996,
KIP-1166, KIP-1186 as Kafka 4.3.1 implements them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.base.ids import LeaderAndEpoch, Listeners, OffsetAndEpoch, ReplicaKey
from quorate.raft.values import Batch

UNKNOWN_LEADER: Final = LeaderAndEpoch(-1, -1)
NO_SNAPSHOT: Final = OffsetAndEpoch(-1, -1)


@frozen
class VoteRequest:
    cluster_id: str | None
    voter: ReplicaKey | None
    """The receiver, as the candidate knows it; None where the wire version has no such field."""
    epoch: int
    candidate: ReplicaKey
    last_epoch: int
    last_offset: int
    """The candidate's log end offset (exclusive)."""
    pre_vote: bool


@frozen
class VoteResponse:
    error: ErrorCode
    leader: LeaderAndEpoch = UNKNOWN_LEADER
    granted: bool = False
    leader_endpoints: Listeners = ()


@frozen
class BeginQuorumEpochRequest:
    cluster_id: str | None
    voter: ReplicaKey | None
    leader: LeaderAndEpoch
    leader_endpoints: Listeners = ()


@frozen
class BeginQuorumEpochResponse:
    error: ErrorCode
    leader: LeaderAndEpoch = UNKNOWN_LEADER
    leader_endpoints: Listeners = ()


@frozen
class EndQuorumEpochRequest:
    cluster_id: str | None
    leader: LeaderAndEpoch
    preferred_candidates: tuple[ReplicaKey, ...]
    leader_endpoints: Listeners = ()


@frozen
class EndQuorumEpochResponse:
    error: ErrorCode
    leader: LeaderAndEpoch = UNKNOWN_LEADER
    leader_endpoints: Listeners = ()


@frozen
class FetchRequest:
    cluster_id: str | None
    replica: ReplicaKey
    """id -1 (an observer without identity, for example a tool) is allowed."""
    epoch: int
    offset: int
    last_fetched_epoch: int
    max_wait_ms: int
    max_bytes: int
    high_watermark: int
    """The follower's; -1 unknown; int64 max where the wire version lacks it (before v18)."""


@frozen
class ReadRange:
    """Records for the driver to read from its log: whole batches from `offset` on.

    At least one batch, at most about `max_bytes`, none that reaches beyond `end` (exclusive).
    """

    offset: int
    end: int
    max_bytes: int


@frozen
class FetchResponse:
    """Outgoing: `records` names what the driver reads. Incoming: `batches` holds what it parsed."""

    error: ErrorCode
    leader: LeaderAndEpoch = UNKNOWN_LEADER
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None
    records: ReadRange | None = None
    batches: tuple[Batch, ...] = ()
    leader_endpoints: Listeners = ()


@frozen
class FetchSnapshotRequest:
    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


@frozen
class ReadChunk:
    """Bytes for the driver to read from a snapshot file: [position, position + max_bytes)."""

    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


@frozen
class FetchSnapshotResponse:
    """Outgoing: `chunk` is a ReadChunk. Incoming: the bytes themselves."""

    error: ErrorCode
    leader: LeaderAndEpoch = UNKNOWN_LEADER
    snapshot_id: OffsetAndEpoch = NO_SNAPSHOT
    size: int = 0
    position: int = 0
    chunk: ReadChunk | bytes = b""
    leader_endpoints: Listeners = ()


@frozen
class AddVoterRequest:
    cluster_id: str | None
    voter: ReplicaKey
    listeners: Listeners
    timeout_ms: int = 2000
    ack_when_committed: bool = True


@frozen
class RemoveVoterRequest:
    cluster_id: str | None
    voter: ReplicaKey


@frozen
class UpdateVoterRequest:
    cluster_id: str | None
    epoch: int
    voter: ReplicaKey
    listeners: Listeners
    min_kraft_version: int
    max_kraft_version: int


@frozen
class AddVoterResponse:
    error: ErrorCode
    message: str | None = None


@frozen
class RemoveVoterResponse:
    error: ErrorCode
    message: str | None = None


@frozen
class UpdateVoterResponse:
    error: ErrorCode
    leader: LeaderAndEpoch = UNKNOWN_LEADER
    leader_endpoints: Listeners = ()


@frozen
class ApiVersionsRequest:
    """Asked of a voter-to-be: which kraft.version levels can it run?"""


@frozen
class ApiVersionsResponse:
    """`features` maps a feature name to (min, max); kraft.version absent means (0, 0)."""

    error: ErrorCode
    features: dict[str, tuple[int, int]] = field(default_factory=dict)


Request = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
    | AddVoterRequest
    | RemoveVoterRequest
    | UpdateVoterRequest
    | ApiVersionsRequest
)
Response = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
    | AddVoterResponse
    | RemoveVoterResponse
    | UpdateVoterResponse
    | ApiVersionsResponse
)
