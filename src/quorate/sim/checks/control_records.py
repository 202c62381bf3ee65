"""The control records of a replica: appended by a leader, in force, and in snapshots (KIP-853)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorate.replica.disk_jobs import WriteSnapshot
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.messages import control_words, voter_changes
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voters import keys, names
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.raft.values import Voter


def check_new_voter_changes(model: ReplicaModel, now_ms: int, lately_ms: int) -> None:
    """Check the voter changes of this step.

    1. The previous voter set is committed (KIP-853: one uncommitted change at a time).
    2. A record of the leader's epoch is committed (Ongaro's correction of 2015 to single-server
       changes).
    3. An added voter has caught up and has fetched within the last `lately_ms`
       (`LeaderState.isReplicaCaughtUp`).

    The check runs at the end of a step, because one step may first commit and then append the
    change.
    """
    changes, model.new_voter_changes = model.new_voter_changes, []
    high = model.committed_tip
    for entry in changes:
        assert entry.parent is not None
        before = entry.parent.voters_entry
        what = f"{model}: {entry} changes the voters to {names(entry.voters or ())}"
        if before is not None and before.end > high.end:
            raise ViolationError(
                "single voter change",
                f"{what}, the change at {before} is not known to be committed (high watermark "
                f"{high.end})",
            )
        if high.epoch != entry.epoch:
            raise ViolationError(
                "single voter change", f"{what} before anything of its epoch is committed"
            )
        old = model.initial_voters if entry.parent.voters is None else entry.parent.voters
        for key in keys(entry.voters or ()) - keys(old):
            if key not in model.received.caught_up or model.received.epoch != entry.epoch:
                verb = "caught up" if key in model.received.last_request_ms else "fetched"
                raise ViolationError(
                    "a new voter has caught up",
                    f"{what} and adds {key}, which has not {verb} in epoch {entry.epoch}",
                )
            silent_ms = now_ms - model.received.fetched_at[key]
            if silent_ms >= lately_ms:
                raise ViolationError(
                    "a new voter has caught up",
                    f"{what} and adds {key}, which has not fetched since {silent_ms} ms; a new "
                    f"voter has within {lately_ms} ms",
                )


def check_control_in_force(model: ReplicaModel, state: RaftState) -> None:
    """The newest records of the log are in force, also uncommitted ones (KIP-853), and no record
    that was truncated."""
    control = state.controls.state
    wanted = model.voters
    version = model.kraft_version
    if tuple(control.voters or ()) != wanted or control.kraft_version != version:
        raise ViolationError(
            "voter set",
            f"{model}: its log up to {model.tip} has kraft.version {version} and the voters "
            f"{names(wanted)}; in force are {control_words(control)}"
            f"{_difference(wanted, control.voters)}",
        )


def check_snapshot_control(model: ReplicaModel, entry: LoggedBatch, job: WriteSnapshot) -> None:
    """A snapshot has the control state at its end; `entry` is the last batch in it (KIP-630)."""
    version, voters = job.control.kraft_version, job.control.voters
    expected = entry.voters
    if tuple(voters or ()) != tuple(expected or ()) or version != entry.kraft_version:
        raise ViolationError(
            "snapshot of what is committed",
            f"{model}: snapshot {tuple(job.snapshot_id)} has {control_words(job.control)}; the "
            f"log has kraft.version {entry.kraft_version} and the voters "
            f"{names(expected or ())}{_difference(expected, voters)}",
        )


def _difference(expected: Sequence[Voter] | None, found: Sequence[Voter] | None) -> str:
    changes = voter_changes(expected, found)
    return f": {changes}" if changes else ""
