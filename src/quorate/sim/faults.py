"""Carries out the deeds of a plan, and brings back what they broke."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from quorate.raft.inputs import Shutdown
from quorate.sim import cuts, damage
from quorate.sim.chance import Chance
from quorate.sim.plan import LEADER, OPERATIONS, Deed, members
from quorate.sim.process import Process
from quorate.sim.seams import PowerCut
from quorate.storage.api import StorageError
from quorate.storage.memory import MemoryDisk

if TYPE_CHECKING:
    from quorate.sim.world import World

_How = Callable[[MemoryDisk, Chance], str | None]
"""Damages a disk, and says how."""
_MS: Final = 1000
_AGAIN_MS: Final = 700
"""When a process is started again that ended by itself, or could not be."""
_LOOK_US: Final = 50_000
_LOOKS: Final = 60


class Faults:
    """`begin` sets the deeds on the world's clock; each has luck of its own, by its place."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._luck = Chance(world.plan.seed, "faults")
        self._rots_once_verified: dict[int, Chance] = {}
        """Nodes whose disk rots right after its next recovery."""

    def begin(self) -> None:
        seen: dict[tuple[int, str, tuple[int, ...]], int] = {}
        for deed in self._world.plan.deeds:
            name = (deed.at_ms, deed.kind, deed.args)
            seen[name] = seen.get(name, 0) + 1
            luck = Chance(self._world.plan.seed, str(deed), seen[name])
            self._world.push(deed.at_ms * _MS, self.do, deed, luck)

    def do(self, deed: Deed, luck: Chance, looks: int = _LOOKS) -> None:
        """Do this deed now, unless all faults are over; some wait for a leader."""
        world = self._world
        if world.is_healing:
            return
        if deed.kind in _OF_LEADERS and deed.args[0] == LEADER and looks and not self._is_led():
            world.push(world.now_us + _LOOK_US, self.do, deed, luck, looks - 1)
            return
        world.fault(deed.kind, deed.args)
        kind = deed.kind
        if kind in _OF_WORLD:
            _OF_WORLD[kind](self, luck, *deed.args)
            return
        if kind in cuts.OF_WORLD:
            cuts.OF_WORLD[kind](world, luck, *deed.args)
            return
        if kind in _OF_OPERATORS:
            getattr(world.operators, kind.replace("-", "_"))(*deed.args)
            return
        node, *rest = deed.args
        process = world.leader() if node == LEADER else world.processes[node]
        if process is None:
            return
        if kind in cuts.OF_NODES:
            cuts.OF_NODES[kind](world, luck, process, *rest)
        else:
            _OF_NODES[kind](self, luck, process, *rest)

    def _is_led(self) -> bool:
        """Does anybody lead who may write?"""
        leader = self._world.leader()
        if leader is None or leader.replica is None:
            return False
        return leader.replica.leading_epoch is not None

    # -- ends and beginnings ------------------------------------------------------------------
    def ended(self, process: Process, fault: str | None) -> None:
        """A process ended by itself; someone starts it again."""
        luck = self._luck
        if fault is None:
            process.reachable = True
            process.end()
            process.drive.stop(luck, whole=True)
            self._close(process, luck)
            self._world.crashed(process)
            self.start_later(process, process.down_ms)
        else:
            self._die(process, luck)
            self._start_after_failure(process)

    def _close(self, process: Process, luck: Chance) -> None:
        """Closing writes too, and that may fail like any other write."""
        try:
            process.storage.close()
        except PowerCut:
            process.drive.cut_power(luck, torn=self._world.plan.disk.torn)
        except StorageError:
            process.drive.keep()

    def _die(self, process: Process, luck: Chance) -> None:
        """Its disk failed: what had not been synced may be in the system's cache, or lost."""
        process.reachable = True
        process.end()
        process.drive.stop(luck)
        if luck.happens(0.5):
            process.drive.cut_power(luck, torn=True)
        else:
            process.drive.keep()
        self._world.crashed(process)

    def start_later(self, process: Process, down_ms: int) -> None:
        self._world.push(self._world.now_us + down_ms * _MS, self._start, process, process.turn)

    def _start_after_failure(self, process: Process) -> None:
        """When the deed says so that made its disk fail; chance says nothing."""
        down_ms = process.drive.take_down_ms()
        self.start_later(process, _AGAIN_MS if down_ms is None else down_ms)

    def _start(self, process: Process, turn: int) -> None:
        if process.turn == turn and process.replica is None:
            self.start(process)

    def start(self, process: Process) -> None:
        """Start a process that is down; tries again when its disk does not work yet."""
        if process.is_refused:
            return
        try:
            if process.start():
                return
        except PowerCut:
            self._world.fault("power cut in recovery", (process.id,))
            process.turn += 1
            process.drive.cut_power(self._luck, torn=True)
        else:
            process.drive.keep()
        if not process.is_refused:
            self._start_after_failure(process)

    def cut_power_inside(self, process: Process) -> None:
        """The machine went dark at a step of the disk."""
        self._power_off(process, self._luck)
        self._start_after_failure(process)

    def _power_off(self, process: Process, luck: Chance, *, reorder: bool = False) -> None:
        process.reachable = False
        process.end()
        process.drive.stop(luck)
        process.drive.cut_power(luck, torn=self._world.plan.disk.torn, reorder=reorder)
        self._world.crashed(process)

    # -- processes ----------------------------------------------------------------------------
    def kill(self, process: Process) -> None:
        """End a running process; its system still has all that it wrote."""
        process.reachable = True
        process.end()
        process.drive.stop(self._luck)
        process.drive.keep()
        self._world.crashed(process)

    def _kill(self, luck: Chance, process: Process, down_ms: int) -> None:
        if process.replica is not None:
            self.kill(process)
            self.start_later(process, down_ms)

    def _power(self, luck: Chance, process: Process, down_ms: int) -> None:
        if process.replica is not None:
            self._power_off(process, luck)
            self.start_later(process, down_ms)

    def _power_reorder(self, luck: Chance, process: Process, down_ms: int) -> None:
        if process.replica is None:
            return
        risky = self._world.ledger.may_lose(process)
        if risky:
            process.damage = process.damage or "reordered"
        self._power_off(process, luck, reorder=risky)
        self.start_later(process, down_ms)

    def _blackout(self, luck: Chance, nodes: int, down_ms: int) -> None:
        self._darken(luck, nodes, down_ms, self._power)

    def _blackout_reorder(self, luck: Chance, nodes: int, down_ms: int) -> None:
        """The writes of those without which a majority can do reach the disk in any order."""
        self._darken(luck, nodes, down_ms, self._power_reorder)

    def _darken(
        self, luck: Chance, nodes: int, down_ms: int, how: Callable[[Chance, Process, int], None]
    ) -> None:
        for node in members(nodes):
            process = self._world.processes.get(node)
            if process is not None:
                how(luck, process, down_ms + luck.below(500))

    def _stop(self, luck: Chance, process: Process, down_ms: int) -> None:
        """Shut down in good order."""
        if process.replica is not None:
            process.down_ms = down_ms
            process.post(Shutdown(luck.between(500, 5000)))

    def _renew(self, luck: Chance, process: Process, down_ms: int) -> None:
        """From its next start on its software knows both versions of kraft.version."""
        process.is_old = process.is_young = False
        self._stop(luck, process, down_ms)

    def _pause(self, luck: Chance, process: Process, for_ms: int) -> None:
        if process.replica is not None:
            process.stand_still(self._world.now_us + for_ms * _MS)
            self._world.network.paused(process)

    def _slow_cpu(self, luck: Chance, process: Process, step_us: int, for_ms: int) -> None:
        process.cpu_us = step_us
        self._later(for_ms, self._set_cpu, process)

    def _set_cpu(self, process: Process) -> None:
        process.cpu_us = self._world.plan.timing.cpu_us

    def _jump(self, luck: Chance, process: Process, wall_ms: int) -> None:
        process.wall_offset_ms += wall_ms if luck.happens(0.5) else -wall_ms

    def _churn(
        self, luck: Chance, process: Process, count: int, period_ms: int, times: int
    ) -> None:
        """It, or who leads in its place, writes a lot and soon cleans its log of that."""
        if not times or self._world.is_healing:
            return
        operators = self._world.operators
        process = self._world.leader() or process
        process.burst(count)
        self._later(period_ms // 3, operators.snapshot, process.id)
        self._later(period_ms - 1, operators.clean, process.id)
        self._later(period_ms, self._churn, luck, process, count, period_ms, times - 1)

    def _later(self, for_ms: int, deed: Callable[..., None], *args: object) -> None:
        self._world.push(self._world.now_us + for_ms * _MS, deed, *args)

    # -- disks --------------------------------------------------------------------------------
    def _wipe(self, luck: Chance, process: Process, down_ms: int) -> None:
        """A new disk in place of the old; auto join or an operator brings it back."""
        if self._take_disk(luck, process):
            self.start_later(process, down_ms)

    def _replace(self, luck: Chance, process: Process, down_ms: int) -> None:
        if self._take_disk(luck, process):
            self.start_later(process, down_ms)
            self._world.operators.replace(process)

    def _take_disk(self, luck: Chance, process: Process) -> bool:
        ledger = self._world.ledger
        if not (ledger.all_dynamic() and ledger.may_lose(process)):
            self._world.fault("not wiped", (process.id,))
            return False
        if process.replica is not None:
            self._power_off(process, luck)
        process.wipe()
        self._world.wiped(process)
        return True

    def _old_copy(self, luck: Chance, process: Process, age_ms: int, down_ms: int) -> None:
        """Copy what is on the medium now; some time later that is all there is."""
        if process.replica is not None and self._world.ledger.may_copy(process):
            copy = process.drive.memory.medium()
            args = (process, process.disks, copy, down_ms, _LOOKS)
            self._later(age_ms, self._restore, *args)

    def _restore(
        self, process: Process, disks: int, copy: dict[str, bytes], down_ms: int, looks: int
    ) -> None:
        world = self._world
        if world.is_healing or process.disks != disks or process.is_refused:
            return
        if process.replica is None or not world.ledger.may_forget(process):
            if looks:
                again = (process, disks, copy, down_ms, looks - 1)
                world.push(world.now_us + _LOOK_US, self._restore, *again)
            else:
                world.fault("not restored", (process.id,))
            return
        self._power_off(process, self._luck)
        process.forget(copy)
        world.restored(process)
        self.start_later(process, down_ms)

    def _slow_disk(self, luck: Chance, process: Process, sync_ms: int, for_ms: int) -> None:
        process.drive.sync_us = sync_ms * _MS
        self._later(for_ms, self._set_sync, process)

    def _set_sync(self, process: Process) -> None:
        process.drive.sync_us = self._world.plan.disk.sync_us

    def _fail_disk(self, luck: Chance, process: Process, step: int, down_ms: int) -> None:
        process.drive.fail(step, StorageError, down_ms)

    def _crash_disk(self, luck: Chance, process: Process, step: int, down_ms: int) -> None:
        process.drive.fail(step, PowerCut, down_ms)

    def _crash_recovery(self, luck: Chance, process: Process, step: int, down_ms: int) -> None:
        if process.replica is not None:
            self._power_off(process, luck)
            process.drive.fail(step, PowerCut)
            self.start_later(process, down_ms)

    def _crash_inside(self, luck: Chance, process: Process, what: int, step: int) -> None:
        """In the middle of the next such operation, or soon after it."""
        process.drive.operations.dark = OPERATIONS[what], step

    def _full_disk(self, luck: Chance, process: Process, for_ms: int) -> None:
        process.drive.fill(True)
        self._later(for_ms, process.drive.fill, False)

    def _rot_live(self, luck: Chance, process: Process) -> None:
        """Now, or in the next life: what was found sound then is still to be read."""
        if luck.happens(0.5):
            self._rots_once_verified[process.id] = luck
        else:
            self._spoil(luck, process, damage.rot_live)

    def recovered(self, process: Process) -> None:
        """It has found its disk sound, and a new life has begun."""
        luck = self._rots_once_verified.pop(process.id, None)
        if luck is not None and not self._world.is_healing:
            self._spoil(luck, process, damage.rot_live)

    def _misplace(self, luck: Chance, process: Process, size: int, down_ms: int) -> None:
        self._spoil_and_restart(
            luck, process, down_ms, lambda disk, luck: damage.misplace(disk, luck, size)
        )

    def _lose(self, luck: Chance, process: Process, down_ms: int, what: str) -> None:
        """While the process is down: what it had under way is over."""
        if not self._may_spoil(process):
            return
        self._power_off(process, luck)
        self._tell(process, damage.lose(process.drive.memory, luck, what))
        self.start_later(process, down_ms)

    def _spoil_and_restart(self, luck: Chance, process: Process, down_ms: int, how: _How) -> None:
        self._spoil(luck, process, how)
        if process.replica is not None and process.damage is not None:
            self._power_off(process, luck)
            self.start_later(process, down_ms)

    def _may_spoil(self, process: Process) -> bool:
        """A sound disk, where a majority can do without it."""
        spoiled = process.damage == "rotten"
        may = not spoiled and process.replica is not None and self._world.ledger.may_lose(process)
        if not may:
            self._world.fault("not spoiled", (process.id,))
        return may

    def _spoil(self, luck: Chance, process: Process, how: _How) -> None:
        """Damage bytes that the disk had promised to keep."""
        if self._may_spoil(process):
            self._tell(process, how(process.drive.memory, luck))

    def _tell(self, process: Process, what: str | None) -> None:
        if what is not None:
            process.damage = "rotten"
            process.drive.expects_failure = True
            self._world.fault("spoiled", (process.id, what))

    # -- another address ----------------------------------------------------------------------
    def _move(self, luck: Chance, process: Process, down_ms: int) -> None:
        """Start it at another address; it tells the quorum by itself (UpdateRaftVoter)."""
        world = self._world
        if not (world.ledger.all_dynamic() and world.ledger.may_lose(process)):
            world.fault("not moved", (process.id,))
            return
        self._kill(luck, process, down_ms)
        world.move(process)

    def _move_outside(self, luck: Chance, process: Process, down_ms: int) -> None:
        """Only where no controller looks for it; that, too, it tells by itself."""
        self._kill(luck, process, down_ms)
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
        "blackout": Faults._blackout,
        "blackout-reorder": Faults._blackout_reorder,
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
        "wipe": Faults._wipe,
        "replace": Faults._replace,
        "old-copy": Faults._old_copy,
        "slow-disk": Faults._slow_disk,
        "fail-disk": Faults._fail_disk,
        "crash-disk": Faults._crash_disk,
        "crash-recovery": Faults._crash_recovery,
        "crash-inside": Faults._crash_inside,
        "full-disk": Faults._full_disk,
        "rot": partial(Faults._spoil_and_restart, how=damage.rot),
        "rot-live": Faults._rot_live,
        "misdirect": partial(Faults._spoil_and_restart, how=damage.misdirect),
        "misplace": Faults._misplace,
        "rot-epoch": partial(Faults._spoil_and_restart, how=damage.rot_epoch),
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
