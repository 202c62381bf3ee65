"""A world as text: one line for each thing that happened, with the time of the world in ms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch, ReplicaKey
from quorate.node.jobs import (
    AppendBatches,
    Installed,
    InstallRefused,
    Job,
    ReadLog,
    ReadSnapshot,
    SnapshotFailed,
    SnapshotWritten,
    Survey,
    Write,
    WriteSnapshot,
)
from quorate.node.replica import Answer, Effects, Input
from quorate.raft.inputs import Answered, Received, SendFailed
from quorate.raft.messages import FetchResponse
from quorate.raft.ready import SaveElection, Send, Truncate
from quorate.sim.observe import ClientOp, Observer
from quorate.storage.api import Recovered

if TYPE_CHECKING:
    from quorate.sim.plan import Plan
    from quorate.sim.process import Process
    from quorate.sim.run import Outcome
    from quorate.sim.world import World

_QUIET = {"cluster_id", "records", "leader_endpoints", "listeners", "max_wait_ms", "max_bytes"}


TRACE_FORMAT: Final = 1
"""Of a trace as text; counts up when a line changes its form."""


def trace_head(plan: Plan, version: str) -> str:
    """The first line of a trace; `version` is of the code that runs the plan."""
    return (
        f"# quorate trace {TRACE_FORMAT}, plan format {plan.format}, seed {plan.seed}, "
        f"version {version}"
    )


def trace_end(outcome: Outcome) -> list[str]:
    """The last lines of a trace: what came of the world."""
    failure, healing_ms = outcome.failure, outcome.healing_ms
    healed = f", the last {healing_ms} of them to heal" if healing_ms else ""
    lines = [f"{outcome.events} events in {outcome.simulated_ms} ms{healed}"]
    if failure is not None:
        lines.append(f"FAILED: {failure.check}: {failure.message}")
        lines += failure.details.splitlines()
    lines.append(f"trace {outcome.trace_hash}")
    return lines


class TraceText(Observer):
    """Writes a line for each event to `write`; steps in which nothing is done are left out."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._world: World | None = None

    def _say(self, who: int | None, text: str) -> None:
        assert self._world is not None
        at = self._world.now_us
        where = "" if who is None else f"node {who} "
        self._write(f"{at // 1000:7d}.{at % 1000:03d} {where}{text}")

    def began(self, world: World) -> None:
        self._world = world

    def started(self, process: Process, recovered: Recovered) -> None:
        log = recovered.log
        held = f"log {log.start_offset}..{log.end_offset}, {_election(recovered.election)}"
        self._say(process.id, f"starts its life {process.life}: {held}")
        for note in recovered.notes:
            self._say(process.id, f"recovered: {note}")

    def refused(self, process: Process, reason: str) -> None:
        self._say(process.id, f"cannot start: {reason}")

    def stepped(self, process: Process, happened: Sequence[Input], effects: Effects) -> None:
        for item in happened:
            if isinstance(item, SendFailed):
                self._say(process.id, f"got no answer to #{item.correlation}: {item.failure.value}")
            elif isinstance(item, SnapshotWritten | SnapshotFailed | Installed | InstallRefused):
                self._say(process.id, f"hears: {type(item).__name__} {tuple(item.snapshot_id)}")
        for note in effects.notes:
            self._say(process.id, f"says: {note}")
        for job in effects.jobs:
            self._say(process.id, f"disk: {_job(job)}")
        for answer in effects.answers:
            self._say(process.id, f"answers {_answer(answer)}")
        for outcome in effects.outcomes:
            self._say(process.id, f"proposal {outcome}")
        if effects.faulted is not None:
            self._say(process.id, f"stops: {effects.faulted}")

    def durable(self, process: Process, seq: int) -> None:
        held = process.durable
        log = f"log ..{held.end_offset}, {_election(held.election)}"
        self._say(process.id, f"durable up to write {seq}: {log}")

    def crashed(self, process: Process) -> None:
        self._say(process.id, "is down")

    def wiped(self, process: Process) -> None:
        self._say(process.id, f"has a new disk: {process.key}")

    def restored(self, process: Process) -> None:
        self._say(process.id, f"was {process.foreign}")

    def sent(self, process: Process, send: Send) -> None:
        self._say(
            process.id, f"asks {send.to} #{send.correlation}: {describe_message(send.request)}"
        )

    def delivered(self, source: int, to: Process, message: Received | Answered) -> None:
        if isinstance(message, Received):
            self._say(to.id, f"gets from {source}: {type(message.request).__name__}")
        else:
            said = f"gets the answer of {source} to #{message.correlation}"
            self._say(to.id, f"{said}: {describe_message(message.response)}")

    def invoked(self, op: ClientOp) -> None:
        self._say(None, f"client {op.client} asks: {describe_op(op)}")

    def answered(self, op: ClientOp) -> None:
        result = "" if op.result is None else f", {op.result}"
        self._say(None, f"client {op.client} is told: {describe_op(op)}: {op.outcome}{result}")

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        self._say(None, f"* {kind} {' '.join(map(str, details))}")

    def healed(self) -> None:
        self._say(None, "* all faults end")


