"""Bugs in votes, pre-votes, epochs, and in what must be durable before it is said."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

ELECTIONS = (
    Mutant(
        "vote-for-a-shorter-log",
        "a vote is granted whatever log the candidate has",
        "raft.election",
        "up_to_date = (request.last_epoch, request.last_offset) >= (mine.epoch, mine.offset)",
        "up_to_date = True",
    ),
    Mutant(
        "vote-by-offset-alone",
        "a longer log of an older epoch counts as up to date",
        "raft.election",
        "up_to_date = (request.last_epoch, request.last_offset) >= (mine.epoch, mine.offset)",
        "up_to_date = request.last_offset >= mine.offset",
    ),
    Mutant(
        "vote-twice",
        "a voter that has voted in this epoch votes again",
        "raft.election",
        "return voted.id == key.id and voted.directory_id in (bytes(16), key.directory_id)",
        "return up_to_date",
    ),
    Mutant(
        "vote-not-stored",
        "a vote is granted and not written to quorum-state",
        "raft.election",
        "    s.vote_for(key)\n",
        "",
    ),
    Mutant(
        "answer-before-durable",
        "a vote and the first word in a new epoch leave before quorum-state is synced",
        "raft.outbox",
        "if durable.election_seq > durable.seq:",
        "if False:",
    ),
    Mutant(
        "ask-for-votes-before-durable",
        "a candidate asks for votes before its epoch and own vote are durable",
        "raft.election",
        "if ballot.lost or not s.durable.election or not s.durable.log:",
        "if ballot.lost or not s.durable.log:",
    ),
    Mutant(
        "any-error-ends-pre-votes",
        "whatever a peer refuses a pre-vote for, it is asked for its vote in a new epoch",
        "raft.election",
        "if response.error == ErrorCode.UNSUPPORTED_VERSION and request.pre_vote:",
        "if response.error != ErrorCode.NONE and request.pre_vote:",
    ),
    Mutant(
        "minority-elects",
        "half of the voters are enough to win",
        "raft.voters",
        "return len(self.voters) // 2 + 1",
        "return max(len(self.voters) // 2, 1)",
    ),
    Mutant(
        "vote-forgotten-in-the-same-epoch",
        "who loses its leader in an epoch forgets whom it voted for in it",
        "raft.moves",
        """    deadline = remaining_or_new(s)
    voted = s.election.voted if epoch == s.epoch else None
""",
        """    deadline = remaining_or_new(s)
    voted = None
""",
    ),
    Mutant(
        "leads-again-after-restart",
        "a leader that restarts goes on to lead its epoch (KAFKA-10527)",
        "raft.moves",
        "        s.role = Resigned(s.election_timeout(), others)\n    elif",
        """        s.role = Leader(
            s.log.end_offset,
            Progress(s.me, s.voters),
            s.now + s.config.fetch_timeout_ms,
            s.now,
        )
    elif""",
    ),
    Mutant(
        "no-pre-vote",
        "an election timeout goes straight to a new epoch",
        "raft.election",
        "    if role.ballot.won:\n        become_candidate(s)\n",
        "    if True:\n        become_candidate(s)\n",
    ),
    Mutant(
        "pre-vote-of-everybody",
        "a follower that hears its leader grants pre-votes",
        "raft.election",
        "return pre_vote and up_to_date and not role.has_fetched",
        "return pre_vote and up_to_date",
    ),
    Mutant(
        "no-check-quorum",
        "a leader that nobody fetches from leads on (KAFKA-15489)",
        "raft.leading",
        "    elif s.now >= role.check_deadline and not s.voters.is_only_voter(s.me):",
        "    elif False:",
    ),
    Mutant(
        "election-timeout-forgotten",
        "a candidate that is not answered waits for ever",
        "raft.election",
        """    if s.now >= role.election_deadline and s.shutdown_deadline is None:
        become_prospective(s, "election timed out")
        return s.now
""",
        "",
    ),
    Mutant(
        "runs-again-for-an-epoch-that-is-won",
        "who has run for an epoch in vain restarts as its candidate, although it knows the leader",
        "raft.moves",
        "election.leader_id < 0 and election.voted is not None and _runs_on(",
        "election.voted is not None and _runs_on(",
    ),
    Mutant(
        "removed-voter-stands-aside",
        "who holds the only record of its own removal may not run where all before is committed",
        "raft.state",
        "return offset >= self.high_watermark and",
        "return offset > self.high_watermark and",
    ),
    Mutant(
        "leader-change-names-all",
        "the LeaderChange record names all voters as granting",
        "raft.moves",
        "LeaderChange(s.me.id, s.voters.ids, tuple(sorted(granting)))",
        "LeaderChange(s.me.id, s.voters.ids, s.voters.ids)",
    ),
)
