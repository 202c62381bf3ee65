"""The words of a broken promise: every replica by the name that tools and logs give it.

The same value reads the same in all of them, so that two of them can be compared by eye.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.base.ids import ReplicaKey
from quorate.raft.values import ControlState, ElectionState, Voter
from quorate.sim.checks.voters import names
from quorate.sim.text import describe_message


def election_words(election: ElectionState) -> str:
    """The epoch, and what is known or promised in it."""
    leader = "no leader" if election.leader_id < 0 else f"leader {election.leader_id}"
    vote = "" if election.voted is None else f", vote for {election.voted}"
    return f"epoch {election.epoch} ({leader}{vote})"


def vote_words(voted: ReplicaKey | None) -> str:
    return "no vote" if voted is None else f"a vote for {voted}"


def control_words(control: ControlState) -> str:
    """What rules at a place of the log."""
    return f"kraft.version {control.kraft_version} and the voters {names(control.voters or ())}"


def voter_changes(old: Sequence[Voter] | None, new: Sequence[Voter] | None) -> str:
    """What the second set has more or less than the first; nothing where one of them is empty."""
    if not old or not new:
        return ""
    before, after = ({voter.key for voter in voters} for voters in (old, new))
    lost = [f"{key} is missing" for key in sorted(before - after)]
    more = [f"{key} is too much" for key in sorted(after - before)]
    return ", ".join([*lost, *more])


def message_words(message: object) -> str:
    """A message with whole directory ids."""
    return describe_message(message, whole=True)
