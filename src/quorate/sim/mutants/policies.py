"""Bugs of what a reviewer found to be owed by no check (2026-11-25): old copies of disks, snapshots
and what of them is kept, and machines that are not told."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

POLICIES = (
    Mutant(
        "resigns-for-nothing",
        "a leader takes every fourth second of its time for the end of its process, and resigns",
        "raft.leading",
        """    if s.shutdown_deadline is not None:
        role.resign = "shutdown"
""",
        """    if s.shutdown_deadline is not None or s.now // 1000 % 4 == 3:
        role.resign = "shutdown"
""",
    ),
    Mutant(
        "falls-are-not-told",
        "a voter that fetches below what it acknowledged is told to nobody",
        "raft.leading",
        "        _fell(s, role, row, offset)\n",
        "        pass\n",
    ),
    Mutant(
        "falls-are-told-of-observers-alone",
        "that a voter has forgotten what it acknowledged is told only when it is seen often",
        "raft.leading",
        '        s.warn_sparingly(f"fell {row.key}", f"{text}: {FORGOT}")\n',
        "        pass\n",
    ),
    Mutant(
        "begin-for-another-disk",
        "who is told of a leader in the name of another directory says yes",
        "raft.epochs",
        "    elif not is_my_key(s, request.voter):\n",
        "    elif False:\n",
    ),
    Mutant(
        "machine-leads-on",
        "the state machine of a leader that is none any more is not told so",
        "node.replica",
        "            self.machine.follow(leader_id, epoch)\n",
        "            pass\n",
    ),
    Mutant(
        "snapshots-after-twice-the-interval",
        "a snapshot is written when the last one is twice as old as it may be",
        "node.snapshots",
        "0 < self.max_interval_ms <= age_ms",
        "0 < 2 * self.max_interval_ms <= age_ms",
    ),
    Mutant(
        "keeps-too-much",
        "snapshots are dropped when they are twice as much as is to be kept",
        "node.snapshots",
        "log_size + sum(snapshot.size for snapshot in snapshots)",
        "(log_size + sum(snapshot.size for snapshot in snapshots)) // 2",
    ),
    Mutant(
        "drops-too-much",
        "where there is too much, all snapshots but the newest are dropped at once",
        "node.snapshots",
        "            keep = 1\n",
        "            keep = len(snapshots) - 1\n",
    ),
    Mutant(
        "drops-too-soon",
        "snapshots are dropped at half the age to which they are to be kept",
        "node.snapshots",
        "last_contained_log_timestamp > self.retention_ms\n",
        "last_contained_log_timestamp > self.retention_ms // 2\n",
    ),
    Mutant(
        "batch-time-zero",
        "a leader's batches bear no time: snapshots and segments are of 1970",
        "node.proposals",
        "        data = encode_batch(0, epoch, wall_ms, values)\n",
        "        data = encode_batch(0, epoch, 0, values)\n",
    ),
    Mutant(
        "control-time-zero",
        "the same of the batches that the core itself writes",
        "node.replica",
        "                batch.base_offset, batch.epoch, self._wall_ms, batch.control\n",
        "                batch.base_offset, batch.epoch, 0, batch.control\n",
    ),
    Mutant(
        "entry-time-zero",
        "a machine is not told of when a batch is",
        "node.applier",
        "view.epoch, view.max_timestamp, found)",
        "view.epoch, 0, found)",
    ),
)
