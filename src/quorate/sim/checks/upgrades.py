"""What is said to an upgrade of kraft.version: done where the log has it, refused for a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID
from quorate.node.replica import Committed
from quorate.raft.inputs import UpgradeKRaftVersion
from quorate.raft.roles import Leader
from quorate.raft.values import KRaftVersion
from quorate.sim.checks.changes import Changes
from quorate.sim.checks.history import Entry
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.voters import matches
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.proposals import Outcome
    from quorate.node.replica import Effects
    from quorate.raft.state import State

CHECK = "an upgrade is answered as it deserves"
_LONG_MS = 2000


@dataclass(slots=True)
class _Asked:
    """An upgrade, and what the replica was when it came."""

    version: int
    leads: bool
    epoch: int
    tip: Entry
    at_ms: int
    is_possible: bool
    """Had every voter said that it can run this, and where its disk is?"""


class Upgrades:
    """Of each replica, in this life: upgrades that it was asked for and has not answered."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._asked: dict[int, dict[int, _Asked]] = {}
        """By node and token."""

    def began(self, twin: Twin) -> None:
        self._asked[twin.id] = {}

    def asked(self, twin: Twin, event: UpgradeKRaftVersion, state: State) -> None:
        self._asked[twin.id][event.token] = _Asked(
            event.version,
            twin.led,
            twin.election.epoch,
            twin.tip,
            state.now,
            self._is_possible(twin, event.version, state),
        )

    def _is_possible(self, twin: Twin, version: int, state: State) -> bool:
        if twin.tip.kraft_version > version or version > state.config.max_kraft_version:
            return False
        reports = self._changes.reports(twin, twin.election.epoch)
        for voter in twin.voters:
            if matches(voter.key, twin.key):
                continue
            report = reports.get(voter.key.id)
            if report is None or report.voter.directory_id == ZERO_UUID:
                return False
            if not report.min_kraft_version <= version <= report.max_kraft_version:
                return False
        return True

    def told(self, twin: Twin, effects: Effects, applied: int, state: State) -> list[Outcome]:
        """The outcomes that are no answers to upgrades."""
        waiting, others = self._asked[twin.id], []
        is_alone = len(waiting) == 1
        for outcome in effects.outcomes:
            asked = waiting.pop(outcome.token, None)
            if asked is None:
                others.append(outcome)
                continue
            if isinstance(outcome, Committed):
                problem = _undone(twin, asked, outcome, applied)
            else:
                leads = isinstance(state.role, Leader) and not effects.stopped
                stays = asked.leads and leads and asked.epoch == state.election.epoch
                if outcome.in_doubt:
                    problem = "it leads on" if stays else None
                elif is_alone and asked.leads and _is_done(twin, asked):
                    problem = "it has written it"
                else:
                    problem = _needless(twin, asked, outcome.error, stays)
            if problem is not None:
                said = f"{twin} answers the upgrade to kraft.version {asked.version}"
                raise Violation(CHECK, f"{said} with {_words(outcome)}: {problem}")
        return others

    def finish(self, twin: Twin, now_ms: int) -> None:
        """Nothing is uncommitted any more: what has waited for long will wait for ever."""
        for token, asked in self._asked[twin.id].items():
            if now_ms - asked.at_ms > _LONG_MS:
                raise Violation(CHECK, f"{twin} never answers {token}, and has nothing left to do")


def _words(outcome: Outcome) -> str:
    if isinstance(outcome, Committed):
        return f"done at [{outcome.base_offset}, {outcome.end_offset})"
    return f"{outcome.error.name}{' in doubt' if outcome.in_doubt else ''}"


def _undone(twin: Twin, asked: _Asked, outcome: Committed, applied: int) -> str | None:
    """Why it is not done, though it is said to be."""
    base, end = outcome.base_offset, outcome.end_offset
    if end > applied:
        return f"it has applied {applied}"
    if twin.high.kraft_version < asked.version:
        return f"committed is kraft.version {twin.high.kraft_version}"
    if base == end:  # it was done before
        return None
    entry = twin.history.committed_at.get(end)
    made = entry is not None and entry.base == base and _raises(entry)
    return None if made else f"at [{base}, {end}) there is no upgrade"


def _is_done(twin: Twin, asked: _Asked) -> bool:
    """Has its log an upgrade that it had not when it was asked?"""
    at: Entry | None = twin.tip
    while at is not None and at.end > asked.tip.end:
        if at.epoch == asked.epoch and _raises(at):
            return True
        at = at.parent
    return False


def _raises(entry: Entry) -> bool:
    return any(isinstance(record, KRaftVersion) for record in entry.control)


def _needless(twin: Twin, asked: _Asked, error: ErrorCode, stays: bool) -> str | None:
    """Why there is no reason for this refusal."""
    if error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return "it leads" if stays else None
    if error is ErrorCode.INVALID_UPDATE_VERSION:
        return "every voter can run it, and has said so" if asked.is_possible and stays else None
    return "that is no reason"
