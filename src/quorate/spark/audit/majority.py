"""Committed records that a majority of the voters has lost.

A snapshot holds committed records only, so that of any node proves them, also that of a broker.
Controllers that all come back from older disk images would form a quorum without those records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quorate.spark.audit.committed import (
    CommittedLog,
    ReplicaLog,
    Voters,
    agreed_end,
    is_voter,
    snapshot_end,
)
from quorate.spark.audit.model import WARNING, Finding, Spot

_DO_NOT_START: Final = (
    "Copy the directories of all voters again with the nodes stopped. If the finding remains, do not "
    "start these voters: a quorum of them would write other records at these offsets. Restore their "
    "logs as they were"
)


def check_majority(main: CommittedLog, logs: Sequence[ReplicaLog]) -> Mapping[str, Finding]:
    """Return, by path, findings for voters that lack what a snapshot proves, where no majority has it.

    logs: of all replicas, also of those without a segment. A voter that was not given is taken to
    hold everything.
    """
    proof = snapshot_end(main.main, logs)
    voters = main.main.voters_at(proof) if proof else None
    if not proof or not voters:
        return {}
    ends = {
        voter: {
            one.replica.path: _reach(main.main, one, proof)
            for one in logs
            if one.replica.complete and is_voter(one.replica, voter)
        }
        for voter in voters
    }
    having = tuple(voter for voter in voters if max(ends[voter].values(), default=0) >= proof)
    lacking = [voter for voter in voters if ends[voter] and voter not in having]
    if 2 * (len(voters) - len(lacking)) > len(voters):
        return {}
    witness = next(
        one.replica.path for one in logs if any(found.offset == proof for found in one.snapshots)
    )
    return {
        path: Finding(
            "majority",
            WARNING,
            _description(end, proof, witness, voters, having),
            _DO_NOT_START,
            Spot(offset=end),
        )
        for voter in lacking
        for path, end in ends[voter].items()
    }


def _description(end: int, proof: int, witness: str, voters: Voters, having: Voters) -> str:
    names, few = (", ".join(str(voter.id) for voter in some) for some in (voters, having))
    who = f"of the voters {names} only {few}" if few else f"none of the voters {names}"
    return (
        f"the offsets {end} to {proof - 1} are known to be committed, by the snapshot of {proof} "
        f"in {witness}, and {who} is known to have them: this log ends before. They are lost, or "
        "the voters were copied earlier"
    )


def _reach(main: ReplicaLog, log: ReplicaLog, proof: int) -> int:
    """The end (exclusive) of what a replica holds of `main`; a snapshot covers all before it."""
    snapshots = (one.offset for one in log.snapshots if main.epoch_at(one.offset - 1) == one.epoch)
    return max([agreed_end(main, log), *(offset for offset in snapshots if offset <= proof)])
