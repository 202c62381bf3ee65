"""A wrong belief of a core or a storage is found in the event in which it begins."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from mutants.catalog import find
from mutants.mutant import planted
from quorate.base.ids import OffsetAndEpoch
from quorate.raft.ready import Clean, Truncate
from quorate.replica.disk_jobs import Installed, Job, Result, Write
from quorate.replica.replica import Effects, Input
from quorate.sim.checks.log_on_medium import CHECK, LogOnMediumCheck
from quorate.sim.run.run import checked, drawn, run_world
from quorate.sim.world.observable import ObservableWorld, SimulatedNode
from quorate.sim.world.observer import Observer, ViolationError
from quorate.sim.world.world import World
from quorate.storage.api import Recovered
from quorate.storage.memory import MemoryStorage

pytestmark = pytest.mark.interpreted
SEEDS = 6


class Causes(Observer):
    """The number of the newest event in which a kind of write or result occurred."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.event = -1

    def began(self, world: ObservableWorld) -> None:
        self.world = world

    def stepped(self, process: SimulatedNode, happened: Sequence[Input], effects: Effects) -> None:
        if any(isinstance(item, self.kind) for item in happened) or self._writes(effects.jobs):
            self.event = self.world.events  # type: ignore[attr-defined]

    def performed(
        self, process: SimulatedNode, jobs: Sequence[Job], results: Sequence[Result]
    ) -> None:
        if self._writes(jobs):
            self.event = self.world.events  # type: ignore[attr-defined]

    def _writes(self, jobs: Sequence[Job]) -> bool:
        writes = [write for job in jobs if isinstance(job, Write) for write in job.writes]
        return any(isinstance(write, self.kind) for write in writes)


class Node(SimpleNamespace):
    """What the check looks at in a Process: a recovered storage, and a core."""

    def __init__(self) -> None:
        storage = MemoryStorage()
        log = storage.open().log
        core = SimpleNamespace(log_start_offset=0, log_end=OffsetAndEpoch(0, 0), snapshots=[])
        super().__init__(id=3, incarnation=2, damage=None, storage=storage, core=core, log=log)


def started(node: Node) -> LogOnMediumCheck:
    check = LogOnMediumCheck()
    check.started(node, Recovered(node.log, None))  # type: ignore[arg-type]
    return check


def test_a_wrong_belief_is_a_violation() -> None:
    node = Node()
    check = started(node)
    node.core.log_start_offset = 7
    check.stepped(node, [], Effects(stopped=True))  # type: ignore[arg-type]
    with pytest.raises(ViolationError, match=r"node 3 \(incarnation 2\): the core's log start: 7"):
        check.stepped(node, [], Effects())  # type: ignore[arg-type]


def test_a_damaged_medium_is_not_compared() -> None:
    node = Node()
    node.storage.disk.remove(f"{0:020d}.log")
    node.damage = "damaged"
    started(node).performed(node, [Write(1, ())], [])  # type: ignore[arg-type]
    node.damage = None
    with pytest.raises(ViolationError, match="the log has no segment on the medium"):
        started(node)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "cause", "says"),
    [
        ("log-start-stays", Clean, "the core's log start"),
        ("replaced-snapshot-stays-known", Installed, "the core's snapshots"),
        ("storage-start-stays", Clean, "the storage's log start"),
        ("log-size-of-removed-segments", Clean, "the storage's log size"),
        ("timestamp-survives-truncation", Truncate, "the storage's segments"),
        ("snapshot-file-stays", Clean, "the snapshots on the medium"),
    ],
)
def test_a_planted_bug_in_a_world_is_found_where_it_happens(
    mutant: str, cause: type, says: str
) -> None:
    with planted(find(mutant)):
        for seed in range(SEEDS):
            causes = Causes(cause)
            world = World(drawn(seed), [causes, *checked()])
            try:
                run_world(world)
            except ViolationError as violation:
                assert violation.check == CHECK and says in violation.message
                assert causes.event == world.events
                return
    pytest.fail(f"{SEEDS} seeds do not find {mutant}")
