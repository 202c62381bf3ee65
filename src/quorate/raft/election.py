"""Elections: pre-votes and votes, sent and answered (KIP-595, KIP-996; `KafkaRaftClient`).

E1. A voter suspects that the leader is gone. Its fetch or election timer expires
    (`following.poll_follower`), the connection breaks (`transitions.suspect_leader`), or the
    leader ends its epoch (`epochs.on_end`).
E2. The voter becomes Prospective and sends pre-votes. Epoch and vote stay, nothing is stored.
E3. A receiver grants a pre-vote to a log as long as its own, unless it hears from its leader. A
    pre-vote promises nothing, so the receiver stores nothing.
E4. With a majority of pre-votes the voter becomes Candidate: it stores the next epoch and a vote
    for itself. Without one it returns to the known leader, or to Unattached.
E5. First durable wait: the Candidate sends Vote, and counts its own vote, only when its
    quorum-state and log are durable.
E6. Second durable wait: a receiver stores its vote, and `Outbox.reply` holds the response back
    until the vote is durable. Each voter votes once in an epoch, also after a crash.
E7. With a majority of votes the Candidate becomes Leader (`transitions.become_leader`). It answers
    Fetch when this is durable (`leading.on_election_durable`).
E8. After a refusing majority, or at the election timeout, it becomes Prospective again: E2. Voters
    that split the vote retry in the order of their ids.
E9. A message with a higher epoch ends the election at each step (`epochs.maybe_transition`).
"""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.raft.answers import bare_refusal, refuse, wrong_cluster
from quorate.raft.epochs import handle_common_response, is_my_key, voter_only_error
from quorate.raft.messages import EndQuorumEpochRequest, VoteRequest, VoteResponse
from quorate.raft.requests import InFlightRequest
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
from quorate.raft.state import RaftState
from quorate.raft.transitions import (
    RANK_STEP_MS,
    become_candidate,
    become_follower,
    become_leader,
    become_prospective,
    become_unattached,
    election_rank,
    suspicion_backoff_ms,
)
from quorate.raft.values import ElectionState


# -- asked for a vote --------------------------------------------------------------------------
def on_vote(s: RaftState, reply_to: int, request: VoteRequest) -> None:
    """Answer a vote or pre-vote request, in the order of `KafkaRaftClient.handleVoteRequest`.

    1. Check the cluster id.
    2. Check that log end and epoch of the candidate are possible, and that its epoch is not older.
    3. Adopt a higher epoch, also from a pre-vote.
    4. Check that the request is for this voter key.
    5. Decide (`grants`): E3 of the module.
    6. Store the vote, then answer: E6.

    The candidate need not be in this replica's voter set: it may be a voter in a newer set, which
    this replica has not fetched (KIP-853).
    """
    # 1.
    if wrong_cluster(s, request.cluster_id):
        s.out.reply(reply_to, bare_refusal(request, ErrorCode.INCONSISTENT_CLUSTER_ID))
        return
    # 2.
    if error := _vote_error(s, request):
        refuse(s, reply_to, request, error)
        return
    # 3. E9, also where this node then refuses: Raft's rule for every message.
    if request.epoch > s.epoch:
        become_unattached(s, request.epoch)
    # 4. The candidate may know this voter by the directory id of a replaced disk (KIP-853).
    if not is_my_key(s, request.voter):
        refuse(s, reply_to, request, ErrorCode.INVALID_VOTER_KEY)
        return
    if request.candidate.id == s.me.id and not request.pre_vote:
        # Java throws IllegalStateException. Two nodes run with one id: a vote stored for that id
        # would be read back after a restart as this node's vote for itself, and count twice.
        text = f"{request.candidate} asks for a vote under this node's own id: refused"
        s.warn_sparingly(f"vote {request.epoch}", text)
        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    # 5.
    _expire_fetched_leader(s)
    # Raft, section 5.4.1: compare the last epochs first, then the lengths. A longer log of an
    # older epoch may lack committed records.
    mine = s.log.end
    up_to_date = (request.last_epoch, request.last_offset) >= (mine.epoch, mine.offset)
    granted = grants(s.role, s.election, request.candidate, up_to_date, request.pre_vote)
    # 6. E6. The response below waits in the Outbox until this is durable.
    if granted and not request.pre_vote and s.election.voted is None:
        _vote(s, request.candidate)
    kind = "pre-vote" if request.pre_vote else "vote"
    s.note(f"epoch {s.epoch}: {kind} of {request.candidate} {'granted' if granted else 'refused'}")
    s.out.reply(
        reply_to, VoteResponse(ErrorCode.NONE, s.leader_and_epoch, granted, s.leader_endpoints)
    )
    if granted and request.pre_vote and request.candidate.id < s.me.id:
        _yield_to_candidate(s)


