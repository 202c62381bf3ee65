"""The state of one replica as a value, and the outcome of one event at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from quorate.base.ids import ReplicaKey
from quorate.raft.ready import Write
from quorate.raft.values import Batch, ElectionState

Batches = tuple[Batch, ...]
LocalEvent = tuple[Any, ...]
"""An event at one replica: a name and its arguments, hashable."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalState:
    """One replica and its disk. Equal ones are one object with one `id`."""

    id: int
    node: int
    core: bytes | None
    """The frozen core; None: the process is down."""
    now: int
    live: Batches
    disk: Batches
    election: ElectionState | None
    """The election state on the disk."""
    pending: tuple[tuple[int, tuple[Write, ...]], ...]
    flights: tuple[tuple[int, int], ...] = ()
    """Requests in flight: (receiver, correlation id)."""
    unanswered: frozenset[int] = frozenset()
    """Codes of the requests that it has not answered."""
    role: str = "down"
    epoch: int = 0
    leader: int = -1
    high_watermark: int = -1
    election_is_durable: bool = False
    """Its epoch and vote are durable, so other replicas may know them."""
    voters: tuple[ReplicaKey, ...] = ()
    backing_off: bool = False
    """It is in the retry backoff of a peer."""

    @property
    def log(self) -> Batches:
        """The log in memory, or on the disk where the process is down."""
        return self.disk if self.core is None else self.live


@dataclass(frozen=True, slots=True, eq=False)
class StepOutcome:
    """The result of one event."""

    local: LocalState
    kept: frozenset[int]
    """Receivers of earlier requests whose responses it still awaits."""
    sends: tuple[tuple[int, int, int], ...] = ()
    """Requests: (receiver, node at its address, number in ReplicaStates.bodies)."""
    replies: tuple[tuple[int, int], ...] = ()
    """Responses: (code of the request, number in ReplicaStates.bodies)."""
