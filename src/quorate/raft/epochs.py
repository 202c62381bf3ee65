"""What every message says about epoch and leader, and what a replica makes of it."""

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
from quorate.raft.moves import (
    MAX_EPOCH,
    become_follower,
    become_unattached,
    turn_ms,
)
from quorate.raft.requests import InFlight
from quorate.raft.roles import Follower, Leader, Resigned
from quorate.raft.state import State

_LAST_EPOCHS: Final = 1 << 20
_MISSED: Final = 1 << 10
"""So many elections a replica may have missed among the last epochs: a leap there uses up no more
of them."""
_FOREIGN = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def learn(s: State, leader: LeaderAndEpoch, given: Listeners) -> bool:
    """A message names an epoch and perhaps its leader. False: that contradicts what is known.

    `KafkaRaftClient.maybeTransition`. Where Java stops the node (another leader in the same
    epoch; this node named as leader when it is not; a leader without an address) this replica
    refuses to be moved by it, notes it and goes on: a peer's bytes must not stop us. A higher
    epoch is always taken, without the leader where that part cannot be used.
    """
    epoch, leader_id = leader.epoch, leader.leader_id
    if is_beyond_reason(s, epoch):
        return False
    if leader_id == s.me.id and not isinstance(s.role, Leader | Resigned):
        s.warn_sparingly(
            f"leads {epoch}",
            f"told that this node leads epoch {epoch}, but it does not: unless it was started "
            f"with an old copy of its directory, another node has its node.id, {leader_id}",
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
    if s.leader_id not in (-1, leader_id):
        text = f"epoch {epoch}: leader is {s.leader_id}, told {leader_id}: ignored"
        s.warn_sparingly("two leaders", text)
        return False
    if usable and len(endpoints) > len(s.leader_endpoints):
        if isinstance(s.role, Follower):
            s.role.leader_endpoints = endpoints  # no reason to fetch a snapshot anew
        else:
            become_follower(s, epoch, leader_id, endpoints)
    return True


def tells_more(
    s: State, flight: InFlight, error: ErrorCode, leader: LeaderAndEpoch, endpoints: Listeners
) -> bool:
    """Read what every answer between replicas says; is there more in it for this role?

    `KafkaRaftClient.maybeHandleCommonResponse`. Where there is not, the peer is let rest. Unlike
    Java, an answer that brings nothing new also earns a rest (no hot loop between two replicas
    without a leader), and INVALID_REQUEST and CLUSTER_AUTHORIZATION_FAILED do not stop the node.
    """
    if error == ErrorCode.NONE and leader == s.leader_and_epoch and s.leader_endpoints:
        return True
    if error != ErrorCode.NONE and leader.epoch < 0:
        if error == ErrorCode.INCONSISTENT_CLUSTER_ID:
            _warn(
                s,
                f"{s.requests.named(flight.to)} is of another cluster than {s.config.cluster_id}: "
                "check the addresses in controller.quorum.voters or "
                "controller.quorum.bootstrap.servers, and cluster.id in meta.properties on both "
                "sides",
            )
        elif error != ErrorCode.BROKER_NOT_AVAILABLE:
            _warn(s, f"{s.requests.named(flight.to)} answers {flight.name} with {error.name}")
        return False
    if leader.epoch < s.epoch or error == ErrorCode.UNKNOWN_LEADER_EPOCH:
        return False
    if leader.epoch > s.epoch or error in _FOREIGN:
        learn(s, leader, endpoints)
        return False
    if leader.leader_id >= 0 and (leader.leader_id != s.leader_id or not s.leader_endpoints):
        consistent = learn(s, leader, endpoints)
        return consistent and error == ErrorCode.NONE
    if error == ErrorCode.INVALID_VOTER_KEY:
        peer = s.requests.named(flight.to)
        _warn(s, f"{peer} has another directory id than the voter set has for it")
        return False
    if error == ErrorCode.BROKER_NOT_AVAILABLE:
        return False
    if error in (ErrorCode.INVALID_REQUEST, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
        _warn(s, f"{s.requests.named(flight.to)} refuses {flight.name}: {error.name}")
        return False
    return True


def _warn(s: State, text: str) -> None:
    s.warn_sparingly(text, text)


def is_beyond_reason(s: State, epoch: int) -> bool:
    """Would this epoch, if it were taken from a peer, leave no numbers to elect in?

    Better than Kafka, which takes it and ends with the next election, as its 32 bits are used up:
    no count of elections leads there, so it is a defect of the peer, or harm.
    """
    found = epoch - s.epoch > _MISSED and epoch > MAX_EPOCH - _LAST_EPOCHS
    if found:
        s.warn_sparingly("epoch", f"a peer names epoch {epoch} in epoch {s.epoch}: refused")
    return found


def voter_only_error(s: State, node_id: int, epoch: int) -> ErrorCode | None:
    """`KafkaRaftClient.validateVoterOnlyRequest`, and no epoch beyond reason."""
    if epoch < s.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if node_id < 0 or is_beyond_reason(s, epoch):
        return ErrorCode.INVALID_REQUEST
    return None


def is_my_key(s: State, key: ReplicaKey | None) -> bool:
    """Does the receiver's key in a request name this replica? An unknown directory id does."""
    if key is None:
        return True
    return key.id == s.me.id and key.directory_id in (bytes(16), s.me.directory_id)


# -- BeginQuorumEpoch, EndQuorumEpoch ----------------------------------------------------------
def on_begin(s: State, reply_to: int, request: BeginQuorumEpochRequest) -> None:
    """`KafkaRaftClient.handleBeginQuorumEpochRequest`."""
    if _refused(s, reply_to, request, request.leader):
        return
    if not learn(s, request.leader, request.leader_endpoints):
        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    elif not is_my_key(s, request.voter):
        refuse(s, reply_to, request, ErrorCode.INVALID_VOTER_KEY)
    else:
        s.out.reply(
            reply_to,
            BeginQuorumEpochResponse(ErrorCode.NONE, s.leader_and_epoch, s.leader_endpoints),
        )


def on_begin_response(s: State, flight: InFlight, response: BeginQuorumEpochResponse) -> bool:
    to = flight.to
    if not tells_more(s, flight, response.error, response.leader, response.leader_endpoints):
        return False
    if response.error != ErrorCode.NONE:
        s.note(f"BeginQuorumEpoch to {to}: {response.error.name}")
        return False
    if isinstance(s.role, Leader) and (row := s.role.progress.voters.get(to)) is not None:
        row.acknowledged = True
    return True


def on_end(s: State, reply_to: int, request: EndQuorumEpochRequest) -> None:
    """`KafkaRaftClient.handleEndQuorumEpochRequest`.

    Better than Kafka: the follower also vouches for this leader no more, whatever Fetch is still
    answered, so that the preferred successor's pre-vote is granted by those whose turn comes
    later; a lost pre-vote is soon tried again; and a leader that names nobody (restarted) is
    followed by rank, not by all at once.
    """
    if _refused(s, reply_to, request, request.leader):
        return
    if not learn(s, request.leader, request.leader_endpoints):
        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    role = s.role
    if isinstance(role, Follower) and s.leader_id == request.leader.leader_id:
        position = successor_position(request.preferred_candidates, s.me)
        total = len(request.preferred_candidates)
        wait = election_backoff(s.config.election_backoff_max_ms, position, total)
        if total == 0:
            wait = turn_ms(s)
        role.fetch_deadline = s.now + wait
        role.has_fetched = False
        role.ended = True
        role.suspicion = max(role.suspicion, 1)
        s.note(f"leader {s.leader_id} ends epoch {s.epoch}; my turn in {wait} ms")
    s.out.reply(
        reply_to, EndQuorumEpochResponse(ErrorCode.NONE, s.leader_and_epoch, s.leader_endpoints)
    )


def on_end_response(s: State, flight: InFlight, response: EndQuorumEpochResponse) -> bool:
    to = flight.to
    if not tells_more(s, flight, response.error, response.leader, response.leader_endpoints):
        return False
    if response.error != ErrorCode.NONE:
        s.note(f"EndQuorumEpoch to {to}: {response.error.name}")
        return False
    if isinstance(s.role, Resigned):
        s.role.unacknowledged.discard(to)
    return True


def successor_position(successors: tuple[ReplicaKey, ...], me: ReplicaKey) -> int:
    """Where this replica stands among the preferred candidates; their number when it does not."""
    for position, key in enumerate(successors):
        if key.id == me.id and key.directory_id in (bytes(16), me.directory_id):
            return position
    return len(successors)


def election_backoff(max_ms: int, position: int, total: int) -> int:
    """How long a preferred candidate waits: ms.

    First: 0; not in the list: the maximum; else binary exponential by position
    (`KafkaRaftClient.strictExponentialElectionBackoffMs`).
    """
    if position == 0:
        return 0
    if position >= total:
        return max_ms
    return min(max_ms, (max_ms >> (total - 1)) << (position - 1))


def _refused(s: State, reply_to: int, request: Request, leader: LeaderAndEpoch) -> bool:
    cluster_id = getattr(request, "cluster_id", None)
    error = voter_only_error(s, leader.leader_id, leader.epoch)
    if wrong_cluster(s, cluster_id):
        error = ErrorCode.INCONSISTENT_CLUSTER_ID
    if error is None:
        return False
    refuse(s, reply_to, request, error)
    return True