def _expire_fetched_leader(s: RaftState) -> None:
    """A leader that was silent for the fetch timeout is no reason to refuse a pre-vote.

    A voter is Prospective by then. An observer never is, so in Kafka it refuses for ever. It can be
    a voter in a newer set that it has not fetched, and that set may need its vote.
    """
    role = s.role
    if isinstance(role, Follower) and s.now >= role.fetch_deadline:
        role.has_fetched = False


def _vote_error(s: RaftState, request: VoteRequest) -> ErrorCode | None:
    # A candidate votes in an epoch above that of its last record. A pre-vote (KIP-996) names the
    # present epoch, of which the log may have records.
    highest = request.epoch if request.pre_vote else request.epoch - 1
    if request.last_offset < 0 or request.last_epoch < 0 or request.last_epoch > highest:
        return ErrorCode.INVALID_REQUEST
    return voter_only_error(s, request.candidate.id, request.epoch)


def grants(
    role: Role, election: ElectionState, key: ReplicaKey, up_to_date: bool, pre_vote: bool
) -> bool:
    """May this replica vote for `key` (`EpochState.canGrantVote` of each state)?

    - Leader: neither votes nor pre-votes.
    - Follower: no vote. A pre-vote if up to date, and this replica has not fetched from its leader.
    - Candidate, Resigned: no vote, they voted for themselves. A pre-vote if up to date.
    - Unattached, Prospective: a vote for the key they voted for; without a vote and a known leader,
      a vote if up to date. A pre-vote if up to date.

    `up_to_date`: the candidate's log is at least as long as ours, by last epoch, then offset.
    """
    if isinstance(role, Leader):
        return False
    if isinstance(role, Follower):
        # KIP-996: a follower that hears from its leader rejects pre-votes, so that a voter behind a
        # one-way partition cannot depose a leader that the majority follows.
        return pre_vote and up_to_date and not role.has_fetched
    if pre_vote:
        return up_to_date  # promises nothing, so there is nothing to compare with
    if isinstance(role, Candidate | Resigned):
        return False
    if election.voted is not None:
        voted = election.voted
        # A repeated request gets the same answer: the first one may have been lost. A vote read
        # from a version 0 quorum-state has no directory id and matches any.
        return voted.id == key.id and voted.directory_id in (bytes(16), key.directory_id)
    return election.leader_id < 0 and up_to_date


def _yield_to_candidate(s: RaftState) -> None:
    """Wait after granting a pre-vote to a candidate of lower rank.

    Both suspect the leader. If this node also started its election now, they would split the vote.
    """
    role = s.role
    if not isinstance(role, Follower | Prospective) or not role.suspicion or role.ended:
        return
    if isinstance(role, Prospective):
        _after_lost_pre_vote(s, role, "another goes first")
    else:
        pause = suspicion_backoff_ms(s, role.suspicion)
        role.fetch_deadline = max(role.fetch_deadline, s.now + pause)


def _vote(s: RaftState, key: ReplicaKey) -> None:
    """Store the vote and restart the election timer (`QuorumState.unattachedAddVotedState`).

    A Prospective starts a new ballot: its earlier pre-votes were for a state without this vote.
    """
    s.vote_for(key)
    role = s.role
    if isinstance(role, Prospective):
        ballot = Ballot(s.voters)
        ballot.record(s.me.id, True)
        s.role = Prospective(ballot, s.election_timeout(), role.leader_endpoints)
    else:
        # All others have voted in their epoch, or know its leader.
        assert isinstance(role, Unattached)
        role.election_deadline = s.election_timeout() if s.electable else NEVER


