"""The right error of each voter change (KIP-853).

The order of errors is that of AddVoterHandler, RemoveVoterHandler and UpdateVoterHandler.
Conditions that change within a step count with both values.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.raft.messages import AddVoterRequest, RemoveVoterRequest, UpdateVoterRequest
from quorate.raft.values import Voter
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.voters import matches
from quorate.sim.world.observable import CLUSTER_ID, LISTENER

VoterChangeRequest = AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest
_FENCES = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)


@dataclass(slots=True)
class VoterChangeConditions:
    """A replica's leadership, epoch, kraft.version and voters at one moment."""

    leads: bool
    epoch: int
    version: int
    voters: tuple[Voter, ...]
    settled: bool = True
    """Whether it knows a committed record of its epoch."""


@dataclass(slots=True)
class PendingVoterChange:
    """A request, the state of the replica when it arrived, and the batch that did what it requests."""

    request: VoterChangeRequest
    at_ms: int
    before: VoterChangeConditions
    able: tuple[int, int]
    """The range of kraft.versions that the voter supports."""
    made: LoggedBatch | None = None
    later: list[tuple[int, int]] = field(default_factory=list)
    """The ranges of incarnations that the voter has begun since: its software may have changed."""

    @property
    def ables(self) -> tuple[tuple[int, int], ...]:
        """The ranges that it may have reported in its ApiVersions response."""
        return (self.able, *self.later)


def wrong_error(
    asked: PendingVoterChange, now: VoterChangeConditions, error: ErrorCode
) -> str | None:
    """The reason why this error is wrong; None: it is right.

    1. The cluster id comes first (INCONSISTENT_CLUSTER_ID).
    2. A replica that does not lead answers NOT_LEADER_OR_FOLLOWER.
    3. UpdateRaftVoter of another epoch is fenced.
    4. A malformed request is invalid.
    5. Another change in progress times out.
    6. Otherwise the error holds for the voter set before or after the step.
    """
    request, before = asked.request, asked.before
    if (error is ErrorCode.INCONSISTENT_CLUSTER_ID) is not is_foreign_request(request):
        return f"it is for the cluster {request.cluster_id}"
    if error in (ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.BROKER_NOT_AVAILABLE):
        return None
    stays = before.epoch == now.epoch
    leads = before.leads and now.leads and stays
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return "it leads" if leads else None
    if isinstance(request, UpdateVoterRequest) and error in _FENCES:
        same = stays and request.epoch == now.epoch
        return f"it is in epoch {now.epoch}" if same else None
    if leads and _is_malformed(request):
        return None if error is ErrorCode.INVALID_REQUEST else "it is malformed"
    if error is ErrorCode.REQUEST_TIMED_OUT:
        busy = isinstance(request, UpdateVoterRequest) or max(before.version, now.version) > 0
        return None if busy or not (leads and before.settled) else "kraft.version is 0"
    if error is ErrorCode.NONE:
        return _impossible(asked, now) if leads else None
    places = (before, now)
    return (
        None
        if any(_holds(asked, place, error) for place in places)
        else "the condition does not hold"
    )


def is_foreign_request(request: VoterChangeRequest) -> bool:
    return request.cluster_id not in (None, CLUSTER_ID)


def _is_malformed(request: VoterChangeRequest) -> bool:
    if request.voter.id < 0 or request.voter.directory_id == ZERO_UUID:
        return True
    if isinstance(request, RemoveVoterRequest):
        return False
    return all(listener.name != LISTENER for listener in request.listeners)


def _impossible(asked: PendingVoterChange, now: VoterChangeConditions) -> str | None:
    """The reason why the change was impossible; None: it was possible."""
    if isinstance(asked.request, UpdateVoterRequest) or max(asked.before.version, now.version) > 0:
        return None
    return "kraft.version is 0"


def _holds(asked: PendingVoterChange, place: VoterChangeConditions, error: ErrorCode) -> bool:
    """Whether the error holds for this status."""
    request, voters = asked.request, place.voters
    key = request.voter
    if error is ErrorCode.UNSUPPORTED_VERSION:
        return place.version < 1 and not isinstance(request, UpdateVoterRequest)
    if error is ErrorCode.DUPLICATE_VOTER:
        taken = any(voter.key.id == key.id for voter in voters)
        return taken and isinstance(request, AddVoterRequest)
    if error is ErrorCode.VOTER_NOT_FOUND:
        if isinstance(request, UpdateVoterRequest):
            return not any(matches(voter.key, key) for voter in voters)
        return len(voters) == 1 or all(voter.key != key for voter in voters)
    if error is ErrorCode.INVALID_REQUEST:
        unable = any(not low <= place.version <= high for low, high in asked.ables)
        return _is_malformed(request) or unable
    return False
