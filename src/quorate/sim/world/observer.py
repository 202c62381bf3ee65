"""The interface of checks and coverage counters of a simulated world.

An *event* of a simulation is a call of one of these methods, except `began`, `performed` and
`finished`. The calls
are in the order of the events. Times of the world are whole microseconds (`world.now_us`). The clock
of a replica drifts and jumps (`process.now`).

The world calls only the methods that a subclass defines. Observers change nothing: a world with
observers runs exactly as one without.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from quorate.raft.inputs import Answered, Received
from quorate.sim.world.client_op import ClientOp
from quorate.sim.world.observable import ObservableWorld, SimulatedNode

if TYPE_CHECKING:
    from quorate.node.node_io import NodeEffects
    from quorate.raft.ready import Send
    from quorate.replica.disk_jobs import Job, Result
    from quorate.replica.replica import Effects, Input
    from quorate.sim.world.controller import ControllerResponse
    from quorate.storage.api import Recovered


class ViolationError(Exception):
    """An invariant is violated: `check` names it, `message` has the replica and the details."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(f"{check}: {message}")
        self.check = check
        self.message = message


def defect(node_id: int, error: Exception) -> ViolationError:
    """The code under test raised this."""
    return ViolationError("defect", f"node {node_id}: {type(error).__name__}: {error}")


class Observer:
    """No method has an effect. A check overrides those that it needs and raises ViolationError."""

    sees_loss = False
    """Whether it still observes a world whose majority was put back on old disks."""

    def began(self, world: ObservableWorld) -> None:
        """Before the first event: `world.nodes` is filled, no process runs."""

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        """A process has recovered its disk; `process.incarnation` is new, no step was taken."""

    def refused(self, process: SimulatedNode, reason: str) -> None:
        """Recovery refused the disk. The process stays down until its disk is replaced."""

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        """After each Replica.step and before its effects are carried out.

        `process.machine.trail` lists (end_offset, history, digest) for every batch applied, or
        snapshot loaded, in this step; `history` is the running hash of all that was ever applied,
        `digest` that of the state itself.
        """

    def node_stepped(
        self,
        process: SimulatedNode,
        effects: NodeEffects,
        responses: Sequence[ControllerResponse],
    ) -> None:
        """After each ControllerNode.step and before its effects are carried out.

        `stepped` has reported each Replica.step in it. `responses` are the answers of `effects`,
        decoded.
        """

    def registered(self, process: SimulatedNode, asked: int) -> None:
        """The response of controller `asked` to the node's registration has arrived. No step took it."""

    def durable(self, process: SimulatedNode, seq: int) -> None:
        """The Writes up to `seq` are durable; `process.durable` includes them."""

    def performed(
        self, process: SimulatedNode, jobs: Sequence[Job], results: Sequence[Result]
    ) -> None:
        """The disk performed these jobs in order. The process has not received the results."""

    def crashed(self, process: SimulatedNode) -> None:
        """A process ended by a crash, a disk fault or a shutdown; its replica is None."""

    def wiped(self, process: SimulatedNode) -> None:
        """An empty disk with a new directory id replaced the old one. The process is down."""

    def restored(self, process: SimulatedNode) -> None:
        """An older copy replaced the disk's contents; `process.foreign` has the reason."""

    def rolled_back(self, nodes: Collection[int]) -> None:
        """Old copies are about to replace the disks of these nodes, a majority of the voters.

        What is committed may be lost from here on. Only observers with `sees_loss` hear more.
        """

    def sent(self, process: SimulatedNode, send: Send) -> None:
        """A process sent a request. The network has not processed it yet."""

    def delivered(self, source: int, to: SimulatedNode, message: Received | Answered) -> None:
        """A request or an answer of node `source` reached the inbox of a running process."""

    def invoked(self, op: ClientOp) -> None:
        """A client begins an operation."""

    def answered(self, op: ClientOp) -> None:
        """The operation ended for its client: ok, unknown or refused."""

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        """A fault occurred: a fault event of the plan, or a random one of a message or a disk."""

    def liveness_began(self) -> None:
        """All faults are off and every process is started. From here on progress is required."""

    def finished(self, world: ObservableWorld) -> None:
        """The world ended after the required progress."""
