"""A world as text: one line for each event, with the time of the world in ms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.inputs import Answered, Received, SendFailed
from quorate.raft.ready import SaveElection, Send, Truncate
from quorate.replica.disk_jobs import (
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
from quorate.replica.replica import Answer, Effects, Input
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.message_text import describe_message, describe_value
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer
from quorate.storage.api import Recovered

if TYPE_CHECKING:
    from quorate.sim.plan.plan import Plan
    from quorate.sim.run.run import WorldOutcome

TRACE_FORMAT: Final = 2
"""The format version of a text trace. It increases when the text of a line changes."""


def trace_head(plan: Plan, version: str) -> str:
    """The first line of a trace; `version` is of the code that runs the plan."""
    return (
        f"# quorate trace {TRACE_FORMAT}, plan format {plan.format}, seed {plan.seed}, "
        f"version {version}"
    )


def trace_end(outcome: WorldOutcome) -> list[str]:
    """The last lines of a trace: the outcome of the world."""
    failure, liveness_ms = outcome.failure, outcome.liveness_ms
    liveness_began = f", the last {liveness_ms} of them to heal" if liveness_ms else ""
    lines = [f"{outcome.events} events in {outcome.simulated_ms} ms{liveness_began}"]
    if failure is not None:
        lines.append(f"FAILED: {failure.check}: {failure.message}")
        lines += failure.details.splitlines()
    lines.append(f"trace {outcome.trace_hash}")
    return lines


class TraceText(Observer):
    """Writes a line for each event to `write`, except for steps without an effect."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._world: ObservableWorld | None = None

    def _say(self, who: int | None, text: str) -> None:
        assert self._world is not None
        at = self._world.now_us
        where = "" if who is None else f"node {who} "
        self._write(f"{at // 1000:7d}.{at % 1000:03d} {where}{text}")

    def began(self, world: ObservableWorld) -> None:
        self._world = world

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        log = recovered.log
        held = f"log {log.start_offset}..{log.end_offset}, {_election(recovered.election)}"
        self._say(process.id, f"starts incarnation {process.incarnation}: {held}")
        for note in recovered.notes:
            self._say(process.id, f"recovered: {note}")

    def refused(self, process: SimulatedNode, reason: str) -> None:
        self._say(process.id, f"cannot start: {reason}")

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
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

    def durable(self, process: SimulatedNode, seq: int) -> None:
        held = process.durable
        log = f"log ..{held.end_offset}, {_election(held.election)}"
        self._say(process.id, f"durable up to write {seq}: {log}")

    def crashed(self, process: SimulatedNode) -> None:
        self._say(process.id, "is down")

    def wiped(self, process: SimulatedNode) -> None:
        self._say(process.id, f"has a new disk: {process.key}")

    def restored(self, process: SimulatedNode) -> None:
        self._say(process.id, f"was {process.foreign}")

    def sent(self, process: SimulatedNode, send: Send) -> None:
        self._say(
            process.id, f"asks {send.to} #{send.correlation}: {describe_message(send.request)}"
        )

    def delivered(self, source: int, to: SimulatedNode, message: Received | Answered) -> None:
        if isinstance(message, Received):
            self._say(to.id, f"gets from {source}: {type(message.request).__name__}")
        else:
            said = f"gets the answer of {source} to #{message.correlation}"
            self._say(to.id, f"{said}: {describe_message(message.response)}")

    def invoked(self, op: ClientOp) -> None:
        self._say(None, f"client {op.client} asks: {describe_op(op)}")

    def answered(self, op: ClientOp) -> None:
        result = "" if op.result is None else f", {op.result}"
        self._say(None, f"client {op.client} receives: {describe_op(op)}: {op.outcome}{result}")

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        self._say(None, f"* {kind} {' '.join(map(str, details))}")

    def liveness_began(self) -> None:
        self._say(None, "* all faults end")


def _election(election: object) -> str:
    if election is None:
        return "no election yet"
    epoch, leader = getattr(election, "epoch", 0), getattr(election, "leader_id", -1)
    voted = getattr(election, "voted", None)
    vote = "" if voted is None else f", voted for {describe_value(voted)}"
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
