"""Voter sets: each differs from the one before by one voter at most, so majorities overlap."""

from __future__ import annotations

from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.spark.audit.committed import ReplicaLog, Voters
from quorate.spark.audit.model import VIOLATION, ControlRecord, Finding

_ADVICE = (
    "Two majorities may not overlap: compare by hand what was committed before and after, before any "
    "of these nodes is started"
)


def check_voter_sets(log: ReplicaLog) -> list[Finding]:
    """Findings for illegal voter sets and elections in one log."""
    findings = []
    for control in log.controls:
        if control.offset >= log.end or control.newer:
            continue
        before = _known_before(control, log)
        if control.leader is not None:
            wrong = _election(control, log)
        else:
            wrong = _change(before, control.voters or ())
        if wrong:
            findings.append(Finding("voters", VIOLATION, wrong, _ADVICE, control.spot))
    return findings


def _known_before(control: ControlRecord, log: ReplicaLog) -> Voters | None:
    """The voters in force before this record.

    None where they are unknown. Behind a voter set that cannot be read, a LeaderChange names ids alone.
    """
    if control.offset <= log.start or log.hides_voters_at(control.offset):
        return None
    return log.voters_at(control.offset)


def _change(before: Voters | None, after: Voters) -> str | None:
    """What is wrong with a change of the voter set; None: nothing."""
    if not after:
        return "the voter set is empty"
    ids = [voter.id for voter in after]
    if len(set(ids)) != len(ids):
        return f"a voter is listed twice in {_text(after)}"
    if before is None:
        return None
    # a static quorum has no directory ids: its upgrade adds them without changing the voters
    if any(voter.directory_id == ZERO_UUID for voter in before):
        gone = {voter.id for voter in before} - set(ids)
        new = set(ids) - {voter.id for voter in before}
        steps = len(gone) + len(new)
    else:
        steps = len(set(before) ^ set(after))
    if steps > 1:
        return (
            f"the voter set changes from {_text(before)} to {_text(after)}: {steps} changes at once, "
            "where only one is safe"
        )
    return None


def _election(control: ControlRecord, log: ReplicaLog) -> str | None:
    """What is wrong with an election; None: nothing."""
    voters, granting = set(control.voter_ids), set(control.granting)
    if control.leader not in granting or not granting <= voters:
        return (
            f"leader {control.leader} was elected by {sorted(granting)}, who are not all "
            f"voters ({sorted(voters)}), or do not include the leader"
        )
    if 2 * len(granting) <= len(voters):
        return (
            f"leader {control.leader} was elected by {sorted(granting)}, which is no majority of "
            f"{sorted(voters)}"
        )
    known = log.voters_written(control.offset)
    if known is not None and {voter.id for voter in known} != voters:
        return (
            f"leader {control.leader} was elected by the voters {sorted(voters)}, but "
            f"{_text(known)} were in force"
        )
    return None


def _text(voters: tuple[ReplicaKey, ...]) -> str:
    return "{" + ", ".join(str(voter) for voter in voters) + "}"
