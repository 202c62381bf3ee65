"""Bugs that need two listeners, software that changes, snapshots that take their time, or operators
that wait for nothing: worlds of plan format 7; and debts that no check had asked for before."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

CHANGING = (
    Mutant(
        "voters-with-one-listener",
        "of each voter the log keeps the first listener only",
        "formats.control",
        "            for end in voter.listeners\n",
        "            for end in voter.listeners[:1]\n",
    ),
    Mutant(
        "joins-with-one-listener",
        "who joins by itself tells its first listener only",
        "raft.joining",
        "    return AddVoterRequest(config.cluster_id, s.me, config.listeners, timeout, False)",
        "    return AddVoterRequest(config.cluster_id, s.me, config.listeners[:1], timeout, False)",
    ),
    Mutant(
        "reports-are-known-by-one-listener",
        "at kraft.version 0 a leader remembers the first listener of a voter only",
        "raft.reconfig",
        "        voters = role.volatile_voters.update_ignoring_directory(voter)\n",
        "        voters = role.volatile_voters.update_ignoring_directory(\n"
        "            Voter(voter.key, voter.listeners[:1], low, high)\n"
        "        )\n",
    ),
    Mutant(
        "more-endpoints-are-not-taken",
        "a follower that can reach its leader takes no more of its endpoints",
        "raft.epochs",
        "    if usable and len(endpoints) > len(s.leader_endpoints):\n",
        "    if usable and not s.leader_endpoints:\n",
    ),
    Mutant(
        "newer-endpoints-are-not-taken",
        "what a leader's answers tell of where it listens is passed over",
        "raft.following",
        "= updated(role.leader_endpoints, response.leader_endpoints)\n",
        "= role.leader_endpoints or response.leader_endpoints\n",
    ),
    Mutant(
        "begin-tells-what-the-voters-say",
        "a leader tells of its listeners what the voter set says of them",
        "raft.leading",
        "key, s.leader_and_epoch, s.config.listeners\n",
        "key, s.leader_and_epoch, s.voters.listeners(s.me.id) or s.config.listeners\n",
    ),
    Mutant(
        "other-listeners-are-no-news",
        "a voter whose second listener moved has nothing to report",
        "raft.voters",
        "        and frozenset(one.listeners) == frozenset(other.listeners)\n",
        "        and one.listeners[:1] == other.listeners[:1]\n",
    ),
    Mutant(
        "a-wider-range-is-no-news",
        "a voter whose software knows more than the voter set says has nothing to report",
        "raft.voters",
        "        known = self._by_id.get(voter.key.id)\n        return known is not None and ",
        "        known = self._by_id.get(voter.key.id)\n"
        "        if known is not None and known.listeners == voter.listeners:\n"
        "            low, high = known.min_kraft_version, known.max_kraft_version\n"
        "            return low < voter.min_kraft_version or high > voter.max_kraft_version\n"
        "        return known is not None and ",
    ),
    Mutant(
        "unacked-add-waits",
        "who asked for no commit is answered when the voter set is committed",
        "raft.reconfig",
        "    if not change.ack_when_committed:\n",
        "    if False:\n",
    ),
    Mutant(
        "unacked-add-is-believed",
        "who asked for no commit is answered before the new voter was asked for its versions",
        "raft.reconfig",
        '    s.note(f"add voter {voter}: asks for its versions")\n',
        '    s.note(f"add voter {voter}: asks for its versions")\n'
        "    if not request.ack_when_committed:\n"
        "        s.out.reply(reply_to, AddVoterResponse(ErrorCode.NONE))\n",
    ),
    Mutant(
        "nothing-to-clean",
        "a log is never cleaned, for there is nothing to clean, it says",
        "raft.snapshots",
        "    if s.installing is not None or not known or oldest or before:\n",
        "    if True:\n",
    ),
    Mutant(
        "cleans-while-it-installs",
        "a log is cleaned while a snapshot is on its way into its place",
        "raft.snapshots",
        "    if s.installing is not None or not known or oldest or before:\n",
        "    if not known or oldest or before:\n",
    ),
    Mutant(
        "runs-while-it-installs",
        "a voter whose snapshot takes long to be installed runs for leader meanwhile",
        "raft.following",
        "    if voter and s.now >= role.fetch_deadline and s.installing is None:\n",
        "    if voter and s.now >= role.fetch_deadline:\n",
    ),
    Mutant(
        "installed-too-late-to-follow",
        "an install that outlasts the fetch timeout is followed by an election",
        "raft.following",
        "= max(s.role.fetch_deadline, s.now + s.config.fetch_timeout_ms)\n",
        "= s.role.fetch_deadline\n",
    ),
    Mutant(
        "no-rest-after-a-failure",
        "who does not answer is asked again at once",
        "raft.requests",
        "        self._backoff[node_id] = now_ms + rest\n",
        "        self._backoff[node_id] = now_ms\n",
    ),
    Mutant(
        "rest-is-half-as-long",
        "who does not answer is asked again after half the backoff",
        "raft.requests",
        "        self._backoff[node_id] = now_ms + rest\n",
        "        self._backoff[node_id] = now_ms + rest // 2\n",
    ),
    Mutant(
        "no-rest-after-a-bad-answer",
        "who answers with an error is asked again at once",
        "raft.dispatch",
        "    if not _on_response(s, flight, event.response) and s.requests.resets == resets:\n"
        "        _let_rest(s, flight.to)\n",
        "    _on_response(s, flight, event.response)\n",
    ),
    Mutant(
        "asks-in-vain-as-often",
        "an observer that finds no leader asks the same servers again after the same backoff",
        "raft.requests",
        "            rest = min(rest << min(times, _DOUBLINGS), most_ms)\n",
        "            rest = self._backoff_ms\n",
    ),
    Mutant(
        "reports-without-a-pause",
        "a voter tells its leader of itself again and again until its log has it",
        "raft.following",
        "            s.send(s.leader_id, address, request)\n"
        "            role.update_deadline = s.now + s.config.fetch_timeout_ms\n",
        "            s.send(s.leader_id, address, request)\n",
    ),
    Mutant(
        "reports-in-each-period",
        "at kraft.version 0 a voter tells the leader that has heard it of itself again",
        "raft.joining",
        "    role.has_updated_leader = True\n    if not role.ended:\n",
        "    if not role.ended:\n",
    ),
    Mutant(
        "removed-voters-are-heard",
        "what a voter asked before it was removed counts for the majority that a leader hears",
        "raft.progress",
        "        self._check_quorum &= rows.keys()\n",
        "        pass\n",
    ),
    Mutant(
        "another-disk-is-heard",
        "whoever has the id of a voter counts for the majority that a leader hears",
        "raft.progress",
        "        if row is not None and row is not self.own and matches(row.key, key):\n",
        "        if row is not None and row is not self.own:\n",
    ),
    Mutant(
        "joins-without-a-directory",
        "who is to join by itself asks for a voter without a directory id, and is refused for ever",
        "raft.joining",
        "AddVoterRequest(config.cluster_id, s.me, ",
        "AddVoterRequest(config.cluster_id, type(s.me)(s.me.id), ",
    ),
)
