"""Bugs in appending, truncating, counting the majority, and the voter set."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

REPLICATION = (
    Mutant(
        "own-log-counted-before-sync",
        "what was appended while the disk worked counts as soon as the disk is done with the rest",
        "raft.durable",
        "            self.end_offset = ends.popleft()[1]\n",
        "            self.end_offset = ends[-1][1]\n            ends.popleft()\n",
    ),
    Mutant(
        "change-before-own-epoch",
        "a voter change is accepted before a record of the leader's epoch is committed (Ongaro)",
        "raft.moves",
        "        volatile_voters=volatile,\n",
        "        volatile_voters=volatile,\n        high_watermark=s.high_watermark,\n",
    ),
    Mutant(
        "removed-voter-runs",
        "a replica whose removal is committed runs for leader",
        "raft.state",
        "return offset >= self.high_watermark and replaced.is_voter(self.me)",
        "return replaced.is_voter(self.me)",
    ),
    Mutant(
        "commits-an-older-epoch",
        "records of an older epoch are committed by counting replicas (Raft, figure 8)",
        "raft.leading",
        "if offset <= role.epoch_start or offset <= role.high_watermark:",
        "if offset <= role.high_watermark:",
    ),
    Mutant(
        "fetch-before-sync",
        "a follower acknowledges what is not durable",
        "raft.following",
        "return s.durable.election and s.durable.log and s.installing is None",
        "return s.durable.election and s.installing is None",
    ),
    Mutant(
        "half-is-a-majority",
        "the high watermark needs one voter too few",
        "raft.progress",
        "return ends[len(ends) // 2]",
        "return ends[max(len(ends) // 2 - 1, 0)]",
    ),
    Mutant(
        "high-watermark-over-the-old-set",
        "a new voter set does not count before it is committed",
        "raft.moves",
        "    role.progress.set_voters(s.voters)\n    role.recount = True\n",
        "    role.recount = True\n",
    ),
    Mutant(
        "observers-count",
        "an observer's Fetch moves the high watermark as a voter's does",
        "raft.progress",
        "ends = sorted([row.end_offset for row in self.voters.values()], reverse=True)",
        """rows = {row.key: row for row in (*self.voters.values(), *self.observers.values())}
        ends = sorted([row.end_offset for row in rows.values()], reverse=True)""",
    ),
    Mutant(
        "leader-counts-itself-always",
        "a leader that is no voter any more counts itself for the majority (KAFKA-16530)",
        "raft.progress",
        "ends = sorted([row.end_offset for row in self.voters.values()], reverse=True)",
        """rows = {row.key: row for row in (*self.voters.values(), self.own)}
        ends = sorted([row.end_offset for row in rows.values()], reverse=True)""",
    ),
    Mutant(
        "other-directory-counts",
        "a replaced disk is counted as the voter that it was",
        "raft.voters",
        "return entry.id == key.id and entry.directory_id in (ZERO_UUID, key.directory_id)",
        "return entry.id == key.id",
    ),
    Mutant(
        "diverging-log-kept",
        "a leader takes any offset for a place in its log, whatever epoch is before it",
        "raft.log_index",
        """        if end.epoch != epoch or end.offset < offset:
            return Diverging(end)
        return None
""",
        "        return None\n",
    ),
    Mutant(
        "truncates-too-little",
        "a follower keeps the last batch of what it should cut",
        "raft.log_index",
        "            cut = min(local.offset, diverging.offset) if same else local.offset",
        "            cut = local.offset",
    ),
    Mutant(
        "voters-kept-on-truncation",
        "a voter set that was truncated rules on",
        "raft.following",
        "    if s.controls.truncate(cut):\n",
        "    if False:\n",
    ),
    Mutant(
        "voters-rule-when-committed",
        "a follower takes a voter set into force only some time later: never",
        "raft.moves",
        "        if not s.controls.apply(offset, record) or not isinstance(record, VotersRecord):",
        """        if isinstance(record, VotersRecord) and not isinstance(s.role, Leader):
            continue
        if not s.controls.apply(offset, record) or not isinstance(record, VotersRecord):""",
    ),
    Mutant(
        "durable-end-kept-on-truncation",
        "what was cut still counts as durable",
        "raft.durable",
        "        self.end_offset = min(self.end_offset, end_offset)\n        self._ends",
        "        self._ends",
    ),
    Mutant(
        "high-watermark-of-the-leader-taken",
        "a follower takes the leader's high watermark beyond its own log",
        "raft.following",
        "offset = min(s.log.end_offset, leaders)",
        "offset = leaders",
    ),
    Mutant(
        "two-changes-at-once",
        "a voter change is accepted while the one before is not committed",
        "raft.reconfig",
        "    if offset is None or offset >= role.high_watermark:",
        "    if offset is None:",
    ),
    Mutant(
        "voter-not-caught-up",
        "a voter that never fetched may be added",
        "raft.reconfig",
        "    if not role.progress.is_caught_up(change.voter, s.now):",
        "    if False:",
    ),
    Mutant(
        "change-answered-at-append",
        "a voter change is answered before it is committed",
        "raft.reconfig",
        "if isinstance(change, AwaitingCommit) and role.high_watermark >= change.end_offset:",
        "if isinstance(change, AwaitingCommit):",
    ),
    Mutant(
        "removed-leader-stays",
        "a leader that has removed itself leads on",
        "raft.reconfig",
        '        role.resign = "removed from the voter set"\n',
        "        pass\n",
    ),
    Mutant(
        "parked-fetches-forgotten",
        "fetches that wait at the leader are not answered when records come, nor when time is up",
        "raft.leading",
        "    due = [fetch for fetch in role.parked if fetch.deadline <= now]",
        "    due = [fetch for fetch in role.parked if fetch.deadline < 0]",
    ),
    Mutant(
        "change-at-the-high-watermark",
        "a voter change is taken while the one before is the very next record to commit",
        "raft.reconfig",
        "if offset is None or offset >= role.high_watermark:",
        "if offset is None or offset > role.high_watermark:",
    ),
    Mutant(
        "update-beside-a-change",
        "a voter's update is taken while a voter set is not committed",
        "raft.reconfig",
        "    if s.controls.version > 0 and _uncommitted(s, role) is not None:\n"
        "        return ErrorCode.REQUEST_TIMED_OUT\n",
        "",
    ),
    Mutant(
        "any-fetch-has-caught-up",
        "an observer that is behind counts as caught up",
        "raft.progress",
        "        if offset >= leader_end:\n            self.last_caught_up_ms",
        "        if offset >= 0:\n            self.last_caught_up_ms",
    ),
    Mutant(
        "older-snapshot-begins-the-log",
        "a snapshot that is older than the log's start is taken for what the log goes on from",
        "raft.log_index",
        "            if snapshot_id.offset >= self.start_offset:\n",
        "            if True:\n",
    ),
)
