"""The door of the consensus core: events in, one Ready out.

`RaftCore` holds the state and sends each event to the part that knows it: `election` (votes),
`epochs` (who leads which epoch), `leading`, `following`, `reconfig` (voter changes), `snapshots`.
After the events of a step come the clock's (`_poll`), then the invariants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.base.errors import BrokenInvariant, ErrorCode
from quorate.base.ids import LeaderAndEpoch, Listeners, OffsetAndEpoch
from quorate.raft import election, epochs, following, leading, moves, reconfig, snapshots
from quorate.raft.answers import bare_refusal, spoiled
from quorate.raft.describe import QuorumDescription, describe
from quorate.raft.inputs import (
    Answered,
    CleanTo,
    ConnectionLost,
    Event,
    Failure,
    InstallFailed,
    Persisted,
    Propose,
    Received,
    Resign,
    SendFailed,
    Shutdown,
    SnapshotCreated,
    SnapshotInstalled,
    StorageFailed,
    UpgradeKRaftVersion,
)
from quorate.raft.invariants import Watch
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    Request,
    Response,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteRequest,
    VoteResponse,
)
from quorate.raft.ready import Ready, Refused, Reply, Send
from quorate.raft.requests import InFlight
from quorate.raft.roles import (
    NEVER,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Unattached,
)
from quorate.raft.state import State
from quorate.raft.values import ControlState, ElectionState, RaftConfig, RecoveredLog


class RaftCore:
    """One replica's consensus, without clock, chance, disk or network.

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
        self._state = State(config, election, log, random)
        self._watch = Watch(self._state)
        self._started = False
        self._stopped = False
        self._faulted: str | None = None
        self._wake = 0

    # -- what a driver may look at -----------------------------------------------------------
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
        controls = self._state.controls
        return ControlState(controls.version, controls.voters.voters)

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

    def control_at(self, end_offset: int) -> ControlState:
        """kraft.version and voter set for a snapshot that ends at `end_offset` (exclusive)."""
        return self._state.controls.at(end_offset)

    def snapshot_problem(self, snapshot_id: OffsetAndEpoch) -> str | None:
        """Why no snapshot with this id may be made now; None: it may."""
        return snapshots.snapshot_problem(self._state.log, self._state.high_watermark, snapshot_id)

    def describe(self, now_ms: int) -> QuorumDescription | None:
        """What DescribeQuorum answers; None where this node does not lead."""
        return describe(self._state, now_ms)

    # -- the door ----------------------------------------------------------------------------
    def step(self, events: Iterable[Event], now_ms: int) -> Ready:
        """Take these events, in order, at this time; what is to be done. Never raises."""
        s = self._state
        if now_ms > s.now:
            s.now = now_ms
        events = list(events)
        if self._faulted is not None or self._stopped:
            return self._dead(events)
        for event in events:
            if isinstance(event, StorageFailed):
                return self._fail(f"storage failed: {event.reason}", events, tell=True)
        try:
            if not self._started:
                self._started = True
                moves.start(s)
            end = s.log.end_offset
            for event in events:
                self._handle(s, event)
            if isinstance(s.role, Leader) and s.log.end_offset > end:
                leading.after_append(s, s.role)
            self._wake = self._poll(s)
            self._watch.verify(s)
        except BrokenInvariant as broken:
            return self._fail(f"broken invariant: {broken}", events, tell=False)
        return self._finish(s)

    def _finish(self, s: State) -> Ready:
        role = s.role
        told, present = s.told, s.election
        if (
            told.epoch != present.epoch
            or told.leader_id != present.leader_id
            or isinstance(role, Resigned)
        ):
            leader = s.visible_leader
            if leader != told:
                s.told = s.out.leader = leader
        return s.out.ready(
            epoch_start=role.epoch_start if isinstance(role, Leader) else -1,
            wake_at_ms=self._wake if self._wake < NEVER else None,
            stopped=self._stopped,
            faulted=self._faulted,
        )

    # -- events ------------------------------------------------------------------------------
    def _handle(self, s: State, event: Event) -> None:
        if isinstance(event, Received):
            self._received(s, event.reply_to, event.request)
        elif isinstance(event, Propose):
            leading.on_propose(s, event)
        elif isinstance(event, Persisted):
            self._persisted(s, event.seq)
        elif isinstance(event, Answered):
            self._answered(s, event)
        elif isinstance(event, SendFailed):
            self._send_failed(s, event)
        elif isinstance(event, ConnectionLost):
            self._connection_lost(s, event.node_id)
        elif isinstance(event, SnapshotInstalled):
            self._persisted(s, event.seq)
            following.on_installed(s, event)
        elif isinstance(event, InstallFailed):
            self._persisted(s, event.seq)
            following.on_install_failed(s, event)
        else:
            self._handle_rare(s, event)

    def _handle_rare(self, s: State, event: Event) -> None:
        if isinstance(event, UpgradeKRaftVersion):
            reconfig.on_upgrade(s, event)
        elif isinstance(event, SnapshotCreated):
            snapshots.on_created(s, event)
        elif isinstance(event, CleanTo):
            snapshots.on_clean(s, event)
        elif isinstance(event, Resign):
            leading.on_resign(s, event)
        elif isinstance(event, Shutdown):
            if s.shutdown_deadline is None:
                s.shutdown_deadline = s.now + event.timeout_ms
        else:
            raise BrokenInvariant(f"unknown event {event!r}")

    def _received(self, s: State, reply_to: int, request: Request) -> None:
        if isinstance(request, FetchRequest):
            leading.on_fetch(s, reply_to, request)
        elif isinstance(request, VoteRequest):
            election.on_vote(s, reply_to, request)
        elif isinstance(request, BeginQuorumEpochRequest):
            epochs.on_begin(s, reply_to, request)
        elif isinstance(request, EndQuorumEpochRequest):
            epochs.on_end(s, reply_to, request)
        elif isinstance(request, FetchSnapshotRequest):
            leading.on_fetch_snapshot(s, reply_to, request)
        elif isinstance(request, AddVoterRequest):
            reconfig.on_add_voter(s, reply_to, request)
        elif isinstance(request, RemoveVoterRequest):
            reconfig.on_remove_voter(s, reply_to, request)
        elif isinstance(request, UpdateVoterRequest):
            reconfig.on_update_voter(s, reply_to, request)
        else:
            config = s.config
            features = {reconfig.FEATURE: (config.min_kraft_version, config.max_kraft_version)}
            s.out.replies.append(Reply(reply_to, ApiVersionsResponse(ErrorCode.NONE, features)))

    def _persisted(self, s: State, seq: int) -> None:
        """More is durable: release what waited for it, and count the leader's own log."""
        durable = s.durable
        was_durable = durable.election
        durable.persisted(seq)
        s.out.release()
        role = s.role
        if isinstance(role, Leader):
            if not was_durable and durable.election:
                leading.on_spoken_for(s, role)
            leading.on_durable(s, role)

    def _answered(self, s: State, event: Answered) -> None:
        flight = s.requests.take(event.correlation)
        if flight is None:
            return
        resets = s.requests.resets
        if not _on_response(s, flight, event.response) and s.requests.resets == resets:
            s.requests.fail(flight.to, s.now)

    def _send_failed(self, s: State, event: SendFailed) -> None:
        flight = s.requests.take(event.correlation)
        if flight is None:
            return
        request = flight.request
        if event.failure == Failure.UNSUPPORTED_VERSION:
            if isinstance(request, VoteRequest) and request.pre_vote:
                election.no_pre_vote(s, flight.to)
                return
            if isinstance(request, UpdateVoterRequest):
                reconfig.update_unsupported(s)
                return
        if isinstance(request, ApiVersionsRequest):
            reconfig.on_api_versions_failed(s, flight.correlation, event.failure)
        s.requests.fail(flight.to, s.now)

    def _connection_lost(self, s: State, node_id: int) -> None:
        """Only the leader's matters; an observer looks for another node to ask at once."""
        role = s.role
        if not isinstance(role, Follower) or node_id != s.leader_id:
            return
        s.requests.forget(node_id)
        s.requests.fail(node_id, s.now)
        if s.electable and role.suspicion == 0:
            s.note(f"connection to leader {node_id} lost")
            moves.suspect_leader(s, role)

    # -- time --------------------------------------------------------------------------------
    def _poll(self, s: State) -> int:
        """Let the clock act until the role rests; when to be called again."""
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

    def _may_stop(self, s: State) -> bool:
        """`KafkaRaftClient.maybeCompleteShutdown`: time is up, or nobody needs this node."""
        assert s.shutdown_deadline is not None
        return (
            s.now >= s.shutdown_deadline
            or not s.is_voter
            or s.voters.is_only_voter(s.me)
            or s.leader_id not in (-1, s.me.id)
        )

    def _stop(self, s: State) -> None:
        self._stopped = True
        role = s.role
        if isinstance(role, Leader):
            for parked in role.parked:
                error = ErrorCode.BROKER_NOT_AVAILABLE
                s.out.reply(parked.reply_to, bare_refusal(parked.request, error))
            role.parked = []
            if role.change is not None:
                moves.answer_change(s, role.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                role.change = None
        s.note("stopped")

    # -- the end -----------------------------------------------------------------------------
    def _fail(self, reason: str, events: list[Event], *, tell: bool) -> Ready:
        """Take no further part. Nothing of this step is done; what was promised is unsaid.

        With `tell` (a failed disk) a leader says goodbye with EndQuorumEpoch, which promises
        nothing durable, so that the others need not wait for their timeouts.
        """
        s = self._state
        self._faulted = reason
        s.out.discard()
        s.note(reason)
        held = [
            Reply(reply.reply_to, spoiled(reply.response, ErrorCode.BROKER_NOT_AVAILABLE))
            for reply in s.out.take_held()
        ]
        s.out.replies.extend(held)
        role = s.role
        if isinstance(role, Leader):
            for parked in role.parked:
                refusal = bare_refusal(parked.request, ErrorCode.BROKER_NOT_AVAILABLE)
                s.out.replies.append(Reply(parked.reply_to, refusal))
            if role.change is not None:
                moves.answer_change(s, role.change, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            successors = role.progress.by_descending_end()
            s.role = Resigned(NEVER, set(), successors)
            if tell and s.durable.election:
                _say_goodbye(s, role)
        return self._dead(events)

    def _dead(self, events: list[Event]) -> Ready:
        """Refuse whatever comes."""
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
            s.durable.persisted(max((e.seq for e in events if isinstance(e, Persisted)), default=0))
            s.out.release()
        return self._finish(s)


def _say_goodbye(s: State, role: Leader) -> None:
    successors = role.progress.by_descending_end()
    request = election.end_epoch_request(s, successors)
    for key in successors:
        address = s.usable(s.voters.listeners(key.id))
        if address is not None:
            timeout = s.config.request_timeout_ms
            correlation = s.requests.sent(key.id, request, s.now + timeout)
            s.out.sends.append(Send(correlation, key.id, address, request, timeout))


def _on_response(s: State, flight: InFlight, response: Response) -> bool:
    """Hand an answer to its part; False: let the peer rest for the backoff."""
    if isinstance(response, FetchResponse):
        return following.on_fetch_response(s, response)
    if isinstance(response, VoteResponse) and isinstance(flight.request, VoteRequest):
        return election.on_vote_response(s, flight.to, flight.request, response)
    if isinstance(response, BeginQuorumEpochResponse):
        return epochs.on_begin_response(s, flight.to, response)
    if isinstance(response, EndQuorumEpochResponse):
        return epochs.on_end_response(s, flight.to, response)
    if isinstance(response, FetchSnapshotResponse):
        return following.on_fetch_snapshot_response(s, response)
    if isinstance(response, ApiVersionsResponse):
        return reconfig.on_api_versions_response(s, flight.correlation, response)
    if isinstance(response, UpdateVoterResponse):
        return reconfig.on_update_response(s, response)
    if isinstance(response, AddVoterResponse | RemoveVoterResponse):
        return reconfig.on_join_response(s, response)
    s.note(f"answer of the wrong kind from {flight.to}")
    return False
