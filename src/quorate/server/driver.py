"""Runs a node on an asyncio loop: one step for everything that came since the last one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.node.calls import ENVELOPE, Call
from quorate.node.controller import (
    NodeEffects,
    NodeInput,
    Registered,
    RegistrationSend,
)
from quorate.node.jobs import Result
from quorate.node.machine import Now
from quorate.node.replica import Replica
from quorate.node.sizes import check_size
from quorate.node.translate_peer import api_key_of, request_to_wire, response_from_wire
from quorate.raft import inputs
from quorate.raft.inputs import Failure
from quorate.raft.ready import Send
from quorate.server.disk import DiskThread, off_the_loop
from quorate.server.limits import Limits
from quorate.server.link import Ask
from quorate.server.listener import Acceptor, Connection, Slot
from quorate.server.logs import LOG, Sparing, level_of
from quorate.server.meters import Meters
from quorate.server.peers import Peer
from quorate.storage.api import Storage
from quorate.wire.header import decode_request
from quorate.wire.messages import ControllerRegistrationResponse
from quorate.wire.schema import Message

_REGISTRATION: Final = 70
_MOST_REPEATS: Final = 3
"""The same note comes so often at most each minute."""


def present() -> Now:
    """The time of both clocks, ms."""
    return Now(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)


def fault_of(error: BaseException, node_id: int) -> str:
    """Why a node ends when this came out of a step. What the step had begun is lost with it, so
    there is no other after it."""
    if isinstance(error, QuorateError):
        return str(error)
    what = f"{type(error).__name__}: {error}"
    if is_exit(error):
        return f"interrupted by {what}"
    LOG.error("Node %d met a defect", node_id, exc_info=error)
    return f"internal error, please report it: {what}"


def leave(error: BaseException) -> None:
    """Hand on what is to end the program, also where a state machine met it."""
    for each in (error, error.__cause__):
        if each is not None and is_exit(each):
            raise each


def is_exit(error: BaseException) -> bool:
    """Does asyncio let it out of the loop?"""
    return isinstance(error, SystemExit | KeyboardInterrupt)


class Node(Protocol):
    """What a driver steps: a Controller, or a program's own node."""

    node_id: int
    replica: Replica

    def step(self, happened: Iterable[NodeInput], now: Now) -> NodeEffects: ...


