"""What a world does, as data: drawn from a seed, or read from a file.

Every crash, partition, disk fault and operator's command is a *deed* with its own time. A deed is
whole in itself (what it begins it ends), so that any subset of the deeds is a plan too. What
happens by chance to messages, disks and clocks is given as rates.

Times are ms of the world, or microseconds (`_us`); rates are probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from quorate.base.errors import QuorateError
from quorate.node.applier import SLICE_BYTES
from quorate.node.tail import TAIL_BYTES
from quorate.raft.values import Limits
from quorate.sim.plan_bounds import BOUNDS, MOST, OF_DEEDS

FORMAT: Final = 7
"""How seeds draw plans: it changes whenever some seed draws another plan than before."""
LEADER: Final = 0
"""In place of a node id: whoever leads when the time has come."""
OPERATIONS: Final = ("truncate", "roll", "clean", "reset", "publish", "replace", "repair")
"""What a storage does in more than one step: `reset` is the log's when a snapshot takes its place,
`publish` gives a snapshot its name, `replace` writes a small file anew, `repair` is recovery's."""

MISTAKES: Final = (
    "add-stale",
    "add-again",
    "add-elsewhere",
    "add-nowhere",
    "add-unnamed",
    "add-nameless",
    "remove-stale",
    "remove-stranger",
    "remove-nameless",
    "another-cluster",
    "not-the-leader",
    "too-early",
    "add-in-part",
)
"""What an operator may get wrong about a node (`sim.mistakes`)."""

_LIMITS: Final = Limits()


class PlanError(QuorateError):
    """A plan that cannot be read or run: the reason, and the line (from 1; 0: none of them)."""

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
    """Held back for up to `hold_ms`."""
    hold_ms: int = 0
    reorder: float = 0.0
    """Overtakes what was sent before on the same link; else a link keeps its order."""
    reset: float = 0.0
    """The connection breaks under a request."""
    corrupt: float = 0.0
    """A bit of records or of a snapshot's chunk flips on the way."""


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """The replicas' own settings; see RaftConfig."""

    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1_048_576
    snapshot_max_bytes: int = 1_048_576
    high_watermark_linger_ms: int = 0
    idle_ms: int = 0
    """A leader's state machine writes when it has not for so long; 0: only when it is asked."""
    cpu_us: int = 40
    """What a step takes."""


@dataclass(frozen=True, slots=True)
class ClockPlan:
    drift_ppm: int = 0
    """Each life of a process runs at its own rate, up to so much too fast or too slow."""


@dataclass(frozen=True, slots=True)
class DiskPlan:
    sync_us: int = 500
    slow: float = 0.0
    """A sync takes up to `slow_ms`."""
    slow_ms: int = 0
    failure: float = 0.0
    """A sync fails, and the process with it."""
    torn: bool = True
    """What was not synced survives a power cut in part; else it is lost whole."""
    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    tail_bytes: int = TAIL_BYTES
    """Of the log, in a node's memory: what is older is read from the disk."""
    slice_bytes: int = SLICE_BYTES
    """Of the log, that a state machine is fed in one step."""
    snapshot_bytes: int = 20_971_520
    snapshot_ms: int = 3_600_000
    retention_bytes: int = 104_857_600
    retention_ms: int = 604_800_000
    clean_ms: int = 60_000
    """How often a node looks what its log has too much of."""
    loose_names: bool = False
    """Names that were not synced survive a power cut in any order; else as in a journal."""
    short_writes: bool = False
    """What a full disk refuses is written in part."""
    sync_every: int = 4_194_304
    """A snapshot in the making is synced whenever so much of it was written."""
    byte_us: int = 0
    """What each byte of a snapshot takes, to be written or installed."""


@dataclass(frozen=True, slots=True)
class ClientPlan:
    count: int = 2
    keys: int = 3
    think_ms: int = 500
    timeout_ms: int = 1500
    give_up: float = 0.0
    """After a timeout the client goes on to something else, not knowing what became of it."""
    reads: float = 0.4
    compares: float = 0.2
    padding: int = 0
    lists: int = 1
    """Most records of a Submit: what a client asks for stands somewhere among them."""
    barriers: float = 0.0
    """Of the Submits, so many have one without values before or behind them."""
    turn_away: float = 0.0
    """After a refusal the client goes on to something else."""
    oversized: float = 0.0
    """Of the Submits, so many have one behind them that fits no batch."""


