"""Run a node on an asyncio loop: one step takes everything that arrived since the last one.

The node itself does no I/O. The driver turns requests, responses, disk results and timers into inputs,
and carries out the effects that a step returns.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.node.node_io import NodeEffects, NodeInput, Registered
from quorate.node.raft_rpc_outbound import api_key_of, request_to_wire, response_from_wire
from quorate.node.registration import RegistrationSend
from quorate.node.request_limits import kept_bytes, size_refusal
from quorate.node.requests import ENVELOPE, Call
from quorate.raft import inputs
from quorate.raft.inputs import SendFailure
from quorate.raft.ready import Send
from quorate.replica.disk_jobs import Result
from quorate.replica.replica import Replica
from quorate.replica.state_machine import Now
from quorate.server.audit_log import AuditLog
from quorate.server.authentication import OPEN_PEER, PeerSecurity
from quorate.server.authorizer_log import AuthorizerLog
from quorate.server.collector import Collector
from quorate.server.connections import InboundConnection, ResponseSlot
from quorate.server.disk import DiskThread, run_in_thread
from quorate.server.large_requests import LARGE_BYTES, LargeRequests
from quorate.server.limits import ConnectionLimits
from quorate.server.listener import Acceptor
from quorate.server.logs import LOG, RateLimitedLog, level_of
from quorate.server.meters import Meters
from quorate.server.peer_connection import PeerRequest
from quorate.server.peers import Peer
from quorate.storage.api import Storage
from quorate.verify.log_audit import LogAudit
from quorate.wire.header import WireRequest, decode_request
from quorate.wire.messages import ControllerRegistrationResponse
from quorate.wire.schema import Message
from quorate.wire.truncated import TruncatedFrame

_REGISTRATION: Final = 70
_MAX_REPEATS: Final = 3
"""How often the same note is logged per minute."""


def present() -> Now:
    """The time of both clocks in ms: monotonic, and since 1970."""
    return Now(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)


def fault_of(error: BaseException, node_id: int) -> str:
    """Why a node stops after this exception in a step.

    The node cannot continue: the inputs of the failed step are lost, and its state may be half changed.
    """
    if isinstance(error, QuorateError):
        return str(error)
    what = f"{type(error).__name__}: {error}"
    if is_exit(error):
        return f"interrupted by {what}"
    LOG.error("Internal error in node %d", node_id, exc_info=error)
    return f"internal error, please report it: {what}"


def reraise_exit(error: BaseException) -> None:
    """Raise SystemExit or KeyboardInterrupt again, also when it is the error's cause."""
    for each in (error, error.__cause__):
        if each is not None and is_exit(each):
            raise each


def is_exit(error: BaseException) -> bool:
    """Whether asyncio lets the exception end the loop."""
    return isinstance(error, SystemExit | KeyboardInterrupt)


class DrivenNode(Protocol):
    """What a driver runs: a controller, or a member of quorate.embed."""

    node_id: int
    replica: Replica

    def step(self, happened: Iterable[NodeInput], now: Now) -> NodeEffects: ...


