"""The initial states of a search, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple


class Budget(NamedTuple):
    """How often each bounded action may still happen."""

    leaps: int = 1
    """All timers of a replica expire."""
    backoffs: int = 0
    crashes: int = 0
    fails: int = 0
    """A message is lost, and its sender is notified."""
    losses: int = 0
    """A follower loses the connection to its leader."""
    proposals: int = 0
    changes: int = 0
    """A client requests to add or remove a voter."""


NOTHING: Final = Budget(leaps=0)


@dataclass(frozen=True, slots=True)
class Setup:
    """Voters and observers by node id; `led`: the search begins with a leader that has committed."""

    voters: tuple[int, ...] = (1, 2, 3)
    observers: tuple[int, ...] = ()
    led: bool = False
    behind: tuple[int, ...] = ()
    """Voters that neither receive nor send until the search begins."""
    split: bool = False
    """That leader was then partitioned with a record of its own, and the others follow a new
    leader."""
    budget: Budget = NOTHING
    epochs: int = 2
    """The search leaves out states with a higher epoch."""

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(sorted((*self.voters, *self.observers)))


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
"""The setups of `sim explore`.

election: three voters with formatted disks. replication: a leader that has committed, crashes and a
record. stale: the same, with one voter that has received nothing. split: that leader was partitioned
with a record that no other node has, and the others follow another leader. removal: all have the
same log, and any voter may be removed. joining: an observer may be added.
"""
