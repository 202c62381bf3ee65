"""Bugs at the margins: off by one, an epoch too many, an answer too old, a timer not set anew."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

MARGINS = (
    Mutant(
        "check-quorum-needs-one-more",
        "a leader does not count itself in check quorum, and resigns while a minority is down",
        "raft.progress",
        "            needed -= 1\n",
        "            needed -= len(self.voters) <= 2\n",
    ),
    Mutant(
        "begin-does-not-teach",
        "BeginQuorumEpoch is answered and not learned from",
        "raft.epochs",
        "    if not learn(s, request.leader, request.leader_endpoints):\n"
        "        refuse(s, reply_to, request, ErrorCode.UNKNOWN_SERVER_ERROR)\n    elif",
        "    if False:\n        pass\n    elif",
    ),
    Mutant(
        "clean-keeps-old-snapshots",
        "snapshots that are to be dropped stay, and are looked at again without a pause",
        "storage.disk_storage",
        "            self._log.clean(snapshot_id.offset)\n"
        "            self._snapshots.drop_before(snapshot_id)",
        "            self._log.clean(snapshot_id.offset)",
    ),
    Mutant(
        "install-keeps-old-snapshots",
        "snapshots before the one that is installed stay on the disk",
        "storage.disk_storage",
        "            self._log.reset(snapshot_id.offset)\n"
        "            self._snapshots.drop_before(snapshot_id)",
        "            self._log.reset(snapshot_id.offset)",
    ),
    Mutant(
        "looks-again-at-once",
        "a disk on which nothing could be dropped is looked at again without a pause",
        "node.replica",
        "            events.append(inputs.CleanTo(snapshot_id))\n",
        "            events.append(inputs.CleanTo(snapshot_id))\n            self._clean_at = 0\n",
    ),
    Mutant(
        "vote-by-epoch-alone",
        "a shorter log of the same epoch counts as up to date",
        "raft.election",
        "up_to_date = (request.last_epoch, request.last_offset) >= (mine.epoch, mine.offset)",
        "up_to_date = request.last_epoch >= mine.epoch",
    ),
    Mutant(
        "timer-runs-on-after-a-vote",
        "who grants its vote runs itself as soon as if it had not",
        "raft.election",
        "        role.election_deadline = s.election_timeout() if s.electable else NEVER\n",
        "        pass\n",
    ),
    Mutant(
        "goodbye-ignored",
        "a follower that is told EndQuorumEpoch still vouches for the leader",
        "raft.epochs",
        "    if isinstance(role, Follower) and s.leader_id == request.leader.leader_id:\n",
        "    if isinstance(role, Follower) and s.leader_id < 0:\n",
    ),
    Mutant(
        "divergence-off-by-one",
        "a follower with one record too many of an older epoch is not told",
        "raft.log_index",
        "        if end.epoch != epoch or end.offset < offset:\n",
        "        if end.epoch != epoch or end.offset < offset - 1:\n",
    ),
    Mutant(
        "epoch-kept-on-truncation",
        "an epoch of which all records were truncated is still the log's last",
        "raft.log_index",
        "        keep = bisect_left(self._starts, end_offset)\n",
        "        keep = bisect_right(self._starts, end_offset)\n",
    ),
    Mutant(
        "voters-forgotten-with-the-log",
        "a snapshot makes forget the voter set that rules there, not only those before it",
        "raft.history",
        "        index = bisect_right(self._offsets, start_offset) - 1\n        if index > 0:",
        "        index = bisect_right(self._offsets, start_offset)\n"
        "        if 0 < index < len(self._offsets):",
    ),
    Mutant(
        "waiting-fetch-tells-an-old-high-watermark",
        "the answer to a Fetch that waited has the high watermark that the asker knew already",
        "raft.leading",
        "        LeaderAndEpoch(s.me.id, s.election.epoch),\n        role.high_watermark,",
        "        LeaderAndEpoch(s.me.id, s.election.epoch),\n"
        "        role.high_watermark if first else request.high_watermark,",
    ),
    Mutant(
        "checkpoint-epoch-kept",
        "leader-epoch-checkpoint keeps an epoch of which all records were truncated",
        "storage.log",
        "[entry for entry in self._epochs if entry[1] < self.end_offset]",
        "[entry for entry in self._epochs if entry[1] <= self.end_offset]",
    ),
    Mutant(
        "snapshot-of-the-newest-epoch",
        "a snapshot is named after the present epoch, not after that of its last record",
        "node.replica",
        "                applier.applied, applier.timestamp_ms, self.applied_control,",
        "                OffsetAndEpoch(applier.applied.offset, self.core.epoch),\n"
        "                applier.timestamp_ms, self.applied_control,",
    ),
    Mutant(
        "truncation-forgets-its-border",
        "a second truncation to the same place cuts one batch more",
        "raft.log_index",
        "        del self._borders[bisect_right(self._borders, end_offset) :]\n",
        "        del self._borders[bisect_left(self._borders, end_offset) :]\n",
    ),
    Mutant(
        "borders-known-too-late",
        "behind a truncation in the part of the log that was recovered every offset is a border",
        "raft.log_index",
        "        self._known_from = min(self._known_from, end_offset)\n",
        "",
    ),
)
