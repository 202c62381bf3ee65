"""The fault budget: which disk may still be damaged without a loss that no quorum can survive.

Replicas survive any crash. They survive a lost or damaged disk while a majority of the voters has
intact disks. The world consults the budget before it damages a disk. Operators consult it before a
voter change that would leave no intact majority.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.base.ids import ZERO_UUID, Listeners, ReplicaKey
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.observable import LISTENER
from quorate.sim.world.process import Process

VoterKeys = tuple[ReplicaKey, ...]


class FaultBudget:
    """Reads the state of all replicas at once, which no component of a real cluster can."""

    def __init__(self, world: SimulatedCluster) -> None:
        self._world = world
        self.pending: dict[int, tuple[str, ReplicaKey]] = {}
        """Requested voter changes that may still be performed: ("add" or "remove", key)."""
        self._next = 0

    # -- what operators have under way --------------------------------------------------------
    def begin(self, verb: str, key: ReplicaKey) -> int:
        self._next += 1
        self.pending[self._next] = (verb, key)
        return self._next

    def settle(self, number: int) -> None:
        """The voter change was performed, or never will be."""
        self.pending.pop(number, None)

    # -- voter sets ---------------------------------------------------------------------------
    def sets(self) -> list[VoterKeys]:
        """Every voter set that is in force at a replica, or may soon be. Each set once."""
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
        """Whether the voter runs on an intact disk, or will when it is started."""
        process = self._world.processes.get(key.id)
        if process is None or process is without:
            return False
        if process.damage is not None or process.is_refused or process.foreign is not None:
            return False
        return key.directory_id in (ZERO_UUID, process.directory_id)

    def may_lose(self, process: Process) -> bool:
        """Whether every voter set keeps an intact, reachable majority without this disk, which can
        elect a leader."""
        return all(self._survives(keys, process) for keys in self.sets()) and any(
            self._may_be_elected(other, process) for other in self._world.processes.values()
        )

    def _may_be_elected(self, process: Process, without: Process) -> bool:
        """Whether a majority of the voters in its log would vote for it, by their durable logs.

        One of them may consider itself an observer and have more of the lost leader's log than any
        voter. It votes for no candidate with a shorter log, and starts no election.
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
        """Whether these replicas may become the voter set."""
        return self._survives(keys, None)

    def _survives(self, keys: VoterKeys, without: Process | None) -> bool:
        live = sum(self.is_intact(key, without) and self._is_found(key) for key in keys)
        return 2 * live > len(keys)

    def _is_found(self, key: ReplicaKey) -> bool:
        """Whether all other replicas know the voter's current address. For a replica that moved and
        is not a voter yet, a request with its old address may be in flight."""
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
        """Whether every replica has durably recorded kraft.version 1.

        Before that a replica is identified by its node id alone, and a new disk counts as the old
        one. No quorum survives that.
        """
        return all(map(self._is_dynamic, self._world.processes.values()))

    def all_static(self) -> bool:
        """Whether no replica has a record of kraft.version 1."""
        return self._world.plan.static and all(
            view.kraft_version == 0
            for process in self._world.processes.values()
            for view in process.views
        )

    def may_exchange(self, process: Process) -> bool:
        """Whether an empty disk may replace the disk of this voter, which keeps its id.

        All follow another node: who has voted for this one in the newest epoch would do so again.
        """
        leader = self._world.leader()
        if leader is None or leader is process or process.id > self._world.plan.voters:
            return False
        epochs = {one.core.epoch for one in self._world.running}
        return self.all_static() and epochs == {leader.core.epoch} and self.may_forget(process)

    def may_replace(self, process: Process) -> bool:
        """Whether an empty disk may replace a disk that recovery refused."""
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
        """Whether the present contents of the disk may be restored later.

        A single voter commits without other replicas, so an older copy of its disk loses records.
        """
        core = process.core
        held = core.control_at(core.durable_end_offset).voters or self._world.static_voters
        return len(held) != 1 and len(core.voters.voters or ()) != 1

    def may_forget(self, process: Process) -> bool:
        """Whether this disk may lose its newest records, epochs and votes.

        All other replicas have as much and are in no older epoch, there is no candidate, and it
        cannot elect itself. Then nothing is lost, and no vote is given twice. With two voters only
        the other one would have the records, so they must be committed already: otherwise a request
        in flight might commit them.
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
        """Whether each running replica of these knows that everything on this disk is committed."""
        others = [self._world.processes[key.id] for key in keys if key.id != process.id]
        end = process.durable.end_offset
        return all(one.replica is None or one.core.high_watermark >= end for one in others)


def _log_end(process: Process) -> tuple[int, int]:
    """(epoch of the last record, end offset) of its durable log, in the order of elections."""
    return process.durable.last_epoch, process.durable.end_offset


def place_of(listeners: Listeners) -> Listeners:
    """The listeners of these that controllers use."""
    return tuple(listener for listener in listeners if listener.name == LISTENER)


def _changed(keys: VoterKeys, verb: str, key: ReplicaKey) -> VoterKeys:
    if verb == "remove":
        return tuple(k for k in keys if k != key)
    return keys if any(k.id == key.id for k in keys) else tuple(sorted((*keys, key)))
