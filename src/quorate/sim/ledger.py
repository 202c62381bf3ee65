"""What may still be lost: so that the world never does what no quorum can survive.

Kafka's replicas, and ours, survive any crash; a disk that forgets or lies they survive as long as
a majority of the voters kept theirs. The world asks here before it damages a disk, and operators
ask before they take a step that such damage would turn into the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quorate.base.ids import ZERO_UUID, Listeners, ReplicaKey
from quorate.sim.process import LISTENER, Process

if TYPE_CHECKING:
    from quorate.sim.world import World

VoterKeys = tuple[ReplicaKey, ...]


class Ledger:
    """Looks at all replicas at once, as nobody in a real cluster can."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.pending: dict[int, tuple[str, ReplicaKey]] = {}
        """Voter changes that were asked for and may still be done: ("add" or "remove", key)."""
        self._next = 0

    # -- what operators have under way --------------------------------------------------------
    def begin(self, verb: str, key: ReplicaKey) -> int:
        self._next += 1
        self.pending[self._next] = (verb, key)
        return self._next

    def settle(self, number: int) -> None:
        """It was done, or never will be."""
        self.pending.pop(number, None)

    # -- voter sets ---------------------------------------------------------------------------
    def sets(self) -> list[VoterKeys]:
        """Every voter set that rules somewhere, or may soon: of each once."""
        found: dict[VoterKeys, None] = {}
        for process in self._world.processes.values():
            for view in process.views:
                voters = view.voters or self._world.static_voters
                if voters:
                    found[tuple(voter.key for voter in voters)] = None
        for verb, key in self._changes():
            for keys in list(found):
                found[_changed(keys, verb, key)] = None
        return [keys for keys in found if keys]

    def _changes(self) -> Iterable[tuple[str, ReplicaKey]]:
        yield from self.pending.values()
        if self._world.plan.auto_join:
            for process in self._world.processes.values():
                if process.can_be_voter:
                    yield "add", process.key

    def is_intact(self, key: ReplicaKey, without: Process | None = None) -> bool:
        """Does the voter live, or will it when it is started?"""
        process = self._world.processes.get(key.id)
        if process is None or process is without:
            return False
        if process.damage is not None or process.is_refused or process.foreign is not None:
            return False
        return key.directory_id in (ZERO_UUID, process.directory_id)

    def may_lose(self, process: Process) -> bool:
        """Does every voter set keep a majority that is intact and reachable without this disk, and
        could somebody be elected then?"""
        return all(self._survives(keys, process) for keys in self.sets()) and any(
            self._may_be_elected(other, process) for other in self._world.processes.values()
        )

    def _may_be_elected(self, process: Process, without: Process) -> bool:
        """By the voters that its own log names, each with what it has durably.

        One of them may be an observer in its own eyes, and have more of the lost leader's log than
        any voter: it votes for nobody who has less, and runs for nothing.
        """
        voters = process.view.voters or self._world.static_voters or ()
        keys = [voter.key for voter in voters]
        if not any(key.id == process.id and self.is_intact(key, without) for key in keys):
            return False
        votes = sum(
            self.is_intact(key, without)
            and _log_end(self._world.processes[key.id]) <= _log_end(process)
            for key in keys
        )
        return 2 * votes > len(keys)

    def may_become(self, keys: VoterKeys) -> bool:
        """May these be the voters?"""
        return self._survives(keys, None)

    def _survives(self, keys: VoterKeys, without: Process | None) -> bool:
        live = sum(self.is_intact(key, without) and self._is_found(key) for key in keys)
        return 2 * live > len(keys)

    def _is_found(self, key: ReplicaKey) -> bool:
        """Is the voter where all others look for it? Of one that is no voter anywhere yet, and has
        moved, a request may be on its way that says where it was."""
        process = self._world.processes[key.id]
        is_known = not process.has_moved
        for other in self._world.processes.values():
            for voter in other.view.voters or ():
                if voter.key != key:
                    continue
                if voter.listeners and place_of(voter.listeners) != process.place:
                    return False
                is_known = True
        return is_known

    def all_dynamic(self) -> bool:
        """Does every replica know, durably, that kraft.version is 1?

        Before that a replica is known by its node id alone, and a new disk would be taken for the
        old one: that no quorum survives.
        """
        return all(map(self._is_dynamic, self._world.processes.values()))

    def may_replace(self, process: Process) -> bool:
        """May a disk that was refused be replaced by an empty one?"""
        others = self._world.processes.values()
        return all(other is process or self._is_dynamic(other) for other in others)

    def _is_dynamic(self, process: Process) -> bool:
        if not self._world.plan.static:
            return True
        if process.replica is None or process.view.kraft_version < 1:
            return False
        return process.core.durable_end_offset >= process.core.log_end.offset

    # -- old copies ---------------------------------------------------------------------------
    def may_copy(self, process: Process) -> bool:
        """Would a running process that is given a copy of what its disk holds now need others?"""
        core = process.core
        held = core.control_at(core.durable_end_offset).voters or self._world.static_voters
        return len(held) != 1 and len(core.voters.voters or ()) != 1

    def may_forget(self, process: Process) -> bool:
        """Would nobody miss what this disk learned lately: records, epochs, votes?

        All others hold as much as it does and are in no older epoch, nobody runs for leader, and
        it cannot elect itself: then what it forgets can neither be lost nor be promised twice.
        Of two voters the other one would have it alone: then it is committed already, or a request
        that is on its way might commit it.
        """
        for keys in self.sets():
            if len(keys) == 2 and not self._is_committed(process, keys):
                return False
            if keys == (process.key,) or not all(
                self.is_intact(key) for key in keys if key.id != process.id
            ):
                return False
        mine = process.durable
        epoch = mine.election.epoch if mine.election is not None else 0
        for other in self._world.processes.values():
            if other is process:
                continue
            theirs = other.durable
            their_epoch = theirs.election.epoch if theirs.election is not None else 0
            if their_epoch < epoch or other.damage is not None or other.is_refused:
                return False
            if _log_end(other) < _log_end(process):
                return False
            if other.replica is not None and other.core.role in ("candidate", "prospective"):
                return False
        return len(self._world.processes) > 1

    def _is_committed(self, process: Process, keys: VoterKeys) -> bool:
        """Does each of these that runs know that all which this disk has is committed?"""
        others = [self._world.processes[key.id] for key in keys if key.id != process.id]
        end = process.durable.end_offset
        return all(one.replica is None or one.core.high_watermark >= end for one in others)


def _log_end(process: Process) -> tuple[int, int]:
    """(epoch of the last record, end offset) of what its disk has: who has less is not elected."""
    return process.durable.last_epoch, process.durable.end_offset


def place_of(listeners: Listeners) -> Listeners:
    """Of these the ones by which controllers find each other."""
    return tuple(listener for listener in listeners if listener.name == LISTENER)


def _changed(keys: VoterKeys, verb: str, key: ReplicaKey) -> VoterKeys:
    if verb == "remove":
        return tuple(k for k in keys if k != key)
    return keys if any(k.id == key.id for k in keys) else tuple(sorted((*keys, key)))
