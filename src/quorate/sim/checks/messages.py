"""Texts of violations: every replica is written as the tools and logs write it.

The same value has the same text everywhere, so that a reader can compare two messages.
"""

from __future__ import annotations

from collections.abc import Sequence

from quorate.base.ids import Listeners, ReplicaKey
from quorate.raft.values import ControlState, ElectionState, Voter
from quorate.sim.checks.voters import names
from quorate.sim.world.message_text import describe_message


def election_words(election: ElectionState) -> str:
    """The epoch, its leader and the vote in it."""
    leader = "no leader" if election.leader_id < 0 else f"leader {election.leader_id}"
    vote = "" if election.voted is None else f", vote for {election.voted}"
    return f"epoch {election.epoch} ({leader}{vote})"


def vote_words(voted: ReplicaKey | None) -> str:
    return "no vote" if voted is None else f"a vote for {voted}"


def control_words(control: ControlState) -> str:
    """kraft.version and voters at a position of the log."""
    return f"kraft.version {control.kraft_version} and the voters {names(control.voters or ())}"


def voter_changes(old: Sequence[Voter] | None, new: Sequence[Voter] | None) -> str:
    """The difference of the two sets; empty where one of them is empty."""
    if not old or not new:
        return ""
    before, after = ({voter.key for voter in voters} for voters in (old, new))
    lost = [f"{key} is missing" for key in sorted(before - after)]
    more = [f"{key} is unexpected" for key in sorted(after - before)]
    there = {voter.key: voter for voter in old}
    other = [
        f"{voter_words(voter)} was {voter_words(there[voter.key])}"
        for voter in new
        if voter != there.get(voter.key, voter)
    ]
    return ", ".join([*lost, *more, *other])


def voter_words(voter: Voter) -> str:
    """All fields of a voter."""
    low, high = voter.min_kraft_version, voter.max_kraft_version
    return f"{voter.key} at {listener_words(voter.listeners)}, kraft.version {low} to {high}"


def listener_words(listeners: Listeners) -> str:
    return " and ".join(f"{end.name}={end.host}:{end.port}" for end in listeners) or "no listener"


def message_words(message: object) -> str:
    """A message with complete directory ids."""
    return describe_message(message, whole=True)
