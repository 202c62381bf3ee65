"""A run of the real code as a TLA+ module, to be judged by docs/spec/QuorateTrace.tla.

A `Tape` takes what replicas do, step by step, from whatever drives them; `Recorder` feeds one
from a simulated world. Offsets become numbers of batches, replica keys become names ("n1"; "n1b"
after its disk was replaced). Snapshots and kraft.version 0 are not in the specification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.base.errors import QuorateError
from quorate.base.ids import ReplicaKey
from quorate.formats.batch import read_batch, to_raft_batch
from quorate.node.jobs import AppendBatches, DiskWrite, Write
from quorate.raft import ready
from quorate.raft.core import RaftCore
from quorate.raft.ready import AbandonSnapshot, Append, SaveElection, Truncate
from quorate.raft.roles import Follower
from quorate.raft.values import Batch, ElectionState, Voters
from quorate.sim.checks.elections import met_an_old_peer
from quorate.sim.observe import Observer
from quorate.storage.api import AppendedBatch

if TYPE_CHECKING:
    from quorate.node.replica import Effects, Input
    from quorate.sim.process import Process
    from quorate.sim.world import World
    from quorate.storage.api import Recovered

_LETTERS = "bcdefghijklmnopqrstuvwxyz"


class NotInSpecification(QuorateError):
    """The run did something that the specification leaves out."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch of a log: where it ends, its epoch, and the voter set if it brings one."""

    end_offset: int
    epoch: int
    voters: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """What a server holds in memory after a step; offsets are numbers of batches (exclusive)."""

    server: str
    start: bool
    """The first step of a life."""
    role: str
    epoch: int
    leader: str | None
    voted: str | None
    log: tuple[Entry, ...]
    hw: int
    """0: unknown."""
    fetched: bool
    """Does it vouch for its leader?"""
    voters: frozenset[str]
    durable: int
    pending: int
    """Writes on their way to the disk: an election state, a batch or a truncation each."""


@dataclass(slots=True)
class _Disk:
    """The states that a disk goes through, as the specification has them; the first is durable."""

    states: list[tuple[ElectionState, tuple[Entry, ...]]]
    seqs: list[int] = field(default_factory=list)
    """By which seq each state but the first is durable."""
    starting: bool = True


class Tape:
    """Lines of a run, in order, and the names in it; `voters` is the first voter set."""

    def __init__(self, voters: Iterable[ReplicaKey]) -> None:
        self.lines: list[Line] = []
        self._names: dict[ReplicaKey, str] = {}
        self._newest: dict[int, str] = {}
        self._disks: dict[str, _Disk] = {}
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
        """A replica begins a life with what its disk gave back (`end_offset` exclusive).

        Less than was durable goes on the tape, too: that is for the specification to refuse.
        """
        name = self.name(key)
        disk = self._disks.setdefault(name, _Disk([(ElectionState(), ())]))
        found = [
            state for state in disk.states if state[0] == election and _end(state[1]) == end_offset
        ]
        log = disk.states[-1][1]
        is_less = end_offset < min(_end(log) for _, log in disk.states)
        is_forgotten = election.epoch < disk.states[0][0].epoch
        if not found and (is_less or is_forgotten):
            found = [(election, tuple(entry for entry in log if entry.end_offset <= end_offset))]
        if not found:
            raise NotInSpecification(
                f"{name} starts with {election} and a log to {end_offset}: its last writes reached "
                "the disk in another order, or in part"
            )
        self._disks[name] = _Disk([found[-1]])

    def wrote(self, key: ReplicaKey, seq: int, writes: Sequence[ready.Write | DiskWrite]) -> None:
        """A step gives these writes to its disk."""
        disk = self._disks[self.name(key)]
        for write in writes:
            self._write(disk, write, seq)

    def stepped(self, key: ReplicaKey, core: RaftCore) -> None:
        """A step is over, and what it wrote is told."""
        name = self.name(key)
        disk = self._disks[name]
        durable = core._state.durable
        while disk.seqs and disk.seqs[0] <= durable.seq:
            del disk.seqs[0], disk.states[0]
        line = self._line(name, core, disk)
        if line != self._last.get(name) or self._asked(name):
            self.lines.append(line)
        self._last[name] = line
        disk.starting = False

    def _asked(self, name: str) -> bool:
        """May another server have just got this one's pre-vote, which no line shows?"""
        return any(o.role == "prospective" for o in self._last.values() if o.server != name)

    def _write(self, disk: _Disk, write: ready.Write | DiskWrite, seq: int) -> None:
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
            raise NotInSpecification(f"snapshots are not in the specification: {kind}")

    def _entry(self, batch: Batch | AppendedBatch) -> Entry:
        if isinstance(batch, AppendedBatch):
            batch = to_raft_batch(read_batch(batch.data, 0))
        voters = None
        for record in batch.control:
            if isinstance(record, Voters):
                voters = frozenset(self.name(voter.key) for voter in record.voters)
        return Entry(batch.end_offset, batch.epoch, voters)

    def _line(self, name: str, core: RaftCore, disk: _Disk) -> Line:
        election, log = disk.states[-1]
        state, role = core.voters, core._state.role
        if state.voters and state.kraft_version == 0:
            raise NotInSpecification("kraft.version 0 is not in the specification")
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
    """Has it become a candidate in this step? It may be a follower again at its end."""
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
    """Puts a simulated world on a tape, up to the first thing that the specification leaves out.

    `left_out` says what that was; None: the tape holds the whole run.
    """

    def __init__(self) -> None:
        self.tape = Tape(())
        self.left_out: str | None = None

    def began(self, world: World) -> None:
        """The voters of the bootstrap snapshot are those of the plan."""
        founders = [p for p in world.processes.values() if p.id <= world.plan.voters]
        self.tape = Tape(ReplicaKey(p.id, p.directory_id) for p in founders)

    def started(self, process: Process, recovered: Recovered) -> None:
        if self.left_out is not None:
            return
        key = ReplicaKey(process.id, process.directory_id)
        election = recovered.election or ElectionState()
        with self._up_to_what_is_left_out():
            if process.damage is not None or process.foreign is not None:
                raise NotInSpecification(
                    f"the disk of node {process.id} was changed behind its back, which is not in "
                    "the specification"
                )
            self.tape.started(key, election, recovered.log.end_offset)

    def stepped(self, process: Process, happened: Sequence[Input], effects: Effects) -> None:
        if self.left_out is not None or effects.faulted is not None or process.core is None:
            return
        key = ReplicaKey(process.id, process.directory_id)
        with self._up_to_what_is_left_out():
            if met_an_old_peer(happened) and _votes_for_itself(key, effects):
                raise NotInSpecification(
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
        except NotInSpecification as error:
            self.left_out = str(error)
