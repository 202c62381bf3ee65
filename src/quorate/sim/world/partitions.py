"""The network faults of a plan: partitions, slow links, resets and requests of a foreign cluster.

Each function takes the network, its rng and its arguments. One of a node takes that process first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from quorate.sim.prng import Prng
from quorate.sim.world.foreign_cluster import visit
from quorate.sim.world.network import Network
from quorate.sim.world.process import Process

_MS: Final = 1000


def _separate(
    network: Network, one: list[int], other: list[int], for_ms: int, *, both: bool = True
) -> None:
    """Block messages from `one` side to the `other`; with `both`, in the other direction too."""
    until = network.world.now_us + for_ms * _MS
    for a in one:
        for b in other:
            network.cut(a, b, until)
            if both:
                network.cut(b, a, until)


def _sides(network: Network, nodes: int) -> tuple[list[int], list[int]]:
    """The nodes whose bit is set in `nodes`, and the others."""
    ids = list(network.world.processes)
    return [i for i in ids if nodes >> i & 1], [i for i in ids if not nodes >> i & 1]


# -- of the world ---------------------------------------------------------------------------------
def _partition(network: Network, rng: Prng, nodes: int, for_ms: int) -> None:
    _separate(network, *_sides(network, nodes), for_ms)


def _partition_one_way(network: Network, rng: Prng, nodes: int, for_ms: int) -> None:
    _separate(network, *_sides(network, nodes), for_ms, both=False)


def _flap(network: Network, rng: Prng, nodes: int, period_ms: int, times: int) -> None:
    world = network.world
    if times and not world.in_liveness_phase:
        _partition(network, rng, nodes, period_ms // 2)
        later = world.now_us + period_ms * _MS
        world.push(later, _flap, network, rng, nodes, period_ms, times - 1)


def _cut(network: Network, rng: Prng, source: int, to: int, for_ms: int) -> None:
    _separate(network, [source], [to], for_ms, both=False)


def _slow_link(
    network: Network, rng: Prng, source: int, to: int, delay_ms: int, for_ms: int
) -> None:
    network.slow(source, to, delay_ms * _MS, network.world.now_us + for_ms * _MS)


def _foreign_cluster(
    network: Network, rng: Prng, source: int, to: int, period_ms: int, times: int
) -> None:
    """A replica of a foreign cluster sends requests with the ids of `source`."""
    nodes = network.world.processes
    visit(network, rng, nodes[source], nodes[to], period_ms, times)


# -- of a node ------------------------------------------------------------------------------------
def _isolate(network: Network, rng: Prng, process: Process, for_ms: int) -> None:
    _separate(network, *_sides(network, 1 << process.id), for_ms)


def _fork(
    network: Network,
    rng: Prng,
    process: Process,
    beside: int,
    count: int,
    step: int,
    for_ms: int,
) -> None:
    """Partition the node with a minority. If it leads it continues to write, and must truncate
    that once another leader is elected. With a `step` the power fails during the truncation."""
    world = network.world
    others = rng.shuffled([i for i in world.processes if i != process.id])
    voters = len(process.view.voters or world.static_voters)
    side = [process.id, *others[: min(beside, max(0, (voters - 1) // 2 - 1))]]
    _separate(network, *_sides(network, sum(1 << node for node in side)), for_ms)
    process.burst(count)
    if step:
        for node in side:
            world.processes[node].disk.operations.power_cut_after = "truncate", step


def _block_outbound(network: Network, rng: Prng, process: Process, for_ms: int) -> None:
    """Block all messages from the node."""
    _separate(network, *_sides(network, 1 << process.id), for_ms, both=False)


def _block_inbound(network: Network, rng: Prng, process: Process, for_ms: int) -> None:
    """Block all messages to the node."""
    me, others = _sides(network, 1 << process.id)
    _separate(network, others, me, for_ms, both=False)


def _bridge(network: Network, rng: Prng, process: Process, nodes: int, for_ms: int) -> None:
    """Partition the others into two sides that only this node connects."""
    one, other = _sides(network, nodes)
    one, other = ([i for i in side if i != process.id] for side in (one, other))
    _separate(network, one, other, for_ms)


def _reset(network: Network, rng: Prng, process: Process) -> None:
    network.reset(process)


OF_WORLD: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "partition": _partition,
        "partition-one-way": _partition_one_way,
        "flap": _flap,
        "cut": _cut,
        "slow-link": _slow_link,
        "foreign-cluster": _foreign_cluster,
    }
)
OF_NODES: Final[Mapping[str, Callable[..., None]]] = MappingProxyType(
    {
        "isolate": _isolate,
        "fork": _fork,
        "mute": _block_outbound,
        "deafen": _block_inbound,
        "bridge": _bridge,
        "reset": _reset,
    }
)
