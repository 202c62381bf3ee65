"""Fault events that replace a disk: by an empty one, or by an older copy of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from quorate.sim.plan.plan import members
from quorate.sim.prng import Prng
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.fault_budget import FaultBudget
from quorate.sim.world.operators import Operators
from quorate.sim.world.process import Process

_MS: Final = 1000
LOOK_US: Final = 50_000
"""The time between two looks of a fault event that waits for a condition."""
LOOKS: Final = 60


class ProcessEnds(Protocol):
    """Ends and starts processes."""

    def kill(self, process: Process) -> None: ...

    def power_off(self, process: Process, rng: Prng) -> None: ...

    def start_later(self, process: Process, down_ms: int) -> None: ...


class ReplacedDisks:
    """A disk is replaced only where the budget allows it, except for a roll-back."""

    def __init__(
        self,
        world: SimulatedCluster,
        operators: Operators,
        budget: FaultBudget,
        faults: ProcessEnds,
        rng: Prng,
    ) -> None:
        self._world = world
        self._operators = operators
        self._budget = budget
        self._faults = faults
        self._rng = rng

    def _later(self, for_ms: int, fault_event: Callable[..., None], *args: object) -> None:
        self._world.push(self._world.now_us + for_ms * _MS, fault_event, *args)

    def wipe(self, rng: Prng, process: Process, down_ms: int) -> None:
        """Replace the disk by an empty one. Auto join or an operator adds the voter again."""
        if self._take_disk(rng, process):
            self._faults.start_later(process, down_ms)

    def exchange(self, rng: Prng, process: Process, down_ms: int, looks: int = LOOKS) -> None:
        """Replace the disk of a static voter at kraft.version 0, which keeps its id.

        The quorum takes it for the old voter. Nothing is lost while all others have as much.
        """
        world = self._world
        if world.in_liveness_phase:
            return
        if process.replica is None or not self._budget.may_exchange(process):
            if looks:
                again = (rng, process, down_ms, looks - 1)
                world.push(world.now_us + LOOK_US, self.exchange, *again)
            else:
                world.fault("not exchanged", (process.id,))
            return
        self._faults.kill(process)
        process.wipe()
        process.static = True
        world.wiped(process)
        self._faults.start_later(process, down_ms)

    def replace(self, rng: Prng, process: Process, down_ms: int) -> None:
        if self._take_disk(rng, process):
            self._faults.start_later(process, down_ms)
            self._operators.replace(process)

    def _take_disk(self, rng: Prng, process: Process) -> bool:
        budget = self._budget
        if not (budget.all_dynamic() and budget.may_lose(process)):
            self._world.fault("not wiped", (process.id,))
            return False
        if process.replica is not None:
            self._faults.power_off(process, rng)
        process.wipe()
        self._world.wiped(process)
        return True

    def old_copy(self, rng: Prng, process: Process, age_ms: int, down_ms: int) -> None:
        """Copy the contents of the medium now, and restore the copy later."""
        if process.replica is not None and self._budget.may_copy(process):
            copy = process.disk.memory.medium()
            args = (process, process.disk_count, copy, down_ms, LOOKS)
            self._later(age_ms, self._restore, *args)

    def _restore(
        self, process: Process, disk_count: int, copy: dict[str, bytes], down_ms: int, looks: int
    ) -> None:
        world = self._world
        if world.in_liveness_phase or process.disk_count != disk_count or process.is_refused:
            return
        if process.replica is None or not self._budget.may_forget(process):
            if looks:
                again = (process, disk_count, copy, down_ms, looks - 1)
                world.push(world.now_us + LOOK_US, self._restore, *again)
            else:
                world.fault("not restored", (process.id,))
            return
        self._faults.power_off(process, self._rng)
        process.forget(copy)
        world.restored(process)
        self._faults.start_later(process, down_ms)

    def roll_back(self, nodes: int, age_ms: int, down_ms: int, others_down_ms: int) -> None:
        """Copy the disks of these nodes now, and put the copies back later. The others restart then,
        or run on where `others_down_ms` is 0."""
        copies = {
            process.id: dict(process.disk.memory.medium())
            for process in self._world.running
            if process.id in members(nodes)
        }
        if copies:
            self._later(age_ms, self._put_back, copies, down_ms, others_down_ms)

    def _put_back(
        self, copies: Mapping[int, Mapping[str, bytes]], down_ms: int, others_down_ms: int
    ) -> None:
        world = self._world
        if world.in_liveness_phase or world.is_rolled_back:
            return
        world.rolled_back(copies.keys())
        for process in world.running:
            copy = copies.get(process.id)
            if copy is None and not others_down_ms:
                continue
            self._faults.kill(process)
            if copy is not None:
                process.forget(copy)
                world.restored(process)
            self._faults.start_later(process, others_down_ms if copy is None else down_ms)


OF_DISKS: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "wipe": ReplacedDisks.wipe,
        "exchange": ReplacedDisks.exchange,
        "replace": ReplacedDisks.replace,
        "old-copy": ReplacedDisks.old_copy,
    }
)
