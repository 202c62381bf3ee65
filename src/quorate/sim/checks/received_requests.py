"""The requests that a replica received as the leader of its epoch."""

from __future__ import annotations

from typing import Final

from quorate.base.ids import ReplicaKey
from quorate.raft.messages import FetchRequest, FetchSnapshotRequest, UpdateVoterRequest
from quorate.raft.values import Voter
from quorate.sim.checks.voters import matches

_UNKNOWN: Final = -1
"""Of a request without a high watermark: every successful response has a higher one."""
OpenRequest = tuple[ReplicaKey, int, int, tuple[int, int] | None]
"""(sender, arrival ms, high watermark that the sender knows, its entry in `fetch_positions`)."""


class ReceivedRequests:
    """When each replica last sent a request, was served, and how far it has fetched.

    Times are ms of the receiver's clock. All requests are of one epoch: the first request of another
    epoch discards them.
    """

    def __init__(self) -> None:
        self.epoch = 0
        """The epoch of the receiver at the last request."""
        self.last_request_ms: dict[ReplicaKey, int] = {}
        """By replica: when it last sent a request, or a Fetch that waited was answered."""
        self.recent_requesters: list[ReplicaKey] = []
        """The same replicas in request order, since check quorum last found a majority
        (`check_quorum`)."""
        self.open_requests: dict[int, OpenRequest] = {}
        """By reply_to: the requests without a response."""
        self.fetch_positions: dict[ReplicaKey, list[tuple[int, int]]] = {}
        """By replica: (reply_to, offset) of its last Fetch that succeeded, and of later ones
        without a response."""
        self.last_served_ms: dict[ReplicaKey, int] = {}
        """By replica: arrival time of its last successful request."""
        self._first_fetch_ends: dict[ReplicaKey, int] = {}
        """By replica: end of this log at the replica's first Fetch of the epoch."""
        self.fetched_at: dict[ReplicaKey, int] = {}
        """By replica: time of its last Fetch of the epoch."""
        self.caught_up: set[ReplicaKey] = set()
        """Replicas whose fetch offset has reached the log end of their first Fetch of the epoch.
        Kafka's rule (`LeaderState.isReplicaCaughtUp`) uses a later log end, which is never lower.
        """

    def forget(self) -> None:
        """Start over for another epoch or another incarnation."""
        self.last_request_ms.clear()
        self.recent_requesters.clear()
        self.open_requests.clear()
        self.last_served_ms.clear()
        self.fetch_positions.clear()
        self._first_fetch_ends.clear()
        self.fetched_at.clear()
        self.caught_up.clear()

    def add(self, reply_to: int, request: object, now_ms: int, *, epoch: int, log_end: int) -> None:
        """Record a request that only a leader serves; `epoch` and `log_end` are the receiver's."""
        if self.epoch != epoch:
            self.forget()
            self.epoch = epoch
        position = None
        if isinstance(request, FetchRequest):
            self._add_fetch(request.replica, request.offset, now_ms, log_end)
            position = (reply_to, request.offset)
            self.fetch_positions.setdefault(request.replica, []).append(position)
            known_high_watermark = request.high_watermark
        else:
            known_high_watermark = _UNKNOWN
        if isinstance(request, FetchRequest | FetchSnapshotRequest):
            who = request.replica
        elif isinstance(request, UpdateVoterRequest):
            who = request.voter
        else:
            return
        self.last_request_ms[who] = now_ms
        self.recent_requesters.append(who)
        self.open_requests[reply_to] = who, now_ms, known_high_watermark, position

    def voters_named(self, old: tuple[Voter, ...], new: tuple[Voter, ...]) -> None:
        """An upgrade names the directories of voters that had none: the new set replaces the old.

        A voter of kraft.version 0 is an id. What any of its directories has asked for counts as asked
        by the directory that the upgrade names (`LeaderState.updateVoterAndObserverStates`).
        """
        entries = {voter.key.id: voter.key for voter in old}
        for key in (voter.key for voter in new):
            entry = entries.get(key.id)
            if entry is not None and entry != key and matches(entry, key):
                self._named(entry, key)

    def _named(self, entry: ReplicaKey, key: ReplicaKey) -> None:
        times = [at for who, at in self.last_request_ms.items() if matches(entry, who)]
        if times:
            self.last_request_ms[key] = max(times)
        asked = [key if matches(entry, who) else who for who in self.recent_requesters]
        self.recent_requesters[:] = asked
        known = [found for who, found in self.fetch_positions.items() if matches(entry, who)]
        if known:
            self.fetch_positions[key] = sorted(one for found in known for one in found)

    def _add_fetch(self, key: ReplicaKey, offset: int, now_ms: int, log_end: int) -> None:
        """A replica that has caught up may be added as a voter (KIP-853)."""
        self.fetched_at[key] = now_ms
        if offset >= self._first_fetch_ends.setdefault(key, log_end):
            self.caught_up.add(key)