def _election(election: object) -> str:
    if election is None:
        return "no election yet"
    epoch, leader = getattr(election, "epoch", 0), getattr(election, "leader_id", -1)
    voted = getattr(election, "voted", None)
    vote = "" if voted is None else f", voted for {_word(voted)}"
    return f"epoch {epoch}, leader {leader}{vote}"


def describe_op(op: ClientOp) -> str:
    value = "" if op.value is None else f" {op.value}"
    expected = f" if {op.expected}" if op.kind == "cas" else ""
    return f"{op.kind} key {op.key}{value}{expected} (#{op.sequence})"


def _answer(answer: Answer) -> str:
    size = f" with {len(answer.data)} bytes" if answer.data else ""
    return f"<{answer.reply_to}>{size}: {describe_message(answer.response)}"


def _job(job: Job) -> str:
    match job:
        case Write():
            return f"write {job.seq}: " + ", ".join(map(_write, job.writes))
        case WriteSnapshot():
            return f"snapshot {tuple(job.snapshot_id)}"
        case ReadLog():
            return f"read the log {job.offset}..{job.end}"
        case ReadSnapshot():
            return f"read snapshot {tuple(job.snapshot_id)} at {job.position}"
        case Survey():
            return "survey"


def _write(write: object) -> str:
    match write:
        case AppendBatches():
            first, last = write.batches[0], write.batches[-1]
            return f"append {first.base_offset}..{last.last_offset} of epoch {last.epoch}"
        case SaveElection():
            return _election(write.state)
        case Truncate():
            return f"truncate to {write.end_offset}"
        case _:
            snapshot_id: OffsetAndEpoch = getattr(write, "snapshot_id", OffsetAndEpoch(-1, -1))
            return f"{type(write).__name__} {tuple(snapshot_id)}"


def describe_message(message: object, *, whole: bool = False) -> str:
    """A message of the core without what is the same in all of them.

    Of a directory id it gives the beginning, which fits into a line; with `whole` all of it.
    """
    told = []
    for name in type(message).__match_args__:  # type: ignore[attr-defined]
        value = getattr(message, name)
        if name not in _QUIET and value not in (None, (), b"", -1):
            told.append(f"{name}={_word(value, whole)}")
    if isinstance(message, FetchResponse) and message.records is not None:
        told.append(f"records={message.records.offset}..{message.records.end}")
    return f"{type(message).__name__}({', '.join(told)})"


def _word(value: object, whole: bool = False) -> str:
    if isinstance(value, ReplicaKey):
        return str(value) if whole or value.directory_id == bytes(16) else str(value)[:6]
    if isinstance(value, LeaderAndEpoch):
        return f"{value.leader_id}@{value.epoch}"
    if isinstance(value, OffsetAndEpoch):
        return f"({value.offset}, {value.epoch})"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, tuple) and value and hasattr(value[0], "base_offset"):
        return f"{value[0].base_offset}..{value[-1].last_offset}"
    if isinstance(value, tuple):
        return "[" + ", ".join(_word(one, whole) for one in value) + "]"
    return getattr(value, "name", None) or str(value)
