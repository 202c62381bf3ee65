"""The consensus core: events in, one Ready out.

A step:
1. `dispatch.handle` gives each event to its part: `election` (votes), `epochs` (leader and epoch of
   messages), `leading`, `following`, `joining`, `reconfig` (voter changes), `snapshots`.
2. A leader that appended answers its parked Fetch requests once.
3. `_poll` lets the time act on the role, until the role stays.
4. The invariants are checked; a broken one stops the replica before anything is sent.
5. The outbox becomes the Ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.base.errors import ErrorCode, InvariantError
from quorate.base.ids import LeaderAndEpoch, Listeners, OffsetAndEpoch
from quorate.base.notes import Fault
from quorate.raft import election, following, leading, snapshots, transitions
from quorate.raft.answers import bare_refusal, with_error
from quorate.raft.describe import (
    QuorumDescription,
    describe,
    disconnected_reason,
    known_committed,
    leader_high_watermark,
)
from quorate.raft.dispatch import handle
from quorate.raft.inputs import (
    Event,
    Persisted,
    Propose,
    Received,
    Shutdown,
    StorageFailed,
    UpgradeKRaftVersion,
)
from quorate.raft.invariants import InvariantChecker
from quorate.raft.log_index import Diverging
from quorate.raft.ready import Ready, Refused, Reply, Send
from quorate.raft.reconfig_state import AwaitingCommit
from quorate.raft.roles import (
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from quorate.raft.state import RaftState
from quorate.raft.values import ControlState, ElectionState, RaftConfig, RecoveredLog


class RaftCore:
    """One replica's consensus, without clock, random source, disk or network.

    `election` and `log` are what the driver found on disk; both are durable. `random` gives
    floats in [0, 1). Raises QuorateError where the log and its snapshots do not fit together.
    """

    def __init__(
        self,
        config: RaftConfig,
        election: ElectionState | None,
        log: RecoveredLog,
        random: Callable[[], float],
    ) -> None:
        self._state = RaftState(config, election, log, random)
        self._watch = InvariantChecker(self._state)
        self._started = False
        self._stopped = False
        self._faulted: str | None = None
        self._wake = 0

    # -- what a driver may look at -----------------------------------------------------------
    @property
    def state(self) -> RaftState:
        """All that the core has in memory, for checks and tests. They read it and never write."""
        return self._state

    @property
    def invariants(self) -> InvariantChecker:
        """The checker of this core's invariants: with `state`, all that a later step depends on."""
        return self._watch

    def restore(self, state: RaftState, invariants: InvariantChecker) -> None:
        """Continue from the `state` and the `invariants` of a core that was started and runs.

        The caller has made this core without `__init__`, which would build a state of its own.
        """
        self._state, self._watch = state, invariants
        self._started, self._stopped, self._faulted = True, False, None
        self._wake = 0  # each step sets it before it is read

    @property
    def role(self) -> str:
        """unattached, prospective, candidate, follower, leader or resigned."""
        return type(self._state.role).__name__.lower()

    @property
    def epoch(self) -> int:
        return self._state.election.epoch

    @property
    def leader(self) -> LeaderAndEpoch:
        """The leader as the state machine may see it; id -1 while it is not known."""
        return self._state.visible_leader

    @property
    def leader_endpoints(self) -> Listeners:
        return self._state.leader_endpoints

    @property
    def high_watermark(self) -> int:
        """Known to be committed (exclusive); -1 unknown."""
        return self._state.high_watermark

    @property
    def voters(self) -> ControlState:
        """kraft.version and voter set in force, committed or not; static voters included."""
        return self._state.controls.state

    @property
    def is_voter(self) -> bool:
        return self._state.is_voter

    @property
    def election(self) -> ElectionState:
        return self._state.election

    @property
    def log_start_offset(self) -> int:
        return self._state.log.start_offset

    @property
    def log_end(self) -> OffsetAndEpoch:
        """End offset (exclusive) and last epoch, with what is not durable yet."""
        return self._state.log.end

    @property
    def durable_end_offset(self) -> int:
        return self._state.durable.end_offset

    @property
    def snapshots(self) -> tuple[OffsetAndEpoch, ...]:
        return tuple(self._state.log.snapshots)

    def has_place(self, offset: int, epoch: int) -> bool:
        """Whether the log has `offset` (an end, exclusive) in `epoch`, or has a snapshot of it."""
        return not isinstance(self._state.log.validate(offset, epoch), Diverging)

    def control_at(self, end_offset: int) -> ControlState:
        """kraft.version and voter set for a snapshot that ends at `end_offset` (exclusive)."""
        return self._state.controls.at(end_offset)

    def snapshot_problem(self, snapshot_id: OffsetAndEpoch) -> str | None:
        """Why no snapshot with this id may be made now; None: it may."""
        return snapshots.snapshot_problem(self._state.log, self._state.high_watermark, snapshot_id)

    def describe(self, now_ms: int) -> QuorumDescription | None:
        """What DescribeQuorum answers; None where this node does not lead."""
        return describe(self._state, now_ms)

    def disconnected_reason(self, now_ms: int) -> str | None:
        """Why this replica is not in touch with a quorum that works; None: it is."""
        return disconnected_reason(self._state, now_ms)

    @property
    def known_committed(self) -> int:
        """The greatest high watermark heard of (exclusive), the leader's too; -1 unknown."""
        return known_committed(self._state)

    @property
    def leader_high_watermark(self) -> int:
        """That of the leader that this replica is or follows (exclusive); -1 unknown."""
        return leader_high_watermark(self._state)

    @property
    def voters_of_epoch(self) -> frozenset[int]:
        """The voters whose disks have the epoch that this node leads, as far as it knows.

        They voted for it, or acknowledged it or records. Empty where it does not lead.
        """
        role = self._state.role
        if not isinstance(role, Leader):
            return frozenset()
        rows = role.progress.voters.items()
        return frozenset(node_id for node_id, row in rows if row.has_voted or row.acknowledged)

    @property
    def changes_voters(self) -> bool:
        """Does this node lead and is a voter change under way?"""
        role = self._state.role
        return isinstance(role, Leader) and role.change is not None

    @property
    def voter_change(self) -> str | None:
        """add or remove while this node leads and such a change of the voters is under way."""
        role = self._state.role
        if not isinstance(role, Leader) or role.change is None:
            return None
        is_removal = isinstance(role.change, AwaitingCommit) and role.change.removal
        return "remove" if is_removal else "add"

    def offline_voters(self, now_ms: int) -> int | None:
        """How many other voters have not fetched within the fetch timeout; None where this node does
        not lead."""
        role = self._state.role
        if not isinstance(role, Leader):
            return None
        return len(role.progress.silent(self._state.config.fetch_timeout_ms, now_ms))

    @property
    def ignores_static_voters(self) -> bool:
        """Are voters configured that count for nothing, because the log has its own?"""
        controls = self._state.controls
        return controls.has_voters and len(controls.static_voters) > 0

    @property
    def duplicate_replica_signs(self) -> int:
        """Signs since the start that two nodes run as one voter: it fetched below what it had
        acknowledged, or its listeners alternated."""
        return self._state.anomalies.duplicate_signs

    # -- step --------------------------------------------------------------------------------
    def step(self, events: Iterable[Event], now_ms: int) -> Ready:
        """Handle the events in order at this time (ms, never back); what the driver has to do.

        It never raises: a broken invariant or a failed disk sets `Ready.faulted`.
        """
        s = self._state
        if now_ms > s.now:
            s.now = now_ms
        events = list(events)
        if self._faulted is not None or self._stopped:
            return self._refuse_events(events)
        # First of all: the events before it may rely on writes that failed.
        for event in events:
            if isinstance(event, StorageFailed):
                return self._fail(f"storage failed: {event.reason}", events, notify=True)
        try:
            if not self._started:
                self._started = True
                transitions.start(s)
            end = s.log.end_offset
            for event in events:
                handle(s, event)
            if isinstance(s.role, Leader) and s.log.end_offset > end:
                leading.after_append(s, s.role)
            self._wake = self._poll(s)
            self._watch.verify(s)
        except InvariantError as broken:
            return self._fail(f"broken invariant: {broken}", events, notify=False)
        return self._finish(s)

    def _finish(self, s: RaftState) -> Ready:
        role = s.role
        reported, present = s.reported_leader, s.election
        if (
            reported.epoch != present.epoch
            or reported.leader_id != present.leader_id
            or isinstance(role, Resigned)
        ):
            leader = s.visible_leader
            if leader != reported:
                s.reported_leader = s.out.leader = leader
        return s.out.ready(
            epoch_start=role.epoch_start if isinstance(role, Leader) else -1,
            wake_at_ms=self._wake if self._wake < NEVER else None,
            stopped=self._stopped,
            faulted=self._faulted,
        )

    # -- time --------------------------------------------------------------------------------
    def _poll(self, s: RaftState) -> int:
        """Let the time act on the role until it stays; the time (ms) of the next step.

        A role change may make the next one due at once (the only voter: Prospective, Candidate,
        Leader). Eight rounds bound it; the wake-up time continues what is left.
        """
        if s.shutdown_deadline is not None and self._may_stop(s):
            self._stop(s)
            return NEVER
        wake = s.now
        for _ in range(8):
            role = s.role
            if isinstance(role, Leader):
                wake = leading.poll_leader(s, role)
            elif isinstance(role, Follower):
                wake = following.poll_follower(s, role)
            elif isinstance(role, Unattached):
                wake = following.poll_unattached(s, role)
            elif isinstance(role, Prospective):
                wake = election.poll_prospective(s, role)
            elif isinstance(role, Candidate):
                wake = election.poll_candidate(s, role)
            else:
                assert isinstance(role, Resigned)
                wake = election.poll_resigned(s, role)
            if s.role is role:
                break
        request_wake = s.requests.wake_ms(s.now)
        if request_wake is not None:
            wake = min(wake, request_wake)
        if s.shutdown_deadline is not None:
            wake = s.shutdown_deadline if wake <= s.now else min(wake, s.shutdown_deadline)
        return max(wake, s.now + 1)

    def _may_stop(self, s: RaftState) -> bool:
        """May a node that shuts down stop now: the time is up, or no node needs this one?

        `KafkaRaftClient.maybeCompleteShutdown`. Kafka waits for a successor until the time is up. A node
        whose peers are unreachable stops at once, so that a cluster that is shut down as a whole stops soon.
        """
        assert s.shutdown_deadline is not None
        return (
            s.now >= s.shutdown_deadline
            or not s.is_voter
            or s.voters.is_only_voter(s.me)
            or s.leader_id not in (-1, s.me.id)
            or (not isinstance(s.role, Leader) and _no_majority_is_reachable(s))
        )

    def _stop(self, s: RaftState) -> None:
        self._stopped = True
        role = s.role
        if isinstance(role, Leader):
            for parked in role.parked:
                error = ErrorCode.BROKER_NOT_AVAILABLE
                s.out.reply(parked.reply_to, bare_refusal(parked.request, error))
            role.parked = []
            if role.change is not None:
                transitions.answer_change(s, role.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                role.change = None
        s.note("stopped")

    # -- the end -----------------------------------------------------------------------------
    def _fail(self, reason: str, events: list[Event], *, notify: bool) -> Ready:
        """Stop taking part. Nothing of this step is done.

        Replies that wait for a write get an error: the write will never be durable. With `notify`
        (a failed disk) a leader sends EndQuorumEpoch, which promises nothing durable, so that the
        other voters need not wait for their timeouts. After a broken invariant it sends nothing.
        """
        s = self._state
        self._faulted = reason
        s.out.discard()
        s.out.notes.append(Fault(reason))
        held = [
            Reply(reply.reply_to, with_error(reply.response, ErrorCode.BROKER_NOT_AVAILABLE))
            for reply in s.out.take_held()
        ]
        s.out.replies.extend(held)
        role = s.role
        if isinstance(role, Leader):
            for parked in role.parked:
                refusal = bare_refusal(parked.request, ErrorCode.BROKER_NOT_AVAILABLE)
                s.out.replies.append(Reply(parked.reply_to, refusal))
            if role.change is not None:
                transitions.answer_change(s, role.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            successors = role.progress.by_descending_end()
            s.role = Resigned(NEVER, set(), successors)
            if notify and s.durable.election_is_durable:
                _send_end_quorum_epoch(s, role)
        return self._refuse_events(events)

    def _refuse_events(self, events: list[Event]) -> Ready:
        """Refuse all requests and proposals: the replica is stopped or has failed."""
        s = self._state
        why = self._faulted or "shut down"
        for event in events:
            if isinstance(event, Received):
                refusal = bare_refusal(event.request, ErrorCode.BROKER_NOT_AVAILABLE)
                s.out.replies.append(Reply(event.reply_to, refusal))
            elif isinstance(event, Propose | UpgradeKRaftVersion):
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
                s.out.proposals.append(Refused(event.token, error, f"this replica is out: {why}"))
            elif isinstance(event, Shutdown):
                self._stopped = True
        self._wake = NEVER
        if self._stopped and self._faulted is None and isinstance(s.role, Leader):
            seq = max((e.seq for e in events if isinstance(e, Persisted)), default=0)
            s.durable.persisted(seq, s.now)
            s.out.release()
        return self._finish(s)


def _no_majority_is_reachable(s: RaftState) -> bool:
    """Are so many voters unreachable that, even with this node's vote, no voter can be elected?"""
    return (
        sum(node_id not in s.requests.unreachable for node_id in s.voters.ids) < s.voters.majority
    )


def _send_end_quorum_epoch(s: RaftState, role: Leader) -> None:
    successors = role.progress.by_descending_end()
    request = election.end_epoch_request(s, successors)
    for key in successors:
        address = s.usable(s.voters.listeners(key.id))
        if address is not None:
            timeout = s.config.request_timeout_ms
            correlation = s.requests.sent(key.id, address, request, s.now + timeout)
            s.out.sends.append(Send(correlation, key.id, address, request, timeout))
