"""The faults of a run, drawn from a seed before any process starts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FAULT_KINDS: Final = {
    "kill": "kill -9 a node, start it again later",
    "power": "kill -9 all nodes at once, start them again",
    "stop": "SIGSTOP a node, SIGCONT it later",
    "cut": "reset and refuse all connections between a node and the others",
    "hold": "hold all bytes from and to a node",
    "hold-in": "hold the bytes to a node, pass those from it",
    "hold-out": "hold the bytes from a node, pass those to it",
    "hold-pair": "hold the bytes between two nodes, pass all others",
    "delay": "delay all bytes between nodes",
    "reset": "reset the connections of a node, once",
    "slow-disk": "slow down the syncs of a node",
    "bad-disk": "fail the writes or the syncs of a node",
    "remove": "remove a voter, add it again later",
    "replace": "remove a voter, wipe it, add it as a new voter",
}
"""Every kind of fault, with its description. Draws depend on the order."""

DISK_FAULT_KINDS: Final = frozenset({"slow-disk", "bad-disk"})
"""Kinds for members of the store alone: other nodes have no fault points in their disks."""

_WEIGHTS: Final = {"kill": 3, "power": 1, "stop": 2, "remove": 1, "replace": 1}
_MAX_DURATION_S: Final = {
    "delay": 4.0,
    "reset": 0.0,
    "slow-disk": 4.0,
    "power": 1.0,
    "bad-disk": 1.0,
}


@dataclass(frozen=True, slots=True)
class ScheduledFault:
    """One fault: it begins `at_s` after the start and is repaired `duration_s` later."""

    at_s: float
    kind: str
    on_leader: bool
    """Its target is the present leader, otherwise the node that `pick` selects."""
    pick: float
    """In [0, 1): selects the target, and the way in which it fails."""
    duration_s: float
    amount_s: float = 0.0
    """By how much a disk or the network is slower."""


def draw_faults(
    seed: int, seconds: float, kinds: Sequence[str], pace: float = 1.0
) -> tuple[ScheduledFault, ...]:
    """The faults of a run, by time. `pace` scales their times: 2 is half as many, twice as long."""
    rng = random.Random(f"nemesis {seed}")
    weights = [_WEIGHTS.get(kind, 1) for kind in kinds]
    faults = []
    at_s = 1.0 * pace
    while at_s < seconds:
        kind = rng.choices(kinds, weights)[0]
        duration_s = rng.uniform(0.3, _MAX_DURATION_S.get(kind, 3.0) + 0.3) * pace
        faults.append(
            ScheduledFault(
                round(at_s, 3),
                kind,
                on_leader=rng.random() < 0.5,
                pick=round(rng.random(), 6),
                duration_s=round(duration_s, 3),
                amount_s=round(rng.choice((0.005, 0.03, 0.15)), 3),
            )
        )
        at_s += (0.4 + rng.expovariate(1.0)) * pace
    return tuple(faults)
