"""Epoch and leader in every message, and the transitions they cause (KIP-595).

Each request and response between replicas names an epoch and perhaps its leader. A higher epoch is
always adopted; a leader with an address is followed. BeginQuorumEpoch and EndQuorumEpoch are here.
"""

from __future__ import annotations

from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, Listeners, ReplicaKey
from quorate.raft.answers import refuse, wrong_cluster
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    Request,
)
from quorate.raft.reachability import begin_answered
from quorate.raft.requests import InFlightRequest
from quorate.raft.roles import Follower, Leader, Resigned
from quorate.raft.state import RaftState
from quorate.raft.transitions import (
    MAX_EPOCH,
    become_follower,
    become_unattached,
    election_stagger_ms,
)

_RESERVED_EPOCHS: Final = 1 << 20
_MAX_EPOCH_JUMP: Final = 1 << 10
"""Of the last _RESERVED_EPOCHS a peer's message can skip at most this many: that many elections a
replica may have missed."""
_LEADERSHIP_ERRORS = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def maybe_transition(s: RaftState, leader: LeaderAndEpoch, given: Listeners) -> bool:
    """A message names an epoch and perhaps its leader. False: it contradicts the known state.

    `KafkaRaftClient.maybeTransition`. Java stops the node in three cases: another leader in the same
    epoch, this node named as a leader that it is not, and a leader without an address. Here a peer's
    bytes never stop the node: it ignores that part, logs it and goes on.

    1. Refuse an implausible epoch.
    2. This node is named as leader and is not: adopt a higher epoch without a leader.
    3. A higher epoch: follow its leader, or become Unattached where its address is not known.
    4. The same epoch: a second leader is refused; a newly known leader is followed.
    """
    epoch, leader_id = leader.epoch, leader.leader_id
    if is_implausible_epoch(s, epoch):
        return False
    # 2. A Resigned node did lead this epoch, and answers still name it.
    if leader_id == s.me.id and not isinstance(s.role, Leader | Resigned):
        s.warn_sparingly(
            f"leads {epoch}",
            f"a message names this node as the leader of epoch {epoch}, which it does not lead: "
            f"unless it was started with an old copy of its directory, another node has its "
            f"node.id, {leader_id}",
        )
        if epoch > s.epoch:
            become_unattached(s, epoch)
        return False
    endpoints = s.endpoints_of(leader_id, given)
    usable = s.usable(endpoints) is not None
    if epoch > s.epoch:
        if usable and leader_id != s.me.id:
            become_follower(s, epoch, leader_id, endpoints)
        else:
            known = leader_id if leader_id != s.me.id else -1
            why = "" if known < 0 else f"no address of its leader {known}"
            become_unattached(s, epoch, known, why)
        return True
    if epoch < s.epoch or leader_id < 0 or leader_id == s.me.id:
        return True
    # 4. Two leaders in one epoch contradict the election; only a peer's defect or a restored old
    # directory explains it. Following either would not repair it.
    if s.leader_id not in (-1, leader_id):
        who = s.id_and_address(leader_id, endpoints)
        s.warn_sparingly(
            "two leaders",
            f"epoch {epoch}: leader is {s.leader_id}, a message names {who}: ignored. It leads another "
            "quorum of this cluster id: stop that node unless this one is the wrong one",
        )
        return False
    # Only more endpoints change anything, as in `KafkaRaftClient.maybeTransition`: a repeated
    # BeginQuorumEpoch must not restart the fetch timer of a follower that cannot fetch.
    if usable and len(endpoints) > len(s.leader_endpoints):
        if isinstance(s.role, Follower):
            s.role.leader_endpoints = endpoints  # a transition would abandon a snapshot download
        else:
            become_follower(s, epoch, leader_id, endpoints)
    return True


