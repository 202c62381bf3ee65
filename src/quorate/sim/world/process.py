"""One node of a world: the production replica on a simulated disk, with a clock of its own.

Inputs that arrive during a step are taken together by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from quorate.base.errors import InvariantError
from quorate.base.ids import Address, Listener, Uuid
from quorate.node.registration import RegistrationSend
from quorate.raft.messages import Request, Response
from quorate.raft.ready import Refused, Send
from quorate.raft.values import ControlState, RaftConfig, Voter
from quorate.replica.log_reads import READ_BYTES
from quorate.replica.replica import Answer, Committed, Input, MemoryLimits, Replica
from quorate.replica.state_machine import Now
from quorate.replica.tail import TAIL_BYTES
from quorate.sim.prng import Prng
from quorate.sim.world.controller import ControllerResponse
from quorate.sim.world.crash_points import on_demand_policy
from quorate.sim.world.disk import DiskOwner, SimulatedDisk
from quorate.sim.world.disk_operations import WatchedStorage
from quorate.sim.world.dispatch import Dispatcher
from quorate.sim.world.durable_state import Durable
from quorate.sim.world.observable import CLUSTER_ID, LISTENER
from quorate.sim.world.observer import ViolationError, defect
from quorate.sim.world.replica_settings import format_disk, with_timing
from quorate.sim.world.state_machine import KeyValueMachine
from quorate.storage.api import CorruptLogError, Recovered, StorageError

OUTSIDE_LISTENER: Final = "EXTERNAL"
"""The second listener, where a node has two. No controller uses it."""
_OUTSIDE_PORTS: Final = 10_000
"""The initial difference between the ports of the two listeners."""
BORN_MS: Final = 1_700_000_000_000
"""The wall clock when a world begins, ms since 1970."""
NEVER: Final = 1 << 62
_RATE: Final = 1_000_000
_A_MS: Final = _RATE * 1000
_US_PER_ITEM: Final = 4
_TAILS_READ: Final = READ_BYTES // TAIL_BYTES
"""Bytes of a disk read for followers, as a multiple of the tail."""


class NetworkCall:
    """A request in flight, until its response or its timeout."""

    __slots__ = (
        "asker",
        "correlation",
        "deadline_us",
        "done",
        "over",
        "request",
        "send_to",
        "to",
        "turn",
        "version",
    )

    def __init__(
        self,
        asker: Process | None,
        to: int,
        request: Request,
        deadline_us: int,
        done: Callable[[Response | None], None] | None = None,
    ) -> None:
        self.asker = asker
        """The sender; None: a client or an operator, which waits for `done`."""
        self.turn = 0 if asker is None else asker.turn
        self.correlation = 0
        self.send_to = 0
        """The id of the receiver, as the sender addressed it."""
        self.to = to
        self.request = request
        self.deadline_us = deadline_us
        self.done = done
        self.over = False
        self.version: int | None = None
        """The version of its encoding; None: passed as an object."""


class ProcessEnvironment(Dispatcher):
    """The services of a world for a process. World implements them, so a process does not depend on
    the network, the clients or the faults."""

    static_voters: tuple[Voter, ...]
    """The voters that the configuration of a static quorum names."""

    def bootstrap_servers(self, without: int) -> tuple[tuple[str, int], ...]:
        """The configured addresses of all nodes but this one."""
        raise NotImplementedError

    def send(self, process: Process, send: Send) -> None:
        """The process sends a request."""
        raise NotImplementedError

    def answer(self, process: Process, answer: Answer) -> None:
        """The process sends a response."""
        raise NotImplementedError

    def settle(self, process: Process, outcome: Committed | Refused) -> None:
        """The process reports the outcome of a proposal."""
        raise NotImplementedError

    def respond(self, process: Process, response: ControllerResponse) -> None:
        """The process sends a response to a client of controllers."""
        raise NotImplementedError

    def register(self, process: Process, registration: RegistrationSend) -> None:
        """The process sends its registration to the active controller."""
        raise NotImplementedError

    def connections_closed(self, process: Process) -> None:
        """The process ended. Connections to it break, or stay silent."""
        raise NotImplementedError

    def ended(self, process: Process, fault: str | None) -> None:
        """The process ends by itself, after a shutdown or because of a fault."""
        raise NotImplementedError

    def power_cut_inside(self, process: Process) -> None:
        """The power fails within a disk operation of the process."""
        raise NotImplementedError

    def recovered(self, process: Process) -> None:
        """The process recovered its disk and runs."""
        raise NotImplementedError


class Process(DiskOwner):
    """Owned by the world; `replica` is None while the process is down."""

    def __init__(self, world: ProcessEnvironment, node_id: int, *, voter: bool) -> None:
        plan = world.plan
        directory_id = Uuid(Prng(plan.seed, "directory", node_id, 0).bytes(16))
        super().__init__(node_id, directory_id, Prng(plan.seed, "process", node_id))
        self.world = world
        self.former_id: Uuid | None = None
        """The directory id of its previous disk."""
        self.disk_count = 1
        """The number of its disks so far."""
        self.is_old = plan.old >> node_id & 1 > 0
        """Whether its software lacks kraft.version 1."""
        self.is_young = plan.young >> node_id & 1 > 0
        """Whether its software lacks kraft.version 0."""
        self.outside_port = 9000 + node_id + _OUTSIDE_PORTS
        self.listen(9000 + node_id)
        self.static = plan.static
        """Whether its configuration names the voters."""
        self.can_be_voter = voter or plan.auto_join or node_id % 3 != 0
        self.is_refused = False
        """Whether recovery refused the disk."""
        self.reachable = True
        """While down: whether its machine refuses connections, instead of not responding."""
        self.has_moved = False
        """Whether its address has changed."""
        self._view = ControlState(0, ())
        self._views: tuple[ControlState, ...] = ()
        # time
        self.cpu_us = plan.timing.cpu_us
        self.wall_offset_ms = 0
        self._rate = _RATE
        self._due_us = self._timer_us = NEVER
        self._busy_us = 0
        self._scheduled = False
        # what comes and goes
        self.inbox: list[Input] = []
        self.calls: dict[int, NetworkCall] = {}
        """Open requests of other nodes, by reply_to."""
        self.connected: dict[int, Address] = {}
        """Peers that responded to this incarnation, by the id that the request addressed."""
        self.down_ms = 0
        """The downtime after a requested shutdown."""
        self.disk = SimulatedDisk(world, self)
        tail = plan.disk.tail_bytes
        self.policy = on_demand_policy(plan.disk)
        """The snapshot policy of this incarnation."""
        self.memory = MemoryLimits(tail, plan.disk.slice_bytes, _TAILS_READ * tail)

    # -- what it is ---------------------------------------------------------------------------
    def listen(self, port: int) -> None:
        """Set its address from the next start on."""
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
        """The listeners that other controllers use."""
        return self.listeners[:1]

    @property
    def storage(self) -> WatchedStorage:
        return self.disk.storage

    @property
    def durable(self) -> Durable:
        return self.disk.durable_state.durable

    @property
    def view(self) -> ControlState:
        """kraft.version and voters in force at the replica, or at its last incarnation."""
        return self._view if self.replica is None else self.replica.core.voters

    @property
    def views(self) -> tuple[ControlState, ...]:
        """The view, and those to which a crash or a truncation may revert it."""
        if self.replica is None:
            return self._views
        core = self.core
        durable = core.control_at(core.durable_end_offset)
        return core.voters, durable, core.control_at(max(core.high_watermark, 0))

    def request_of(self, reply_to: int) -> tuple[int, int, int] | None:
        call = self.calls.get(reply_to)
        if call is None or call.asker is None:
            return None
        return call.asker.id, call.turn, call.correlation

    @property
    def is_astray(self) -> bool:
        """Whether one of its configured bootstrap servers has moved."""
        assert self.replica is not None
        addresses = self.world.addresses
        return any(server not in addresses for server in self.replica.config.bootstrap_servers)

    @property
    def now(self) -> Now:
        """The time of its own clock."""
        mono = self.world.now_us * self._rate // _A_MS
        return Now(mono, BORN_MS + mono + self.wall_offset_ms)

    # -- beginning ----------------------------------------------------------------------------
    def format(self, voters: tuple[Voter, ...]) -> None:
        """Write the first voter set as `storage format` does."""
        format_disk(self.storage, voters, BORN_MS)
        self._view = ControlState(1, voters)
        self._views = (self._view,)

    def start(self) -> bool:
        """Start a new incarnation on the recovered disk. False: recovery failed."""
        assert self.replica is None
        self.turn += 1
        self.paused_us = 0
        disk = self.disk
        try:
            recovered = disk.open()
        except CorruptLogError as error:
            self._refuse(str(error))
            return False
        except StorageError as failed:
            if not disk.expects_failure and not disk.full:
                said = f"node {self.id} cannot open its disk: {failed}"
                raise ViolationError("disk", said) from failed
            return False
        world = self.world
        self.policy = on_demand_policy(world.plan.disk)
        idle_ms = 0 if world.in_liveness_phase else world.plan.timing.idle_ms
        try:
            machine, replica = self.create_replica(self._config(), recovered, idle_ms)
        except InvariantError as broken:
            raise ViolationError("recovery", f"node {self.id}: {broken}") from broken
        self._begin(replica, machine, recovered)
        world.recovered(self)
        return True

    def create_replica(
        self, config: RaftConfig, recovered: Recovered, idle_ms: int
    ) -> tuple[KeyValueMachine, Replica]:
        """The replica of a new incarnation, and its state machine."""
        machine, random = KeyValueMachine(idle_ms), self.rng.random
        return machine, Replica(config, recovered, machine, random, self.policy, self.memory)

    def _config(self) -> RaftConfig:
        """The plan's settings, as the node reads them at its start."""
        world = self.world
        plan = world.plan
        config = RaftConfig(
            cluster_id=CLUSTER_ID,
            node_id=self.id,
            directory_id=self.directory_id,
            can_be_voter=self.can_be_voter,
            listeners=self.listeners,
            static_voters=world.static_voters if self.static else (),
            bootstrap_servers=world.bootstrap_servers(self.id),
            min_kraft_version=int(self.is_young),
            max_kraft_version=int(not self.is_old),
            auto_join=plan.auto_join and self.can_be_voter,
        )
        return with_timing(config, plan)

    def _refuse(self, reason: str) -> None:
        if self.damage is None:
            raise ViolationError(
                "recovery", f"node {self.id} refuses a disk that is sound: {reason}"
            )
        self.is_refused = True
        self.world.refused(self, reason)

    def _begin(self, replica: Replica, machine: KeyValueMachine, recovered: Recovered) -> None:
        world, drift = self.world, self.world.plan.clock.drift_ppm
        self.replica, self.machine = replica, machine
        self.incarnation += 1
        self.durable_before = self.durable
        self.disk.begin(recovered)
        if self.damage != "damaged":
            self.damage = None
        self._rate = _RATE + (self.rng.between(-drift, drift) if drift else 0)
        self._busy_us = world.now_us
        self._due_us = self._timer_us = NEVER
        self._scheduled = False
        self.inbox = []
        self.calls = {}
        self.connected = {}
        world.started(self, recovered)
        self.step()

    def power_cut(self) -> None:
        self.world.power_cut_inside(self)

    # -- a step -------------------------------------------------------------------------------
    def post(self, *items: Input) -> None:
        """Add inputs that arrived together. The next step takes them."""
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
        if self.is_running(turn):
            self._scheduled = False
            self._soon()

    def _timer(self, turn: int, at_us: int) -> None:
        """A timer expired. Only the newest one counts: it replaced all earlier ones."""
        if at_us != self._timer_us or not self.is_running(turn):
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
        """Take all inputs that have arrived, in one step, and carry out its effects."""
        happened, self.inbox = self.inbox, []
        self.take(happened, self.now)

    def take(self, happened: Sequence[Input], now: Now) -> None:
        """Step the replica with these inputs and carry out its effects."""
        replica, world = self.replica, self.world
        assert replica is not None
        try:
            effects = replica.step(happened, now)
        except Exception as error:
            raise defect(self.id, error) from error
        self.spend(len(happened))
        world.stepped(self, happened, effects)
        for answer in effects.answers:
            world.answer(self, answer)
        for send in effects.sends:
            world.send(self, send)
        if effects.jobs:
            self.disk.submit(effects.jobs)
        for outcome in effects.outcomes:
            world.settle(self, outcome)
        self.after_step(effects.faulted, effects.wake_at_ms, stopped=effects.stopped)

    def spend(self, items: int) -> None:
        """Delay the next step by the duration of a step with this number of inputs."""
        self._busy_us = self.world.now_us + self.cpu_us + _US_PER_ITEM * items

    def after_step(self, faulted: str | None, wake_at_ms: int | None, *, stopped: bool) -> None:
        """End the process, or set the timer of its next step."""
        world = self.world
        if faulted is not None or stopped:
            self._ended(faulted)
        elif wake_at_ms is not None:
            due = (wake_at_ms * _A_MS + self._rate - 1) // self._rate
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
        """The process ends by itself: after a shutdown, or because of its disk."""
        world = self.world
        expected = self.disk.expects_failure and (fault or "").startswith("storage failed")
        if fault is not None and not expected:
            raise ViolationError("fault", f"node {self.id} stopped: {fault}")
        world.ended(self, fault)

    # -- the end ------------------------------------------------------------------------------
    def end(self) -> None:
        """End the process. The caller decides what its disk keeps."""
        self._view, self._views = self.core.voters, self.views
        self.replica = self.controller = None
        self.turn += 1
        self._scheduled = False
        self.inbox = []
        self.world.connections_closed(self)

    def forget(self, copy: Mapping[str, bytes]) -> None:
        """Replace the contents of the disk by an older copy."""
        assert self.replica is None
        self.disk.become(copy)
        self.foreign = "restored from an old copy of its disk"

    def wipe(self) -> None:
        """Replace the disk by an empty one with a new directory id."""
        assert self.replica is None
        rng = Prng(self.world.plan.seed, "directory", self.id, self.disk_count)
        self.disk_count += 1
        self.former_id = self.directory_id
        self.directory_id = Uuid(rng.bytes(16))
        self.disk.replace()
        self.damage = self.foreign = None
        self.is_refused = False
        self.static = False
        self._view, self._views = ControlState(0, ()), ()

    def stand_still(self, until_us: int) -> None:
        """Pause the process until then. Inputs that arrive meanwhile wait."""
        self.paused_us = max(self.paused_us, until_us)
        self._busy_us = max(self._busy_us, self.paused_us)

    def resume(self) -> None:
        """End a pause."""
        if self.paused_us > self.world.now_us:
            self.paused_us = self._busy_us = self.world.now_us
            self.world.push(self.world.now_us, self._run, self.turn)

    def burst(self, count: int) -> None:
        """Let the state machine write this number of batches at once, if the replica leads."""
        if self.leads:
            self.machine.write_at_once(count)
            self.post()

    def want_snapshot(self) -> None:
        """Make a snapshot due, once."""
        if self.replica is not None:
            self.policy.wanted.append(True)
