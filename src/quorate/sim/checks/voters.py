"""Rules of KIP-853 for what a leader may write about voters, held at the moment it writes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.base.ids import ZERO_UUID, ReplicaKey
from quorate.raft.values import LeaderChange, Voter
from quorate.sim.checks.history import Entry
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.sim.checks.twin import Twin


def matches(entry: ReplicaKey, key: ReplicaKey) -> bool:
    """Does `key` name the replica of a voter set's `entry`? (KIP-853: where the entry has no
    directory id, the node id decides.) Not the core's own function, which may be what is wrong."""
    if entry.id != key.id:
        return False
    return entry.directory_id == ZERO_UUID or entry.directory_id == key.directory_id


def keys(voters: tuple[Voter, ...]) -> frozenset[ReplicaKey]:
    return frozenset(voter.key for voter in voters)


def names(voters: tuple[Voter, ...]) -> str:
    return "{" + ", ".join(str(voter.key) for voter in voters) + "}"


def is_voter(voters: tuple[Voter, ...], key: ReplicaKey) -> bool:
    """Does the set name this replica, by id and, where it has one, by directory id?"""
    return any(matches(voter.key, key) for voter in voters)


def same_voters(old: tuple[Voter, ...], new: tuple[Voter, ...]) -> bool:
    """The same replicas; new endpoints, or directory ids that were not known before, may differ."""
    if len(old) != len(new):
        return False
    return all(matches(a.key, b.key) for a, b in zip(old, new, strict=True))


def check_made(twin: Twin, entry: Entry) -> None:
    """A leader made this batch: the first of its epoch is LeaderChange, and changes are single."""
    parent = entry.parent
    assert parent is not None
    old = twin.own_voters if parent.voters is None else parent.voters
    if parent.epoch != entry.epoch:
        _check_first(twin, entry, old)
    if entry.kraft_version < parent.kraft_version:
        raise Violation("single voter change", f"{twin}: kraft.version falls at {entry}")
    if entry.voters is parent.voters:
        return
    new = entry.voters
    assert new is not None
    _check_set(twin, entry, new)
    if not same_voters(old, new):
        if len(keys(old) ^ keys(new)) > 1:
            text = f"{twin}: {entry}: {names(old)} to {names(new)}"
            raise Violation("overlapping majorities", text)
    elif parent.kraft_version < 1 or parent.epoch != entry.epoch:
        return  # the upgrade, or a first leader: it says in the log what was configured
    twin.changes.append(entry)


def _check_first(twin: Twin, entry: Entry, voters: tuple[Voter, ...]) -> None:
    """An epoch begins with LeaderChange: who leads, of which voters, and by whose votes."""
    first = entry.control[0] if entry.control else None
    if not isinstance(first, LeaderChange) or first.leader_id != twin.id:
        raise Violation("one leader acts", f"{twin}: epoch {entry.epoch} begins with {first}")
    ids = {voter.key.id for voter in voters}
    granting = set(first.granting_voters)
    if set(first.voters) != ids or not granting <= ids or len(granting) <= len(ids) // 2:
        raise Violation(
            "election safety", f"{twin}: {first}, the voters in force are {names(voters)}"
        )
    given = twin.history.given.get(entry.epoch, set())
    silent = sorted(node_id for node_id in granting if (node_id, twin.id) not in given)
    if silent:
        raise Violation(
            "a leader tells who has voted for it",
            f"{twin}: {first}, and in epoch {entry.epoch} nodes {silent} have not",
        )


def _check_set(twin: Twin, entry: Entry, new: tuple[Voter, ...]) -> None:
    ids = [voter.key.id for voter in new]
    if entry.kraft_version < 1:
        raise Violation("voter set", f"{twin}: {entry} has voters at kraft.version 0")
    if not new or sorted(set(ids)) != ids:
        raise Violation("voter set", f"{twin}: {entry} has the voters {names(new)}")
    if any(voter.key.directory_id == ZERO_UUID for voter in new):
        raise Violation("voter set", f"{twin}: {entry} has a voter without directory id")


def check_changes(twin: Twin, now_ms: int, lately_ms: int) -> None:
    """The changes of this step: the set before each, and something of its epoch, are committed.

    The latter is what Raft's single-server changes lacked at first (Ongaro 2015). Looked at when
    the step is over: one and the same step may commit and then change. Who is added has fetched
    within the last `lately_ms`, too (`LeaderState.isReplicaCaughtUp`).
    """
    changes, twin.changes = twin.changes, []
    high = twin.high
    for entry in changes:
        assert entry.parent is not None
        before = entry.parent.voters_entry
        what = f"{twin}: {entry} changes the voters to {names(entry.voters or ())}"
        if before is not None and before.end > high.end:
            raise Violation(
                "single voter change",
                f"{what}, the change at {before} is not known to be committed (high watermark "
                f"{high.end})",
            )
        if high.epoch != entry.epoch:
            raise Violation(
                "single voter change", f"{what} before anything of its epoch is committed"
            )
        old = twin.own_voters if entry.parent.voters is None else entry.parent.voters
        for key in keys(entry.voters or ()) - keys(old):
            if key not in twin.caught_up or twin.heard_in != entry.epoch:
                verb = "caught up" if key in twin.heard else "fetched"
                raise Violation(
                    "a new voter has caught up",
                    f"{what} and adds {key}, which has not {verb} in epoch {entry.epoch}",
                )
            silent_ms = now_ms - twin.fetched_at[key]
            if silent_ms >= lately_ms:
                raise Violation(
                    "a new voter has caught up",
                    f"{what} and adds {key}, which has not fetched since {silent_ms} ms; a new "
                    f"voter has within {lately_ms} ms",
                )
