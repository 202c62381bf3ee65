"""The one voter change that a leader may have under way."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.base.ids import Listeners, ReplicaKey


@dataclass(slots=True)
class AskingVersions:
    """AddRaftVoter: the voter-to-be was asked which kraft.version it can run."""

    reply_to: int
    voter: ReplicaKey
    listeners: Listeners
    ack_when_committed: bool
    deadline: int
    correlation: int


@dataclass(slots=True)
class AwaitingCommit:
    """The new voter set is in the log; `end_offset` (exclusive) commits it."""

    reply_to: int | None
    """None: answered already."""
    removal: bool
    end_offset: int
    deadline: int


Change = AskingVersions | AwaitingCommit
