"""Bugs in what clients and operators are told, in who may vote, and in what leaders owe."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

ANSWERS = (
    Mutant(
        "many-records-one-offset",
        "of several records in a shared batch only the first has its place told",
        "node.proposals",
        "else offset + len(item.values)",
        "else offset + 1",
    ),
    Mutant(
        "barrier-does-not-wait",
        "a submission without values is done at once",
        "node.proposals",
        "Committed(item.token, log_end_offset, log_end_offset) for item in group",
        "Committed(item.token, 0, 0) for item in group",
    ),
    Mutant(
        "change-never-expires",
        "a voter change that is not committed in time is never answered",
        "raft.reconfig",
        "    if role.change is not None and s.now >= role.change.deadline:",
        "    if False:",
    ),
    Mutant(
        "deposed-leader-answers-no-change",
        "who loses its office says nothing to the operator that waits",
        "raft.moves",
        "        if old.change is not None:\n"
        "            answer_change(s, old.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)\n",
        "",
    ),
    Mutant(
        "update-answered-not-done",
        "UpdateRaftVoter is acknowledged and not written",
        "raft.reconfig",
        "        append_control(s, role, (Voters(voters.voters),))\n    else:",
        "    else:",
    ),
    Mutant(
        "voter-range-not-looked-at",
        "a node that cannot run the kraft.version becomes a voter",
        "raft.reconfig",
        "    if not 0 <= least <= version <= most:",
        "    if False:",
    ),
    Mutant(
        "upgrade-unsupported-by-a-voter",
        "kraft.version rises above what a voter can run",
        "raft.reconfig",
        "    if not voters.supports(version):",
        "    if False:",
    ),
    Mutant(
        "change-at-version-0",
        "voters are removed where the log has no voter set",
        "raft.reconfig",
        "    if s.controls.version < 1:\n        return ErrorCode.UNSUPPORTED_VERSION, (",
        "    if False:\n        return ErrorCode.UNSUPPORTED_VERSION, (",
    ),
    Mutant(
        "removes-by-node-id",
        "a voter is removed whatever directory the operator named",
        "raft.voters",
        "        if voter is None or voter.key != key or len(self.voters) == 1:",
        "        if voter is None or len(self.voters) == 1:",
    ),
    Mutant(
        "refused-cluster-served",
        "a request for another cluster changes the voters of this one",
        "raft.answers",
        "    return cluster_id is not None and cluster_id != s.config.cluster_id",
        "    return False",
    ),
    Mutant(
        "fenced-requests-heard",
        "a leader serves who asks in the name of an epoch that is over",
        "raft.answers",
        "    if epoch < s.epoch:\n        return ErrorCode.FENCED",
        "    if epoch < s.epoch and not isinstance(s.role, Leader):\n"
        "        return ErrorCode.FENCED",
    ),
    Mutant(
        "goodbye-never-said",
        "EndQuorumEpoch is never sent",
        "raft.election",
        "    if s.durable.election:\n        for voter_id in sorted(role.unacknowledged):",
        "    if False:\n        for voter_id in sorted(role.unacknowledged):",
    ),
    Mutant(
        "begin-never-sent",
        "BeginQuorumEpoch is never sent",
        "raft.leading",
        "        _send_begin(s, role)\n    wake",
        "        role.begin_deadline = s.now + s.config.fetch_timeout_ms\n    wake",
    ),
    Mutant(
        "snapshot-timestamp-zero",
        "snapshots say that they are of 1970",
        "node.replica",
        "                applier.applied, applier.timestamp_ms, self.applied_control,",
        "                applier.applied, 0, self.applied_control,",
    ),
    Mutant(
        "never-cleans",
        "nobody looks what a disk has too much of",
        "node.replica",
        "            jobs.append(Survey())",
        "            pass",
    ),
    Mutant(
        "doubt-not-told",
        "what was appended before leadership was lost is called refused",
        "node.proposals",
        "NOT_ACTIVE, in_doubt=True)",
        "NOT_ACTIVE)",
    ),
    Mutant(
        "doubt-about-everything",
        "what was never appended is called in doubt when leadership is lost",
        "node.proposals",
        "        self._refuse(self._submitted, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE, outcomes)\n",
        "        outcomes.extend(\n"
        "            Refused(one.token, ErrorCode.NOT_CONTROLLER, NOT_ACTIVE, in_doubt=True)\n"
        "            for one in self._submitted\n"
        "        )\n",
    ),
    Mutant(
        "refused-and-kept",
        "what was refused when leadership was lost is appended when it comes back",
        "node.proposals",
        "NOT_ACTIVE, outcomes)\n        self._forget_submitted()\n",
        "NOT_ACTIVE, outcomes)\n",
    ),
    Mutant(
        "refuses-while-busy",
        "a leader refuses what comes while something is uncommitted",
        "node.replica",
        "                if self.leading_epoch is None:\n",
        "                if self.leading_epoch is None or self._proposals._uncommitted:\n",
    ),
    Mutant(
        "upgrade-answered-not-done",
        "an upgrade of kraft.version is acknowledged and not written",
        "raft.reconfig",
        "    if event.version == present:\n",
        "    if event.version >= present:\n",
    ),
    Mutant(
        "upgrade-refused-and-done",
        "an upgrade of kraft.version is written, and called impossible",
        "raft.reconfig",
        "Accepted(event.token, batch.base_offset, batch.end_offset)",
        'Refused(event.token, ErrorCode.INVALID_UPDATE_VERSION, "")',
    ),
    Mutant(
        "upgrade-always-refused",
        "voters that can run kraft.version 1 are taken for such that cannot",
        "raft.reconfig",
        "    if not voters.supports(version):\n",
        "    if voters.supports(0):\n",
    ),
    Mutant(
        "upgrade-again-at-once",
        "who asks for an upgrade that is written and not committed is told that it is done",
        "raft.reconfig",
        "        end = 0 if offset is None else offset + 1\n",
        "        end = 0\n",
    ),
    Mutant(
        "reported-although-unheard",
        "at kraft.version 0 a voter reports itself once to a leader, and is not heard",
        "raft.following",
        "            s.send(s.leader_id, address, request)\n            role.update_deadline",
        "            s.send(s.leader_id, address, request)\n"
        "            role.has_updated_leader = True\n"
        "            role.update_deadline",
    ),
    Mutant(
        "described-as-caught-up",
        "DescribeQuorum tells that everybody stands where the leader's log ends",
        "raft.describe",
        "            replica.key, replica.end_offset, replica.last_fetch_ms",
        "            replica.key, s.log.end_offset, replica.last_fetch_ms",
    ),
    Mutant(
        "serves-a-later-epoch",
        "a deposed leader serves replicas that know of a newer epoch, and counts them",
        "raft.answers",
        "    if epoch > s.epoch:\n        return ErrorCode.UNKNOWN_LEADER_EPOCH\n",
        "",
    ),
)
