"""Mutants of the Raft core that no unit test finds; the random walk of tests/raft finds a few."""

from __future__ import annotations

from mutants.edit import drop, insert_before, replace
from mutants.mutant import Mutant
from quorate.formats import control
from quorate.raft import (
    durable,
    history,
    joining,
    leading,
    log_index,
    progress,
    reconfig,
    snapshots,
)

RAFT = (
    # -- the leader --------------------------------------------------------------------------
    Mutant(
        "own-log-counted-before-sync",
        "records appended during a sync count as durable when that sync ends",
        durable.DurabilityTracker.persisted,
        replace(
            "self.end_offset = _1.popleft()[1]",
            """
            self.end_offset = _1[-1][1]
            _1.popleft()
            """,
        ),
    ),
    Mutant(
        "removed-voter-counts-in-check-quorum",
        "a Fetch from before a voter's removal counts in check quorum",
        progress.ProgressTracker.set_voters,
        drop("self._check_quorum &= _"),
    ),
    Mutant(
        "check-quorum-without-timer",
        "a leader that no majority fetches from does not wake to resign",
        leading.poll_leader,
        drop("wake = min(wake, role.check_deadline)"),
    ),
    Mutant(
        "newer-fetch-replaces-the-parked",
        "a replica's next Fetch replaces its parked one, which is never answered",
        leading.on_fetch,
        insert_before(
            "role.parked.append(_)",
            "role.parked = [p for p in role.parked if p.request.replica != request.replica]",
        ),
    ),
    Mutant(
        "log-start-offset-zero",
        "a Fetch response has the log start offset 0",
        leading._answer,
        replace("s.log.start_offset", "0"),
    ),
    # -- the log -----------------------------------------------------------------------------
    Mutant(
        "epoch-kept-on-truncation",
        "an epoch whose records were all truncated stays the last one of the log",
        log_index.LogIndex.truncate,
        replace("bisect_left", "bisect_right"),
    ),
    Mutant(
        "batch-end-forgotten-on-truncation",
        "a second truncation to the same offset removes one batch more",
        log_index.LogIndex.truncate,
        replace(
            "del self._borders[bisect_right(self._borders, end_offset) :]",
            "del self._borders[bisect_left(self._borders, end_offset) :]",
        ),
    ),
    Mutant(
        "batch-ends-unknown-after-truncation",
        "after a truncation into the recovered log every new offset passes for a batch's end",
        log_index.LogIndex.truncate,
        drop("self.known_from = min(self.known_from, _)"),
    ),
    Mutant(
        "newest-batch-ends-forgotten",
        "the index forgets the ends of the newest batches instead of the oldest",
        log_index.LogIndex.append,
        replace("del self._borders[: self._window]", "del self._borders[self._window :]"),
    ),
    # -- voters and versions -----------------------------------------------------------------
    Mutant(
        "change-answered-at-append",
        "a voter change is answered before it is committed",
        reconfig.high_watermark_moved,
        replace(
            "isinstance(change, AwaitingCommit) and role.high_watermark >= change.end_offset",
            "isinstance(change, AwaitingCommit)",
        ),
    ),
    Mutant(
        "removed-leader-resigns-early",
        "a leader resigns before its own removal is committed",
        reconfig.high_watermark_moved,
        replace("offset < role.high_watermark", "offset <= role.high_watermark"),
    ),
    Mutant(
        "voters-with-one-listener",
        "a VotersRecord has the first listener of each voter only",
        control._voter_struct,
        replace("voter.listeners", "voter.listeners[:1]"),
    ),
    Mutant(
        "auto-join-with-one-listener",
        "an observer that joins by itself sends its first listener only",
        joining.voter_request,
        replace(
            "AddVoterRequest(_1, _2, config.listeners, ...)",
            "AddVoterRequest(_1, _2, config.listeners[:1], timeout, False)",
        ),
    ),
    Mutant(
        "voter-update-with-one-listener",
        "at kraft.version 0 a leader keeps the first listener of an updated voter only",
        reconfig.on_update_voter,
        replace(
            "_1.update_ignoring_directory(_2)",
            "_1.update_ignoring_directory(Voter(_2.key, _2.listeners[:1], low, high))",
        ),
    ),
    Mutant(
        "voter-set-compacted-too-far",
        "a snapshot removes the voter set that the next record replaced",
        snapshots.on_created,
        replace("event.snapshot_id.offset - 1", "event.snapshot_id.offset"),
    ),
    Mutant(
        "kraft-version-kept-on-truncation",
        "a truncated upgrade of kraft.version stays in force where its voter set is truncated too",
        history.ControlHistory.truncate,
        replace(
            "self._versions.truncate(end_offset)", "voters or self._versions.truncate(end_offset)"
        ),
    ),
)