class Driver:
    """Owns the inbox, the timer, the peers, the disk thread and the listeners of one node.

    `ended` is called once, on the loop: with None after a shutdown, else with the fault. `meters`
    count what happens; None when the node has no metrics page.
    """

    def __init__(
        self,
        node: DrivenNode,
        storage: Storage,
        loop: asyncio.AbstractEventLoop,
        limits: ConnectionLimits,
        max_queued: int,
        ended: Callable[[str | None], None],
        meters: Meters | None = None,
    ) -> None:
        self.acceptor = Acceptor(loop, limits, self._on_frame, self._has_room)
        self.acceptor.kept_bytes = kept_bytes
        self._large = LargeRequests(
            loop.call_soon,
            lambda one, request: self._received(
                one.slot, request, one.size, one.work_ns, one.too_long
            ),
        )
        self._large_calls: set[int] = set()
        """Tokens of large requests that are not answered."""
        self._collector = Collector(loop.time)
        self._notes = RateLimitedLog(loop, _MAX_REPEATS)
        self._node = node
        self._loop = loop
        self._ended = ended
        self._max_queued = max_queued
        self._meters = meters
        self.audit: AuditLog | None = None
        """Keeps the audit trail; None: there is none."""
        self.authorizer_log: AuthorizerLog | None = None
        """Logs what the node's authorizer decides; None: nothing is logged."""
        self.peer_security: PeerSecurity = OPEN_PEER
        """What new connections to peers need; set it before `start`."""
        on_sync = None if meters is None else meters.sync_seconds.observe
        self._disk = DiskThread(storage, loop, self._deliver, on_sync)
        self._log_audit: LogAudit | None = None
        self.fault: str | None = None
        """Why the node stopped stepping."""
        self.leaving = False
        """Whether `shutdown` was called."""
        self._inbox: list[NodeInput] = []
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._next = 0
        self._slots: dict[int, ResponseSlot] = {}
        self._peers: dict[tuple[int, str], Peer] = {}
        self._unreachable: set[tuple[Address, bool]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._stopped = False
        listeners = node.replica.config.listeners
        self._listener = listeners[0].name if listeners else ""

    def verify_log(self, audit: LogAudit) -> None:
        """Compare core, storage and medium after every step. Call it before `start`."""
        self._log_audit = audit
        self._disk.on_performing, self._disk.on_performed = audit.performing, audit.performed

    def start(self) -> None:
        """Start stepping. `acceptor.listen` opens the listeners."""
        self._disk.start()
        self._schedule()
        self._schedule_sweep()

    def shutdown(self, timeout_ms: int) -> None:
        """Shut down gracefully, within `timeout_ms`; `ended(None)` follows."""
        self.leaving = True
        self.post(inputs.Shutdown(timeout_ms))

    async def close(self) -> bool:
        """Close every connection, perform what is queued for the disk and end its thread.

        Waits 10 s at most; the loop continues. Returns False when the disk hangs: then the storage is
        still in use.
        """
        self._stop_stepping()
        return await run_in_thread(self._disk.close)

    def _stop_stepping(self) -> None:
        """Stop stepping and close all connections, which the peers notice."""
        self._stopped = True
        for timer in (self._timer, self._sweep):
            if timer is not None:
                timer.cancel()
        self.acceptor.close()
        self._large.close()
        self._notes.flush()
        for peer in self._peers.values():
            peer.close()

    @property
    def disk_busy_s(self) -> float:
        """How long the current disk jobs have taken, in s; infinite when the disk thread has ended."""
        return self._disk.busy_s

    def post(self, item: NodeInput) -> None:
        """Add an input for the next step."""
        self._inbox.append(item)
        self._schedule()

    # -- one step -----------------------------------------------------------------------------
    def _schedule(self) -> None:
        if not self._scheduled and not self._stopped:
            self._scheduled = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self._scheduled = False
        if self._stopped:
            return
        # 1. Take every input: all requests of this turn of the loop share one batch and one sync.
        happened, self._inbox = self._inbox, []
        now = present()
        meters = self._meters
        began = 0.0 if meters is None else meters.clock()
        try:
            # 2. Step the node and carry out its effects.
            effects = self._node.step(happened, now)
            if self._log_audit is not None and effects.faulted is None and not effects.stopped:
                self._log_audit.stepped(happened, effects.jobs, self._node.replica.core)
            if effects.audit and self.audit is not None:  # before the responses go out
                epoch = self._node.replica.core.epoch
                self.audit.write(effects.audit, self._node.node_id, epoch, now.wall_ms)
            if self.authorizer_log is not None:
                self.authorizer_log.write_new(now.wall_ms)
            self._carry_out(effects)
            if meters is not None:
                meters.stepped(happened, effects, meters.clock() - began)
        except BaseException as error:
            # 3. An error in a step stops the node: see `fault_of`.
            self._end(fault_of(error, self._node.node_id))
            reraise_exit(error)
            return
        if effects.faulted is not None or effects.stopped:
            self._end(effects.faulted)
            return
        # 4. Set the timer, then read on from the connections that were throttled.
        if effects.wake_at_ms is not None:
            self._wake_by(effects.wake_at_ms, now.monotonic_ms)
        self.acceptor.resume_throttled()

    def _wake_by(self, at_ms: int, now_ms: int) -> None:
        """Step again at `at_ms` (monotonic) at the latest.

        An earlier timer stays: one step too many costs less than a new timer for each step.
        """
        if self._timer is not None:
            if self._timer_at_ms <= at_ms:
                return
            self._timer.cancel()
        self._timer_at_ms = at_ms
        self._timer = self._loop.call_later(max(at_ms - now_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._schedule()

    def _carry_out(self, effects: NodeEffects) -> None:
        for note in effects.notes:
            self._notes.log(level_of(note), note, note)
        for send in effects.sends:
            self._send(send)
        for ask in effects.registrations:
            self._send_registration(ask)
        for token, throttle_ms in effects.throttled:
            self._slots[token].connection.mute(throttle_ms / 1000)
        self._log_too_long(effects.too_long)
        touched: dict[InboundConnection, None] = {}
        for token, frame in effects.answers:
            slot = self._slots.pop(token)
            slot.data = frame
            touched[slot.connection] = None
            if self._meters is not None:
                self._meters.request_answered(token)
        for closed in effects.closed:
            if self._meters is not None:
                self._meters.request_dropped(closed.token)
            self._slots.pop(closed.token).connection.refuse(QuorateError(closed.reason))
        self._put_off_collections(effects)
        for connection in touched:
            connection.flush()
        # Brokers must look for the new leader: see `close_forwarding`.
        if effects.leader is not None and effects.leader.leader_id != self._node.node_id:
            self.acceptor.close_forwarding()
        # After the messages: followers write in parallel with this disk, and take longer to answer.
        if effects.jobs:
            self._disk.submit(effects.jobs)

    def _put_off_collections(self, effects: NodeEffects) -> None:
        large = self._large_calls
        if large:
            large.difference_update(token for token, _ in effects.answers)
            large.difference_update(closed.token for closed in effects.closed)
        self._collector.set_busy(effects.is_answering or len(large) > 0)

    def _end(self, fault: str | None) -> None:
        self._stop_stepping()
        self.fault = fault
        self._ended(fault)

    # -- inbound requests ------------------------------------------------------------------
    def _on_frame(self, slot: ResponseSlot, frame: bytes) -> None:
        """Take a frame. Raises WireError where it is no request, or too long and without a response."""
        size = frame.size if isinstance(frame, TruncatedFrame) else len(frame)
        is_too_long = size_refusal(frame, size) is not None
        if is_too_long:
            kept_bytes(frame, size)
        if is_too_long or size > LARGE_BYTES:
            self._large.add(slot, frame, size, is_too_long=is_too_long)
            return
        began_ns = time.perf_counter_ns()
        request = decode_request(frame)
        self._received(slot, request, size, time.perf_counter_ns() - began_ns)

    def _received(
        self,
        slot: ResponseSlot,
        request: WireRequest,
        size: int,
        work_ns: int,
        too_long: str | None = None,
    ) -> None:
        """A request is decoded. work_ns: how long that took; too_long: as in Call."""
        connection = slot.connection
        self._next += 1
        self._slots[self._next] = slot
        if request.api_key == ENVELOPE:
            connection.forwards = True
        if self._meters is not None:
            self._meters.request_received(self._next, request.api_key)
        if size > LARGE_BYTES:
            self._large_calls.add(self._next)
        self.post(
            Call(
                self._next,
                request,
                connection.listener,
                principal=connection.authentication.principal,
                host=connection.host,
                token_authenticated=connection.authentication.by_token,
                work_ns=work_ns,
                size=size,
                too_long=too_long,
            )
        )

    def _log_too_long(self, refused: list[tuple[Call, str]]) -> None:
        kind = "Refused a request that is too long"
        for call, why in refused:
            connection = self._slots[call.token].connection
            who = f"{call.principal}, client id {call.request.client_id!r:.100}"
            text = f"{kind} from {connection.peer} ({who}) on {connection.listener}: {why}"
            self.acceptor.log.log(logging.WARNING, kind, text, connection.host)

    def _has_room(self) -> bool:
        return len(self._inbox) < self._max_queued

    # -- outbound requests -----------------------------------------------------------------
    def _send(self, send: Send) -> None:
        correlation, request = send.correlation, send.request

        def answered(message: Message) -> None:
            response = response_from_wire(message, self._listener)
            self.post(inputs.Answered(correlation, response))

        def failed(failure: SendFailure) -> None:
            self.post(inputs.SendFailed(correlation, failure))

        self._peer(send.to, "raft", send.address).send(
            PeerRequest(
                api_key_of(request),
                lambda version: request_to_wire(request, version),
                answered,
                failed,
                send.timeout_ms,
            )
        )

    def _send_registration(self, ask: RegistrationSend) -> None:
        def answered(message: Message) -> None:
            assert isinstance(message, ControllerRegistrationResponse)
            self.post(Registered(message))

        self._peer(ask.to, "registration", ask.address).send(
            PeerRequest(
                _REGISTRATION,
                lambda version: ask.request,
                answered,
                lambda failure: self.post(Registered(None)),
                ask.timeout_ms,
            )
        )

    def _peer(self, node_id: int, channel: str, address: Address) -> Peer:
        peer = self._peers.get((node_id, channel))
        if peer is not None and peer.address == address:
            return peer
        if peer is not None:
            peer.close()
        own_id = self._node.node_id
        is_raft = channel == "raft"

        def lost() -> None:
            if is_raft:
                self.post(inputs.ConnectionLost(node_id))

        client_id = f"raft-client-{own_id}" if is_raft else str(own_id)
        peer = Peer(self._loop, address, client_id, lost, self._notes, self._unreachable)
        peer.security = self.peer_security
        self._peers[node_id, channel] = peer
        return peer

    def _schedule_sweep(self) -> None:
        every = self.acceptor.limits.sweep_s
        if every is not None:
            self._sweep = self._loop.call_later(every, self._close_idle_peers)

    def _close_idle_peers(self) -> None:
        """Close idle peers, as Kafka's Selector does.

        It also bounds their number: an AddRaftVoter request may name any id, and each id that the
        leader connects to adds a peer.
        """
        since = self._loop.time() - self.acceptor.limits.max_idle_ms / 1000
        for key, peer in list(self._peers.items()):
            if peer.is_idle(since):
                del self._peers[key]
                peer.close()
        self._schedule_sweep()

    # -- the disk -----------------------------------------------------------------------------
    def _deliver(self, results: Sequence[Result]) -> None:
        self._inbox.extend(results)
        self._schedule()
