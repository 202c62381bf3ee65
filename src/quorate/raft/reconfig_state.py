"""The one voter change that a leader may have under way, and the endpoints that it tries."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.base.ids import Address, Listeners, ReplicaKey


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


VoterChange = AskingVersions | AwaitingCommit


@dataclass(slots=True)
class EndpointProbe:
    """An address of a voter at which no node has answered since the last failure or change."""

    address: Address
    is_moved: bool
    """This leader wrote the address, or was asked to."""
    until_ms: int | None = None
    """Of an address that is not in the voter set: when to forget it."""
    correlation: int = -1
    """The last BeginQuorumEpoch to the address; -1 before the first."""
    is_answered: bool = False
    failed_ms: int | None = None
    """When the first request to the address failed."""
    is_up: bool = False
    """When the last request was sent, the voter had fetched since `failed_ms`."""
