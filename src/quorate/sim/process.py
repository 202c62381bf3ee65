"""One node of a world: the production replica and disk, a clock of its own, and what befalls it.

Everything that came while the last step took its time is taken by the next one together; disk jobs
that came while the disk was busy are performed together, under one sync.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from quorate.base.errors import BrokenInvariant
from quorate.base.ids import Address, Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.node.disk import Disk, write_snapshot
from quorate.node.jobs import (
    AppendBatches,
    Installed,
    InstallRefused,
    Job,
    Write,
    WriteSnapshot,
    Written,
)
from quorate.node.machine import Now
from quorate.node.replica import Effects, Input, Replica
from quorate.raft.core import RaftCore
from quorate.raft.inputs import CleanTo
from quorate.raft.ready import Clean, InstallSnapshot, SaveElection, Truncate
from quorate.raft.values import ControlState, Voter
from quorate.sim.chance import Chance
from quorate.sim.machine import KeyValueMachine
from quorate.sim.observe import Durable, Violation
from quorate.sim.operations import Operations, WatchedStorage
from quorate.sim.seams import PowerCut, WhimPolicy, dark_after, untroubled, whims
from quorate.sim.settings import raft_config
from quorate.storage.api import CorruptLog, Recovered, StorageError
from quorate.storage.log import LogOptions
from quorate.storage.memory import MemoryDisk

if TYPE_CHECKING:
    from quorate.sim.network import Call
    from quorate.sim.world import World

CLUSTER_ID: Final = "simulated"
LISTENER: Final = "CONTROLLER"
BORN_MS: Final = 1_700_000_000_000
"""The wall clock when a world begins, ms since 1970."""
NEVER: Final = 1 << 62
_RATE: Final = 1_000_000
_US_PER_ITEM: Final = 4
_READ_US: Final = 40
_SCARCE: Final = 10_000
"""With a retention of so many bytes the log is often cleaned as soon as a snapshot is written."""


class Process:
    """Owned by the world; `replica` is None while the process is down."""

    def __init__(self, world: World, node_id: int, *, voter: bool) -> None:
        plan = world.plan
        self.world = world
        self.id = node_id
        self.directory_id = Uuid(Chance(plan.seed, "directory", node_id, 0).bytes(16))
        self.disks = 1
        """How many disks it has had."""
        self.port = 9000 + node_id
        self.life = 0
        self.static = plan.static
        """Its configuration names the voters."""
        self.can_be_voter = voter or plan.auto_join or node_id % 3 != 0
        self.replica: Replica | None = None
        self.machine = KeyValueMachine()
        self.memory = MemoryDisk(where=f"node-{node_id}")
        self.operations = Operations(self._interrupted)
        self.storage = WatchedStorage(self.memory, LogOptions(), self.operations)
        self._disk = Disk(self.storage)
        self.durable = Durable()
        self.promised = Durable()
        """What had been durable when this life began: what recovery must have found."""
        self.foreign: str | None = None
        self.damage: str | None = None
        """What happened to the bytes on its disk that recovery may have to refuse."""
        self.is_refused = False
        """Recovery refused the disk."""
        self.reachable = True
        """While down: does its machine refuse connections, or is there silence?"""
        self._view = ControlState(0, ())
        self._views: tuple[ControlState, ...] = ()
        # time
        self.cpu_us = plan.timing.cpu_us
        self.wall_offset_ms = 0
        self.luck = Chance(plan.seed, "process", node_id)
        self.snapshot_luck = Chance(plan.seed, "snapshots", node_id)
        self._rate = _RATE
        self._due_us = self._timer_us = NEVER
        self._busy_us = 0
        self._scheduled = False
        self.paused_us = 0
        """Stands still until then."""
        # what comes and goes
        self.inbox: list[Input] = []
        self.calls: dict[int, Call] = {}
        """Requests of others that are not answered yet, by reply_to."""
        self.connected: dict[int, Address] = {}
        """Peers that have answered in this life, by the id they were asked under."""
        # the disk
        self.sync_us = plan.disk.sync_us
        self.full = False
        self._fail_in = 0
        self._fail_with: type[BaseException] = StorageError
        self.expects_failure = False
        """Is its disk known to have a fault, so that it may well end by itself?"""
        self.down_ms = 0
        """How long it stays down after it was told to stop."""
        self._queue: list[Job] = []
        self._performing: list[Job] | None = None
        self._writing: list[WriteSnapshot] = []
        self._epochs: list[tuple[int, int]] = []
        disk = plan.disk
        self._options = LogOptions(disk.segment_bytes, disk.segment_ms)
        self._memory = (disk.tail_bytes, disk.slice_bytes)

    # -- what it is ---------------------------------------------------------------------------
    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)

    @property
    def address(self) -> Address:
        return Address(f"node{self.id}", self.port)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return (Listener(LISTENER, f"node{self.id}", self.port),)

    @property
    def core(self) -> RaftCore:
        """Of a running process."""
        assert self.replica is not None
        return self.replica.core

    @property
    def view(self) -> ControlState:
        """kraft.version and voters in force as it sees them, or saw them last."""
        return self._view if self.replica is None else self.replica.core.voters

    @property
    def views(self) -> tuple[ControlState, ...]:
        """Also those to which a crash or a truncation may bring it back."""
        if self.replica is None:
            return self._views
        core = self.core
        durable = core.control_at(core.durable_end_offset)
        return core.voters, durable, core.control_at(max(core.high_watermark, 0))

    @property
    def leads(self) -> bool:
        return self.replica is not None and self.replica.core.role == "leader"

    @property
    def is_astray(self) -> bool:
        """Are its bootstrap servers configured where nobody is any more?"""
        assert self.replica is not None
        addresses = self.world.addresses
        return any(server not in addresses for server in self.replica.config.bootstrap_servers)

    @property
    def now(self) -> Now:
        """What it takes for the time."""
        mono = self.world.now_us * self._rate // (_RATE * 1000)
        return Now(mono, BORN_MS + mono + self.wall_offset_ms)

    # -- beginning ----------------------------------------------------------------------------
    def format(self, voters: tuple[Voter, ...]) -> None:
        """Write the first voter set as `storage format` does."""
        self.storage.open()
        writer = self.storage.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
        for data in encode_snapshot(BOOTSTRAP_SNAPSHOT_ID, ControlState(1, voters), 0, (), BORN_MS):
            writer.append(data)
        writer.freeze()
        self.storage.close()
        self._view = ControlState(1, voters)
        self._views = (self._view,)

    def start(self) -> bool:
        """Begin a new life on what the disk holds; False when that was not possible."""
        assert self.replica is None
        self.life += 1
        self.expects_failure = self.damage is not None or self._fail_in > 0 or self.full
        self.storage = WatchedStorage(self.memory, self._options, self.operations)
        try:
            recovered = self.storage.open()
        except CorruptLog as error:
            self._refuse(str(error))
            return False
        except StorageError as failed:
            if not self.expects_failure and not self.full:
                said = f"node {self.id} cannot open its disk: {failed}"
                raise Violation("disk", said) from failed
            return False
        world = self.world
        policy = whims(self.world.plan.disk)
        machine = KeyValueMachine(0 if world.is_healing else world.plan.timing.idle_ms)
        try:
            replica = Replica(
                raft_config(self, CLUSTER_ID),
                recovered,
                machine,
                self.luck.random,
                policy,
                *self._memory,
            )
        except BrokenInvariant as broken:
            raise Violation("recovery", f"node {self.id}: {broken}") from broken
        self._begin(replica, machine, recovered)
        return True

    def _refuse(self, reason: str) -> None:
        if self.damage is None:
            raise Violation("recovery", f"node {self.id} refuses a disk that is sound: {reason}")
        self.is_refused = True
        self.world.refused(self, reason)

    def _begin(self, replica: Replica, machine: KeyValueMachine, recovered: Recovered) -> None:
        log = recovered.log
        world, drift = self.world, self.world.plan.clock.drift_ppm
        self.replica, self.machine = replica, machine
        self._disk = Disk(self.storage)
        self.promised, self.durable = self.durable, Durable()
        self._epochs = list(log.epochs)
        snapshot = log.snapshots[-1] if log.snapshots else OffsetAndEpoch(0, 0)
        self._set_durable(recovered.election, log.end_offset, snapshot)
        if self.damage != "rotten":
            self.damage = None
        self._rate = _RATE + (self.luck.between(-drift, drift) if drift else 0)
        self._busy_us = world.now_us
        self._due_us = self._timer_us = NEVER
        self._scheduled = False
        self.inbox = []
        self.calls = {}
        self.connected = {}
        world.started(self, recovered)
        self.step()

    def _set_durable(self, election: object, end_offset: int, snapshot: OffsetAndEpoch) -> None:
        durable = self.durable
        durable.election = election  # type: ignore[assignment]
        durable.end_offset = end_offset
        durable.last_epoch = self._epochs[-1][0] if self._epochs else snapshot.epoch
        durable.snapshot_offset = snapshot.offset

    # -- a step -------------------------------------------------------------------------------
    def post(self, *items: Input) -> None:
        """These happened together; taken as soon as the process has time."""
        self.inbox.extend(items)
        if not self._scheduled:
            self._soon()

    def _soon(self) -> None:
        world = self.world
        if self._busy_us <= world.now_us:
            self.step()
        else:
            self._scheduled = True
            world.push(self._busy_us, self._run, self.life)

    def _run(self, life: int) -> None:
        if life == self.life and self.replica is not None:
            self._scheduled = False
            self._soon()

    def _timer(self, life: int, at_us: int) -> None:
        """Only the newest timer counts: an earlier one took the place of those before it."""
        if at_us != self._timer_us or life != self.life or self.replica is None:
            return
        world = self.world
        self._timer_us = NEVER
        if self._due_us > world.now_us:
            self._set_timer()
        elif not self._scheduled:
            self._soon()

    def _set_timer(self) -> None:
        due = self._timer_us = self._due_us
        self.world.push(due, self._timer, self.life, due)

    def step(self) -> None:
        """Let the replica take what came, and carry out what it says."""
        replica, world = self.replica, self.world
        assert replica is not None
        now_us = world.now_us
        happened, self.inbox = self.inbox, []
        mono = now_us * self._rate // (_RATE * 1000)
        try:
            effects = replica.step(happened, Now(mono, BORN_MS + mono + self.wall_offset_ms))
        except Exception as error:
            said = f"node {self.id}: {type(error).__name__}: {error}"
            raise Violation("defect", said) from error
        self._busy_us = now_us + self.cpu_us + _US_PER_ITEM * len(happened)
        world.stepped(self, happened, effects)
        self._carry_out(effects)

    def _carry_out(self, effects: Effects) -> None:
        world = self.world
        network = world.network
        for answer in effects.answers:
            network.answer(self, answer)
        for send in effects.sends:
            network.send(self, send)
        if effects.jobs:
            self._submit(effects.jobs)
        for outcome in effects.outcomes:
            world.clients.settle(self, outcome)
        if effects.faulted is not None or effects.stopped:
            self._ended(effects.faulted)
        elif effects.wake_at_ms is not None:
            due = -(-effects.wake_at_ms * _RATE * 1000 // self._rate)
            self._due_us = due
            if due <= world.now_us:
                if not self._scheduled:
                    self._scheduled = True
                    world.push(self._busy_us, self._run, self.life)
            elif due < self._timer_us:
                self._set_timer()
        else:
            self._due_us = NEVER

    def _ended(self, fault: str | None) -> None:
        """By itself: in good order, or because of its disk."""
        world = self.world
        if fault is not None and not (self.expects_failure and fault.startswith("storage failed")):
            raise Violation("fault", f"node {self.id} stopped: {fault}")
        world.faults.ended(self, fault)

    # -- the end ------------------------------------------------------------------------------
    def end(self) -> None:
        """The process is gone; what its disk keeps is decided by `kept` and `power_cut`."""
        world = self.world
        self._view, self._views = self.core.voters, self.views
        self.replica = None
        self.life += 1
        self._scheduled = False
        self.inbox = []
        world.network.hung_up(self)
        world.clients.hung_up(self)

    def stop_disk(self, luck: Chance, *, whole: bool = False) -> None:
        """Interrupt what the disk is at, anywhere in the middle (`whole`: let it end first)."""
        jobs, self._performing, self._queue = self._performing, None, []
        snapshots, self._writing = self._writing, []
        for job in jobs or ():
            if isinstance(job, Write):
                self._forget_truncated(job)
        disk = Disk(self.storage)
        if jobs:
            self._interrupt(luck, whole, disk.perform, jobs)
        for snapshot in snapshots:
            self._interrupt(luck, whole, write_snapshot, self.storage, snapshot)
        self._set_watch()

    def _interrupt(
        self, luck: Chance, whole: bool, deed: Callable[..., object], *args: object
    ) -> None:
        if not whole:
            self.operations.trouble = dark_after(luck.skewed(0, 16))
        with suppress(PowerCut):
            deed(*args)

    def _forget_truncated(self, job: Write) -> None:
        """What is being cut may be gone or not."""
        durable = self.durable
        for write in job.writes:
            if isinstance(write, Truncate):
                durable.end_offset = min(durable.end_offset, write.end_offset)
            elif isinstance(write, InstallSnapshot):
                durable.end_offset = min(durable.end_offset, write.snapshot_id.offset)

    def kept(self) -> None:
        """Only the process ended: the system still has all that was written."""
        self.memory.unlock()

    def power_cut(self, luck: Chance, *, torn: bool, reorder: bool = False) -> None:
        """What was not synced is lost, or survives in part."""
        self.memory = self.memory.crash(luck.random if torn else None, reorder=reorder)
        self._set_watch()

    def forget(self, copy: Mapping[str, bytes]) -> None:
        """All that the disk has is an old copy of itself."""
        assert self.replica is None
        self.memory = MemoryDisk(where=self.memory.where)
        for name, data in copy.items():
            self.memory.put(name, data)
        self._set_watch()
        self.durable = Durable()
        self.foreign = "restored from an old copy of its disk"

    def wipe(self) -> None:
        """A new, empty disk with a new directory id."""
        assert self.replica is None
        luck = Chance(self.world.plan.seed, "directory", self.id, self.disks)
        self.disks += 1
        self.directory_id = Uuid(luck.bytes(16))
        self.memory = MemoryDisk(where=f"node-{self.id}")
        self.durable = Durable()
        self._epochs = []
        self.damage = self.foreign = None
        self.is_refused = False
        self.static = False
        self._view, self._views = ControlState(0, ()), ()

    # -- the disk -----------------------------------------------------------------------------
    def fail_disk(self, step: int, error: type[BaseException]) -> None:
        """The `step`-th change from now on raises this."""
        self._fail_in, self._fail_with = step, error
        self.expects_failure = True
        self._set_watch()

    def fill_disk(self, full: bool) -> None:
        self.full = full
        self._set_watch()

    def mend_disk(self) -> None:
        """No more faults of its own."""
        self._fail_in, self.full = 0, False
        self.operations.mend()
        self.sync_us = self.world.plan.disk.sync_us
        self._set_watch()

    def _set_watch(self) -> None:
        armed = self._fail_in > 0 or self.full
        self.operations.trouble = self._watch if armed else untroubled

    def _interrupted(self, operation: str) -> None:
        self.world.fault("interrupted", (self.id, operation))

    def _watch(self, deed: str, name: str) -> None:
        if self.full and deed in ("write", "create"):
            self.expects_failure = True
            raise StorageError(f"cannot {deed} {name}: the disk is full")
        if self._fail_in > 0:
            self._fail_in -= 1
            if self._fail_in == 0:
                self._set_watch()
                raise self._fail_with(f"cannot {deed} {name}: the device failed")

    def _submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if isinstance(job, WriteSnapshot):
                self._writing.append(job)
                at = self.world.now_us + self._snapshot_time()
                self.world.push(at, self._snapshot_done, self.life, job)
            else:
                self._queue.append(job)
        if self._performing is None and self._queue:
            self._begin_jobs()

    def _begin_jobs(self) -> None:
        world = self.world
        jobs, self._queue = self._queue, []
        self._performing = jobs
        writes = any(isinstance(job, Write) for job in jobs)
        took = self._disk_time() if writes else _READ_US
        world.push(world.now_us + took, self._jobs_done, self.life)

    def _disk_time(self) -> int:
        plan, luck = self.world.plan.disk, self.luck
        took = 1 + int(self.sync_us * (0.5 + luck.random()))
        if plan.slow and not self.world.is_healing and luck.random() < plan.slow:
            took += luck.between(0, plan.slow_ms * 1000)
        return took

    def _snapshot_time(self) -> int:
        """A few syncs; one in eight takes so long that much happens meanwhile."""
        luck = self.snapshot_luck
        took = int(self.sync_us * 4 * (0.5 + luck.random()))
        return 1 + took * (luck.between(1, 4000) if luck.happens(0.12) else 1)

    def _jobs_done(self, life: int) -> None:
        world = self.world
        if life != self.life or self.replica is None:
            return
        if world.now_us < self.paused_us:
            world.push(self.paused_us, self._jobs_done, life)
            return
        jobs, plan = self._performing, world.plan.disk
        assert jobs is not None
        if plan.failure and not world.is_healing and self.luck.random() < plan.failure:
            world.fault("disk failed by chance", (self.id,))
            self.fail_disk(self.luck.between(1, 4), StorageError)
        try:
            results = self._disk.perform(jobs)
        except PowerCut:
            world.faults.cut_power_inside(self)
            return
        except Exception as error:
            raise Violation("defect", f"disk of node {self.id}: {error!r}") from error
        self._performing = None
        done = 0
        for result in results:
            if isinstance(result, Written | Installed | InstallRefused):
                done = result.seq
                self._account(jobs, done)
                world.durable(self, done)
        for job in jobs:
            if isinstance(job, Write) and job.seq > done:
                self._forget_truncated(job)
        if self._queue:
            self._begin_jobs()
        self.post(*results)

    def _account(self, jobs: Sequence[Job], seq: int) -> None:
        """Everything up to `seq` is on the medium."""
        durable = self.durable
        for job in jobs:
            if not isinstance(job, Write) or job.seq > seq:
                continue
            for write in job.writes:
                if isinstance(write, AppendBatches):
                    for batch in write.batches:
                        if not self._epochs or self._epochs[-1][0] < batch.epoch:
                            self._epochs.append((batch.epoch, batch.base_offset))
                        durable.end_offset = batch.last_offset + 1
                elif isinstance(write, SaveElection):
                    durable.election = write.state
                elif isinstance(write, Truncate):
                    durable.end_offset = write.end_offset
                    self._cut_epochs(write.end_offset)
                elif isinstance(write, InstallSnapshot):
                    self._account_install(write.snapshot_id)
                elif isinstance(write, Clean):
                    durable.snapshot_offset = max(durable.snapshot_offset, write.snapshot_id.offset)
        if self._epochs:
            durable.last_epoch = self._epochs[-1][0]

    def _account_install(self, snapshot_id: OffsetAndEpoch) -> None:
        durable = self.durable
        if self.storage.snapshot_size(snapshot_id) is not None:
            durable.end_offset = durable.snapshot_offset = snapshot_id.offset
            durable.last_epoch = snapshot_id.epoch
            self._epochs = [(snapshot_id.epoch, snapshot_id.offset)]

    def _cut_epochs(self, end_offset: int) -> None:
        while self._epochs and self._epochs[-1][1] >= end_offset:
            self._epochs.pop()

    def _snapshot_done(self, life: int, job: WriteSnapshot) -> None:
        world = self.world
        if life != self.life or self.replica is None:
            return
        if world.now_us < self.paused_us:
            world.push(self.paused_us, self._snapshot_done, life, job)
            return
        try:
            result = write_snapshot(self.storage, job)
        except PowerCut:
            world.faults.cut_power_inside(self)
            return
        except Exception as error:
            raise Violation("defect", f"snapshot of node {self.id}: {error!r}") from error
        self._writing.remove(job)
        if world.plan.disk.retention_bytes <= _SCARCE and self.snapshot_luck.happens(0.4):
            self.post(result, CleanTo(job.snapshot_id))
        else:
            self.post(result)

    def stand_still(self, until_us: int) -> None:
        """Stop the process until then; what comes meanwhile waits."""
        self.paused_us = max(self.paused_us, until_us)
        self._busy_us = max(self._busy_us, self.paused_us)

    def go_on(self) -> None:
        """End a pause."""
        if self.paused_us > self.world.now_us:
            self.paused_us = self._busy_us = self.world.now_us
            self.world.push(self.world.now_us, self._run, self.life)

    def burst(self, count: int) -> None:
        """Let it write so many batches at once, if it leads."""
        if self.leads:
            self.machine.write_at_once(count)
            self.post()

    def want_snapshot(self) -> None:
        """Let the policy say yes once."""
        if self.replica is not None:
            policy = self.replica._policy
            assert isinstance(policy, WhimPolicy)
            policy.wanted.append(True)
