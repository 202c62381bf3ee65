"""Performs the fault events of a plan, and restarts the processes that they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from quorate.raft.inputs import Shutdown
from quorate.sim.plan.plan import LEADER, OPERATIONS, FaultEvent, members
from quorate.sim.prng import Prng
from quorate.sim.world import corruption as damage
from quorate.sim.world import partitions as cuts
from quorate.sim.world.cluster import SimulatedCluster
from quorate.sim.world.crash_points import PowerCutError
from quorate.sim.world.fault_budget import FaultBudget
from quorate.sim.world.network import Network
from quorate.sim.world.operators import Operators
from quorate.sim.world.process import Process
from quorate.sim.world.replaced_disks import LOOK_US, LOOKS, OF_DISKS, ReplacedDisks
from quorate.storage.api import StorageError
from quorate.storage.memory import MemoryDisk

_How = Callable[[MemoryDisk, Prng], str | None]
"""Damages a disk. Returns a description, or None where there was nothing to damage."""
_MS: Final = 1000
_AGAIN_MS: Final = 700
"""The delay before a process that ended by itself, or failed to start, is started again."""


class Faults:
    """`begin` schedules the fault events. Each one has its own random stream."""

    def __init__(
        self, world: SimulatedCluster, network: Network, operators: Operators, budget: FaultBudget
    ) -> None:
        self._world = world
        self._network = network
        self._operators = operators
        self._budget = budget
        self._rng = Prng(world.plan.seed, "faults")
        self._disks = ReplacedDisks(world, operators, budget, self, self._rng)
        self._damage_once_verified: dict[int, Prng] = {}
        """Nodes whose disk is damaged right after its next recovery."""

    def begin(self) -> None:
        seen: dict[tuple[int, str, tuple[int, ...]], int] = {}
        for fault_event in self._world.plan.fault_events:
            name = (fault_event.at_ms, fault_event.kind, fault_event.args)
            seen[name] = seen.get(name, 0) + 1
            rng = Prng(self._world.plan.seed, str(fault_event), seen[name])
            self._world.push(fault_event.at_ms * _MS, self.do, fault_event, rng)

    def do(self, fault_event: FaultEvent, rng: Prng, looks: int = LOOKS) -> None:
        """Perform this fault event now, unless all faults are over. Some kinds wait for a leader."""
        world = self._world
        if world.in_liveness_phase:
            return
        if (
            fault_event.kind in _OF_LEADERS
            and fault_event.args[0] == LEADER
            and looks
            and not self._is_led()
        ):
            world.push(world.now_us + LOOK_US, self.do, fault_event, rng, looks - 1)
            return
        world.fault(fault_event.kind, fault_event.args)
        kind = fault_event.kind
        if kind in _OF_WORLD:
            _OF_WORLD[kind](self, rng, *fault_event.args)
            return
        if kind in cuts.OF_WORLD:
            cuts.OF_WORLD[kind](self._network, rng, *fault_event.args)
            return
        if kind == "roll-back":
            self._disks.roll_back(*fault_event.args)
            return
        if kind in _OF_OPERATORS:
            getattr(self._operators, kind.replace("-", "_"))(*fault_event.args)
            return
        node, *rest = fault_event.args
        process = world.leader() if node == LEADER else world.processes[node]
        if process is None:
            return
        if kind in cuts.OF_NODES:
            cuts.OF_NODES[kind](self._network, rng, process, *rest)
        elif kind in OF_DISKS:
            OF_DISKS[kind](self._disks, rng, process, *rest)
        else:
            _OF_NODES[kind](self, rng, process, *rest)

    def _is_led(self) -> bool:
        """Whether a leader exists that accepts writes."""
        leader = self._world.leader()
        if leader is None or leader.replica is None:
            return False
        return leader.replica.leading_epoch is not None

    # -- ends and beginnings ------------------------------------------------------------------
    def ended(self, process: Process, fault: str | None) -> None:
        """A process ended by itself. It is started again after a delay."""
        rng = self._rng
        if fault is None:
            process.reachable = True
            process.end()
            process.disk.stop(rng, whole=True)
            self._close(process, rng)
            self._world.crashed(process)
            self.start_later(process, process.down_ms)
        else:
            self._fail_disk_of(process, rng)
            self._start_after_failure(process)

    def _close(self, process: Process, rng: Prng) -> None:
        """Closing writes too, and that may fail like any other write."""
        try:
            process.storage.close()
        except PowerCutError:
            process.disk.cut_power(rng, torn=self._world.plan.disk.torn)
        except StorageError:
            process.disk.keep()

    def _fail_disk_of(self, process: Process, rng: Prng) -> None:
        """Its disk failed. Unsynced data may be in the page cache, or lost."""
        process.reachable = True
        process.end()
        process.disk.stop(rng)
        if rng.happens(0.5):
            process.disk.cut_power(rng, torn=True)
        else:
            process.disk.keep()
        self._world.crashed(process)

    def start_later(self, process: Process, down_ms: int) -> None:
        self._world.push(self._world.now_us + down_ms * _MS, self._start, process, process.turn)

    def _start_after_failure(self, process: Process) -> None:
        """Start it after the downtime of the fault event that failed its disk, or a default one."""
        down_ms = process.disk.take_down_ms()
        self.start_later(process, _AGAIN_MS if down_ms is None else down_ms)

    def _start(self, process: Process, turn: int) -> None:
        if process.turn == turn and process.replica is None:
            self.start(process)

    def start(self, process: Process) -> None:
        """Start a process that is down. Retries while its disk does not work."""
        if process.is_refused:
            return
        try:
            if process.start():
                return
        except PowerCutError:
            self._world.fault("power cut in recovery", (process.id,))
            process.turn += 1
            process.disk.cut_power(self._rng, torn=True)
        else:
            process.disk.keep()
        if not process.is_refused:
            self._start_after_failure(process)

    def cut_power_inside(self, process: Process) -> None:
        """The power failed at a step of a disk operation."""
        self.power_off(process, self._rng)
        self._start_after_failure(process)

    def power_off(self, process: Process, rng: Prng, *, reorder: bool = False) -> None:
        """End a running process by a power cut."""
        process.reachable = False
        process.end()
        process.disk.stop(rng)
        process.disk.cut_power(rng, torn=self._world.plan.disk.torn, reorder=reorder)
        self._world.crashed(process)

    # -- processes ----------------------------------------------------------------------------
    def kill(self, process: Process) -> None:
        """End a running process. The page cache keeps everything that it wrote."""
        process.reachable = True
        process.end()
        process.disk.stop(self._rng)
        process.disk.keep()
        self._world.crashed(process)

    def _kill(self, rng: Prng, process: Process, down_ms: int) -> None:
        if process.replica is not None:
            self.kill(process)
            self.start_later(process, down_ms)

    def _power(self, rng: Prng, process: Process, down_ms: int) -> None:
        if process.replica is not None:
            self.power_off(process, rng)
            self.start_later(process, down_ms)

    def _power_reorder(self, rng: Prng, process: Process, down_ms: int) -> None:
        if process.replica is None:
            return
        risky = self._budget.may_lose(process)
        if risky:
            process.damage = process.damage or "reordered"
        self.power_off(process, rng, reorder=risky)
        self.start_later(process, down_ms)

    def _power_cut_of_many(self, rng: Prng, nodes: int, down_ms: int) -> None:
        self._cut_power_of(rng, nodes, down_ms, self._power)

    def _power_cut_of_many_reorder(self, rng: Prng, nodes: int, down_ms: int) -> None:
        """All lose power. The unsynced writes of nodes that no majority needs persist in any order."""
        self._cut_power_of(rng, nodes, down_ms, self._power_reorder)

    def _cut_power_of(
        self, rng: Prng, nodes: int, down_ms: int, how: Callable[[Prng, Process, int], None]
    ) -> None:
        for node in members(nodes):
            process = self._world.processes.get(node)
            if process is not None:
                how(rng, process, down_ms + rng.below(500))

    def _stop(self, rng: Prng, process: Process, down_ms: int) -> None:
        """Shut the process down gracefully."""
        if process.replica is not None:
            process.down_ms = down_ms
            process.post(Shutdown(rng.between(500, 5000)))

    def _renew(self, rng: Prng, process: Process, down_ms: int) -> None:
        """Upgrade its software to both kraft.versions from its next start on."""
        process.is_old = process.is_young = False
        self._stop(rng, process, down_ms)

    def _pause(self, rng: Prng, process: Process, for_ms: int) -> None:
        if process.replica is not None:
            process.stand_still(self._world.now_us + for_ms * _MS)
            self._network.paused(process)

    def _slow_cpu(self, rng: Prng, process: Process, step_us: int, for_ms: int) -> None:
        process.cpu_us = step_us
        self._later(for_ms, self._set_cpu, process)

    def _set_cpu(self, process: Process) -> None:
        process.cpu_us = self._world.plan.timing.cpu_us

    def _jump(self, rng: Prng, process: Process, wall_ms: int) -> None:
        process.wall_offset_ms += wall_ms if rng.happens(0.5) else -wall_ms

    def _churn(self, rng: Prng, process: Process, count: int, period_ms: int, times: int) -> None:
        """The leader, or the process without one, writes many batches, then a snapshot, and removes
        older snapshots. Repeats `times` times."""
        if not times or self._world.in_liveness_phase:
            return
        operators = self._operators
        process = self._world.leader() or process
        process.burst(count)
        self._later(period_ms // 3, operators.snapshot, process.id)
        self._later(period_ms - 1, operators.clean, process.id)
        self._later(period_ms, self._churn, rng, process, count, period_ms, times - 1)

    def _later(self, for_ms: int, fault_event: Callable[..., None], *args: object) -> None:
        self._world.push(self._world.now_us + for_ms * _MS, fault_event, *args)

    # -- disks --------------------------------------------------------------------------------
    def _slow_disk(self, rng: Prng, process: Process, sync_ms: int, for_ms: int) -> None:
        process.disk.sync_us = sync_ms * _MS
        self._later(for_ms, self._set_sync, process)

    def _set_sync(self, process: Process) -> None:
        process.disk.sync_us = self._world.plan.disk.sync_us

    def _fail_disk(self, rng: Prng, process: Process, step: int, down_ms: int) -> None:
        process.disk.fail(step, StorageError, down_ms)

    def _crash_disk(self, rng: Prng, process: Process, step: int, down_ms: int) -> None:
        process.disk.fail(step, PowerCutError, down_ms)

    def _crash_recovery(self, rng: Prng, process: Process, step: int, down_ms: int) -> None:
        if process.replica is not None:
            self.power_off(process, rng)
            process.disk.fail(step, PowerCutError)
            self.start_later(process, down_ms)

    def _crash_inside(self, rng: Prng, process: Process, what: int, step: int) -> None:
        """Cut the power within the next operation of this kind, or soon after it."""
        process.disk.operations.power_cut_after = OPERATIONS[what], step

    def _full_disk(self, rng: Prng, process: Process, for_ms: int) -> None:
        process.disk.fill(True)
        self._later(for_ms, process.disk.fill, False)

    def _damage_live(self, rng: Prng, process: Process) -> None:
        """Damage bytes that recovery has read: now, or after the next recovery."""
        if rng.happens(0.5):
            self._damage_once_verified[process.id] = rng
        else:
            self._damage(rng, process, damage.corrupt_live)

    def recovered(self, process: Process) -> None:
        """Recovery accepted the disk, and a new incarnation has begun."""
        rng = self._damage_once_verified.pop(process.id, None)
        if rng is not None and not self._world.in_liveness_phase:
            self._damage(rng, process, damage.corrupt_live)

    def _misplace(self, rng: Prng, process: Process, size: int, down_ms: int) -> None:
        self._damage_and_restart(
            rng, process, down_ms, lambda disk, rng: damage.misplace(disk, rng, size)
        )

    def _lose(self, rng: Prng, process: Process, down_ms: int, what: str) -> None:
        """Lose a file while the process is down."""
        if not self._may_damage(process):
            return
        self.power_off(process, rng)
        self._report(process, damage.lose(process.disk.memory, rng, what))
        self.start_later(process, down_ms)

    def _damage_and_restart(self, rng: Prng, process: Process, down_ms: int, how: _How) -> None:
        self._damage(rng, process, how)
        if process.replica is not None and process.damage is not None:
            self.power_off(process, rng)
            self.start_later(process, down_ms)

    def _may_damage(self, process: Process) -> bool:
        """Whether the disk is intact and no majority needs it."""
        damaged = process.damage == "damaged"
        may = not damaged and process.replica is not None and self._budget.may_lose(process)
        if not may:
            self._world.fault("not damaged", (process.id,))
        return may

    def _damage(self, rng: Prng, process: Process, how: _How) -> None:
        """Damage durable bytes."""
        if self._may_damage(process):
            self._report(process, how(process.disk.memory, rng))

    def _report(self, process: Process, what: str | None) -> None:
        if what is not None:
            process.damage = "damaged"
            process.disk.expects_failure = True
            self._world.fault("damaged", (process.id, what))

    # -- another address ----------------------------------------------------------------------
    def _move(self, rng: Prng, process: Process, down_ms: int) -> None:
        """Restart it at another address, which it reports to the quorum (UpdateRaftVoter)."""
        world = self._world
        if not (self._budget.all_dynamic() and self._budget.may_lose(process)):
            world.fault("not moved", (process.id,))
            return
        self._kill(rng, process, down_ms)
        world.move(process)

    def _move_outside(self, rng: Prng, process: Process, down_ms: int) -> None:
        """Restart it with another port of the second listener. It reports that one too."""
        self._kill(rng, process, down_ms)
        self._world.move_outside(process)


_OF_LEADERS: Final = frozenset({"churn", "fork"})
_OF_OPERATORS: Final = frozenset(
    {
        "add",
        "add-unacked",
        "remove",
        "alter",
        "upgrade",
        "insist",
        "snapshot",
        "clean",
        "resign",
        "err",
    }
)
_OF_WORLD: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "blackout": Faults._power_cut_of_many,
        "blackout-reorder": Faults._power_cut_of_many_reorder,
    }
)
_OF_NODES: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "kill": Faults._kill,
        "power": Faults._power,
        "power-reorder": Faults._power_reorder,
        "stop": Faults._stop,
        "renew": Faults._renew,
        "pause": Faults._pause,
        "slow-cpu": Faults._slow_cpu,
        "jump": Faults._jump,
        "slow-disk": Faults._slow_disk,
        "fail-disk": Faults._fail_disk,
        "crash-disk": Faults._crash_disk,
        "crash-recovery": Faults._crash_recovery,
        "crash-inside": Faults._crash_inside,
        "full-disk": Faults._full_disk,
        "rot": partial(Faults._damage_and_restart, how=damage.corrupt_bytes),
        "rot-live": Faults._damage_live,
        "misdirect": partial(Faults._damage_and_restart, how=damage.misdirect),
        "misplace": Faults._misplace,
        "rot-epoch": partial(Faults._damage_and_restart, how=damage.corrupt_epoch),
        "lose-segment": partial(Faults._lose, what="segment"),
        "lose-log": partial(Faults._lose, what="log"),
        "lose-snapshot": partial(Faults._lose, what="snapshot"),
        "lose-vote": partial(Faults._lose, what="vote"),
        "lose-epochs": partial(Faults._lose, what="epochs"),
        "churn": Faults._churn,
        "move": Faults._move,
        "move-outside": Faults._move_outside,
    }
)
