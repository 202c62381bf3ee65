"""Coverage points at the edge of what a world reaches: sizes that just fit, and events that cross.

Seeds draw them since plan format 8 (`draw_edges`), and fixed worlds of the tests reach each one
(`tests/sim/test_rare_worlds.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from quorate.formats.files import INDEX_SUFFIX
from quorate.raft.inputs import Answered, Received
from quorate.raft.messages import ApiVersionsResponse, FetchSnapshotResponse
from quorate.raft.ready import Truncate
from quorate.raft.reconfig_state import AskingVersions
from quorate.raft.roles import Leader
from quorate.replica.disk_jobs import ReadLog, Write
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer

if TYPE_CHECKING:
    from quorate.raft.state import RaftState
    from quorate.replica.replica import Effects, Input
    from quorate.storage.api import Recovered

FULL_LAST_CHUNK: Final = "the last chunk of a snapshot was as long as a chunk may be"
DENSE_INDEX: Final = "recovery read a segment with ten index entries"
CUT_BESIDE_A_READ: Final = "a log was truncated while a read of it waited"
LATE_VERSIONS: Final = "ApiVersions was answered after its voter change had ended"
CUT_OVER_A_TAIL: Final = "a crash interrupted an install over a log that had more"
REPLACED_THEN_UPGRADED: Final = "a disk was replaced at kraft.version 0, then the quorum upgraded"
ROLLED_BACK: Final = "a majority was put back on old disks"
LATE_REGISTRATION: Final = "a registration was answered after its node had left that controller"
SNAPSHOT_AHEAD: Final = "a leader crashed with a snapshot beyond its log on disk"
EDGES: Final = (
    FULL_LAST_CHUNK,
    DENSE_INDEX,
    CUT_BESIDE_A_READ,
    LATE_VERSIONS,
    CUT_OVER_A_TAIL,
    REPLACED_THEN_UPGRADED,
    ROLLED_BACK,
    LATE_REGISTRATION,
    SNAPSHOT_AHEAD,
)
_DROPPED: Final = "dropped the log, it goes on behind"
"""In the note of a recovery that takes the snapshot for the log."""
_INDEX_ENTRY: Final = 8
_MANY: Final = 10


class EdgeCoverage(Observer):
    """Counts EDGES in one world."""

    def __init__(self) -> None:
        self.coverage: Counter[str] = Counter()
        self._states: dict[int, RaftState] = {}
        self._waiting: dict[int, bool] = {}
        """By node: whether a read of its log for a peer waits."""
        self._chunk = 0
        self._replaced = False
        self._led: dict[int, bool] = {}
        """By node that crashed: whether it led, so that nobody sent it a snapshot."""

    def began(self, world: ObservableWorld) -> None:
        self._chunk = world.plan.timing.snapshot_max_bytes

    def started(self, process: SimulatedNode, recovered: Recovered) -> None:
        if self._led.pop(process.id, False) and any(_DROPPED in note for note in recovered.notes):
            self.coverage[SNAPSHOT_AHEAD] += 1
        self._states[process.id] = process.core.state
        self._waiting[process.id] = False
        disk = process.storage.disk
        sizes = [disk.open(name).size() for name in disk.names() if name.endswith(INDEX_SUFFIX)]
        if any(size >= _MANY * _INDEX_ENTRY for size in sizes):
            self.coverage[DENSE_INDEX] += 1

    def crashed(self, process: SimulatedNode) -> None:
        state = self._states.get(process.id)
        self._led[process.id] = state is not None and isinstance(state.role, Leader)

    def wiped(self, process: SimulatedNode) -> None:
        self._replaced = self._replaced or all(
            state.controls.version == 0 for state in self._states.values()
        )

    def rolled_back(self, nodes: Collection[int]) -> None:
        self.coverage[ROLLED_BACK] += 1

    def registered(self, process: SimulatedNode, asked: int) -> None:
        controller = process.controller
        assert controller is not None
        active = controller.node.active_peer
        if active is None or active[0] != asked:
            self.coverage[LATE_REGISTRATION] += 1

    def delivered(self, source: int, to: SimulatedNode, message: Received | Answered) -> None:
        if not isinstance(message, Answered):
            return
        response = message.response
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.chunk, bytes):
            size = len(response.chunk)
            if size == self._chunk and response.position + size == response.size:
                self.coverage[FULL_LAST_CHUNK] += 1
        elif isinstance(response, ApiVersionsResponse):
            role = self._states[to.id].role
            change = role.change if isinstance(role, Leader) else None
            asked = change.correlation if isinstance(change, AskingVersions) else None
            if asked != message.correlation:
                self.coverage[LATE_VERSIONS] += 1

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        replica = process.replica
        assert replica is not None
        if self._waiting[process.id] and _truncates(effects):
            self.coverage[CUT_BESIDE_A_READ] += 1
        pending = (*replica.reads.given.values(), *replica.reads.waiting)
        self._waiting[process.id] = any(isinstance(read.job, ReadLog) for read in pending)
        if self._replaced and any(note.startswith("kraft.version 1 at") for note in effects.notes):
            self.coverage[REPLACED_THEN_UPGRADED] += 1

    def fault(self, kind: str, details: tuple[object, ...]) -> None:
        node_id = details[0] if details else None
        if kind != "interrupted" or not isinstance(node_id, int):
            return
        state = self._states.get(node_id)
        if state is None or state.installing is None:
            return
        offset, epoch = state.installing
        if state.log.end_offset > offset or state.log.last_epoch > epoch:
            self.coverage[CUT_OVER_A_TAIL] += 1


def _truncates(effects: Effects) -> bool:
    writes = [write for job in effects.jobs if isinstance(job, Write) for write in job.writes]
    return any(isinstance(write, Truncate) for write in writes)
