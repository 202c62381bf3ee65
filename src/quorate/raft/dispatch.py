"""Which part of the core handles which event, request and response."""

from __future__ import annotations

from quorate.base.errors import ErrorCode, InvariantError
from quorate.raft import (
    election,
    epochs,
    following,
    joining,
    leading,
    reachability,
    reconfig,
    snapshots,
    transitions,
)
from quorate.raft.inputs import (
    Answered,
    CleanTo,
    ConnectionLost,
    Event,
    InstallFailed,
    Persisted,
    Propose,
    Received,
    Resign,
    SendFailed,
    SendFailure,
    Shutdown,
    SnapshotCreated,
    SnapshotInstalled,
    UpgradeKRaftVersion,
)
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    Request,
    Response,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Reply
from quorate.raft.requests import InFlightRequest
from quorate.raft.roles import Follower, Leader, Unattached
from quorate.raft.state import RaftState


def handle(s: RaftState, event: Event) -> None:
    """Give one event to its part, the frequent kinds first; `RaftCore` handles StorageFailed."""
    if isinstance(event, Received):
        _received(s, event.reply_to, event.request)
    elif isinstance(event, Propose):
        leading.on_propose(s, event)
    elif isinstance(event, Persisted):
        _persisted(s, event.seq)
    elif isinstance(event, Answered):
        _answered(s, event)
    elif isinstance(event, SendFailed):
        _send_failed(s, event)
    elif isinstance(event, ConnectionLost):
        _connection_lost(s, event.node_id)
    # The seq first: the write is done, also where it installed nothing (S7, S8 of `following`).
    elif isinstance(event, SnapshotInstalled):
        _persisted(s, event.seq)
        following.on_installed(s, event)
    elif isinstance(event, InstallFailed):
        _persisted(s, event.seq)
        following.on_install_failed(s, event)
    else:
        _handle_rare(s, event)


def _handle_rare(s: RaftState, event: Event) -> None:
    if isinstance(event, UpgradeKRaftVersion):
        reconfig.on_upgrade(s, event)
    elif isinstance(event, SnapshotCreated):
        snapshots.on_created(s, event)
    elif isinstance(event, CleanTo):
        snapshots.on_clean(s, event)
    elif isinstance(event, Resign):
        leading.on_resign(s, event)
    elif isinstance(event, Shutdown):  # unreached: there is no other kind of Event
        if s.shutdown_deadline is None:
            s.shutdown_deadline = s.now + event.timeout_ms
    else:
        raise InvariantError(f"unknown event {event!r}")


def _received(s: RaftState, reply_to: int, request: Request) -> None:
    if isinstance(request, FetchRequest):
        leading.on_fetch(s, reply_to, request)
    elif isinstance(request, VoteRequest):
        election.on_vote(s, reply_to, request)
    elif isinstance(request, BeginQuorumEpochRequest):
        epochs.on_begin(s, reply_to, request)
    elif isinstance(request, EndQuorumEpochRequest):
        epochs.on_end(s, reply_to, request)
    elif isinstance(request, FetchSnapshotRequest):
        leading.on_fetch_snapshot(s, reply_to, request)
    elif isinstance(request, AddVoterRequest):
        reconfig.on_add_voter(s, reply_to, request)
    elif isinstance(request, RemoveVoterRequest):
        reconfig.on_remove_voter(s, reply_to, request)
    elif isinstance(request, UpdateVoterRequest):
        reconfig.on_update_voter(s, reply_to, request)
    else:
        config = s.config
        features = {reconfig.FEATURE: (config.min_kraft_version, config.max_kraft_version)}
        s.out.replies.append(Reply(reply_to, ApiVersionsResponse(ErrorCode.NONE, features)))


def _persisted(s: RaftState, seq: int) -> None:
    """More is durable: release what waited for it, and count the leader's own log."""
    durable = s.durable
    was_durable = durable.election_is_durable
    durable.persisted(seq, s.now)
    s.out.release()
    role = s.role
    if isinstance(role, Leader):
        if not was_durable and durable.election_is_durable:
            leading.on_election_durable(s, role)
        leading.on_durable(s, role)


