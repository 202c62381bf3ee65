"""The plan of a world as data: drawn from a seed, or read from a file.

Every crash, partition, disk fault and operator's command is a *fault event* with its own time. A fault
event ends what it begins, so any subset of the fault events is also a plan. Random faults of
messages, disks and clocks are given as rates.

Times are ms of the world's clock, or microseconds (`_us`). Rates are probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from quorate.base.errors import QuorateError
from quorate.raft.values import RaftLimits
from quorate.replica.applier import SLICE_BYTES
from quorate.replica.tail import TAIL_BYTES
from quorate.sim.plan.bounds import BOUNDS, MOST, OF_FAULT_EVENTS

FORMAT: Final = 9
"""The version of the mapping from seeds to plans. It changes when a seed draws another plan."""
LEADER: Final = 0
"""In place of a node id: the leader at the time of the fault event."""
OPERATIONS: Final = ("truncate", "roll", "clean", "reset", "publish", "replace", "repair")
"""Operations of a storage that take more than one step.

`reset` empties the log for an installed snapshot, `publish` renames a complete snapshot, `replace`
rewrites a small file, `repair` is a part of recovery.
"""

INVALID_REQUESTS: Final = (
    "add-stale",
    "add-again",
    "add-elsewhere",
    "add-nowhere",
    "add-unnamed",
    "add-nameless",
    "remove-stale",
    "remove-unknown",
    "remove-nameless",
    "another-cluster",
    "not-the-leader",
    "too-early",
    "add-in-part",
)
"""Kinds of invalid requests of operators (`sim.world.invalid_requests`)."""

_LIMITS: Final = RaftLimits()


class PlanError(QuorateError):
    """A plan that cannot be read or run: the reason, and the line (from 1; 0: unknown)."""

    exit_code = 2

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    delay_us: int = 300
    jitter_us: int = 400
    loss: float = 0.0
    duplicate: float = 0.0
    hold: float = 0.0
    """Rate of messages that are delayed by up to `hold_ms`."""
    hold_ms: int = 0
    reorder: float = 0.0
    """Rate of messages that overtake earlier ones of the same link. Others keep their order."""
    reset: float = 0.0
    """Rate of requests whose connection breaks."""
    corrupt: float = 0.0
    """Rate of responses in whose records or snapshot chunk one bit flips."""


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """The replicas' own settings; see RaftConfig."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    retry_backoff_max_ms: int = 0
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1_048_576
    snapshot_max_bytes: int = 1_048_576
    high_watermark_linger_ms: int = 0
    idle_ms: int = 0
    """Time after which an idle leader's state machine writes a record; 0: it writes none."""
    cpu_us: int = 40
    """The duration of a step."""


@dataclass(frozen=True, slots=True)
class ClockPlan:
    drift_ppm: int = 0
    """The largest deviation of a clock's rate. Each incarnation of a process draws its own rate."""


@dataclass(frozen=True, slots=True)
class DiskPlan:
    sync_us: int = 500
    slow: float = 0.0
    """Rate of syncs that take up to `slow_ms`."""
    slow_ms: int = 0
    failure: float = 0.0
    """Rate of syncs that fail. The process then ends."""
    torn: bool = True
    """A part of the unsynced data may survive a power cut. Otherwise all of it is lost."""
    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    tail_bytes: int = TAIL_BYTES
    """Bytes of the log's tail in a node's memory. Older batches are read from the disk."""
    slice_bytes: int = SLICE_BYTES
    """Bytes of the log that a state machine receives in one step."""
    snapshot_bytes: int = 20_971_520
    snapshot_ms: int = 3_600_000
    retention_bytes: int = 104_857_600
    retention_ms: int = 604_800_000
    clean_ms: int = 60_000
    """The interval of the retention survey."""
    loose_names: bool = False
    """Unsynced directory entries survive a power cut in any order. Otherwise in journal order."""
    short_writes: bool = False
    """A write that a full disk refuses is written in part."""
    sync_every: int = 4_194_304
    """A snapshot in progress is synced each time this number of bytes was written."""
    byte_us: int = 0
    """Microseconds for each byte of a snapshot that is written or installed."""
    index_interval: int = 4096
    """Bytes of a segment between two entries of its index."""


@dataclass(frozen=True, slots=True)
class ClientPlan:
    count: int = 2
    keys: int = 3
    think_ms: int = 500
    timeout_ms: int = 1500
    give_up: float = 0.0
    """Rate of timeouts after which a client abandons its operation, whose outcome is unknown."""
    reads: float = 0.4
    compares: float = 0.2
    padding: int = 0
    lists: int = 1
    """The maximum number of records of a Submit. One of them is the client's operation."""
    barriers: float = 0.0
    """Rate at which a Submit without values precedes or follows a Submit."""
    turn_away: float = 0.0
    """Rate of refusals after which a client abandons its operation."""
    oversized: float = 0.0
    """Rate at which a Submit that is too large for a batch follows a Submit."""


