"""Voter sets: each differs from the one before by one voter, so that majorities overlap."""

from __future__ import annotations

from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.spark.audit.commit import Chain, Voters
from quorate.spark.audit.model import VIOLATION, Control, Finding

_STEPS = (
    "Two majorities may not overlap: compare what was committed before and after by hand before "
    "any of these nodes is started"
)


def judge_voters(chain: Chain) -> list[Finding]:
    """Illegal voter sets and elections in one log."""
    findings = []
    for control in chain.controls:
        if control.offset >= chain.end:
            continue
        before = chain.voters_at(control.offset) if control.offset > chain.start else None
        if control.leader is not None:
            wrong = _election(control, chain)
        else:
            wrong = _change(before, control.voters or ())
        if wrong:
            findings.append(Finding("voters", VIOLATION, wrong, _STEPS, control.spot))
    return findings


def _change(before: Voters | None, after: Voters) -> str | None:
    if not after:
        return "the voter set is empty"
    ids = [voter.id for voter in after]
    if len(set(ids)) != len(ids):
        return f"a voter stands twice in {_text(after)}"
    if before is None:
        return None
    if any(voter.directory_id == ZERO_UUID for voter in before):
        gone = {voter.id for voter in before} - set(ids)
        new = set(ids) - {voter.id for voter in before}
        steps = len(gone) + len(new)
    else:
        steps = len(set(before) ^ set(after))
    if steps > 1:
        return (
            f"the voter set goes from {_text(before)} to {_text(after)}: {steps} changes at once, "
            "where only one is safe"
        )
    return None


def _election(control: Control, chain: Chain) -> str | None:
    voters, granting = set(control.voter_ids), set(control.granting)
    if control.leader not in granting or not granting <= voters:
        return (
            f"leader {control.leader} was elected by {sorted(granting)}, of whom not all are "
            f"among the voters {sorted(voters)}, or who lack the leader itself"
        )
    if 2 * len(granting) <= len(voters):
        return (
            f"leader {control.leader} was elected by {sorted(granting)}: no majority of "
            f"{sorted(voters)}"
        )
    known = chain.voters_written(control.offset)
    if known is not None and {voter.id for voter in known} != voters:
        return (
            f"leader {control.leader} was elected by the voters {sorted(voters)}, but "
            f"{_text(known)} were in force"
        )
    return None


def _text(voters: tuple[ReplicaKey, ...]) -> str:
    return "{" + ", ".join(str(voter) for voter in voters) + "}"
