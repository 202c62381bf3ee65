"""What the driver has to do after a step.

Everything in a Ready may be done at once and in any order, except that `writes` are done in
order, one Ready after the other. Some messages promise something durable: a vote, a fetch that
acknowledges, an answer in a new epoch. They are not in a Ready before the core has got `Persisted`.
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.base.ids import Address, LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.messages import Request, Response
from quorate.raft.values import Batch, ElectionState


@frozen
class SaveElection:
    """Write quorum-state, atomically; `kraft_version` decides the file's data_version."""

    state: ElectionState
    kraft_version: int
    voter_ids: tuple[int, ...] = ()
    """For data_version 0's currentVoters."""


@frozen
class Append:
    """Append these batches; base offsets and epochs are final."""

    batches: tuple[Batch, ...]


@frozen
class Truncate:
    """Drop every record at `end_offset` and after."""

    end_offset: int


@frozen
class SnapshotChunk:
    """Bytes of a snapshot in download; position 0 begins it anew."""

    snapshot_id: OffsetAndEpoch
    position: int
    chunk: bytes


@frozen
class InstallSnapshot:
    """Check and publish the downloaded snapshot, drop the whole log, go on at its end offset.

    Answered by SnapshotInstalled or InstallFailed, and not by Persisted.
    """

    snapshot_id: OffsetAndEpoch


@frozen
class AbandonSnapshot:
    """Throw the half-downloaded snapshot away."""

    snapshot_id: OffsetAndEpoch


@frozen
class Clean:
    """Delete snapshots older than this one and move the log start to its offset."""

    snapshot_id: OffsetAndEpoch


Write = SaveElection | Append | Truncate | SnapshotChunk | InstallSnapshot | AbandonSnapshot | Clean


@frozen
class Send:
    """A request to a peer; `to` is its node id, or a negative id for a bootstrap server."""

    correlation: int
    to: int
    address: Address
    request: Request
    timeout_ms: int


@frozen
class Reply:
    reply_to: int
    response: Response


@frozen
class Accepted:
    """A proposal has its place; it is committed when the high watermark reaches `end_offset`."""

    token: int
    base_offset: int
    end_offset: int


@frozen
class Refused:
    token: int
    error: ErrorCode
    message: str
    in_doubt: bool = False
    """It was appended before leadership was lost: it may or may not commit."""


@frozen
class Ready:
    """The outcome of one step. `seq` numbers Readies with writes; None when there are none."""

    seq: int | None = None
    writes: tuple[Write, ...] = ()
    sends: tuple[Send, ...] = ()
    replies: tuple[Reply, ...] = ()
    proposals: tuple[Accepted | Refused, ...] = ()
    high_watermark: int | None = None
    """The high watermark (exclusive) when it moved in this step; never moves back."""
    leader: LeaderAndEpoch | None = None
    """When it changed. Own id: lead only after applying up to `epoch_start_offset`."""
    epoch_start_offset: int = -1
    """Offset of the first record of the epoch this node leads; -1 when it does not lead."""
    notes: tuple[str, ...] = ()
    """Short facts for scripts and logs: role changes, refusals, warnings."""
    wake_at_ms: int | None = None
    """Call step again at this time at the latest; None: only on events."""
    stopped: bool = False
    """A Shutdown has run its course."""
    faulted: str | None = None
    """Why this replica takes no further part (failed storage, broken invariant)."""