@dataclass(frozen=True, slots=True)
class FaultEvent:
    at_ms: int
    kind: str
    args: tuple[int, ...] = ()
    """In the order of FAULT_EVENTS."""

    def __str__(self) -> str:
        names = FAULT_EVENTS[self.kind]
        arguments = "".join(
            f" {n}={argument_text(n, v)}" for n, v in zip(names, self.args, strict=True)
        )
        return f"at {self.at_ms} {self.kind}{arguments}"


FAULT_EVENTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        # processes
        "kill": ("node", "down_ms"),
        "power": ("node", "down_ms"),
        "power-reorder": ("node", "down_ms"),
        "blackout": ("nodes", "down_ms"),
        "blackout-reorder": ("nodes", "down_ms"),
        "stop": ("node", "down_ms"),
        "renew": ("node", "down_ms"),
        "pause": ("node", "for_ms"),
        "slow-cpu": ("node", "step_us", "for_ms"),
        "jump": ("node", "wall_ms"),
        # disks
        "wipe": ("node", "down_ms"),
        "exchange": ("node", "down_ms"),
        "roll-back": ("nodes", "age_ms", "down_ms", "others_down_ms"),
        "old-copy": ("node", "age_ms", "down_ms"),
        "slow-disk": ("node", "sync_ms", "for_ms"),
        "fail-disk": ("node", "step", "down_ms"),
        "crash-disk": ("node", "step", "down_ms"),
        "crash-recovery": ("node", "step", "down_ms"),
        "crash-inside": ("node", "what", "step"),
        "full-disk": ("node", "for_ms"),
        "rot": ("node", "down_ms"),
        "rot-live": ("node",),
        "misdirect": ("node", "down_ms"),
        "misplace": ("node", "bytes", "down_ms"),
        "rot-epoch": ("node", "down_ms"),
        "lose-segment": ("node", "down_ms"),
        "lose-log": ("node", "down_ms"),
        "lose-snapshot": ("node", "down_ms"),
        "lose-vote": ("node", "down_ms"),
        "lose-epochs": ("node", "down_ms"),
        # the network
        "partition": ("nodes", "for_ms"),
        "partition-one-way": ("nodes", "for_ms"),
        "isolate": ("node", "for_ms"),
        "mute": ("node", "for_ms"),
        "deafen": ("node", "for_ms"),
        "churn": ("node", "count", "period_ms", "times"),
        "fork": ("node", "beside", "count", "step", "for_ms"),
        "bridge": ("node", "nodes", "for_ms"),
        "flap": ("nodes", "period_ms", "times"),
        "cut": ("from", "to", "for_ms"),
        "slow-link": ("from", "to", "delay_ms", "for_ms"),
        "reset": ("node",),
        "foreign-cluster": ("from", "to", "period_ms", "times"),
        # operators
        "add": ("node",),
        "add-unacked": ("node",),
        "remove": ("node",),
        "replace": ("node", "down_ms"),
        "move": ("node", "down_ms"),
        "move-outside": ("node", "down_ms"),
        "alter": ("nodes",),
        "upgrade": (),
        "insist": ("times", "period_ms"),
        "snapshot": ("node",),
        "clean": ("node",),
        "resign": ("node",),
        "err": ("node", "how"),
    }
)
"""Kinds of fault events, and the names of their arguments.

`nodes` is a bit mask: bit i is node i. `what` is an index of OPERATIONS, `how` of INVALID_REQUESTS.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    format: int = FORMAT
    seed: int = 0
    scenario: str = ""
    """The script of this name (`sim.run.kafka_scenarios`) acts beside the fault events."""
    controllers: bool = False
    """Each node runs a ControllerNode over Kafka's metadata, and clients write metadata. Otherwise
    each node runs a Replica over a key-value machine."""
    brokers: int = 0
    """Simulated brokers, which register with the controllers (KIP-631). They need `controllers`."""
    voters: int = 3
    observers: int = 0
    static: bool = False
    """The quorum begins at kraft.version 0."""
    auto_join: bool = False
    wire: bool = False
    """Messages pass through Kafka's encodings, at versions that differ from node to node."""
    old: int = 0
    """Bit mask of the nodes whose software does not support kraft.version 1."""
    young: int = 0
    """Bit mask of the nodes whose software does not support kraft.version 0."""
    listeners: int = 1
    """The number of listeners of each node. Controllers use the first one."""
    thorough: bool = False
    """The liveness phase also requires that the voter set describes every voter correctly."""
    duration_ms: int = 10_000
    """The time before the liveness phase; the time limit of a scenario."""
    network: NetworkPlan = NetworkPlan()
    timing: TimingPlan = TimingPlan()
    clock: ClockPlan = ClockPlan()
    disk: DiskPlan = DiskPlan()
    limits: RaftLimits = _LIMITS
    clients: ClientPlan = ClientPlan()
    fault_events: tuple[FaultEvent, ...] = ()

    @property
    def upgrades(self) -> bool:
        """Whether a fault event requests kraft.version 1."""
        return any(fault_event.kind in ("upgrade", "insist") for fault_event in self.fault_events)


