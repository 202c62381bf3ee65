"""What is known to be committed, and no majority of the voters has any more.

A snapshot holds only what is committed, whoever has it: a broker's tells it too. All controllers
that come back from an older image of their disks would form a quorum that has forgotten it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quorate.spark.audit.commit import Chain, Committed, Voters, held, is_voter, snapshot_end
from quorate.spark.audit.model import WARNING, Finding, Spot

_STAY: Final = (
    "Copy the directories of all voters again with the nodes stopped; if it still says so, do not "
    "start these voters: a quorum of them would forget these offsets, and write others in their "
    "place. Restore their logs as they were"
)


def judge_majority(main: Committed, chains: Sequence[Chain]) -> Mapping[str, Finding]:
    """By path: of voters that lack what a snapshot proves, where so many do.

    chains: of all replicas, also of those without a log. A voter that was not given may have all.
    """
    proof = snapshot_end(main.main, chains)
    voters = main.main.voters_at(proof) if proof else None
    if not proof or not voters:
        return {}
    ends = {
        voter: {
            one.replica.path: _reach(main.main, one, proof)
            for one in chains
            if one.replica.complete and is_voter(one.replica, voter)
        }
        for voter in voters
    }
    having = tuple(voter for voter in voters if max(ends[voter].values(), default=0) >= proof)
    lacking = [voter for voter in voters if ends[voter] and voter not in having]
    if 2 * (len(voters) - len(lacking)) > len(voters):
        return {}
    witness = next(
        one.replica.path for one in chains if any(found.offset == proof for found in one.snapshots)
    )
    return {
        path: Finding(
            "majority", WARNING, _told(end, proof, witness, voters, having), _STAY, Spot(offset=end)
        )
        for voter in lacking
        for path, end in ends[voter].items()
    }


def _told(end: int, proof: int, witness: str, voters: Voters, having: Voters) -> str:
    names, few = (", ".join(str(voter.id) for voter in some) for some in (voters, having))
    who = f"of the voters {names} only {few}" if few else f"none of the voters {names}"
    return (
        f"the offsets {end} to {proof - 1} are known to be committed, by the snapshot of {proof} "
        f"in {witness}, and {who} is known to have them: this log ends before. They are lost, or "
        "the voters were copied earlier"
    )


def _reach(main: Chain, chain: Chain, proof: int) -> int:
    """Up to which offset a replica has what `main` has; a snapshot stands for all before it."""
    snapshots = (
        one.offset for one in chain.snapshots if main.epoch_at(one.offset - 1) == one.epoch
    )
    return max([held(main, chain), *(offset for offset in snapshots if offset <= proof)])
