"""Rules of KIP-853 for the voter sets that a leader appends, checked at the append."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.raft.values import LeaderChange, Voter
from quorate.sim.checks.history import LoggedBatch
from quorate.sim.world.observer import ViolationError


def matches(entry: ReplicaKey, key: ReplicaKey) -> bool:
    """Whether `key` is the voter `entry`. An entry without a directory id matches by node id
    (KIP-853).

    Not the function of the core, which may have the bug.
    """
    if entry.id != key.id:
        return False
    return entry.directory_id == ZERO_UUID or entry.directory_id == key.directory_id


def keys(voters: tuple[Voter, ...]) -> frozenset[ReplicaKey]:
    return frozenset(voter.key for voter in voters)


def names(voters: tuple[Voter, ...]) -> str:
    return "{" + ", ".join(str(voter.key) for voter in voters) + "}"


def is_voter(voters: tuple[Voter, ...], key: ReplicaKey) -> bool:
    """Whether the set has this replica: by node id and, where the entry has one, by directory id."""
    return any(matches(voter.key, key) for voter in voters)


def same_voters(old: tuple[Voter, ...], new: tuple[Voter, ...]) -> bool:
    """Whether the replicas are the same. Endpoints may differ, and directory ids that were unknown
    before."""
    if len(old) != len(new):
        return False
    return all(matches(a.key, b.key) for a, b in zip(old, new, strict=True))


def check_made(
    leader: object,
    leader_id: int,
    initial_voters: tuple[Voter, ...],
    granted_votes: Mapping[int, AbstractSet[tuple[int, int]]],
    entry: LoggedBatch,
) -> bool:
    """Check a batch that a leader has appended; True where it changes the voters.

    `leader` names the replica in messages. `initial_voters` are in force while the log names none.
    `granted_votes` has (voter, candidate) by epoch.

    1. The first batch of an epoch is LeaderChange (KIP-595).
    2. kraft.version never decreases (KIP-853).
    3. A voter set needs kraft.version 1, distinct ids and a directory id for each voter.
    4. "Only one voter can be added or removed at a time" (KIP-853), so that consecutive majorities
       overlap (Raft, figure 4.3 of the dissertation).
    """
    parent = entry.parent
    assert parent is not None
    old = initial_voters if parent.voters is None else parent.voters
    if parent.epoch != entry.epoch:
        _check_first(leader, leader_id, granted_votes.get(entry.epoch, frozenset()), entry, old)
    if entry.kraft_version < parent.kraft_version:
        raise ViolationError("single voter change", f"{leader}: kraft.version decreases at {entry}")
    if entry.voters is parent.voters:
        return False
    new = entry.voters
    assert new is not None
    _check_set(leader, entry, new)
    if not same_voters(old, new):
        if len(keys(old) ^ keys(new)) > 1:
            text = f"{leader}: {entry}: {names(old)} to {names(new)}"
            raise ViolationError("overlapping majorities", text)
    elif parent.kraft_version < 1 or parent.epoch != entry.epoch:
        # Not a change: the upgrade to kraft.version 1, or the first leader, appends the configured
        # voters to the log.
        return False
    return True


def _check_first(
    leader: object,
    leader_id: int,
    given: AbstractSet[tuple[int, int]],
    entry: LoggedBatch,
    voters: tuple[Voter, ...],
) -> None:
    """The first batch of an epoch is a LeaderChange record of its leader.

    KIP-595: the record has the voters and the voters that granted their votes. Those are a
    majority.
    """
    first = entry.control[0] if entry.control else None
    if not isinstance(first, LeaderChange) or first.leader_id != leader_id:
        raise ViolationError(
            "only the leader acts", f"{leader}: epoch {entry.epoch} begins with {first}"
        )
    ids = {voter.key.id for voter in voters}
    granting = set(first.granting_voters)
    if set(first.voters) != ids or not granting <= ids or len(granting) <= len(ids) // 2:
        raise ViolationError(
            "election safety", f"{leader}: {first}, the voters in force are {names(voters)}"
        )
    silent = sorted(node_id for node_id in granting if (node_id, leader_id) not in given)
    if silent:
        raise ViolationError(
            "LeaderChange names granting voters",
            f"{leader}: {first}, and in epoch {entry.epoch} nodes {silent} have not",
        )


def _check_set(leader: object, entry: LoggedBatch, new: tuple[Voter, ...]) -> None:
    ids = [voter.key.id for voter in new]
    if entry.kraft_version < 1:
        raise ViolationError("voter set", f"{leader}: {entry} has voters at kraft.version 0")
    if not new or sorted(set(ids)) != ids:
        raise ViolationError("voter set", f"{leader}: {entry} has the voters {names(new)}")
    if any(voter.key.directory_id == ZERO_UUID for voter in new):
        raise ViolationError("voter set", f"{leader}: {entry} has a voter without directory id")
