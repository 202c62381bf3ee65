"""Requests of a follower or observer about its own voter entry.

UpdateRaftVoter where the entry differs from the configuration (KIP-853), and auto join (KIP-1186).
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.raft.epochs import handle_common_response
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from quorate.raft.requests import InFlightRequest
from quorate.raft.roles import Follower
from quorate.raft.state import RaftState
from quorate.raft.transitions import follower_fetch_timeout_ms


def voter_request(
    s: RaftState, role: Follower
) -> UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest | None:
    """The request due now, once a period; None: nothing to change.

    1. A voter: UpdateRaftVoter, when its entry differs from its configuration; at kraft.version 0
       once per leader, which keeps it in memory (`KafkaRaftClient.pollFollowerAsVoter`).
    2. An observer with auto join whose id is in the set with another directory id: RemoveRaftVoter
       for that entry. Its disk was replaced.
    3. Else: AddRaftVoter with AckWhenCommitted=false (`pollFollowerAsObserver`).

    2 and 3 are at least one period apart: one voter changes at a time.
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


def on_update_response(
    s: RaftState, flight: InFlightRequest, response: UpdateVoterResponse
) -> bool:
    """NONE and UNSUPPORTED_VERSION end it for this leader; other errors wait for the next period.

    The leader answered, so the fetch timer restarts, as in Kafka.
    """
    role = s.role
    if response.error == ErrorCode.UNSUPPORTED_VERSION:
        return update_unsupported(s)
    if not handle_common_response(
        s, flight, response.error, response.leader, response.leader_endpoints
    ):
        return False
    if response.error != ErrorCode.NONE or not isinstance(role, Follower) or s.role is not role:
        s.note(f"UpdateRaftVoter: {response.error.name}")
        return False
    role.has_updated_leader = True
    if not role.ended:
        role.has_fetched = True
        role.fetch_deadline = s.now + follower_fetch_timeout_ms(s)
    return True


def update_unsupported(s: RaftState) -> bool:
    """The leader's software does not know UpdateRaftVoter: send no more in its epoch."""
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


def on_join_response(s: RaftState, response: AddVoterResponse | RemoveVoterResponse) -> bool:
    """The answer to a request of auto join; False: back off from the leader.

    An error that another request or a little time resolves waits one period, as in Kafka.
    """
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
