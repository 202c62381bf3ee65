"""What the nemesis will do: drawn from a seed before anything runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

KINDS: Final = {
    "kill": "kill -9 a node, start it again later",
    "power": "kill -9 all nodes at once, start them again",
    "stop": "SIGSTOP a node, SIGCONT it later",
    "cut": "reset and refuse all connections between a node and the others",
    "hold": "bytes from and to a node wait",
    "deaf": "bytes to a node wait, those from it pass",
    "mute": "bytes from a node wait, those to it pass",
    "split": "bytes between two nodes wait, all others pass",
    "lag": "everything on the network takes longer",
    "reset": "reset the connections of a node, once",
    "slow-disk": "the syncs of a node take longer",
    "bad-disk": "a write or sync of a node fails",
    "remove": "remove a voter, add it again later",
    "replace": "remove a voter, wipe it, let it join as a new one",
}
"""Every kind of deed, and what it is."""

DISK_KINDS: Final = frozenset({"slow-disk", "bad-disk"})
"""Those that need the members of the store: other nodes have no fault points in their disks."""

_WEIGHT: Final = {"kill": 3, "power": 1, "stop": 2, "remove": 1, "replace": 1}
_LONGEST_S: Final = {"lag": 4.0, "reset": 0.0, "slow-disk": 4.0, "power": 1.0, "bad-disk": 1.0}


@dataclass(frozen=True, slots=True)
class Deed:
    """One act, seconds after the start; what it broke is mended `lasts_s` later."""

    at_s: float
    kind: str
    on_leader: bool
    """Its victim is the leader of the moment, else the node that `pick` says."""
    pick: float
    """In [0, 1): which victim, which way of failing."""
    lasts_s: float
    amount_s: float = 0.0
    """How much slower a disk or the network is."""


def draw(seed: int, seconds: float, kinds: Sequence[str], pace: float = 1.0) -> tuple[Deed, ...]:
    """The deeds of a run. `pace` stretches them: 2 is half as many, each twice as long."""
    chance = random.Random(f"nemesis {seed}")
    weights = [_WEIGHT.get(kind, 1) for kind in kinds]
    deeds = []
    at_s = 1.0 * pace
    while at_s < seconds:
        kind = chance.choices(kinds, weights)[0]
        lasts_s = chance.uniform(0.3, _LONGEST_S.get(kind, 3.0) + 0.3) * pace
        deeds.append(
            Deed(
                round(at_s, 3),
                kind,
                on_leader=chance.random() < 0.5,
                pick=round(chance.random(), 6),
                lasts_s=round(lasts_s, 3),
                amount_s=round(chance.choice((0.005, 0.03, 0.15)), 3),
            )
        )
        at_s += (0.4 + chance.expovariate(1.0)) * pace
    return tuple(deeds)
