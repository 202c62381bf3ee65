"""A run of the real code as a TLA+ module, which docs/spec/QuorateTrace.tla checks.

A `Tape` records the steps of replicas; `Recorder` feeds one from a simulated world. Offsets become
numbers of batches, replica keys become names ("n1"; "n1b" after its disk was replaced). Snapshots
and kraft.version 0 are not in the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.formats.batch import read_batch, to_raft_batch
from quorate.raft import ready
from quorate.raft.core import RaftCore
from quorate.raft.ready import AbandonSnapshot, Append, SaveElection, Truncate
from quorate.raft.roles import Follower
from quorate.raft.values import Batch, ElectionState, Voters
from quorate.replica.disk_jobs import AppendBatches, DiskWrite, Write
from quorate.sim.checks.elections import met_peer_without_pre_vote
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.storage.api import AppendedBatch

if TYPE_CHECKING:
    from quorate.replica.replica import Effects, Input
    from quorate.storage.api import Recovered

_LETTERS = "bcdefghijklmnopqrstuvwxyz"


class NotInSpecificationError(QuorateError):
    """The run has an event that the specification does not model."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch of a log: its end offset (exclusive), its epoch, and its voter set if it has one."""

    end_offset: int
    epoch: int
    voters: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """The state of a server in memory after a step; offsets are numbers of batches (exclusive)."""

    server: str
    start: bool
    """Whether this is the first step of an incarnation."""
    role: str
    epoch: int
    leader: str | None
    voted: str | None
    log: tuple[Entry, ...]
    hw: int
    """0: unknown."""
    fetched: bool
    """Whether it has fetched from its leader, so that it refuses pre-votes."""
    voters: frozenset[str]
    durable: int
    pending: int
    """The number of pending writes: each an election state, a batch or a truncation."""


@dataclass(slots=True)
class _DiskStates:
    """The states of a disk in the order of its writes. The first one is durable."""

    states: list[tuple[ElectionState, tuple[Entry, ...]]]
    seqs: list[int] = field(default_factory=list)
    """The seq of the write that makes each later state durable."""
    starting: bool = True


class Tape:
    """Lines of a run, in order, and the names in it; `voters` is the first voter set."""

    def __init__(self, voters: Iterable[ReplicaKey]) -> None:
        self.lines: list[Line] = []
        self._names: dict[ReplicaKey, str] = {}
        self._newest: dict[int, str] = {}
        self._disks: dict[str, _DiskStates] = {}
        self._last: dict[str, Line] = {}
        self.voters = frozenset(self.name(key) for key in voters)

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(sorted(self._names.values()))

    def name(self, key: ReplicaKey) -> str:
        """The name of a replica key in the trace."""
        if key not in self._names:
            before = sum(known.id == key.id for known in self._names)
            name = f"n{key.id}{_LETTERS[before - 1] if before else ''}"
            self._names[key] = self._newest[key.id] = name
        return self._names[key]

    def started(self, key: ReplicaKey, election: ElectionState, end_offset: int) -> None:
        """A replica starts an incarnation with its recovered state (`end_offset` exclusive).

        A state that lacks durable data is recorded too: the specification then refuses the trace.
        """
        name = self.name(key)
        disk = self._disks.setdefault(name, _DiskStates([(ElectionState(), ())]))
        found = [
            state for state in disk.states if state[0] == election and _end(state[1]) == end_offset
        ]
        log = disk.states[-1][1]
        is_less = end_offset < min(_end(log) for _, log in disk.states)
        is_forgotten = election.epoch < disk.states[0][0].epoch
        if not found and (is_less or is_forgotten):
            found = [(election, tuple(entry for entry in log if entry.end_offset <= end_offset))]
        if not found:
            raise NotInSpecificationError(
                f"{name} starts with {election} and a log to {end_offset}: its last writes reached "
                "the disk in another order, or in part"
            )
        self._disks[name] = _DiskStates([found[-1]])

    def wrote(self, key: ReplicaKey, seq: int, writes: Sequence[ready.Write | DiskWrite]) -> None:
        """A step submits these writes to the disk."""
        disk = self._disks[self.name(key)]
        for write in writes:
            self._write(disk, write, seq)

    def stepped(self, key: ReplicaKey, core: RaftCore) -> None:
        """A step has ended, and its writes are recorded."""
        name = self.name(key)
        disk = self._disks[name]
        durable = core.state.durable
        while disk.seqs and disk.seqs[0] <= durable.seq:
            del disk.seqs[0], disk.states[0]
        line = self._line(name, core, disk)
        if line != self._last.get(name) or self._asked(name):
            self.lines.append(line)
        self._last[name] = line
        disk.starting = False

    def _asked(self, name: str) -> bool:
        """Whether another server may just have received this one's pre-vote, which no line has."""
        return any(o.role == "prospective" for o in self._last.values() if o.server != name)

    def _write(self, disk: _DiskStates, write: ready.Write | DiskWrite, seq: int) -> None:
        election, log = disk.states[-1]
        if isinstance(write, SaveElection):
            disk.states.append((write.state, log))
            disk.seqs.append(seq)
        elif isinstance(write, Truncate):
            kept = tuple(entry for entry in log if entry.end_offset <= write.end_offset)
            disk.states.append((election, kept))
            disk.seqs.append(seq)
        elif isinstance(write, Append | AppendBatches):
            for batch in write.batches:
                log = (*log, self._entry(batch))
                disk.states.append((election, log))
                disk.seqs.append(seq)
        elif not isinstance(write, AbandonSnapshot):
            kind = type(write).__name__
            raise NotInSpecificationError(f"snapshots are not in the specification: {kind}")

    def _entry(self, batch: Batch | AppendedBatch) -> Entry:
        if isinstance(batch, AppendedBatch):
            batch = to_raft_batch(read_batch(batch.data, 0))
        voters = None
        for record in batch.control:
            if isinstance(record, Voters):
                voters = frozenset(self.name(voter.key) for voter in record.voters)
        return Entry(batch.end_offset, batch.epoch, voters)

    def _line(self, name: str, core: RaftCore, disk: _DiskStates) -> Line:
        election, log = disk.states[-1]
        state, role = core.voters, core.state.role
        if state.voters and state.kraft_version == 0:
            raise NotInSpecificationError("kraft.version 0 is not in the specification")
        return Line(
            server=name,
            start=disk.starting,
            role=core.role,
            epoch=election.epoch,
            leader=self._newest[election.leader_id] if election.leader_id >= 0 else None,
            voted=None if election.voted is None else self.name(election.voted),
            log=log,
            hw=_batches(log, core.high_watermark),
            fetched=isinstance(role, Follower) and role.has_fetched,
            voters=frozenset(self.name(voter.key) for voter in state.voters or ()),
            durable=_batches(log, core.durable_end_offset),
            pending=len(disk.seqs),
        )

    # -- text --------------------------------------------------------------------------------
    def module(self) -> str:
        """The TLA+ module Run, which QuorateTrace.tla extends: the lines of this run."""
        lines = ",\n".join("    " + _text(line) for line in self.lines)
        title = f"{'-' * 30} MODULE Run {'-' * 30}"
        return f"{title}\nLines ==\n  <<\n{lines}\n  >>\n{'=' * len(title)}\n"

    def config(self) -> str:
        """The configuration with which TLC checks QuorateTrace.tla for this run."""
        lines = self.lines
        return (
            'SPECIFICATION TraceSpec\nCONSTANTS\n    None = "nobody"\n'
            f"    Server = {_set(self.servers)}\n    InitVoters = {_set(self.voters)}\n"
            f"    MaxEpoch = {max(1, *(line.epoch for line in lines))}\n"
            f"    MaxLog = {max(1, *(len(line.log) for line in lines))}\n"
            "    PreVotes = TRUE\n"
            "CONSTRAINT Reach\nINVARIANT Unfinished\nCHECK_DEADLOCK FALSE\n"
        )