# -- asking for votes --------------------------------------------------------------------------
def on_vote_response(
    s: RaftState, flight: InFlightRequest, request: VoteRequest, response: VoteResponse
) -> bool:
    """Count a vote or pre-vote (`KafkaRaftClient.handleVoteResponse`); False: back off from the peer.

    A ballot that is lost ends the round (E4, E8). The next poll acts on one that is won.
    """
    role, to = s.role, flight.to
    if response.error == ErrorCode.UNSUPPORTED_VERSION and request.pre_vote:
        return no_pre_vote(s, to)
    if not handle_common_response(
        s, flight, response.error, response.leader, response.leader_endpoints
    ):
        return False
    if response.error != ErrorCode.NONE:
        s.note(f"Vote to {to}: {response.error.name}")
        return False
    # The answer may have changed the role, or belong to an earlier one: a granted pre-vote does
    # not count in the election that follows it, in the same or a later epoch.
    if s.role is not role or not isinstance(role, Prospective | Candidate):
        return True
    # unreached: a change of the role resets the requests in flight
    if isinstance(role, Prospective) != request.pre_vote:
        return True
    role.ballot.record(to, response.granted)
    # E4.
    if isinstance(role, Prospective) and role.ballot.lost:
        _after_lost_pre_vote(s, role, "pre-vote lost")
    elif isinstance(role, Candidate) and role.ballot.lost:
        # E8. Kafka waits out the rest of the election timeout. The vote was split between voters that
        # suspected the leader together, so retry soon, staggered by rank.
        pause = suspicion_backoff_ms(s, 1) + RANK_STEP_MS * election_rank(s, -1)
        role.election_deadline = min(role.election_deadline, s.now + pause)
        s.note(f"epoch {s.epoch}: election lost")
    return True


def no_pre_vote(s: RaftState, to: int) -> bool:
    """A voter runs software without pre-vote (Vote below v2): hold a real election (KIP-996)."""
    # unreached: a change of the role resets the requests in flight
    if isinstance(s.role, Prospective):
        become_candidate(s, f"{to} knows no pre-vote")
        return True
    return False


def _after_lost_pre_vote(s: RaftState, role: Prospective, why: str) -> None:
    """Return to the known leader if it has an address, else to Unattached in the same epoch."""
    if s.leader_id not in (-1, s.me.id) and s.usable(role.leader_endpoints) is not None:
        become_follower(s, s.epoch, s.leader_id, role.leader_endpoints)
    else:
        become_unattached(s, s.epoch, s.leader_id, why)


def poll_prospective(s: RaftState, role: Prospective) -> int:
    """Start the election, give up, or send pre-votes. Returns the time of the next poll (ms)."""
    # E4.
    if role.ballot.won:
        become_candidate(s)
        return s.now
    if s.now >= role.election_deadline and s.shutdown_deadline is None:
        _after_lost_pre_vote(s, role, "pre-vote timed out")
        return s.now
    _ask(s, role.ballot, pre_vote=True)
    return role.election_deadline


def poll_candidate(s: RaftState, role: Candidate) -> int:
    """Become leader, give up, or send votes. Returns the time of the next poll (ms)."""
    # E5. The own vote counts only once quorum-state is durable. Otherwise a crash would forget it and
    # the restarted node could vote for another candidate in this epoch.
    if s.durable.election_is_durable:
        role.ballot.record(s.me.id, True)
    # E7.
    if role.ballot.won:
        become_leader(s, role.ballot.granted)
        return s.now
    # E8. A pre-vote first: a candidate that cannot win must not raise the epoch again and again.
    if s.now >= role.election_deadline and s.shutdown_deadline is None:
        become_prospective(s, "election timed out")
        return s.now
    _ask(s, role.ballot, pre_vote=False)
    return role.election_deadline


def _ask(s: RaftState, ballot: Ballot, *, pre_vote: bool) -> None:
    """Send Vote to the voters that have not answered (E2, E5).

    The request claims a log end and, in a real election, the own vote. Both must be durable first:
    a voter that grants relies on this replica still having that log after a crash.
    """
    if ballot.lost or not s.durable.election_is_durable or not s.durable.log_is_durable:
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
def poll_resigned(s: RaftState, role: Resigned) -> int:
    """Send EndQuorumEpoch until each voter acknowledged it. Returns the time of the next poll (ms).

    The epoch's leader cannot vote or follow in it, so after an election timeout it moves to the
    next epoch (`KafkaRaftClient.pollResigned`).
    """
    if s.now >= role.election_deadline and s.shutdown_deadline is None:
        become_unattached(s, s.epoch + 1, why="no leader followed")
        return s.now
    if s.durable.election_is_durable:
        for voter_id in sorted(role.unacknowledged):
            address = s.usable(s.voters.listeners(voter_id))
            if address is not None and s.requests.ready(voter_id, s.now):
                s.send(voter_id, address, end_epoch_request(s, role.successors))
    return role.election_deadline


def end_epoch_request(s: RaftState, successors: tuple[ReplicaKey, ...]) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(s.config.cluster_id, s.leader_and_epoch, successors)