def handle_common_response(
    s: RaftState,
    flight: InFlightRequest,
    error: ErrorCode,
    leader: LeaderAndEpoch,
    endpoints: Listeners,
) -> bool:
    """Handle error, epoch and leader of a response. True: the caller handles the rest of it.

    `KafkaRaftClient.maybeHandleCommonResponse`. After False the caller backs off from the peer.
    Differences from Java: a response with nothing new also causes a backoff, so that two replicas
    without a leader do not ask each other in a hot loop; INVALID_REQUEST and
    CLUSTER_AUTHORIZATION_FAILED do not stop the node.
    """
    # The usual case, several times per commit: no error, and nothing about the leader changes.
    if error == ErrorCode.NONE and leader == s.leader_and_epoch and s.leader_endpoints:
        return True
    # A top-level error: the response has no partition and so neither epoch nor leader.
    if error != ErrorCode.NONE and leader.epoch < 0:
        if error == ErrorCode.INCONSISTENT_CLUSTER_ID:
            _warn(
                s,
                f"{s.requests.display_name(flight.to)} is of another cluster than {s.config.cluster_id}: "
                "check the addresses in controller.quorum.voters or "
                "controller.quorum.bootstrap.servers, and cluster.id in meta.properties on both "
                "sides",
            )
        elif error == ErrorCode.INVALID_VOTER_KEY:
            _warn_of_another_directory(s, flight)
        elif error != ErrorCode.BROKER_NOT_AVAILABLE:
            _warn(
                s, f"{s.requests.display_name(flight.to)} answers {flight.name} with {error.name}"
            )
        return False
    if leader.epoch < s.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return False
    if leader.epoch > s.epoch or error in _LEADERSHIP_ERRORS:
        maybe_transition(s, leader, endpoints)
        return False
    if leader.leader_id >= 0 and (leader.leader_id != s.leader_id or not s.leader_endpoints):
        # An observer learns its leader from the first Fetch response and appends its records.
        consistent = maybe_transition(s, leader, endpoints)
        return consistent and error == ErrorCode.NONE
    if error == ErrorCode.INVALID_VOTER_KEY:
        _warn_of_another_directory(s, flight)
        return False
    if error == ErrorCode.BROKER_NOT_AVAILABLE:
        return False
    if error in (ErrorCode.INVALID_REQUEST, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
        _warn(s, f"{s.requests.display_name(flight.to)} refuses {flight.name}: {error.name}")
        return False
    return True


def _warn_of_another_directory(s: RaftState, flight: InFlightRequest) -> None:
    """Name the node by the address that was asked: its answer has no key.

    A bootstrap server is asked by address. The voter that it is not is then the one at that address.
    """
    expected = s.voters.get(flight.to) or next(
        (v for v in s.voters.voters or () if s.usable(v.listeners) == flight.address), None
    )
    than = f"than voter {expected.key}" if expected else "than the voters of this quorum"
    _warn(s, f"the node at {flight.address} has another directory id {than}")


def _warn(s: RaftState, text: str) -> None:
    s.warn_sparingly(text, text)


def is_implausible_epoch(s: RaftState, epoch: int) -> bool:
    """Would adopting this epoch use up the 32-bit epochs, so that no election is possible?

    No number of elections leads there, so the peer is defective or malicious. Kafka adopts the
    epoch and fails at its next election.
    """
    found = epoch - s.epoch > _MAX_EPOCH_JUMP and epoch > MAX_EPOCH - _RESERVED_EPOCHS
    if found:
        s.warn_sparingly("epoch", f"a peer names epoch {epoch} in epoch {s.epoch}: refused")
    return found


def voter_only_error(s: RaftState, node_id: int, epoch: int) -> ErrorCode | None:
    """The error of a request that only voters send; None: none.

    `KafkaRaftClient.validateVoterOnlyRequest`; also refuses an implausible epoch.
    """
    if epoch < s.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if node_id < 0 or is_implausible_epoch(s, epoch):
        return ErrorCode.INVALID_REQUEST
    return None


def is_my_key(s: RaftState, key: ReplicaKey | None) -> bool:
    """Does the receiver's key in a request name this replica? An unknown directory id does."""
    if key is None:
        return True
    return key.id == s.me.id and key.directory_id in (bytes(16), s.me.directory_id)


# -- BeginQuorumEpoch, EndQuorumEpoch ----------------------------------------------------------
def on_begin(s: RaftState, reply_to: int, request: BeginQuorumEpochRequest) -> None:
    """Follow the leader that begins its epoch, and answer.

    `KafkaRaftClient.handleBeginQuorumEpochRequest`.
    """
    if _refused(s, reply_to, request, request.leader):
        return
    if not maybe_transition(s, request.leader, request.leader_endpoints):
        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    elif not is_my_key(s, request.voter):
        refuse(s, reply_to, request, ErrorCode.INVALID_VOTER_KEY)
    else:
        s.out.reply(
            reply_to,
            BeginQuorumEpochResponse(ErrorCode.NONE, s.leader_and_epoch, s.leader_endpoints),
        )


def on_begin_response(
    s: RaftState, flight: InFlightRequest, response: BeginQuorumEpochResponse
) -> bool:
    to = flight.to
    if isinstance(s.role, Leader):
        begin_answered(s, s.role, flight, response.error)
    if not handle_common_response(
        s, flight, response.error, response.leader, response.leader_endpoints
    ):
        return False
    if response.error != ErrorCode.NONE:
        s.note(f"BeginQuorumEpoch to {to}: {response.error.name}")
        return False
    if isinstance(s.role, Leader) and (row := s.role.progress.voters.get(to)) is not None:
        row.acknowledged = True
    return True


def on_end(s: RaftState, reply_to: int, request: EndQuorumEpochRequest) -> None:
    """The leader ends its epoch: a successor starts an election, in the order that the leader names.

    `KafkaRaftClient.handleEndQuorumEpochRequest`.

    Differences from Kafka, each of which ends the epoch sooner:
    - The follower grants pre-votes from now on, also while the old leader still answers a Fetch
      (`ended`). In Kafka it refuses the preferred successor until its own fetch timeout.
    - A lost pre-vote is soon repeated (`suspicion`).
    - A leader that names no successors (it restarted as Resigned) is succeeded by rank, staggered.
      In Kafka all voters start at once and split the vote.
    """
    if _refused(s, reply_to, request, request.leader):
        return
    if not maybe_transition(s, request.leader, request.leader_endpoints):
        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    role = s.role
    if isinstance(role, Follower) and s.leader_id == request.leader.leader_id:
        position = successor_position(request.preferred_candidates, s.me)
        total = len(request.preferred_candidates)
        wait = election_backoff(s.config.election_backoff_max_ms, position, total)
        # The formula would give every voter the maximum.
        if total == 0:
            wait = election_stagger_ms(s)
        role.fetch_deadline = s.now + wait
        role.has_fetched = False
        role.ended = True
        role.suspicion = max(role.suspicion, 1)
        s.note(f"leader {s.leader_id} ends epoch {s.epoch}; my turn in {wait} ms")
    s.out.reply(
        reply_to, EndQuorumEpochResponse(ErrorCode.NONE, s.leader_and_epoch, s.leader_endpoints)
    )


def on_end_response(
    s: RaftState, flight: InFlightRequest, response: EndQuorumEpochResponse
) -> bool:
    to = flight.to
    if not handle_common_response(
        s, flight, response.error, response.leader, response.leader_endpoints
    ):
        return False
    if response.error != ErrorCode.NONE:
        s.note(f"EndQuorumEpoch to {to}: {response.error.name}")
        return False
    if isinstance(s.role, Resigned):
        s.role.unacknowledged.discard(to)
    return True


def successor_position(successors: tuple[ReplicaKey, ...], me: ReplicaKey) -> int:
    """This replica's index among the preferred candidates; their number when it is not listed."""
    for position, key in enumerate(successors):
        if key.id == me.id and key.directory_id in (bytes(16), me.directory_id):
            return position
    return len(successors)


def election_backoff(max_ms: int, position: int, total: int) -> int:
    """The time in ms that a preferred candidate waits before its election.

    0 for the first, the maximum for a replica that is not listed, else binary exponential by
    position (`KafkaRaftClient.strictExponentialElectionBackoffMs`).
    """
    if position == 0:
        return 0
    if position >= total:
        return max_ms
    return min(max_ms, (max_ms >> (total - 1)) << (position - 1))


def _refused(s: RaftState, reply_to: int, request: Request, leader: LeaderAndEpoch) -> bool:
    cluster_id = getattr(request, "cluster_id", None)
    error = voter_only_error(s, leader.leader_id, leader.epoch)
    if wrong_cluster(s, cluster_id):
        error = ErrorCode.INCONSISTENT_CLUSTER_ID
    if error is None:
        return False
    refuse(s, reply_to, request, error)
    return True
