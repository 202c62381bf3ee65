"""Votes and pre-votes, asked and answered (KIP-595, KIP-996; `KafkaRaftClient`)."""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.raft.answers import bare_refusal, refuse, wrong_cluster
from quorate.raft.epochs import is_my_key, tells_more, voter_only_error
from quorate.raft.messages import EndQuorumEpochRequest, VoteRequest, VoteResponse
from quorate.raft.moves import (
    RANK_STEP_MS,
    become_candidate,
    become_follower,
    become_leader,
    become_prospective,
    become_unattached,
    rank_without,
    suspicion_pause,
)
from quorate.raft.requests import InFlight
from quorate.raft.roles import (
    NEVER,
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from quorate.raft.state import State
from quorate.raft.values import ElectionState


# -- asked for a vote --------------------------------------------------------------------------
def on_vote(s: State, reply_to: int, request: VoteRequest) -> None:
    """`KafkaRaftClient.handleVoteRequest`: the checks in its order, then the decision."""
    if wrong_cluster(s, request.cluster_id):
        s.out.reply(reply_to, bare_refusal(request, ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    if error := _vote_error(s, request):
        refuse(s, reply_to, request, error)
        return
    if request.epoch > s.epoch:
        become_unattached(s, request.epoch)
    if not is_my_key(s, request.voter):
        refuse(s, reply_to, request, ErrorCode.INVALID_VOTER_KEY)
        return
    if request.candidate.id == s.me.id and not request.pre_vote:
        # Java stops. After a restart the vote could be this node's own, and count once more.
        text = f"{request.candidate} asks for a vote under this node's own id: refused"
        s.warn_sparingly(f"vote {request.epoch}", text)
        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    _stop_vouching(s)
    mine = s.log.end
    up_to_date = (request.last_epoch, request.last_offset) >= (mine.epoch, mine.offset)
    granted = grants(s.role, s.election, request.candidate, up_to_date, request.pre_vote)
    if granted and not request.pre_vote and s.election.voted is None:
        _vote(s, request.candidate)
    kind = "pre-vote" if request.pre_vote else "vote"
    s.note(f"epoch {s.epoch}: {kind} of {request.candidate} {'granted' if granted else 'refused'}")
    s.out.reply(
        reply_to, VoteResponse(ErrorCode.NONE, s.leader_and_epoch, granted, s.leader_endpoints)
    )
    if granted and request.pre_vote and request.candidate.id < s.me.id:
        _let_go_first(s)


def _stop_vouching(s: State) -> None:
    """A leader that was silent for the fetch timeout is no reason to refuse a pre-vote.

    Better than Kafka: a voter would run by now, but an observer never does, and it may be a voter
    in a newer set, which it has not heard of and which cannot elect anybody without it.
    """
    role = s.role
    if isinstance(role, Follower) and s.now >= role.fetch_deadline:
        role.has_fetched = False


def _vote_error(s: State, request: VoteRequest) -> ErrorCode | None:
    highest = request.epoch if request.pre_vote else request.epoch - 1
    if request.last_offset < 0 or request.last_epoch < 0 or request.last_epoch > highest:
        return ErrorCode.INVALID_REQUEST
    return voter_only_error(s, request.candidate.id, request.epoch)


def grants(
    role: Role, election: ElectionState, key: ReplicaKey, up_to_date: bool, pre_vote: bool
) -> bool:
    """The decision table of the reference, 5.3 (`EpochState.canGrantVote`).

    `up_to_date`: the candidate's log is at least as long as ours, by last epoch, then offset.
    """
    if isinstance(role, Leader):
        return False
    if isinstance(role, Follower):
        return pre_vote and up_to_date and not role.has_fetched
    if pre_vote:
        return up_to_date
    if isinstance(role, Candidate | Resigned):
        return False
    if election.voted is not None:
        voted = election.voted
        return voted.id == key.id and voted.directory_id in (bytes(16), key.directory_id)
    return election.leader_id < 0 and up_to_date


def _let_go_first(s: State) -> None:
    """One that stands before this node in line runs for the place of a lost leader, with this
    node's word: were this one to run meanwhile, they would split the vote."""
    role = s.role
    if not isinstance(role, Follower | Prospective) or not role.suspicion or role.ended:
        return
    if isinstance(role, Prospective):
        _after_lost_pre_vote(s, role, "another goes first")
    else:
        pause = suspicion_pause(s, role.suspicion)
        role.fetch_deadline = max(role.fetch_deadline, s.now + pause)


def _vote(s: State, key: ReplicaKey) -> None:
    """Store the vote; the election timer starts anew."""
    s.vote_for(key)
    role = s.role
    if isinstance(role, Prospective):
        ballot = Ballot(s.voters)
        ballot.record(s.me.id, True)
        s.role = Prospective(ballot, s.election_timeout(), role.leader_endpoints)
    elif isinstance(role, Unattached):
        role.election_deadline = s.election_timeout() if s.electable else NEVER


# -- asking for votes --------------------------------------------------------------------------
def on_vote_response(
    s: State, flight: InFlight, request: VoteRequest, response: VoteResponse
) -> bool:
    """`KafkaRaftClient.handleVoteResponse`."""
    role, to = s.role, flight.to
    if response.error == ErrorCode.UNSUPPORTED_VERSION and request.pre_vote:
        return no_pre_vote(s, to)
    if not tells_more(s, flight, response.error, response.leader, response.leader_endpoints):
        return False
    if response.error != ErrorCode.NONE:
        s.note(f"Vote to {to}: {response.error.name}")
        return False
    if s.role is not role or not isinstance(role, Prospective | Candidate):
        return True
    if isinstance(role, Prospective) != request.pre_vote:
        return True
    role.ballot.record(to, response.granted)
    if isinstance(role, Prospective) and role.ballot.lost:
        _after_lost_pre_vote(s, role, "pre-vote lost")
    elif isinstance(role, Candidate) and role.ballot.lost:
        # Better than Kafka, which waits out the election timeout: the vote was split.
        pause = suspicion_pause(s, 1) + RANK_STEP_MS * rank_without(s, -1)
        role.election_deadline = min(role.election_deadline, s.now + pause)
        s.note(f"epoch {s.epoch}: election lost")
    return True


def no_pre_vote(s: State, to: int) -> bool:
    """A voter does not know pre-votes: only a real election can be asked of it."""
    if isinstance(s.role, Prospective):
        become_candidate(s, f"{to} knows no pre-vote")
        return True
    return False


def _after_lost_pre_vote(s: State, role: Prospective, why: str) -> None:
    """Back to the leader, if there is one with an address."""
    if s.leader_id not in (-1, s.me.id) and s.usable(role.leader_endpoints) is not None:
        become_follower(s, s.epoch, s.leader_id, role.leader_endpoints)
    else:
        become_unattached(s, s.epoch, s.leader_id, why)


def poll_prospective(s: State, role: Prospective) -> int:
    """Move on or send pre-votes; when to look again."""
    if role.ballot.won:
        become_candidate(s)
        return s.now
    if s.now >= role.election_deadline and s.shutdown_deadline is None:
        _after_lost_pre_vote(s, role, "pre-vote timed out")
        return s.now
    _ask(s, role.ballot, pre_vote=True)
    return role.election_deadline


def poll_candidate(s: State, role: Candidate) -> int:
    """Count the own vote once it is durable, move on or send votes; when to look again."""
    if s.durable.election:
        role.ballot.record(s.me.id, True)
    if role.ballot.won:
        become_leader(s, role.ballot.granted)
        return s.now
    if s.now >= role.election_deadline and s.shutdown_deadline is None:
        become_prospective(s, "election timed out")
        return s.now
    _ask(s, role.ballot, pre_vote=False)
    return role.election_deadline


def _ask(s: State, ballot: Ballot, *, pre_vote: bool) -> None:
    """Ask those that have not answered; only once epoch, vote and the log claimed are durable."""
    if ballot.lost or not s.durable.election or not s.durable.log:
        return
    end: OffsetAndEpoch = s.log.end
    for key in ballot.open:
        address = s.usable(s.voters.listeners(key.id))
        if key.id == s.me.id or not s.requests.ready(key.id, s.now):
            continue
        if address is None:
            s.warn_of_no_address(key.id)
            continue
        request = VoteRequest(
            cluster_id=s.config.cluster_id,
            voter=key,
            epoch=s.epoch,
            candidate=s.me,
            last_epoch=end.epoch,
            last_offset=end.offset,
            pre_vote=pre_vote,
        )
        s.send(key.id, address, request)


# -- having resigned ---------------------------------------------------------------------------
def poll_resigned(s: State, role: Resigned) -> int:
    """Tell the voters until each has acknowledged; then wait for the next epoch."""
    if s.now >= role.election_deadline and s.shutdown_deadline is None:
        become_unattached(s, s.epoch + 1, why="no leader followed")
        return s.now
    if s.durable.election:
        for voter_id in sorted(role.unacknowledged):
            address = s.usable(s.voters.listeners(voter_id))
            if address is not None and s.requests.ready(voter_id, s.now):
                s.send(voter_id, address, end_epoch_request(s, role.successors))
    return role.election_deadline


def end_epoch_request(s: State, successors: tuple[ReplicaKey, ...]) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(s.config.cluster_id, s.leader_and_epoch, successors)
