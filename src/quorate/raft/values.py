"""Values of the log that the core understands: batches, control records, the durable vote."""

from __future__ import annotations

from typing import Final

from quorate.base.frozen import frozen
from quorate.base.ids import ZERO_UUID, Listeners, OffsetAndEpoch, ReplicaKey, Uuid


@frozen
class Voter:
    """One entry of a voter set; directory id ZERO_UUID where it is not known (static voters)."""

    key: ReplicaKey
    listeners: Listeners
    min_kraft_version: int = 0
    max_kraft_version: int = 0


@frozen
class LeaderChange:
    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


MAX_KRAFT_VERSION: Final = 1
"""The newest that this software knows."""


@frozen
class KRaftVersion:
    version: int


@frozen
class Voters:
    voters: tuple[Voter, ...]
    """Ordered by node id."""


ControlRecord = LeaderChange | KRaftVersion | Voters


@frozen
class Batch:
    """Records that are appended, replicated and truncated as one.

    Exactly one of `control` (control records, in order, one offset each) and `payload` (opaque to
    the core; whatever the driver can turn into bytes) says what is inside.
    """

    base_offset: int
    last_offset: int
    epoch: int
    size: int
    """Bytes on disk; 0 where it is not known yet."""
    control: tuple[ControlRecord, ...] = ()
    payload: object = None

    @property
    def end_offset(self) -> int:
        return self.last_offset + 1


@frozen
class ElectionState:
    """What quorum-state keeps: written and synced before anything that promises it is said."""

    epoch: int = 0
    leader_id: int = -1
    voted: ReplicaKey | None = None
    """directory id ZERO_UUID when it was read from a v0 file: matches any."""


@frozen
class ControlState:
    """kraft.version and voter set in force at a point of the log (`offset` exclusive)."""

    kraft_version: int
    voters: tuple[Voter, ...] | None


@frozen
class RecoveredLog:
    """What the driver found on disk, complete: the core starts from nothing else."""

    start_offset: int
    end_offset: int
    epochs: tuple[tuple[int, int], ...]
    """(epoch, start offset) of each epoch in the log, ascending."""
    snapshots: tuple[OffsetAndEpoch, ...]
    """Ascending; (0, 0) is the bootstrap snapshot."""
    snapshot_control: ControlState | None
    """Read from the newest snapshot (also 0-0); None without one."""
    control_records: tuple[tuple[int, ControlRecord], ...]
    """(offset, record) of every KRaftVersion and Voters record in the log, ascending."""
    batch_ends: tuple[int, ...] = ()
    """End offsets of the batches in the log where the driver knows them; may be empty."""


@frozen
class RaftLimits:
    """Of memory and of patience, where only another number than Kafka's would be another rule.

    No cluster needs other ones; a simulated world does, to reach them.
    """

    border_window: int = 65_536
    """How many of the newest batch ends are remembered at the least (8 bytes each)."""
    batch_bytes: int = 8 * 1024 * 1024
    """KafkaRaftClient.MAX_BATCH_SIZE_BYTES: all records of one proposal make one batch."""
    observer_session_ms: int = 300_000
    """LeaderState.OBSERVER_SESSION_TIMEOUT_MS: an observer that is silent for so long is forgotten
    when there are many."""
    max_observers: int = 100_000
    """Of so many a leader knows how far they are."""
    caught_up_within_ms: int = 3_600_000
    """A voter may become who has caught up once and has fetched within this time."""


@frozen
class RaftConfig:
    """Times in ms, sizes in bytes; defaults are Kafka's (QuorumConfig)."""

    cluster_id: str
    node_id: int
    directory_id: Uuid = ZERO_UUID
    can_be_voter: bool = True
    """The controller role; a broker is an observer for ever."""
    listeners: Listeners = ()
    """Own advertised controller listeners; the first is the default one."""
    static_voters: tuple[Voter, ...] = ()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    min_kraft_version: int = 0
    max_kraft_version: int = MAX_KRAFT_VERSION
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    retry_backoff_max_ms: int = 0
    """Up to which the backoff doubles while a node goes on failing (KIP-595); 0: it is constant."""
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1_048_576
    answer_max_bytes: int = 1_048_576
    """What a leader sends at most for one Fetch, whatever it asks for: what it asks for itself, and
    no more than a segment of its log.

    A Java follower stops for good when more comes than its own segment holds: UnifiedLog.append takes
    nothing larger. And a request for 2 GiB must not read that much into memory."""
    snapshot_max_bytes: int = 1_048_576
    high_watermark_linger_ms: int = 0
    """How long (ms) a Fetch of a voter waits when there is a higher high watermark but no record.

    Records that arrive in this time are sent with the high watermark. Kafka answers at once."""
    auto_join: bool = False
    limits: RaftLimits = RaftLimits()