def _answered(s: RaftState, event: Answered) -> None:
    flight = s.requests.take(event.correlation)
    if flight is None:
        return
    # A node that answers so shuts down: it neither votes nor becomes a successor.
    if event.response.error == ErrorCode.BROKER_NOT_AVAILABLE:
        s.requests.unreachable.add(flight.to)
    else:
        s.requests.unreachable.discard(flight.to)
    # Where the response changed the role, the requests were reset: no backoff in the new role.
    resets = s.requests.resets
    is_good = _on_response(s, flight, event.response)
    if s.requests.resets != resets:
        return
    if is_good:
        s.requests.succeeded(flight.to)
    else:
        _back_off(s, flight.to)


def _send_failed(s: RaftState, event: SendFailed) -> None:
    flight = s.requests.take(event.correlation)
    if flight is None:
        return
    request = flight.request
    if event.failure == SendFailure.DISCONNECTED:
        s.requests.unreachable.add(flight.to)
    elif event.failure == SendFailure.UNSUPPORTED_VERSION:
        if isinstance(request, VoteRequest) and request.pre_vote:
            election.no_pre_vote(s, flight.to)
            return
        if isinstance(request, UpdateVoterRequest):
            joining.update_unsupported(s)
            return
    if isinstance(request, ApiVersionsRequest):
        reconfig.on_api_versions_failed(s, flight.correlation, event.failure)
    if isinstance(request, FetchSnapshotRequest):
        following.on_fetch_snapshot_failed(s)
    if isinstance(request, BeginQuorumEpochRequest) and isinstance(s.role, Leader):
        reachability.begin_failed(s, s.role, flight, event.failure)
    _back_off(s, flight.to)


def _back_off(s: RaftState, node_id: int) -> None:
    """Send no request to this node for the retry backoff (`RequestManager`)."""
    if isinstance(s.role, Unattached) and not s.is_voter:
        following.back_off_observer(s, node_id)
    else:
        s.requests.fail(node_id, s.now)


def _connection_lost(s: RaftState, node_id: int) -> None:
    """Losing the leader's connection starts a pre-vote; an observer asks another server.

    Kafka's raft client waits for the fetch timeout. A killed process closes its connections, so
    this finds a new leader in a fraction of it.
    """
    s.requests.unreachable.add(node_id)
    role = s.role
    if not isinstance(role, Follower) or node_id != s.leader_id:
        return
    s.requests.forget(node_id)
    s.requests.fail(node_id, s.now)
    if s.electable and role.suspicion == 0:
        s.note(f"connection to leader {node_id} lost")
        transitions.suspect_leader(s, role)


def _on_response(s: RaftState, flight: InFlightRequest, response: Response) -> bool:
    """Give a response to its part; False: back off from the peer."""
    if isinstance(response, FetchResponse):
        return following.on_fetch_response(s, flight, response)
    if isinstance(response, VoteResponse) and isinstance(flight.request, VoteRequest):
        return election.on_vote_response(s, flight, flight.request, response)
    if isinstance(response, BeginQuorumEpochResponse):
        return epochs.on_begin_response(s, flight, response)
    if isinstance(response, EndQuorumEpochResponse):
        return epochs.on_end_response(s, flight, response)
    if isinstance(response, FetchSnapshotResponse):
        return following.on_fetch_snapshot_response(s, flight, response)
    if isinstance(response, ApiVersionsResponse):
        return reconfig.on_api_versions_response(s, flight.correlation, response)
    if isinstance(response, UpdateVoterResponse):
        return joining.on_update_response(s, flight, response)
    if isinstance(response, AddVoterResponse | RemoveVoterResponse):
        return joining.on_join_response(s, response)
    text = f"{s.requests.display_name(flight.to)} answers {flight.name} with something else"
    s.warn_sparingly(text, text)
    return False