def _votes_for_itself(me: ReplicaKey, effects: Effects) -> bool:
    """Whether it became a candidate in this step. It may be a follower again at its end."""
    return any(
        isinstance(write, SaveElection) and write.state.voted == me
        for job in effects.jobs
        if isinstance(job, Write)
        for write in job.writes
    )


def _end(log: tuple[Entry, ...]) -> int:
    return log[-1].end_offset if log else 0


def _batches(log: tuple[Entry, ...], offset: int) -> int:
    """How many batches of the log end at or before `offset`."""
    return sum(entry.end_offset <= offset for entry in log)


def _set(names: Iterable[str]) -> str:
    return "{" + ", ".join(f'"{name}"' for name in sorted(names)) + "}"


def _word(name: str | None) -> str:
    return f'"{name or "nobody"}"'


def _text(line: Line) -> str:
    log = ", ".join(f"[epoch |-> {e.epoch}, voters |-> {_set(e.voters or ())}]" for e in line.log)
    return (
        f'[server |-> "{line.server}", start |-> {str(line.start).upper()}, '
        f'role |-> "{line.role}", epoch |-> {line.epoch}, leader |-> {_word(line.leader)}, '
        f"voted |-> {_word(line.voted)}, hw |-> {line.hw}, durable |-> {line.durable}, "
        f"pending |-> {line.pending}, fetched |-> {str(line.fetched).upper()}, "
        f"voters |-> {_set(line.voters)}, log |-> <<{log}>>]"
    )


class Recorder(Observer):
    """Records a simulated world on a tape, up to the first event that the specification lacks.

    `left_out` describes that event; None: the tape has the whole run.
    """

    def __init__(self) -> None:
        self.tape = Tape(())
        self.left_out: str | None = None

    def began(self, world: ObservableWorld) -> None:
        """The voters of the bootstrap snapshot are those of the plan."""
        founders = [p for p in world.nodes.values() if p.id <= world.plan.voters]
        self.tape = Tape(ReplicaKey(p.id, p.directory_id) for p in founders)

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        if self.left_out is not None:
            return
        key = ReplicaKey(process.id, process.directory_id)
        election = recovered.election or ElectionState()
        with self._up_to_what_is_left_out():
            if process.damage is not None or process.foreign is not None:
                raise NotInSpecificationError(
                    f"the disk of node {process.id} was changed behind its back, which is not in "
                    "the specification"
                )
            self.tape.started(key, election, recovered.log.end_offset)

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        if self.left_out is not None or effects.faulted is not None or process.core is None:
            return
        key = ReplicaKey(process.id, process.directory_id)
        with self._up_to_what_is_left_out():
            if met_peer_without_pre_vote(happened) and _votes_for_itself(key, effects):
                raise NotInSpecificationError(
                    f"peers that know no pre-votes are not in the specification: node {process.id} "
                    "asks such a one for its vote"
                )
            for job in effects.jobs:
                if isinstance(job, Write):
                    self.tape.wrote(key, job.seq, job.writes)
            self.tape.stepped(key, process.core)

    @contextmanager
    def _up_to_what_is_left_out(self) -> Iterator[None]:
        try:
            yield
        except NotInSpecificationError as error:
            self.left_out = str(error)