class Driver:
    """Owns the inbox, the timer, the peers, the disk thread and the listeners of one node.

    `ended` is called once, on the loop: with None after a shutdown, else with the fault.
    `meters` are told what happens, where somebody wants to know.
    """

    def __init__(
        self,
        node: Node,
        storage: Storage,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        most_queued: int,
        ended: Callable[[str | None], None],
        meters: Meters | None = None,
    ) -> None:
        self.acceptor = Acceptor(loop, limits, self._on_frame, self._has_room)
        self._notes = Sparing(loop, _MOST_REPEATS)
        self._node = node
        self._loop = loop
        self._ended = ended
        self._most_queued = most_queued
        self._meters = meters
        on_sync = None if meters is None else meters.sync_seconds.observe
        self._disk = DiskThread(storage, loop, self._deliver, on_sync)
        self.fault: str | None = None
        """Why the node stopped stepping."""
        self.leaving = False
        """Was it told to leave the quorum?"""
        self._inbox: list[NodeInput] = []
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at_ms = 0
        self._next = 0
        self._slots: dict[int, Slot] = {}
        self._peers: dict[tuple[int, str], Peer] = {}
        self._unreachable: set[Address] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._over = False
        listeners = node.replica.config.listeners
        self._listener = listeners[0].name if listeners else ""

    def start(self) -> None:
        """Begin to step; the listeners are opened by `acceptor.listen`."""
        self._disk.start()
        self._schedule()
        self._schedule_sweep()

    def shutdown(self, timeout_ms: int) -> None:
        """Leave in good order; `ended(None)` follows."""
        self.leaving = True
        self.post(inputs.Shutdown(timeout_ms))

    async def close(self) -> bool:
        """Close every connection, perform what is queued for the disk, end its thread.

        Only the caller waits for the disk, 10 s at most. False: it did not answer, and the storage
        is still in use.
        """
        self._hang_up()
        return await off_the_loop(self._disk.close)

    def _hang_up(self) -> None:
        """Step no more; the peers hear of it by their connections."""
        self._over = True
        for timer in (self._timer, self._sweep):
            if timer is not None:
                timer.cancel()
        self.acceptor.close()
        self._notes.tell()
        for peer in self._peers.values():
            peer.close()

    @property
    def disk_busy_s(self) -> float:
        """For how long the disk has been at what it does now; infinite when its owner died."""
        return self._disk.busy_s

    def post(self, item: NodeInput) -> None:
        """Something happened; the next step takes it."""
        self._inbox.append(item)
        self._schedule()

    # -- one step -----------------------------------------------------------------------------
    def _schedule(self) -> None:
        if not self._scheduled and not self._over:
            self._scheduled = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self._scheduled = False
        if self._over:
            return
        happened, self._inbox = self._inbox, []
        now = present()
        try:
            effects = self._node.step(happened, now)
            self._carry_out(effects)
            if self._meters is not None:
                self._meters.stepped(happened, effects)
        except BaseException as error:
            self._end(fault_of(error, self._node.node_id))
            leave(error)
            return
        if effects.faulted is not None or effects.stopped:
            self._end(effects.faulted)
            return
        if effects.wake_at_ms is not None:
            self._wake_by(effects.wake_at_ms, now.monotonic_ms)
        self.acceptor.next_turn()

    def _wake_by(self, at_ms: int, now_ms: int) -> None:
        """Step again at `at_ms` at the latest. An earlier timer stays: a step too many is cheap,
        a timer for each step is not."""
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
        touched: dict[Connection, None] = {}
        for token, frame in effects.answers:
            slot = self._slots.pop(token)
            slot.data = frame
            touched[slot.connection] = None
            if self._meters is not None:
                self._meters.answered(token)
        for closed in effects.closed:
            if self._meters is not None:
                self._meters.dropped(closed.token)
            self._slots.pop(closed.token).connection.refuse(QuorateError(closed.reason))
        for connection in touched:
            connection.flush()
        if effects.leader is not None and effects.leader.leader_id != self._node.node_id:
            self.acceptor.close_forwarding()
        if effects.jobs:  # after the messages: the followers' disks are the longer way
            self._disk.submit(effects.jobs)

    def _end(self, fault: str | None) -> None:
        self._hang_up()
        self.fault = fault
        self._ended(fault)

    # -- those who ask us ---------------------------------------------------------------------
    def _on_frame(self, slot: Slot, frame: bytes) -> None:
        check_size(frame)
        request = decode_request(frame)
        self._next += 1
        self._slots[self._next] = slot
        if request.api_key == ENVELOPE:
            slot.connection.forwards = True
        if self._meters is not None:
            self._meters.asked(self._next, request.api_key)
        self.post(Call(self._next, request, slot.connection.listener))

    def _has_room(self) -> bool:
        return len(self._inbox) < self._most_queued

    # -- those whom we ask --------------------------------------------------------------------
    def _send(self, send: Send) -> None:
        correlation, request = send.correlation, send.request

        def answered(message: Message) -> None:
            response = response_from_wire(message, self._listener)
            self.post(inputs.Answered(correlation, response))

        def failed(failure: Failure) -> None:
            self.post(inputs.SendFailed(correlation, failure))

        self._peer(send.to, "raft", send.address).ask(
            Ask(
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

        self._peer(ask.to, "registration", ask.address).ask(
            Ask(
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
        self._peers[node_id, channel] = peer
        return peer

    def _schedule_sweep(self) -> None:
        every = self.acceptor.limits.sweep_s
        if every is not None:
            self._sweep = self._loop.call_later(every, self._forget_idle)

    def _forget_idle(self) -> None:
        """As Kafka's Selector does; and whoever asks to become a voter chooses the id by which a
        peer is known here, so there is no end of them."""
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
