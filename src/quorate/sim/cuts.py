"""The deeds of a plan that the network does: who hears whom, how late, and who else is heard.

Each is called with the world, its luck, and its arguments; one of a node with that process first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from quorate.sim.chance import Chance
from quorate.sim.process import Process
from quorate.sim.strangers import visit

if TYPE_CHECKING:
    from quorate.sim.world import World

_MS: Final = 1000


def _separate(
    world: World, one: list[int], other: list[int], for_ms: int, *, both: bool = True
) -> None:
    """What `one` side sends to the `other` is lost, and with `both` what that one sends, too."""
    network, until = world.network, world.now_us + for_ms * _MS
    for a in one:
        for b in other:
            network.cut(a, b, until)
            if both:
                network.cut(b, a, until)


def _sides(world: World, nodes: int) -> tuple[list[int], list[int]]:
    """Those whose bit is set in `nodes`, and the others."""
    ids = list(world.processes)
    return [i for i in ids if nodes >> i & 1], [i for i in ids if not nodes >> i & 1]


# -- of the world ---------------------------------------------------------------------------------
def _partition(world: World, luck: Chance, nodes: int, for_ms: int) -> None:
    _separate(world, *_sides(world, nodes), for_ms)


def _partition_one_way(world: World, luck: Chance, nodes: int, for_ms: int) -> None:
    _separate(world, *_sides(world, nodes), for_ms, both=False)


def _flap(world: World, luck: Chance, nodes: int, period_ms: int, times: int) -> None:
    if times and not world.is_healing:
        _partition(world, luck, nodes, period_ms // 2)
        later = world.now_us + period_ms * _MS
        world.push(later, _flap, world, luck, nodes, period_ms, times - 1)


def _cut(world: World, luck: Chance, source: int, to: int, for_ms: int) -> None:
    _separate(world, [source], [to], for_ms, both=False)


def _slow_link(
    world: World, luck: Chance, source: int, to: int, delay_ms: int, for_ms: int
) -> None:
    world.network.slow(source, to, delay_ms * _MS, world.now_us + for_ms * _MS)


def _stranger(world: World, luck: Chance, source: int, to: int, period_ms: int, times: int) -> None:
    """Somebody of another cluster takes itself for `source`."""
    nodes = world.processes
    visit(world, luck, nodes[source], nodes[to], period_ms, times)


# -- of a node ------------------------------------------------------------------------------------
def _isolate(world: World, luck: Chance, process: Process, for_ms: int) -> None:
    _separate(world, *_sides(world, 1 << process.id), for_ms)


def _fork(
    world: World, luck: Chance, process: Process, beside: int, count: int, step: int, for_ms: int
) -> None:
    """It is cut off with a few others that are no majority, and if it leads it writes on: that
    must be truncated once another one was elected. With a `step` the power goes meanwhile."""
    others = luck.shuffled([i for i in world.processes if i != process.id])
    voters = len(process.view.voters or world.static_voters)
    side = [process.id, *others[: min(beside, max(0, (voters - 1) // 2 - 1))]]
    _separate(world, *_sides(world, sum(1 << node for node in side)), for_ms)
    process.burst(count)
    if step:
        for node in side:
            world.processes[node].drive.operations.dark = "truncate", step


def _mute(world: World, luck: Chance, process: Process, for_ms: int) -> None:
    """Nobody hears it."""
    _separate(world, *_sides(world, 1 << process.id), for_ms, both=False)


def _deafen(world: World, luck: Chance, process: Process, for_ms: int) -> None:
    """It hears nobody."""
    me, others = _sides(world, 1 << process.id)
    _separate(world, others, me, for_ms, both=False)


def _bridge(world: World, luck: Chance, process: Process, nodes: int, for_ms: int) -> None:
    """Two sides that only this node connects."""
    one, other = _sides(world, nodes)
    one, other = ([i for i in side if i != process.id] for side in (one, other))
    _separate(world, one, other, for_ms)


def _reset(world: World, luck: Chance, process: Process) -> None:
    world.network.reset(process)


OF_WORLD: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "partition": _partition,
        "partition-one-way": _partition_one_way,
        "flap": _flap,
        "cut": _cut,
        "slow-link": _slow_link,
        "stranger": _stranger,
    }
)
OF_NODES: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "isolate": _isolate,
        "fork": _fork,
        "mute": _mute,
        "deafen": _deafen,
        "bridge": _bridge,
        "reset": _reset,
    }
)