@dataclass(frozen=True, slots=True)
class Deed:
    at_ms: int
    kind: str
    args: tuple[int, ...] = ()
    """In the order of DEEDS."""

    def __str__(self) -> str:
        names = DEEDS[self.kind]
        told = "".join(f" {n}={argument_text(n, v)}" for n, v in zip(names, self.args, strict=True))
        return f"at {self.at_ms} {self.kind}{told}"


DEEDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
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
        "stranger": ("from", "to", "period_ms", "times"),
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
"""Kinds of deeds, and the names of their arguments. `nodes` is a bit mask: bit i is node i;
`what` one of OPERATIONS, `how` one of MISTAKES, by its place."""


@dataclass(frozen=True, slots=True)
class Plan:
    format: int = FORMAT
    seed: int = 0
    scenario: str = ""
    """What happens is in the script of this name (`sim.scenarios`), beside the deeds."""
    voters: int = 3
    observers: int = 0
    static: bool = False
    """kraft.version 0 to begin with."""
    auto_join: bool = False
    wire: bool = False
    """Messages pass through Kafka's encodings, at versions that differ from node to node."""
    old: int = 0
    """Nodes whose software knows no kraft.version 1, as a bit mask."""
    young: int = 0
    """Nodes whose software knows no kraft.version 0."""
    listeners: int = 1
    """So many has each node; controllers use the first."""
    thorough: bool = False
    """At the end it is owed, too, that every voter stands in the voter set as it is."""
    duration_ms: int = 10_000
    """Before the healing; the most that a scenario may take."""
    network: NetworkPlan = NetworkPlan()
    timing: TimingPlan = TimingPlan()
    clock: ClockPlan = ClockPlan()
    disk: DiskPlan = DiskPlan()
    limits: Limits = _LIMITS
    clients: ClientPlan = ClientPlan()
    deeds: tuple[Deed, ...] = ()

    @property
    def upgrades(self) -> bool:
        """Is kraft.version 1 asked for?"""
        return any(deed.kind in ("upgrade", "insist") for deed in self.deeds)


NONE: Final = "none"
"""In place of an empty bit mask."""
NAMED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = MappingProxyType(
    {"what": ("operation", OPERATIONS), "how": ("mistake", MISTAKES)}
)
"""Arguments of deeds that are one of so many names."""
_OF_A_BATCH: Final = 61
_OF_A_RECORD: Final = 200
"""Most bytes of a client's record beside the padding."""


def largest_submit(clients: ClientPlan) -> int:
    """Bytes of the largest batch that a client may ask for: a world must have room for it."""
    return _OF_A_BATCH + clients.lists * (clients.padding + _OF_A_RECORD)


def check_plan(plan: Plan, lines: Mapping[str | Deed, int] = MappingProxyType({})) -> None:
    """Raise PlanError where a world of this plan cannot be, or would never end.

    `lines`: where a setting, by its name, or a deed stands.
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
    _check_software(plan, lines)
    for deed in plan.deeds:
        line = lines.get(deed, 0)
        for name, value in zip(DEEDS[deed.kind], deed.args, strict=True):
            lowest = 1 if name in ("from", "to") else 0
            if name in ("node", "from", "to") and not lowest <= value <= count:
                raise PlanError(f"there is no node {value} in '{deed}'; there are {count}", line)
            least, most = OF_DEEDS.get(name, (0, MOST))
            if not least <= value <= most:
                reason = f"{name} is from {least} to {most}, and not {value}"
                raise PlanError(f"{reason}: '{deed}'", line)


def _check_software(plan: Plan, lines: Mapping[str | Deed, int]) -> None:
    """Raise PlanError for a node that can run no kraft.version. Who is named need not be there:
    a world may be made smaller."""
    for node in members(plan.old & plan.young):
        reason = f"node {node} is old and young: its software would know no kraft.version at all"
        raise PlanError(reason, max(lines.get("old", 0), lines.get("young", 0)))


def argument_text(name: str, value: int) -> str:
    """The argument of a deed, as a plan says it."""
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
