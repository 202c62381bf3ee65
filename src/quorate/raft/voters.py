"""Voter sets: who votes, under which key, and when two sets must share a majority."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.base.ids import ZERO_UUID, Address, Listener, Listeners, ReplicaKey
from quorate.raft.values import Voter


def matches(entry: ReplicaKey, key: ReplicaKey) -> bool:
    """Does `key` name the replica of `entry`?

    Ids must be equal; a known directory id in `entry` must be equal too, an unknown one matches
    any (`VoterSet.VoterNode.isVoter`).
    """
    return entry.id == key.id and entry.directory_id in (ZERO_UUID, key.directory_id)


def same_voter(one: Voter, other: Voter) -> bool:
    """Equal in all but the order of their listeners."""
    return (
        one.key == other.key
        and one.min_kraft_version == other.min_kraft_version
        and one.max_kraft_version == other.max_kraft_version
        and frozenset(one.listeners) == frozenset(other.listeners)
    )


def listener_of(listeners: Listeners, name: str | None) -> Listener | None:
    """The listener `name`; the first one where this node has no listener itself."""
    for listener in listeners:
        if name is None or listener.name == name:
            return listener
    return None


def address_of(listeners: Listeners, name: str | None) -> Address | None:
    """The address under `listener_of`."""
    listener = listener_of(listeners, name)
    return None if listener is None else Address(listener.host, listener.port)


def updated(listeners: Listeners, changed: Listeners) -> Listeners:
    """`listeners` with what `changed` says of those that it names."""
    if all(listener in listeners for listener in changed):
        return listeners
    named = {listener.name for listener in changed}
    return (*changed, *(listener for listener in listeners if listener.name not in named))


class VoterSet:
    """An immutable set of voters, at most one per node id (`org.apache.kafka.raft.VoterSet`)."""

    __slots__ = ("_by_id", "voters")

    voters: tuple[Voter, ...]
    """Ordered by node id."""

    def __init__(self, voters: Iterable[Voter] = ()) -> None:
        found = {voter.key.id: voter for voter in voters}
        self._by_id: dict[int, Voter] = dict(sorted(found.items()))
        self.voters = tuple(self._by_id.values())

    def __len__(self) -> int:
        return len(self.voters)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VoterSet) or len(self) != len(other):
            return False
        return all(same_voter(a, b) for a, b in zip(self.voters, other.voters, strict=True))

    def __hash__(self) -> int:
        return hash(self.keys)

    def __str__(self) -> str:
        return "{" + ", ".join(str(key) for key in self.keys) + "}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def ids(self) -> tuple[int, ...]:
        """Node ids, ascending."""
        return tuple(self._by_id)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        """Replica keys, ordered by node id."""
        return tuple(voter.key for voter in self.voters)

    @property
    def majority(self) -> int:
        """How many voters decide."""
        return len(self.voters) // 2 + 1

    def get(self, node_id: int) -> Voter | None:
        return self._by_id.get(node_id)

    def is_voter(self, key: ReplicaKey) -> bool:
        voter = self._by_id.get(key.id)
        return voter is not None and matches(voter.key, key)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        return len(self.voters) == 1 and self.is_voter(key)

    def listeners(self, node_id: int) -> Listeners:
        """The listeners of a voter; none where the id is not in the set."""
        voter = self._by_id.get(node_id)
        return () if voter is None else voter.listeners

    def needs_update(self, voter: Voter) -> bool:
        """Is this voter in the set, but with other listeners, range or directory id?"""
        known = self._by_id.get(voter.key.id)
        return known is not None and matches(known.key, voter.key) and not same_voter(known, voter)

    def supports(self, kraft_version: int) -> bool:
        """Can every voter run this kraft.version?"""
        return all(v.min_kraft_version <= kraft_version <= v.max_kraft_version for v in self.voters)

    def add(self, voter: Voter) -> VoterSet | None:
        """The set with one more voter; None where the node id is already in it."""
        if voter.key.id in self._by_id:
            return None
        return VoterSet((*self.voters, voter))

    def remove(self, key: ReplicaKey) -> VoterSet | None:
        """The set without the voter of exactly this key; None where it lacks it or none is left."""
        voter = self._by_id.get(key.id)
        if voter is None or voter.key != key or len(self.voters) == 1:
            return None
        return VoterSet(v for v in self.voters if v is not voter)

    def update(self, voter: Voter) -> VoterSet | None:
        """The set with this voter's new entry; None where its key is not in the set."""
        return self.update_ignoring_directory(voter) if self.is_voter(voter.key) else None

    def update_ignoring_directory(self, voter: Voter) -> VoterSet | None:
        """The set with this voter's new entry, found by node id alone (kraft.version 0); None as for
        `update`."""
        if voter.key.id not in self._by_id:
            return None
        return VoterSet(voter if v.key.id == voter.key.id else v for v in self.voters)

    def overlaps(self, other: VoterSet) -> bool:
        """Do every majority of this set and every majority of `other` share a voter?

        True when they differ in at most one voter. (Kafka's `hasOverlappingMajority` also allows
        one for another at once, which {1, 2, 3} and {1, 2, 4} show to be wrong: {1, 3}, {2, 4}.)
        """
        return len(set(self.keys) ^ set(other.keys)) <= 1