NONE: Final = "none"
"""The text of an empty bit mask."""
NAMED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {"what": ("operation", OPERATIONS), "how": ("mistake", INVALID_REQUESTS)}
)
"""Arguments of fault events that are an index of a list of names."""
_OF_A_BATCH: Final = 61
_OF_A_RECORD: Final = 200
"""The maximum size of a client's record in bytes, without the padding."""


def largest_submit(clients: ClientPlan) -> int:
    """The size in bytes of the largest batch that a client may submit: the minimum batch limit."""
    return _OF_A_BATCH + clients.lists * (clients.padding + _OF_A_RECORD)


def check_plan(plan: Plan, lines: Mapping[str | FaultEvent, int] = MappingProxyType({})) -> None:
    """Raise PlanError where a world of this plan is impossible, or would never end.

    `lines`: the line of each setting, by its name, and of each fault event.
    """
    if not 1 <= plan.voters <= 7 or not 0 <= plan.observers <= 7:
        wrong = "observers" if 1 <= plan.voters <= 7 else "voters"
        reason = "a world has 1 to 7 voters and at most 7 observers"
        raise PlanError(reason, lines.get(wrong, 0))
    for name, (least, most) in BOUNDS.items():
        part, dot, field_name = name.rpartition(".")
        value = getattr(getattr(plan, part) if dot else plan, field_name)
        if not least <= value <= most:
            reason = f"{name} is from {least} to {most}, and not {value}"
            raise PlanError(reason, lines.get(name, 0))
    least = largest_submit(plan.clients)
    if plan.limits.batch_bytes < least:
        reason = f"limits.batch_bytes is at least {least}, and not {plan.limits.batch_bytes}: "
        reason += "so large is what clients ask for (clients.lists, clients.padding)"
        raise PlanError(reason, lines.get("limits.batch_bytes", 0))
    count = plan.voters + plan.observers
    if plan.controllers:
        _check_controllers(plan, lines)
    elif plan.brokers:
        raise PlanError("brokers need controllers", lines.get("brokers", 0))
    _check_software(plan, lines)
    for fault_event in plan.fault_events:
        line = lines.get(fault_event, 0)
        for name, value in zip(FAULT_EVENTS[fault_event.kind], fault_event.args, strict=True):
            lowest = 1 if name in ("from", "to") else 0
            if name in ("node", "from", "to") and not lowest <= value <= count:
                raise PlanError(
                    f"there is no node {value} in '{fault_event}'; there are {count}", line
                )
            least, most = OF_FAULT_EVENTS.get(name, (0, MOST))
            if not least <= value <= most:
                reason = f"{name} is from {least} to {most}, and not {value}"
                raise PlanError(f"{reason}: '{fault_event}'", line)


def _check_controllers(plan: Plan, lines: Mapping[str | FaultEvent, int]) -> None:
    """Raise PlanError for settings that need nodes without a controller.

    A script submits to the replica, and so does an upgrade by an operator. A controller's requests
    are encoded in any case, and it reports the kraft.versions of this software.
    """
    found = {
        "scenario": plan.scenario,
        "wire": plan.wire,
        "old": plan.old,
        "young": plan.young,
        "upgrade or insist": plan.upgrades,
    }
    for name, value in found.items():
        if value:
            raise PlanError(f"a world of controllers has no {name}", lines.get(name, 0))


def _check_software(plan: Plan, lines: Mapping[str | FaultEvent, int]) -> None:
    """Raise PlanError for a node that supports no kraft.version.

    A mask may name nodes that do not exist, because a shrunk world has fewer nodes.
    """
    for node in members(plan.old & plan.young):
        reason = f"node {node} is old and young: its software would support no kraft.version"
        raise PlanError(reason, max(lines.get("old", 0), lines.get("young", 0)))


def argument_text(name: str, value: int) -> str:
    """The text of a fault event's argument in a plan."""
    if name in NAMED:
        return NAMED[name][1][value]
    if name == "nodes":
        return nodes_text(value)
    return "leader" if name == "node" and value == LEADER else str(value)


def nodes_text(mask: int) -> str:
    return ",".join(str(node) for node in members(mask)) or NONE


def members(mask: int) -> list[int]:
    """The node ids of a bit mask, ascending."""
    return [node for node in range(mask.bit_length()) if mask >> node & 1]
