"""Everything that can happen to a replica: the events of `RaftCore.step(events, now_ms)`."""

from __future__ import annotations

from enum import Enum

from quorate.base.frozen import frozen
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.messages import Request, Response
from quorate.raft.values import ControlState


@frozen
class Received:
    """A peer or a tool asks; the answer comes back as Reply(reply_to, ...), now or later."""

    reply_to: int
    request: Request


@frozen
class Answered:
    """The answer to Send(correlation, ...)."""

    correlation: int
    response: Response


class SendFailure(Enum):
    """Why a Send got no answer."""

    DISCONNECTED = "disconnected"
    TIMED_OUT = "timed out"
    UNSUPPORTED_VERSION = "unsupported version"


@frozen
class SendFailed:
    correlation: int
    failure: SendFailure


@frozen
class ConnectionLost:
    """The connection to a node broke and could not be made again at once (not: it is silent)."""

    node_id: int


@frozen
class Propose:
    """Append `count` records as one batch; `payload` is opaque and comes back in Ready.writes.

    `epoch` is the epoch in which the caller believes to lead; another one is refused.
    Answered in the same Ready by Accepted or Refused with `token`.
    """

    token: int
    epoch: int
    count: int
    size: int
    payload: object


@frozen
class UpgradeKRaftVersion:
    """Raise kraft.version (only 0 -> 1 is a change); Accepted or Refused with `token`."""

    token: int
    version: int
    validate_only: bool = False


@frozen
class Persisted:
    """Every write of the Readies up to and including `seq` is durable."""

    seq: int


@frozen
class SnapshotInstalled:
    """The downloaded snapshot of an InstallSnapshot write is durable and the log starts there."""

    seq: int
    snapshot_id: OffsetAndEpoch
    control: ControlState


@frozen
class InstallFailed:
    """The downloaded snapshot is damaged; it was thrown away. Fetch again."""

    seq: int
    snapshot_id: OffsetAndEpoch
    reason: str


@frozen
class SnapshotCreated:
    """This replica wrote a snapshot of its own state; it is durable."""

    snapshot_id: OffsetAndEpoch


@frozen
class CleanTo:
    """Retention asks to drop every snapshot older than this one, and the log before it."""

    snapshot_id: OffsetAndEpoch


@frozen
class Resign:
    """The state machine gives up leadership of `epoch`."""

    epoch: int


@frozen
class Shutdown:
    """Leave in good order; Ready.stopped reports when."""

    timeout_ms: int = 5000


@frozen
class StorageFailed:
    """A write or sync failed: nothing more is durable until the process restarts."""

    reason: str


Event = (
    Received
    | Answered
    | SendFailed
    | ConnectionLost
    | Propose
    | UpgradeKRaftVersion
    | Persisted
    | SnapshotInstalled
    | InstallFailed
    | SnapshotCreated
    | CleanTo
    | Resign
    | Shutdown
    | StorageFailed
)
