"""What a follower asks of the leader for its own place among the voters.

UpdateRaftVoter where its entry is not what it should be, and auto join (KIP-853, KIP-1186).
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.raft.epochs import tells_more
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.moves import fetch_patience
from quorate.raft.requests import InFlight
from quorate.raft.roles import Follower
from quorate.raft.state import State


def voter_request(
    s: State, role: Follower
) -> UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest | None:
    """Once a period: must the voter set hear of this node? (`pollFollowerAsVoter`, `-AsObserver`)

    A voter whose entry is not what it should be updates it; at kraft.version 0 it reports once
    per leader. An observer with auto join removes its old self (another directory), then adds
    itself.
    """
    config = s.config
    version = s.controls.version
    if s.is_voter:
        due = s.voters.needs_update(s.own_voter) if version > 0 else not role.has_updated_leader
        if not due:
            return None
        low, high = config.min_kraft_version, config.max_kraft_version
        return UpdateVoterRequest(config.cluster_id, s.epoch, s.me, config.listeners, low, high)
    if version < 1 or not config.auto_join or not config.can_be_voter:
        return None
    old = s.voters.get(s.me.id)
    if old is not None:
        return RemoveVoterRequest(config.cluster_id, old.key)
    timeout = config.request_timeout_ms
    return AddVoterRequest(config.cluster_id, s.me, config.listeners, timeout, False)


def on_update_response(s: State, flight: InFlight, response: UpdateVoterResponse) -> bool:
    """Done on NONE or UNSUPPORTED_VERSION; anything else is tried again next period."""
    role = s.role
    if response.error == ErrorCode.UNSUPPORTED_VERSION:
        return update_unsupported(s)
    if not tells_more(s, flight, response.error, response.leader, response.leader_endpoints):
        return False
    if response.error != ErrorCode.NONE or not isinstance(role, Follower) or s.role is not role:
        s.note(f"UpdateRaftVoter: {response.error.name}")
        return False
    role.has_updated_leader = True
    if not role.ended:
        role.has_fetched = True
        role.fetch_deadline = s.now + fetch_patience(s)
    return True


def update_unsupported(s: State) -> bool:
    """The leader does not know UpdateRaftVoter: nothing to be done in its epoch."""
    if isinstance(s.role, Follower):
        s.role.has_updated_leader = True
    return True


def _joining(response: AddVoterResponse | RemoveVoterResponse) -> str:
    if response.error != ErrorCode.NONE:
        why = f": {response.message}" if response.message else ""
        return f"{response.error.name}{why}"
    if isinstance(response, RemoveVoterResponse):
        return "its old directory has left the voter set"
    return "joins the voter set, the leader has agreed"


def on_join_response(s: State, response: AddVoterResponse | RemoveVoterResponse) -> bool:
    """The answer to auto join: what is done, or will be soon, waits a period."""
    fine = (
        ErrorCode.NONE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_NOT_FOUND,
    )
    s.note(f"auto join: {_joining(response)}")
    if isinstance(s.role, Follower):
        s.role.update_deadline = s.now + s.config.fetch_timeout_ms
    return response.error in fine
