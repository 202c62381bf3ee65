"""Where a search may begin, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.sim.explore.space import Budget, Setup

SETUPS: Final[Mapping[str, Setup]] = {
    "election": Setup(budget=Budget(leaps=2, crashes=1)),
    "replication": Setup(led=True, budget=Budget(leaps=1, crashes=1, proposals=1)),
    "stale": Setup(led=True, behind=(3,), budget=Budget(leaps=1, losses=1, proposals=1)),
    "split": Setup(led=True, split=True, budget=Budget(leaps=1, crashes=1), epochs=3),
    "removal": Setup(led=True, budget=Budget(leaps=1, proposals=1, changes=1)),
    "joining": Setup(
        voters=(1, 2), observers=(3,), led=True, budget=Budget(leaps=1, proposals=1, changes=1)
    ),
}
"""election: three cold voters. replication: a leader that has committed, crashes and a record.
stale: the same, but one voter has heard nothing yet. split: it was cut off with a record that
nobody has, and the others follow another leader. removal: all have the same, and any voter may be
removed. joining: an observer may be added."""
