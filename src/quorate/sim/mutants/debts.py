"""Bugs in what is owed some day, and in what there may be at most: nothing breaks at once."""

from __future__ import annotations

from quorate.sim.mutants.mutant import Mutant

DEBTS = (
    Mutant(
        "parked-expiry",
        "a Fetch that waits for records is not answered when its time is up",
        "raft.leading",
        "    expire_change(s, role)\n    _expire_parked(s, role)\n",
        "    expire_change(s, role)\n",
    ),
    Mutant(
        "parked-fetch-wakes-nobody",
        "a Fetch that waits for records is answered whenever the leader next has something to do",
        "raft.leading",
        "    for fetch in role.parked:\n        wake = min(wake, fetch.deadline)\n    return wake",
        "    return wake",
    ),
    Mutant(
        "newer-fetch-drops-the-parked",
        "a replica's next Fetch takes the place of the one that waits, which is never answered",
        "raft.leading",
        "    role.parked.append(Parked(reply_to, request, s.now + wait))",
        "    role.parked = [p for p in role.parked if p.request.replica != request.replica]\n"
        "    role.parked.append(Parked(reply_to, request, s.now + wait))",
    ),
    Mutant(
        "spoken-for-drops-parked",
        "fetches that came before the leader's election was durable are forgotten then",
        "raft.leading",
        "        on_fetch(s, fetch.reply_to, fetch.request)",
        "        pass",
    ),
    Mutant(
        "max-bytes-ignored",
        "a Fetch is answered with as much as the leader would send, not as was asked for",
        "raft.leading",
        "min(request.max_bytes, s.config.answer_max_bytes)",
        "s.config.answer_max_bytes",
    ),
    Mutant(
        "a-batch-too-much",
        "what is answered to a Fetch ends with the batch that does not fit any more",
        "node.tail",
        "(parts and size + len(batch.data) > max_bytes)",
        "size >= max_bytes",
    ),
    Mutant(
        "caught-up-long-ago",
        "an observer that fetches no more becomes a voter",
        "raft.progress",
        "            and row.last_fetch_ms > now_ms - self._limits.caught_up_within_ms\n",
        "",
    ),
    Mutant(
        "never-joins",
        "a node with auto join asks never",
        "raft.reconfig",
        "    return AddVoterRequest(config.cluster_id, s.me, config.listeners, timeout, False)",
        "    return None if timeout else None",
    ),
    Mutant(
        "joins-once-or-never",
        "a node whose request to join was not granted asks no more",
        "raft.reconfig",
        "        s.role.update_deadline = s.now + s.config.fetch_timeout_ms\n"
        "    return response.error in fine",
        "        s.role.update_deadline = 1 << 62\n    return response.error in fine",
    ),
    Mutant(
        "old-directory-stays",
        "a node with a new disk leaves its old self among the voters, and so never joins",
        "raft.reconfig",
        "        return RemoveVoterRequest(config.cluster_id, old.key)",
        "        return None",
    ),
    Mutant(
        "nobody-has-caught-up",
        "whoever is to be added is told for ever that it lags behind",
        "raft.progress",
        "            and row.last_caught_up_ms >= 0\n",
        "            and row.last_caught_up_ms < 0\n",
    ),
    Mutant(
        "abandoned-download-stays",
        "the file of a download that was given up stays on the disk",
        "storage.snapshots",
        "            self._disk.remove(download.part)",
        "            pass",
    ),
    Mutant(
        "download-never-abandoned",
        "who follows no more keeps what it had of a snapshot",
        "raft.moves",
        "        s.out.write(AbandonSnapshot(old.download.snapshot_id))",
        "        pass",
    ),
    Mutant(
        "failed-snapshot-stays",
        "the file of an own snapshot that could not be written stays on the disk",
        "storage.snapshots",
        "        if not self._published:\n            self._disk.remove(self._part)",
        "        pass",
    ),
    Mutant(
        "parts-stay-at-recovery",
        "what a crash left of a snapshot in the making stays on the disk",
        "storage.recovery",
        '(PART_SUFFIX, DELETED_SUFFIX, ".tmp")',
        '(DELETED_SUFFIX, ".tmp")',
    ),
    Mutant(
        "submit-answered-twice",
        "what has committed is told twice",
        "node.proposals",
        "                outcomes.append(committed)\n",
        "                outcomes += (committed, committed)\n",
    ),
    Mutant(
        "oversized-submit-dropped",
        "a submission that fits no batch is neither appended nor refused",
        "node.proposals",
        "outcomes.append(Refused(item.token, ErrorCode.RECORD_LIST_TOO_LARGE, text))",
        "str(text)",
    ),
    Mutant(
        "oversized-proposal-accepted",
        "a leader appends a batch of any size",
        "raft.leading",
        "    if event.count < 1 or event.size > most:",
        "    if event.count < 1:",
    ),
    Mutant(
        "batches-grow-too-large",
        "submissions that do not fit one batch together are put into one, and refused",
        "node.proposals",
        "            room -= size\n",
        "",
    ),
    Mutant(
        "no-long-poll",
        "a Fetch to which there is nothing to say is answered at once",
        "raft.leading",
        "    wait = request.max_wait_ms\n",
        "    wait = 0\n",
    ),
    Mutant(
        "append-wakes-nobody",
        "who waits for records hears of them when its time is up",
        "raft.leading",
        "        count(s, role)\n    complete_parked(s, role)\n",
        "        count(s, role)\n",
    ),
    Mutant(
        "high-watermark-wakes-nobody",
        "who waits hears of a new high watermark when its time is up, or with the next records",
        "raft.leading",
        "    if moved and role.progress.is_voter(row) and count(s, role):\n"
        "        complete_parked(s, role)\n",
        "    if moved and role.progress.is_voter(row):\n        count(s, role)\n",
    ),
    Mutant(
        "log-starts-at-zero",
        "the answer to a Fetch says that the log starts at 0",
        "raft.leading",
        "        s.log.start_offset,\n        place.end",
        "        0,\n        place.end",
    ),
    Mutant(
        "endpoints-not-told",
        "the answer to a Fetch does not say where the leader listens",
        "raft.leading",
        "        (),\n        s.config.listeners,\n",
        "        (),\n        (),\n",
    ),
)
