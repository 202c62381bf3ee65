"""What checks and counters see of a simulated world, and how they object.

An *event* of a simulation is a call of one of these methods, `began` and `finished` left out: they
are made in the order in which things happen. Times of the world are whole microseconds
(`world.now_us`); what a replica calls its time drifts and jumps (`process.now`).

The world only calls methods that a subclass defines, so what is not watched costs nothing.
Observers look and never touch: a world with observers runs exactly as one without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from quorate.raft.inputs import Answered, Received
from quorate.raft.values import ElectionState

if TYPE_CHECKING:
    from quorate.base.ids import Uuid
    from quorate.node.replica import Effects, Input
    from quorate.raft.ready import Send
    from quorate.sim.process import Process
    from quorate.sim.world import World
    from quorate.storage.api import Recovered, Storage


class Violation(Exception):
    """A promise was broken: `check` names the promise, `message` says who, where and when."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"{check}: {message}")
        self.check = check
        self.message = message


class Node(Protocol):
    """What a check needs to know of a Process once it has begun."""

    @property
    def id(self) -> int: ...
    @property
    def directory_id(self) -> Uuid: ...
    @property
    def life(self) -> int: ...
    @property
    def storage(self) -> Storage: ...


@dataclass(slots=True)
class Durable:
    """What the disk of a process is sure to give back, whatever happens to the process now.

    Known from finished jobs and not by looking: `end_offset` (exclusive) and `last_epoch` of the
    log, the vote, and the newest snapshot's end offset (0: none).
    """

    election: ElectionState | None = None
    end_offset: int = 0
    last_epoch: int = 0
    snapshot_offset: int = 0


OpKind = Literal["put", "get", "cas"]
OpOutcome = Literal["pending", "ok", "unknown", "refused"]


@dataclass(slots=True, eq=False)
class ClientOp:
    """One operation of one client on one key, however many times it was sent.

    Sent again, it is done at most once: the machine knows (client, sequence). A client has one
    operation at a time. Every put and cas of a run writes another value.
    """

    client: int
    sequence: int
    """Counts up for each client."""
    kind: OpKind
    key: int
    value: int | None
    """What a put or a cas writes; None for a get."""
    expected: int | None
    """What a cas wants to find; None: no value yet."""
    invoked_us: int
    answered_us: int = -1
    outcome: OpOutcome = "pending"
    """ok: done, see `result`; unknown: may be done at any later time, or never; refused: never."""
    result: int | bool | None = None
    """Of an `ok` get the value found (None: none), of a cas whether it wrote."""
    attempts: int = 0


class Observer:
    """Every method does nothing; a check overrides those that it needs and raises Violation."""

    def began(self, world: World) -> None:
        """Before the first event; `world.processes` (id -> Process) is filled, nothing runs."""

    def started(self, process: Process, recovered: Recovered) -> None:
        """A process runs on what its disk held; `process.life` is new, nothing was stepped."""

    def refused(self, process: Process, reason: str) -> None:
        """Recovery refused the disk: the process stays down until its disk is wiped."""

    def stepped(self, process: Process, happened: Sequence[Input], effects: Effects) -> None:
        """After each Replica.step and before its effects are carried out.

        `process.machine.trail` lists (end_offset, history, digest) for every batch applied, or
        snapshot loaded, in this step; `history` is the running hash of all that was ever applied,
        `digest` that of the state itself.
        """

    def durable(self, process: Process, seq: int) -> None:
        """The Writes up to `seq` are on the medium; `process.durable` says so already."""

    def crashed(self, process: Process) -> None:
        """A process ended, by a crash, a fault of its disk or in good order; replica is None."""

    def wiped(self, process: Process) -> None:
        """An empty disk with a new directory id took the place of the old (process is down)."""

    def restored(self, process: Process) -> None:
        """An old copy of the disk took its place; `process.foreign` says why not to trust it."""

    def sent(self, process: Process, send: Send) -> None:
        """A request left; what the network does to it comes after."""

    def delivered(self, source: int, to: Process, message: Received | Answered) -> None:
        """A request or an answer of node `source` reached the inbox of a running process."""

    def invoked(self, op: ClientOp) -> None:
        """A client begins an operation."""

    def answered(self, op: ClientOp) -> None:
        """The operation is over for its client: ok, unknown or refused."""

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        """Something was done to the world: a deed of the plan, or chance at a message or disk."""

    def healed(self) -> None:
        """All faults are off and every process is started: from here on progress is owed."""

    def finished(self, world: World) -> None:
        """Everything is over and owed progress was made."""
