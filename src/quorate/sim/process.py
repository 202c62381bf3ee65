"""One node of a world: the production replica and disk, a clock of its own, and what befalls it.

Everything that came while the last step took its time is taken by the next one together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from quorate.base.errors import BrokenInvariant
from quorate.base.ids import Address, Listener, ReplicaKey, Uuid
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, encode_snapshot
from quorate.node.machine import Now
from quorate.node.reads import READ_BYTES
from quorate.node.replica import Effects, Input, Memory, Replica
from quorate.node.tail import TAIL_BYTES
from quorate.raft.core import RaftCore
from quorate.raft.values import ControlState, Voter
from quorate.sim.chance import Chance
from quorate.sim.drive import Drive
from quorate.sim.machine import KeyValueMachine
from quorate.sim.observe import Durable, Violation
from quorate.sim.operations import WatchedStorage
from quorate.sim.seams import WhimPolicy, whims
from quorate.sim.settings import raft_config
from quorate.storage.api import CorruptLog, Recovered, StorageError

if TYPE_CHECKING:
    from quorate.sim.network import Call
    from quorate.sim.world import World

CLUSTER_ID: Final = "simulated"
LISTENER: Final = "CONTROLLER"
OUTSIDE_LISTENER: Final = "EXTERNAL"
"""The second one, where there are two: no controller uses it."""
_OUTSIDE_PORTS: Final = 10_000
"""So far behind the first one's port is the second one's at first."""
BORN_MS: Final = 1_700_000_000_000
"""The wall clock when a world begins, ms since 1970."""
NEVER: Final = 1 << 62
_RATE: Final = 1_000_000
_A_MS: Final = _RATE * 1000
_US_PER_ITEM: Final = 4
_TAILS_READ: Final = READ_BYTES // TAIL_BYTES
"""Read for others at a time: so many times what the tail holds, where that is little, too."""


class Process:
    """Owned by the world; `replica` is None while the process is down."""

    def __init__(self, world: World, node_id: int, *, voter: bool) -> None:
        plan = world.plan
        self.world = world
        self.id = node_id
        self.directory_id = Uuid(Chance(plan.seed, "directory", node_id, 0).bytes(16))
        self.former_id: Uuid | None = None
        """The directory id of its last disk but this."""
        self.disks = 1
        """How many disks it has had."""
        self.is_old = plan.old >> node_id & 1 > 0
        """Its software knows no kraft.version 1."""
        self.is_young = plan.young >> node_id & 1 > 0
        """Its software knows no kraft.version 0."""
        self.outside_port = 9000 + node_id + _OUTSIDE_PORTS
        self.listen(9000 + node_id)
        self.life = 0
        """How often it has begun to run."""
        self.turn = 0
        """Counts its beginnings, tried ones too, and its ends: what was meant for one is not taken
        for what was meant for another."""
        self.static = plan.static
        """Its configuration names the voters."""
        self.can_be_voter = voter or plan.auto_join or node_id % 3 != 0
        self.replica: Replica | None = None
        self.machine = KeyValueMachine()
        self.promised = Durable()
        """What had been durable when this life began: what recovery must have found."""
        self.foreign: str | None = None
        self.damage: str | None = None
        """What happened to the bytes on its disk that recovery may have to refuse."""
        self.is_refused = False
        """Recovery refused the disk."""
        self.reachable = True
        """While down: does its machine refuse connections, or is there silence?"""
        self.has_moved = False
        """Its address is not the one that it began with."""
        self._view = ControlState(0, ())
        self._views: tuple[ControlState, ...] = ()
        # time
        self.cpu_us = plan.timing.cpu_us
        self.wall_offset_ms = 0
        self.luck = Chance(plan.seed, "process", node_id)
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
        self.down_ms = 0
        """How long it stays down after it was told to stop."""
        self.drive = Drive(self)
        tail = plan.disk.tail_bytes
        self._memory = Memory(tail, plan.disk.slice_bytes, _TAILS_READ * tail)

    # -- what it is ---------------------------------------------------------------------------
    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory_id)

    def listen(self, port: int) -> None:
        """From the next start on."""
        host = f"node{self.id}"
        self.port = port
        self.address = Address(host, port)
        found = (
            Listener(LISTENER, host, port),
            Listener(OUTSIDE_LISTENER, host, self.outside_port),
        )
        self.listeners: tuple[Listener, ...] = found[: self.world.plan.listeners]

    @property
    def place(self) -> tuple[Listener, ...]:
        """Where the other controllers find it."""
        return self.listeners[:1]

    @property
    def storage(self) -> WatchedStorage:
        return self.drive.storage

    @property
    def durable(self) -> Durable:
        return self.drive.account.durable

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

    def lives(self, turn: int) -> bool:
        """Is it still in the life of this turn?"""
        return turn == self.turn and self.replica is not None

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
        mono = self.world.now_us * self._rate // _A_MS
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
        self.turn += 1
        self.paused_us = 0
        drive = self.drive
        try:
            recovered = drive.open()
        except CorruptLog as error:
            self._refuse(str(error))
            return False
        except StorageError as failed:
            if not drive.expects_failure and not drive.full:
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
                self._memory,
            )
        except BrokenInvariant as broken:
            raise Violation("recovery", f"node {self.id}: {broken}") from broken
        self._begin(replica, machine, recovered)
        world.faults.recovered(self)
        return True

    def _refuse(self, reason: str) -> None:
        if self.damage is None:
            raise Violation("recovery", f"node {self.id} refuses a disk that is sound: {reason}")
        self.is_refused = True
        self.world.refused(self, reason)

    def _begin(self, replica: Replica, machine: KeyValueMachine, recovered: Recovered) -> None:
        world, drift = self.world, self.world.plan.clock.drift_ppm
        self.replica, self.machine = replica, machine
        self.life += 1
        self.promised = self.durable
        self.drive.begin(recovered)
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
            world.push(self._busy_us, self._run, self.turn)

    def _run(self, turn: int) -> None:
        if self.lives(turn):
            self._scheduled = False
            self._soon()

    def _timer(self, turn: int, at_us: int) -> None:
        """Only the newest timer counts: an earlier one took the place of those before it."""
        if at_us != self._timer_us or not self.lives(turn):
            return
        world = self.world
        self._timer_us = NEVER
        if self._due_us > world.now_us:
            self._set_timer()
        elif not self._scheduled:
            self._soon()

    def _set_timer(self) -> None:
        due = self._timer_us = self._due_us
        self.world.push(due, self._timer, self.turn, due)

    def step(self) -> None:
        """Let the replica take what came, and carry out what it says."""
        replica, world = self.replica, self.world
        assert replica is not None
        now_us = world.now_us
        happened, self.inbox = self.inbox, []
        mono = now_us * self._rate // _A_MS
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
            self.drive.submit(effects.jobs)
        for outcome in effects.outcomes:
            world.clients.settle(self, outcome)
        if effects.faulted is not None or effects.stopped:
            self._ended(effects.faulted)
        elif effects.wake_at_ms is not None:
            due = (effects.wake_at_ms * _A_MS + self._rate - 1) // self._rate
            self._due_us = due
            if due <= world.now_us:
                if not self._scheduled:
                    self._scheduled = True
                    world.push(self._busy_us, self._run, self.turn)
            elif due < self._timer_us:
                self._set_timer()
        else:
            self._due_us = NEVER

    def _ended(self, fault: str | None) -> None:
        """By itself: in good order, or because of its disk."""
        world = self.world
        expected = self.drive.expects_failure and (fault or "").startswith("storage failed")
        if fault is not None and not expected:
            raise Violation("fault", f"node {self.id} stopped: {fault}")
        world.faults.ended(self, fault)

    # -- the end ------------------------------------------------------------------------------
    def end(self) -> None:
        """The process is gone; what its disk keeps is decided by the drive."""
        world = self.world
        self._view, self._views = self.core.voters, self.views
        self.replica = None
        self.turn += 1
        self._scheduled = False
        self.inbox = []
        world.network.hung_up(self)
        world.clients.hung_up(self)

    def forget(self, copy: Mapping[str, bytes]) -> None:
        """All that the disk has is an old copy of itself."""
        assert self.replica is None
        self.drive.become(copy)
        self.foreign = "restored from an old copy of its disk"

    def wipe(self) -> None:
        """A new, empty disk with a new directory id."""
        assert self.replica is None
        luck = Chance(self.world.plan.seed, "directory", self.id, self.disks)
        self.disks += 1
        self.former_id = self.directory_id
        self.directory_id = Uuid(luck.bytes(16))
        self.drive.replace()
        self.damage = self.foreign = None
        self.is_refused = False
        self.static = False
        self._view, self._views = ControlState(0, ()), ()

    def stand_still(self, until_us: int) -> None:
        """Stop the process until then; what comes meanwhile waits."""
        self.paused_us = max(self.paused_us, until_us)
        self._busy_us = max(self._busy_us, self.paused_us)

    def go_on(self) -> None:
        """End a pause."""
        if self.paused_us > self.world.now_us:
            self.paused_us = self._busy_us = self.world.now_us
            self.world.push(self.world.now_us, self._run, self.turn)

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
