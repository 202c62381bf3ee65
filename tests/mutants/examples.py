"""Mutants that unit tests find, too.

Tests of the simulator, of the trace check with TLC and of the nemesis need bugs that are found soon
or in one known world.
"""

from __future__ import annotations

from mutants.edit import drop, insert_before, replace
from mutants.mutant import Mutant
from quorate.raft import (
    durable,
    election,
    following,
    history,
    leading,
    outbox,
    progress,
    transitions,
    voters,
)
from quorate.replica import applier, disk_worker
from quorate.storage import disk, log, recovery

EXAMPLES = (
    # -- elections ---------------------------------------------------------------------------
    Mutant(
        "vote-for-a-shorter-log",
        "a vote is granted whatever log the candidate has",
        election.on_vote,
        replace("(request.last_epoch, request.last_offset) >= _", "True"),
    ),
    Mutant(
        "vote-twice",
        "a voter that has voted in this epoch votes again",
        election.grants,
        replace("voted.id == key.id and _", "up_to_date"),
    ),
    Mutant(
        "vote-not-stored",
        "a vote is granted and not written to quorum-state",
        election._vote,
        drop("s.vote_for(_)"),
    ),
    Mutant(
        "answer-before-durable",
        "a granted vote is sent before quorum-state is synced",
        outbox.Outbox.reply,
        replace("durable.election_seq > durable.seq", "False"),
    ),
    Mutant(
        "leads-again-after-restart",
        "a leader that restarts goes on to lead its epoch (KAFKA-10527)",
        transitions.start,
        replace(
            "Resigned(s.election_timeout(), others)",
            "Leader(s.log.end_offset, ProgressTracker(s.me, s.voters), "
            "s.now + s.config.fetch_timeout_ms, s.now)",
        ),
    ),
    Mutant(
        "no-pre-vote",
        "an election timeout starts a new epoch without a pre-vote",
        election.poll_prospective,
        replace("role.ballot.won", "True"),
    ),
    Mutant(
        "minority-elects",
        "half of the voters elect a leader",
        voters.VoterSet.majority,
        replace("len(self.voters) // 2 + 1", "max(len(self.voters) // 2, 1)"),
    ),
    # -- replication -------------------------------------------------------------------------
    Mutant(
        "commits-an-older-epoch",
        "records of an older epoch are committed by counting replicas (Raft, figure 8)",
        leading.maybe_update_high_watermark,
        replace("offset <= role.epoch_start or _1", "_1"),
    ),
    Mutant(
        "half-is-a-majority",
        "the high watermark needs one voter less than a majority",
        progress.ProgressTracker.majority_end,
        replace("len(ends) // 2", "max(len(ends) // 2 - 1, 0)"),
    ),
    Mutant(
        "fetch-before-sync",
        "a follower acknowledges records that are not durable",
        following._may_fetch,
        replace(
            "s.durable.election_is_durable and s.durable.log_is_durable and _1",
            "s.durable.election_is_durable and _1",
        ),
    ),
    Mutant(
        "voter-set-not-in-force-on-append",
        "a follower never takes an appended voter set into force",
        transitions._apply_control_records,
        insert_before(
            "if not s.controls.apply(offset, record) or _: ...",
            """
            if isinstance(record, VotersRecord) and not isinstance(s.role, Leader):
                continue
            """,
        ),
    ),
    Mutant(
        "busy-disk-counts-as-hanging",
        "a record that waits for a busy disk counts as one that has waited since the last sync",
        durable.DurabilityTracker.log_stalled_since_ms,
        replace("max(_, self._last_persisted_ms)", "self._last_persisted_ms"),
    ),
    Mutant(
        "snapshot-of-a-later-kraft-version",
        "a snapshot that ends before an upgrade has the new kraft.version",
        history.ControlHistory.at,
        replace("self._versions.at(end_offset - 1)", "self._versions.at(end_offset)"),
    ),
    # -- disks -------------------------------------------------------------------------------
    Mutant(
        "log-not-synced",
        "a sync of the log does nothing",
        log.SegmentedLog.sync,
        drop("self._segments[-1].file.sync()"),
    ),
    Mutant(
        "written-before-sync",
        "the disk worker reports a write as durable before it is synced",
        disk_worker.DiskWriter._sync,
        drop("self._sync_storage()"),
    ),
    Mutant(
        "quorum-state-not-synced",
        "a replaced file is renamed before its bytes are synced",
        disk.replace_file,
        drop("file.sync()"),
    ),
    Mutant(
        "rename-not-synced",
        "the new name of a replaced file is not made durable",
        disk.replace_file,
        drop("disk.sync()"),
    ),
    Mutant(
        "disk-failure-ignored",
        "a failed write or sync is reported as done",
        disk_worker.DiskWriter.perform,
        replace(
            "results.append(DiskFailed(_))",
            "results.extend([] if self._unsynced is None else [Written(self._unsynced)])",
        ),
    ),
    Mutant(
        "recovered-log-not-synced",
        "recovery counts the log in the page cache as durable without a sync",
        recovery.repair,
        drop("segment.file.sync()"),
    ),
    Mutant(
        "base-offset-unchecked-on-read",
        "a read does not check the base offset of a batch again",
        log._check_place,
        replace("view.base_offset != _", "False"),
    ),
    Mutant(
        "snapshot-unverified-on-load",
        "a load does not verify the checksums of a snapshot again",
        applier.Applier._take_snapshot,
        replace("iter_batches(_1, _2)", "iter_batches(_1, _2, verify=False)"),
    ),
)
