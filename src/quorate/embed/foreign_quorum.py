"""Detect that a lone founder was founded again while the quorum that it lost lives.

It leads a quorum of its own, under the id and at the address of a voter of the living one. Members that
knew it as their leader fetch from it again: they would drop what they have and it lacks, also committed
entries. Both rules hold before the replica takes the request.
"""

from __future__ import annotations

from quorate.base.ids import ReplicaKey, Uuid
from quorate.raft.core import RaftCore
from quorate.raft.messages import BeginQuorumEpochRequest, FetchRequest, Request, VoteRequest
from quorate.raft.values import RaftConfig

_UNKNOWN = Uuid(bytes(16))


def foreign_quorum(core: RaftCore, config: RaftConfig, request: Request) -> str | None:
    """Return the proof that the request is of another quorum of this name, in words; None: no proof.

    1. A candidate or leader that names this member's id with another directory has it as a voter.
       A member that is a voter itself cannot be that one.
    2. A replica that has records has them from a leader. A voter that was always alone is the only
       leader that there was: it has each of them, for it sends only what is durable here. Its first
       epoch is random, so records of another quorum are of other epochs.
    """
    own = ReplicaKey(config.node_id, config.directory_id)
    if isinstance(request, VoteRequest | BeginQuorumEpochRequest):
        voter = request.voter
        if (
            voter is None
            or voter.id != own.id
            or voter.directory_id in (_UNKNOWN, own.directory_id)
        ):
            return None
        return _said(own, f"it has the voter {voter}") if core.is_voter else None
    if not isinstance(request, FetchRequest) or request.replica.id < 0 or not _is_alone(core, own):
        return None
    if core.has_place(request.offset, request.last_fetched_epoch):
        return None
    found = f"its member {request.replica} has records up to offset {request.offset}"
    return _said(own, f"{found} (exclusive), of epoch {request.last_fetched_epoch}")


def _is_alone(core: RaftCore, own: ReplicaKey) -> bool:
    return [voter.key for voter in core.voters.voters or ()] == [own]


def _said(own: ReplicaKey, proof: str) -> str:
    return (
        f"Another quorum of this name lives: {proof}. Member {own} is a voter of a quorum of its own. It "
        "was founded again on an empty disk, and what it acknowledges is in its own quorum alone. Remove "
        f"the lost member {own.id} from the other quorum (remove_member), create a directory without "
        "founders, start it with contacts and add it (add_member)"
    )
