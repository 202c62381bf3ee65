"""One real core as a value: frozen, thawed, stepped, frozen again.

`copy.deepcopy` of a core takes most of a millisecond, a pickle of it tens of microseconds. And it
is asked for seldom: what a replica does next depends on nothing but itself and the event, so each
pair of the two is tried once, on the core itself, and remembered. Most states of the cluster are
new combinations of replicas that were met before.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.raft.core import RaftCore
from quorate.raft.inputs import (
    Answered,
    ConnectionLost,
    Event,
    Failure,
    Persisted,
    Propose,
    Received,
    SendFailed,
)
from quorate.raft.invariants import Watch
from quorate.raft.messages import (
    ApiVersionsResponse,
    FetchResponse,
    Request,
    Response,
    VoteRequest,
)
from quorate.raft.outbox import Outbox
from quorate.raft.ready import Append, SaveElection, Truncate, Write
from quorate.raft.roles import Leader
from quorate.raft.state import State
from quorate.raft.values import Batch, ControlState, ElectionState, RaftConfig
from quorate.sim.explore.canon import START, core_key
from quorate.sim.explore.laws import Broken, check_promises
from quorate.sim.story.errors import CannotDo
from quorate.sim.story.log import Log
from quorate.sim.story.names import FIRST_PORT

LEAP_MS: Final = 10_000
"""All timers of a replica ring: none is longer."""
REST_MS: Final = 25
"""Past the backoff after a failure, before anything else."""
_NOBODY: Final = RaftConfig("", -1)
"""Stands in a frozen core for the configuration that all of a node's have."""
Batches = tuple[Batch, ...]
Deed = tuple[Any, ...]
"""What happens to a replica: a word and its facts, hashable."""


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """One replica and its disk; equal ones are one object, with one `id`."""

    id: int
    node: int
    core: bytes | None
    """None: it is down."""
    now: int
    live: Batches
    disk: Batches
    election: ElectionState | None
    """On the disk."""
    pending: tuple[tuple[int, tuple[Write, ...]], ...]
    flights: tuple[tuple[int, int], ...] = ()
    """(whom it asks, correlation)"""
    owed: frozenset[int] = frozenset()
    """What it has still to answer."""
    role: str = "down"
    epoch: int = 0
    leader: int = -1
    high_watermark: int = -1
    spoken: bool = False
    """Its epoch and vote are durable: it may have told anybody."""
    voters: tuple[ReplicaKey, ...] = ()
    resting: bool = False
    """It leaves a peer alone after a failure."""

    @property
    def log(self) -> Batches:
        """As it is in memory; of a replica that is down: on its disk."""
        return self.disk if self.core is None else self.live


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one deed leads to."""

    local: Local
    kept: frozenset[int]
    """Those whom it asked before and whose answer it still waits for."""
    sends: tuple[tuple[int, int, int], ...] = ()
    """(whom, at which node, what: a number in Replicas.bodies)"""
    replies: tuple[tuple[int, int], ...] = ()
    """(the request's code, what)"""


class Replicas:
    """Every replica that was met, and what became of it."""

    def __init__(
        self,
        configs: dict[int, RaftConfig],
        snapshots: dict[int, dict[OffsetAndEpoch, ControlState]],
        chance: Callable[[int], Callable[[], float]],
    ) -> None:
        self._configs = configs
        self._snapshots = snapshots
        self._chance = {node: chance(node) for node in configs}
        self._known: dict[tuple[Any, ...], Local] = {}
        self._outcomes: dict[tuple[int, Deed], Outcome] = {}
        self._bodies: dict[object, int] = {}
        self.bodies: list[Request | Response] = []
        """What was ever said."""
        self.all: list[Local] = []
        """By id."""
        self.steps = 0
        """How often a core was really stepped."""

    # -- deeds ---------------------------------------------------------------------------------
    def blank(self, node: int) -> Local:
        """Down, with a disk as it was formatted."""
        return self._down(node, (), None)

    def do(self, local: Local, deed: Deed) -> Outcome:
        """What comes of it; raises Broken where the replica itself breaks a promise."""
        found = self._outcomes.get((local.id, deed))
        if found is None:
            found = self._start(local) if deed[0] == "start" else self._step(local, deed)
            self._outcomes[(local.id, deed)] = found
        return found

    def crash(self, local: Local, kept: int) -> Local:
        """Down; of the writes on their way the first `kept` reached the disk."""
        writes = [write for _, writes in local.pending for write in writes][:kept]
        return self._down(local.node, *_written(local.disk, local.election, tuple(writes)))

    def _down(self, node: int, disk: Batches, election: ElectionState | None) -> Local:
        blank = Local(-1, node, None, START, (), disk, election, ())
        return self._intern((node, disk, election), blank)

    def _start(self, local: Local) -> Outcome:
        node = local.node
        log = Log(batches=list(local.disk), snapshots=self._snapshots[node])
        core = RaftCore(self._configs[node], local.election, log.recovered(), self._chance[node])
        fresh = replace(local, live=local.disk)
        return self._finish(core, fresh, [], START, local.disk, local.election, ())

    def _step(self, local: Local, deed: Deed) -> Outcome:
        core = self._thaw(local)
        kind, *facts = deed
        disk, election, pending, now = local.disk, local.election, local.pending, local.now
        events: list[Event] = []
        if kind == "received":
            events.append(Received(facts[0], self._request(facts[1])))
        elif kind == "asked":
            events.append(Received(0, facts[0]))
        elif kind == "answered":
            events.append(Answered(dict(local.flights)[facts[0]], self._response(facts[1])))
        elif kind == "failed":
            events.append(SendFailed(dict(local.flights)[facts[0]], Failure.DISCONNECTED))
        elif kind == "lost":
            events.append(ConnectionLost(facts[0]))
        elif kind == "propose":
            events.append(Propose(0, local.epoch, 1, len(facts[0]), facts[0]))
        elif kind == "persist":
            (seq, writes), *rest = pending
            pending = tuple(rest)
            disk, election = _written(disk, election, writes)
            events.append(Persisted(seq))
        else:
            now += LEAP_MS if kind == "leap" else REST_MS
        return self._finish(core, local, events, now, disk, election, pending)

    def _finish(
        self,
        core: RaftCore,
        before: Local,
        events: list[Event],
        now: int,
        disk: Batches,
        election: ElectionState | None,
        pending: tuple[tuple[int, tuple[Write, ...]], ...],
    ) -> Outcome:
        self.steps += 1
        ready = core.step(events, now)
        if ready.faulted is not None:
            raise Broken("the core's own checks", f"node {before.node}: {ready.faulted}")
        live, _ = _written(before.live, None, ready.writes)
        if ready.seq is not None:
            pending = (*pending, (ready.seq, ready.writes))
        # Of this very core: an equal one that was met before has other correlation ids.
        flights = dict(_flights(core._state))
        local = self._freeze(core, before.node, now, live, disk, election, pending)
        kept = frozenset(to for to, at in before.flights if flights.get(to) == at)
        replies = [(r.reply_to, _filled(r.response, live)) for r in ready.replies if r.reply_to]
        check_promises(before.node, disk, election, [s.request for s in ready.sends], replies)
        number = self._number
        return Outcome(
            local,
            kept,
            tuple((s.to, s.address.port - FIRST_PORT, number(s.request)) for s in ready.sends),
            tuple((code, number(response)) for code, response in replies),
        )

    # -- what is said --------------------------------------------------------------------------
    def _number(self, body: Request | Response) -> int:
        # The one body with a dict inside has no hash.
        identity = repr(body) if isinstance(body, ApiVersionsResponse) else body
        number = self._bodies.setdefault(identity, len(self.bodies))
        if number == len(self.bodies):
            self.bodies.append(body)
        return number

    def _request(self, number: int) -> Request:
        body = self.bodies[number]
        assert not isinstance(body, Response)
        return body

    def _response(self, number: int) -> Response:
        body = self.bodies[number]
        assert isinstance(body, Response)
        return body

    def is_pre_vote(self, number: int) -> bool:
        body = self.bodies[number]
        return isinstance(body, VoteRequest) and body.pre_vote

    # -- frozen --------------------------------------------------------------------------------
    def _thaw(self, local: Local) -> RaftCore:
        assert local.core is not None
        core = RaftCore.__new__(RaftCore)
        state: State
        state, watch = pickle.loads(local.core)
        state.config = self._configs[local.node]
        state.random = self._chance[local.node]
        core._state, core._watch = state, watch
        core._started, core._stopped, core._faulted, core._wake = True, False, None, 0
        return core

    def _freeze(
        self,
        core: RaftCore,
        node: int,
        now: int,
        live: Batches,
        disk: Batches,
        election: ElectionState | None,
        pending: tuple[tuple[int, tuple[Write, ...]], ...],
    ) -> Local:
        state: State = core._state
        watch: Watch = core._watch
        local = Local(
            -1,
            node,
            b"",
            now,
            live,
            disk,
            election,
            pending,
            _flights(state),
            _owed(state),
            core.role,
            state.epoch,
            state.leader_id,
            state.high_watermark,
            state.durable.election,
            state.voters.keys,
            any(until > now for until in state.requests._backoff.values()),
        )
        writes = tuple(writes for _, writes in pending)
        key = (node, live, disk, election, writes, core_key(state))
        known = self._known.get(key)
        if known is not None:
            return known
        state.config = _NOBODY
        state.random = None  # type: ignore[assignment]
        core_bytes = pickle.dumps((state, watch), pickle.HIGHEST_PROTOCOL)
        return self._intern(key, replace(local, core=core_bytes))

    def _intern(self, key: tuple[Any, ...], local: Local) -> Local:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = replace(local, id=len(self.all))
            self.all.append(known)
        return known


def _written(
    disk: Batches, election: ElectionState | None, writes: tuple[Write, ...]
) -> tuple[Batches, ElectionState | None]:
    """Log and election after these writes."""
    for write in writes:
        if isinstance(write, SaveElection):
            election = write.state
        elif isinstance(write, Append):
            disk += write.batches
        elif isinstance(write, Truncate):
            disk = tuple(batch for batch in disk if batch.end_offset <= write.end_offset)
        else:
            raise CannotDo(f"there are no snapshots here, but {write}")
    return disk, election


def _filled(response: Response, live: Batches) -> Response:
    """With the records that it names."""
    if not isinstance(response, FetchResponse) or response.records is None:
        return response
    offset, end = response.records.offset, response.records.end
    batches = tuple(b for b in live if b.end_offset > offset and b.end_offset <= end)
    return replace(response, records=None, batches=batches)


def _flights(state: State) -> tuple[tuple[int, int], ...]:
    flights = state.requests._by_node.items()
    return tuple(sorted((to, flight.correlation) for to, flight in flights))


def _owed(state: State) -> frozenset[int]:
    held: Outbox = state.out
    owed = {reply.reply_to for _, reply in held._held}
    role = state.role
    if isinstance(role, Leader):
        owed |= {parked.reply_to for parked in role.parked}
    return frozenset(owed - {0})
