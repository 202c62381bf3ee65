"""Outcomes of a kraft.version upgrade (KIP-853): done where the log has it, refused with a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.raft.inputs import UpgradeKRaftVersion
from quorate.raft.roles import Leader
from quorate.raft.values import KRaftVersion
from quorate.replica.replica import Committed
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.checks.replica_model import ReplicaModel
from quorate.sim.checks.voter_changes import VoterChangeCheck
from quorate.sim.checks.voters import matches
from quorate.sim.world.observer import ViolationError

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.proposals import Outcome
    from quorate.replica.replica import Effects

CHECK = "kraft.version upgrade response"
_LONG_MS = 2000


@dataclass(slots=True)
class _PendingUpgrade:
    """An upgrade request, and the state of the replica when it arrived."""

    version: int
    leads: bool
    epoch: int
    tip: LoggedBatch
    at_ms: int
    is_possible: bool
    """Whether every voter had reported that it supports the version, and its directory id."""


class KRaftUpgradeCheck:
    """Checks each replica's upgrade requests that have no outcome yet."""

    def __init__(self, changes: VoterChangeCheck) -> None:
        self._changes = changes
        self._asked: dict[int, dict[int, _PendingUpgrade]] = {}
        """By node and token."""

    def process_started(self, model: ReplicaModel) -> None:
        self._asked[model.id] = {}

    def request_received(
        self, model: ReplicaModel, event: UpgradeKRaftVersion, state: RaftState
    ) -> None:
        self._asked[model.id][event.token] = _PendingUpgrade(
            event.version,
            model.was_leader,
            model.election.epoch,
            model.tip,
            state.now,
            self._is_possible(model, event.version, state),
        )

    def _is_possible(self, model: ReplicaModel, version: int, state: RaftState) -> bool:
        if model.tip.kraft_version > version or version > state.config.max_kraft_version:
            return False
        reports = self._changes.reports(model, model.election.epoch)
        for voter in model.voters:
            if matches(voter.key, model.key):
                continue
            report = reports.get(voter.key.id)
            if report is None or report.voter.directory_id == ZERO_UUID:
                return False
            if not report.min_kraft_version <= version <= report.max_kraft_version:
                return False
        return True

    def outcomes_reported(
        self, model: ReplicaModel, effects: Effects, applied: int, state: RaftState
    ) -> list[Outcome]:
        """Check the outcomes of upgrades; returns the outcomes of proposals."""
        waiting, others = self._asked[model.id], []
        is_alone = len(waiting) == 1
        for outcome in effects.outcomes:
            asked = waiting.pop(outcome.token, None)
            if asked is None:
                others.append(outcome)
                continue
            if isinstance(outcome, Committed):
                problem = _missing_upgrade(model, asked, outcome, applied)
            else:
                leads = isinstance(state.role, Leader) and not effects.stopped
                stays = asked.leads and leads and asked.epoch == state.election.epoch
                if outcome.in_doubt:
                    problem = "it still leads" if stays else None
                elif is_alone and asked.leads and _has_appended(model, asked):
                    problem = "it has appended it"
                else:
                    problem = _wrong_refusal(model, asked, outcome.error, stays)
            if problem is not None:
                said = f"{model} answers the upgrade to kraft.version {asked.version}"
                raise ViolationError(CHECK, f"{said} with {_outcome_text(outcome)}: {problem}")
        return others

    def finish(self, model: ReplicaModel, now_ms: int) -> None:
        """Everything is committed at the end of a run: an old request will never get an outcome."""
        for token, asked in self._asked[model.id].items():
            if now_ms - asked.at_ms > _LONG_MS:
                raise ViolationError(CHECK, f"{model} never answers {token}")


def _outcome_text(outcome: Outcome) -> str:
    if isinstance(outcome, Committed):
        return f"done at [{outcome.base_offset}, {outcome.end_offset})"
    return f"{outcome.error.name}{' in doubt' if outcome.in_doubt else ''}"


def _missing_upgrade(
    model: ReplicaModel, asked: _PendingUpgrade, outcome: Committed, applied: int
) -> str | None:
    """The reason why a committed upgrade is not in the log; None: it is."""
    base, end = outcome.base_offset, outcome.end_offset
    if end > applied:
        return f"it has applied {applied}"
    if model.committed_tip.kraft_version < asked.version:
        return f"committed is kraft.version {model.committed_tip.kraft_version}"
    if base == end:  # it was done before
        return None
    entry = model.history.committed_at.get(end)
    made = entry is not None and entry.base == base and _is_upgrade(entry)
    return None if made else f"at [{base}, {end}) there is no upgrade"


def _has_appended(model: ReplicaModel, asked: _PendingUpgrade) -> bool:
    """Whether its log has an upgrade that it lacked when the request arrived."""
    at: LoggedBatch | None = model.tip
    while at is not None and at.end > asked.tip.end:
        if at.epoch == asked.epoch and _is_upgrade(at):
            return True
        at = at.parent
    return False


def _is_upgrade(entry: LoggedBatch) -> bool:
    return any(isinstance(record, KRaftVersion) for record in entry.control)


def _wrong_refusal(
    model: ReplicaModel, asked: _PendingUpgrade, error: ErrorCode, stays: bool
) -> str | None:
    """The reason why a refusal is wrong; None: it is right."""
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return "it leads" if stays else None
    if error is ErrorCode.INVALID_UPDATE_VERSION:
        return (
            "every voter has reported that it supports the version"
            if asked.is_possible and stays
            else None
        )
    return "this error has no reason"
