"""Bugs in how a leader comes and goes: whom it tells, what it names, and when."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

GOODBYES = (
    Mutant(
        "goodbye-names-nobody",
        "EndQuorumEpoch names no successors",
        "raft.moves",
        "    s.enter(Resigned(s.election_timeout(), others, successors), why)",
        "    s.enter(Resigned(s.election_timeout(), others, ()), why)",
    ),
    Mutant(
        "goodbye-to-one",
        "EndQuorumEpoch goes to the lowest voter id only",
        "raft.election",
        "        for voter_id in sorted(role.unacknowledged):",
        "        for voter_id in sorted(role.unacknowledged)[:1]:",
    ),
    Mutant(
        "failed-disk-says-no-goodbye",
        "a leader whose disk failed tells nobody",
        "raft.core",
        "            if tell and s.durable.election:\n",
        "            if False:\n",
    ),
    Mutant(
        "first-successor-waits",
        "who is named first in EndQuorumEpoch waits longest",
        "raft.epochs",
        "    if position == 0:\n        return 0\n",
        "    if position == 0:\n        return max_ms\n",
    ),
    Mutant(
        "begin-names-its-sender",
        "BeginQuorumEpoch has the leader's key where the receiver's belongs, and is refused",
        "raft.leading",
        "                s.config.cluster_id, key, s.leader_and_epoch,",
        "                s.config.cluster_id, s.me, s.leader_and_epoch,",
    ),
    Mutant(
        "begin-to-one",
        "of the voters that are silent only the first is told who leads",
        "raft.leading",
        "    for key in role.progress.silent(period, s.now):",
        "    for key in role.progress.silent(period, s.now)[:1]:",
    ),
    Mutant(
        "begin-once",
        "voters that stay silent are told once who leads",
        "raft.leading",
        "    role.begin_deadline = s.now + period",
        "    role.begin_deadline = 1 << 62",
    ),
    Mutant(
        "begin-seldom",
        "voters that are silent are told after two fetch timeouts, not after half of one",
        "raft.leading",
        "    period = s.config.fetch_timeout_ms // 2",
        "    period = s.config.fetch_timeout_ms * 2",
    ),
    Mutant(
        "change-answered-one-late",
        "a committed voter change is answered when something later is committed",
        "raft.reconfig",
        "role.high_watermark >= change.end_offset:",
        "role.high_watermark > change.end_offset:",
    ),
    Mutant(
        "removed-leader-goes-early",
        "a leader resigns when what is before its removal is committed",
        "raft.reconfig",
        "offset < role.high_watermark and not s.is_voter",
        "offset <= role.high_watermark and not s.is_voter",
    ),
    Mutant(
        "ended-leader-comes-back",
        "a Fetch that is answered late makes the leader that has ended its epoch one again",
        "raft.following",
        "    if role.ended:\n        return\n",
        "",
    ),
    Mutant(
        "hanging-disk-is-led-on",
        "a leader goes on beside a disk that hangs",
        "raft.leading",
        "    elif s.now >= _disk_deadline(s):\n        role.resign = DISK_HANGS\n",
        "",
    ),
    Mutant(
        "busy-disk-hangs",
        "a record that comes to a busy disk counts as one that has waited for it all the time",
        "raft.durable",
        "max(self._log_waits_ms, self._moved_ms)",
        "self._moved_ms",
    ),
    Mutant(
        "known-leader-is-not-followed",
        "who knows its leader, but not where that is, does not follow it when it is told",
        "raft.epochs",
        "    if usable and len(endpoints) > len(s.leader_endpoints):\n",
        "    if usable and s.leader_id < 0:\n",
    ),
    Mutant(
        "stops-at-once",
        "who is told to stop waits for no successor, and a leader says no goodbye",
        "raft.core",
        "            or not s.is_voter\n",
        "            or True\n",
    ),
    Mutant(
        "leader-stops-beside-the-gone",
        "a leader whose peers are gone stops without a word; they may come back",
        "raft.core",
        "            or (not isinstance(s.role, Leader) and _none_can_follow(s))\n",
        "            or _none_can_follow(s)\n",
    ),
)
