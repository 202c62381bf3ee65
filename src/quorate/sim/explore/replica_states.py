"""One real core as a value: frozen, restored, stepped, frozen again.

A pickle of a core takes tens of microseconds, `copy.deepcopy` most of a millisecond. It is needed
seldom: the next state depends only on the replica and the event, so each pair is computed once on
the core and then remembered. Most states of the cluster are new combinations of known replicas.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from quorate.base.ids import OffsetAndEpoch
from quorate.raft.core import RaftCore
from quorate.raft.inputs import (
    Answered,
    ConnectionLost,
    Event,
    Persisted,
    Propose,
    Received,
    SendFailed,
    SendFailure,
)
from quorate.raft.invariants import InvariantChecker
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
from quorate.raft.state import RaftState
from quorate.raft.values import ControlState, ElectionState, RaftConfig
from quorate.sim.explore.canonical_form import START, core_key
from quorate.sim.explore.invariants import InvariantViolationError, check_durability
from quorate.sim.explore.local_state import Batches, LocalEvent, LocalState, StepOutcome
from quorate.sim.scenario.errors import CommandError
from quorate.sim.scenario.log import MemoryLog
from quorate.sim.scenario.names import FIRST_PORT

LEAP_MS: Final = 10_000
"""Longer than every timer of a replica, so that all expire."""
BACKOFF_MS: Final = 25
"""Longer than the retry backoff, and shorter than every other timer."""
_NO_CONFIG: Final = RaftConfig("", -1)
"""Replaces the configuration in a frozen core: all cores of a node have the same."""


class ReplicaStates:
    """All known replica states, and the results of the events at them."""

    def __init__(
        self,
        configs: dict[int, RaftConfig],
        snapshots: dict[int, dict[OffsetAndEpoch, ControlState]],
        random_of: Callable[[int], Callable[[], float]],
    ) -> None:
        self._configs = configs
        self._snapshots = snapshots
        self._random = {node: random_of(node) for node in configs}
        self._known: dict[tuple[Any, ...], LocalState] = {}
        self._outcomes: dict[tuple[int, LocalEvent], StepOutcome] = {}
        self._bodies: dict[object, int] = {}
        self.bodies: list[Request | Response] = []
        """Every message body, by number."""
        self.all: list[LocalState] = []
        """By id."""
        self.steps = 0
        """How often a core was stepped, not looked up."""

    # -- events ----------------------------------------------------------------------------------
    def blank(self, node: int) -> LocalState:
        """The process is down, and its disk is freshly formatted."""
        return self._down(node, (), None)

    def do(self, local: LocalState, event: LocalEvent) -> StepOutcome:
        """The result of the event; raises InvariantViolationError where the replica itself violates
        an invariant."""
        found = self._outcomes.get((local.id, event))
        if found is None:
            found = self._start(local) if event[0] == "start" else self._step(local, event)
            self._outcomes[(local.id, event)] = found
        return found

    def crash(self, local: LocalState, kept: int) -> LocalState:
        """The process is down; the first `kept` of its pending writes reached the disk."""
        writes = [write for _, writes in local.pending for write in writes][:kept]
        return self._down(local.node, *_written(local.disk, local.election, tuple(writes)))

    def _down(self, node: int, disk: Batches, election: ElectionState | None) -> LocalState:
        blank = LocalState(-1, node, None, START, (), disk, election, ())
        return self._intern((node, disk, election), blank)

    def _start(self, local: LocalState) -> StepOutcome:
        node = local.node
        log = MemoryLog(batches=list(local.disk), snapshots=self._snapshots[node])
        core = RaftCore(self._configs[node], local.election, log.recovered(), self._random[node])
        fresh = replace(local, live=local.disk)
        return self._finish(core, fresh, [], START, local.disk, local.election, ())

    def _step(self, local: LocalState, event: LocalEvent) -> StepOutcome:
        core = self._thaw(local)
        kind, *facts = event
        disk, election, pending, now = local.disk, local.election, local.pending, local.now
        events: list[Event] = []
        if kind == "received":
            events.append(Received(facts[0], self._request(facts[1])))
        elif kind == "asked":
            events.append(Received(0, facts[0]))
        elif kind == "answered":
            events.append(Answered(dict(local.flights)[facts[0]], self._response(facts[1])))
        elif kind == "failed":
            events.append(SendFailed(dict(local.flights)[facts[0]], SendFailure.DISCONNECTED))
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
            now += LEAP_MS if kind == "leap" else BACKOFF_MS
        return self._finish(core, local, events, now, disk, election, pending)

    def _finish(
        self,
        core: RaftCore,
        before: LocalState,
        events: list[Event],
        now: int,
        disk: Batches,
        election: ElectionState | None,
        pending: tuple[tuple[int, tuple[Write, ...]], ...],
    ) -> StepOutcome:
        self.steps += 1
        ready = core.step(events, now)
        if ready.faulted is not None:
            raise InvariantViolationError(
                "the core's own checks", f"node {before.node}: {ready.faulted}"
            )
        live, _ = _written(before.live, None, ready.writes)
        if ready.seq is not None:
            pending = (*pending, (ready.seq, ready.writes))
        # (see `StepOutcome.kept`)
        # An equal core that was seen before has other correlation ids, so use this very core.
        flights = dict(_flights(core.state))
        local = self._freeze(core, before.node, now, live, disk, election, pending)
        kept = frozenset(to for to, at in before.flights if flights.get(to) == at)
        replies = [(r.reply_to, _filled(r.response, live)) for r in ready.replies if r.reply_to]
        check_durability(before.node, disk, election, [s.request for s in ready.sends], replies)
        number = self._number
        return StepOutcome(
            local,
            kept,
            tuple((s.to, s.address.port - FIRST_PORT, number(s.request)) for s in ready.sends),
            tuple((code, number(response)) for code, response in replies),
        )

    # -- message bodies ------------------------------------------------------------------------
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

    # -- freezing ------------------------------------------------------------------------------
    def _thaw(self, local: LocalState) -> RaftCore:
        assert local.core is not None
        core = RaftCore.__new__(RaftCore)
        state: RaftState
        state, watch = pickle.loads(local.core)  # noqa: S301 - we wrote it ourselves
        state.config = self._configs[local.node]
        state.random = self._random[local.node]
        core.restore(state, watch)
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
    ) -> LocalState:
        state: RaftState = core.state
        watch: InvariantChecker = core.invariants
        local = LocalState(
            -1,
            node,
            b"",
            now,
            live,
            disk,
            election,
            pending,
            _flights(state),
            _unanswered(state),
            core.role,
            state.epoch,
            state.leader_id,
            state.high_watermark,
            state.durable.election_is_durable,
            state.voters.keys,
            any(until > now for until in state.requests.backoff_until.values()),
        )
        writes = tuple(writes for _, writes in pending)
        key = (node, live, disk, election, writes, core_key(state))
        known = self._known.get(key)
        if known is not None:
            return known
        state.config = _NO_CONFIG
        state.random = None  # type: ignore[assignment]
        core_bytes = pickle.dumps((state, watch), pickle.HIGHEST_PROTOCOL)
        return self._intern(key, replace(local, core=core_bytes))

    def _intern(self, key: tuple[Any, ...], local: LocalState) -> LocalState:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = replace(local, id=len(self.all))
            self.all.append(known)
        return known


def _written(
    disk: Batches, election: ElectionState | None, writes: tuple[Write, ...]
) -> tuple[Batches, ElectionState | None]:
    """MemoryLog and election after these writes."""
    for write in writes:
        if isinstance(write, SaveElection):
            election = write.state
        elif isinstance(write, Append):
            disk += write.batches
        elif isinstance(write, Truncate):
            disk = tuple(batch for batch in disk if batch.end_offset <= write.end_offset)
        else:
            raise CommandError(f"there are no snapshots here, but {write}")
    return disk, election


def _filled(response: Response, live: Batches) -> Response:
    """The response with the records that it refers to."""
    if not isinstance(response, FetchResponse) or response.records is None:
        return response
    offset, end = response.records.offset, response.records.end
    batches = tuple(b for b in live if b.end_offset > offset and b.end_offset <= end)
    return replace(response, records=None, batches=batches)


def _flights(state: RaftState) -> tuple[tuple[int, int], ...]:
    flights = state.requests.by_node.items()
    return tuple(sorted((to, flight.correlation) for to, flight in flights))


def _unanswered(state: RaftState) -> frozenset[int]:
    held: Outbox = state.out
    unanswered = {reply.reply_to for _, reply in held.held}
    role = state.role
    if isinstance(role, Leader):
        unanswered |= {parked.reply_to for parked in role.parked}
    return frozenset(unanswered - {0})
