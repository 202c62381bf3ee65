"""A majority that is put back on old disks may lose what was committed, but never without a word.

A voter that runs on never drops what it knows to be committed. One that restarts knows no high
watermark, and reports what it drops (docs/recovery.md).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer, ViolationError

if TYPE_CHECKING:
    from quorate.replica.replica import Effects, Input

LOSS: Final = "a loss is reported"
_DROPPED: Final = "does not have the rest"
_REPORTS: Final = (
    _DROPPED,
    "below what is committed",
    "an older copy of its directory was restored",
    "run on copies of the directory",
    "leads another quorum of this cluster id",
)
_ALL: Final = 1 << 40


class _Survivor(NamedTuple):
    """What a node that keeps its disk had when the others lost theirs."""

    incarnation: int
    known: bytes
    """The part of its log that it knew to be committed."""
    held: bytes
    """The part of its log that was committed."""


class RolledBackCheck(Observer):
    """Compares the logs at the end with what the nodes that kept their disks had."""

    sees_loss = True

    def __init__(self) -> None:
        self._survivors: dict[int, _Survivor] = {}
        self._reports: dict[int, list[str]] | None = None
        """By node, once a majority was put back; None: it was not."""

    def began(self, world: ObservableWorld) -> None:
        self._world = world

    def rolled_back(self, nodes: Collection[int]) -> None:
        running = [node for node in self._world.nodes.values() if node.replica is not None]
        newest = max(running, key=lambda node: node.core.high_watermark)
        self._reports = {node_id: [] for node_id in self._world.nodes}
        for node in running:
            if node.id not in nodes:
                known, held = _log_to(node, node.core.high_watermark), _shared(node, newest)
                self._survivors[node.id] = _Survivor(node.incarnation, known, held)

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        if self._reports is not None and effects.notes:
            self._reports[process.id] += [
                note for note in effects.notes if any(map(note.__contains__, _REPORTS))
            ]

    def finished(self, world: ObservableWorld) -> None:
        if self._reports is None:
            return
        leader = world.leader()
        if leader is None:
            raise ViolationError(LOSS, "there is no leader")
        kept = _log_to(leader, _ALL)
        for node_id, survivor in self._survivors.items():
            node = world.nodes[node_id]
            if node.replica is not None:
                self._check(node, survivor, is_lost=not kept.startswith(survivor.held))

    def _check(self, node: SimulatedNode, survivor: _Survivor, *, is_lost: bool) -> None:
        assert self._reports is not None
        own, log = self._reports[node.id], _log_to(node, _ALL)
        runs_on = node.incarnation == survivor.incarnation
        if runs_on and not log.startswith(survivor.known):
            raise ViolationError(LOSS, f"node {node.id} dropped what it knew to be committed")
        if not log.startswith(survivor.held) and not any(_DROPPED in note for note in own):
            raise ViolationError(LOSS, f"node {node.id} dropped committed records without a word")
        if is_lost and not any(self._reports.values()):
            raise ViolationError(LOSS, f"node {node.id} holds committed records that are lost")


def _shared(node: SimulatedNode, newest: SimulatedNode) -> bytes:
    """What its log has of that which `newest` knows to be committed.

    A former leader that is cut off has other batches at the same offsets.
    """
    low, high = 0, newest.core.high_watermark
    while low < high:
        middle = (low + high + 1) // 2
        if _log_to(node, middle) == _log_to(newest, middle):
            low = middle
        else:
            high = middle - 1
    return _log_to(node, low)


def _log_to(node: SimulatedNode, end: int) -> bytes:
    """The bytes of its log from offset 0 to `end`, or to its end."""
    storage = node.storage
    return storage.read(0, max(min(end, storage.end_offset), 0), _ALL)
