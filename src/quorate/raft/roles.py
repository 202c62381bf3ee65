"""The roles of a replica, one class each with only its own data, and the legal transitions.

Epoch, known leader and vote are not here: `ElectionState` owns them. Deadlines are ms on the
clock of `step`; NEVER where nothing is due.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quorate.base.ids import Listeners, OffsetAndEpoch, ReplicaKey
from quorate.raft.messages import FetchRequest
from quorate.raft.progress import ProgressTracker
from quorate.raft.reconfig_state import EndpointProbe, VoterChange
from quorate.raft.voters import VoterSet

NEVER: Final = 1 << 62


@dataclass(slots=True)
class Ballot:
    """Who granted and who refused (`EpochElection`)."""

    voters: VoterSet
    granted: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)

    def record(self, node_id: int, granted: bool) -> None:
        """The latest answer of a voter counts; others' answers do not."""
        if self.voters.get(node_id) is None:
            return
        (self.granted if granted else self.refused).add(node_id)
        (self.refused if granted else self.granted).discard(node_id)

    @property
    def won(self) -> bool:
        return len(self.granted) >= self.voters.majority

    @property
    def lost(self) -> bool:
        """Can a majority no longer be reached?"""
        return len(self.voters) - len(self.refused) < self.voters.majority

    @property
    def open(self) -> list[ReplicaKey]:
        """Voters that have not answered."""
        heard = self.granted | self.refused
        return [key for key in self.voters.keys if key.id not in heard]


@dataclass(slots=True)
class Unattached:
    """Looks for a leader; may have voted, may know a leader without an address."""

    election_deadline: int


@dataclass(slots=True)
class Prospective:
    """Asks with pre-votes whether an election could be won (KIP-996); in memory only."""

    ballot: Ballot
    election_deadline: int
    leader_endpoints: Listeners = ()
    suspicion: int = 0
    """Rounds since there was reason to believe that the leader is gone; 0: none but silence."""
    ended: bool = False
    """The leader itself has ended its epoch."""


@dataclass(slots=True)
class Candidate:
    """Voted for itself in a new epoch and asks for votes."""

    ballot: Ballot
    election_deadline: int


@dataclass(slots=True)
class SnapshotDownload:
    """A snapshot on its way from the leader."""

    snapshot_id: OffsetAndEpoch
    position: int = 0
    """Bytes received."""
    unanswered: bool = False
    """The leader did not answer the last request for a chunk."""


@dataclass(slots=True)
class Follower:
    """Fetches from a leader whose address it knows; as a voter or as an observer."""

    leader_endpoints: Listeners
    fetch_deadline: int
    update_deadline: int
    """When next to see whether the voter set must hear of us (UpdateRaftVoter, auto join)."""
    has_fetched: bool = False
    """A Fetch was answered well since: this replica then vouches for its leader."""
    leader_high_watermark: int = -1
    """As the leader reported it; may be beyond the end of this log."""
    has_updated_leader: bool = False
    suspicion: int = 0
    ended: bool = False
    """The leader has ended its epoch: no Fetch makes it the leader again."""
    download: SnapshotDownload | None = None


@dataclass(slots=True)
class ParkedFetch:
    """A Fetch that waits for records or for a higher high watermark."""

    reply_to: int
    request: FetchRequest
    deadline: int


@dataclass(slots=True)
class Leader:
    """Appends, answers fetches and counts."""

    epoch_start: int
    """Offset of the LeaderChange record."""
    progress: ProgressTracker
    check_deadline: int
    """Without fetches from a majority until then: resign."""
    begin_deadline: int
    """When next to send BeginQuorumEpoch to those that do not fetch."""
    high_watermark: int = -1
    """-1 until a record of this epoch is committed."""
    parked: list[ParkedFetch] = field(default_factory=list)
    change: VoterChange | None = None
    """The voter change under way."""
    volatile_voters: VoterSet | None = None
    """At kraft.version 0: the voters as they reported themselves; None once it is 1."""
    probes: dict[int, EndpointProbe] = field(default_factory=dict)
    """By voter id: the endpoints at which no node has answered yet."""
    recount: bool = False
    """The voter set changed: the majority may hold more now."""
    resign: str | None = None
    """Why this leader is to resign."""


@dataclass(slots=True)
class Resigned:
    """Was leader of this epoch; sends EndQuorumEpoch, so that the others elect another."""

    election_deadline: int
    unacknowledged: set[int]
    successors: tuple[ReplicaKey, ...] = ()
    """By descending fetch offset."""


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned

LEGAL_TRANSITIONS: Final[dict[tuple[type[Role], type[Role]], str]] = {
    (Unattached, Unattached): "higher epoch, or vote granted",
    (Unattached, Prospective): "election timeout",
    (Unattached, Follower): "leader found",
    (Prospective, Unattached): "higher epoch, or pre-vote lost without a leader",
    (Prospective, Prospective): "vote granted",
    (Prospective, Candidate): "pre-vote won, or not known to a peer",
    (Prospective, Follower): "leader found, or pre-vote lost with a leader",
    (Candidate, Unattached): "higher epoch",
    (Candidate, Prospective): "election timeout",
    (Candidate, Follower): "leader found",
    (Candidate, Leader): "election won",
    (Follower, Unattached): "higher epoch",
    (Follower, Follower): "new leader",
    (Follower, Prospective): "fetch timeout, leader's connection lost, or EndQuorumEpoch",
    (Leader, Unattached): "higher epoch",
    (Leader, Follower): "higher epoch with a leader",
    (Leader, Resigned): "no majority fetches, a hanging disk, shutdown, resignation, or removed",
    (Resigned, Unattached): "election timeout, or higher epoch",
    (Resigned, Follower): "higher epoch with a leader",
    (Resigned, Prospective): "only voter, at start-up",
}
"""(from, to) -> why; what is not here is a broken invariant (Kafka's QuorumState)."""
