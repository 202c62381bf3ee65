"""Inbound connections: split into frames, send responses in the order of the requests.

As in Kafka (`SocketServer`, `Processor`), the responses of a connection keep the order of its requests,
and bytes that are not a request close it. These limits protect the node:

- number of connections: in all, per IP address, and by file descriptors (`Connections.admit`);
- rates of new connections: of the node, of the listener and per IP address (`Connections.admission`);
- quotas of clients (`InboundConnection.mute`);
- requests per connection and step (MAX_REQUESTS_PER_STEP), without a response (_MAX_UNANSWERED), or
  decoded in steps (one). Beyond them the connection is throttled, i.e. not read;
- time and bytes before the authentication (`ListenerSecurity`), which few begin at once (`Turnstile`);
- bytes of a request that is kept, by its API (`Connections.kept_bytes`);
- bytes of requests that are incomplete or wait (`Connections.account`), and of responses that the client
  does not read (`Connections.close_largest_unsent`): beyond them the largest connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable
from typing import Final, cast

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.base.java_address import peer_host
from quorate.controller.connection_rates import Admission
from quorate.server.authentication import OPEN_LISTENER, Authentication, ListenerSecurity
from quorate.server.connection_count import ConnectionCount
from quorate.server.limits import ConnectionLimits
from quorate.server.logs import RateLimitedLog
from quorate.server.turnstile import Turnstile
from quorate.wire.errors import WireError
from quorate.wire.frame import FrameReader

MAX_REQUESTS_PER_STEP: Final = 4
"""Requests of one connection in one step of the node.

Connections that flood the node must not delay others, which may be its followers. Kafka processes one
request per connection at a time.
"""
_MAX_UNANSWERED: Final = 128
"""Requests of one connection without a response, before the connection is throttled."""
_UNSENT_CHECK_BYTES: Final = 65_536
"""Unsent bytes of one connection from which on those of all connections are summed up."""
_AT_ONCE: Final = Admission(0)
_MAX_LINES: Final = 10
"""Log lines per minute about connections, of each kind."""


class ResponseSlot:
    """The place of one response in a connection's sequence of responses."""

    __slots__ = ("connection", "data")

    def __init__(self, connection: InboundConnection) -> None:
        self.connection = connection
        self.data: bytes | None = None


class InboundConnection(asyncio.Protocol):
    """A connection from a client, broker or peer."""

    def __init__(
        self, server: Connections, listener: str, security: ListenerSecurity = OPEN_LISTENER
    ) -> None:
        self.listener = listener
        self.peer = "?"
        self.host = ""
        self.last_active = 0.0
        self.forwards = False
        """Whether a broker forwards its clients' requests over this connection (Envelope)."""
        self.incoming = 0
        """Bytes of requests that arrived and are not handed over: incomplete or throttled."""
        self.is_decoding = False
        """A request of it is decoded in steps: the next one waits, since their order counts."""
        self._server = server
        self._reader = FrameReader(server.limits.max_request_bytes, self._kept)
        self.authentication = Authentication(security, self)
        self._transport: asyncio.Transport | None = None
        self._slots: deque[ResponseSlot] = deque()
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._reading = True
        self._write_room = True
        self._muted_until = 0.0
        self._turn = 0
        self._taken = 0
        """Requests that were handed over in the step `_turn`."""

    # -- asyncio.Protocol -------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.host = peer_host(peer)
        self.peer = str(Address(self.host, peer[1]))
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.last_active = self._server.time()
        if not self._server.admit(self):
            self.close()
            return
        delay_ms, is_refused = self._server.admission(self.listener, self.host)
        if delay_ms:
            self.mute(delay_ms / 1000)
            then = self.abort if is_refused else self._begin
            self._server.call_later(delay_ms / 1000, then)
        elif not self.authentication.is_complete:
            self._transport.pause_reading()
            self._reading = False
            self._server.turnstile.wait(self._begin)

    def _begin(self) -> None:
        """Begin late, after the connections of the listener that came before."""
        if self._transport is not None:
            self.last_active = self._server.time()
            self.authentication.begin()
            self.resume()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.authentication.end()
        self._slots.clear()
        self._drop_incoming()
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        if self.authentication.is_refused:
            return
        self.last_active = self._server.time()
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self.refuse(error)
            return
        self._held.extend(frames)
        self._held_bytes += sum(map(len, frames))
        self._hand_over_held()

    def pause_writing(self) -> None:
        self._write_room = False
        self._throttle()

    def resume_writing(self) -> None:
        self._write_room = True
        self._hand_over_held()

    # -- authentication -------------------------------------------------------------------------
    def secured(self, principal: str) -> None:
        """The TLS handshake is complete; `principal` is that of the client's certificate."""
        self.authentication.secured(principal)

    def insecure(self, reason: str) -> None:
        """The TLS handshake failed, or the stream is broken: log the reason and close."""
        self.authentication.refuse(reason)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        """Call on the loop after `delay_s`."""
        return self._server.call_later(delay_s, call)

    def limit_frames(self, max_bytes: int | None) -> None:
        """Allow frames up to this size; None: as large as requests may be."""
        most = self._server.limits.max_request_bytes
        self._reader.limit(most if max_bytes is None else min(max_bytes, most))

    def stop_reading(self, reason: str) -> None:
        """Log why the connection is refused, and drop what it sends."""
        self._server.failed_authentications[self.listener] += 1
        text = f"Refused the connection from {self.peer} on {self.listener}: {reason}"
        kind = "Refused a connection: not authenticated"
        self._server.log.log(logging.WARNING, kind, text, self.host)
        self._drop_incoming()

    # -- requests and responses --------------------------------------------------------------
    def _hand_over_held(self) -> None:
        """Hand over held requests as far as the limits allow, then pause or resume reading."""
        authentication = self.authentication
        while self._held and self._transport is not None and not authentication.is_waiting:
            is_request = not authentication.takes(self._held[0])
            # The first login is short; its repetitions count as requests.
            if not (self._may_hand_over() if authentication.is_complete else not is_request):
                break
            frame = self._held.popleft()
            self._held_bytes -= len(frame)
            slot = ResponseSlot(self)
            self._slots.append(slot)
            self._taken += authentication.is_complete
            if not is_request:
                authentication.take(frame, slot)
                continue
            try:
                self._server.on_frame(slot, frame)
            except QuorateError as error:
                self.refuse(error)
                return
        self._throttle()
        self._account()

    def _account(self) -> None:
        before, self.incoming = self.incoming, self._reader.buffered + self._held_bytes
        if self.incoming != before:
            self._server.account(self.incoming - before)

    def _drop_incoming(self) -> None:
        self._reader = FrameReader(self._server.limits.max_request_bytes, self._kept)
        self._held.clear()
        self._held_bytes = 0
        self._account()

    def _kept(self, start: bytes, size: int) -> int:
        """How many bytes of a long frame are kept (`FrameReader`). Raises WireError.

        Only an authenticated client may send what is read and dropped.
        """
        authentication = self.authentication
        if not authentication.is_complete:
            return size  # `limit_frames` bounds it
        if authentication.takes(start):
            authentication.check_size(size)
            return size
        return self._server.kept_bytes(start, size)

    def _has_room(self) -> bool:
        return (
            self._write_room
            and not self.is_decoding
            and len(self._slots) < _MAX_UNANSWERED
            and self._server.has_room()
            and self._server.time() >= self._muted_until
        )

    def _may_hand_over(self) -> bool:
        if self._turn != self._server.turn:
            self._turn, self._taken = self._server.turn, 0
        return self._taken < MAX_REQUESTS_PER_STEP and self._has_room()

    def _throttle(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wanted = not self._held and self._has_room()
        if wanted and not self._reading:
            transport.resume_reading()
        elif self._reading and not wanted:
            transport.pause_reading()
        if not wanted and self._server.time() >= self._muted_until:
            self._server.throttled[self] = None
        self._reading = wanted

    def mute(self, for_s: float) -> None:
        """Do not read for this time: the client has exceeded a quota (`ThrottledChannel`)."""
        self._muted_until = max(self._muted_until, self._server.time() + for_s)
        self._server.call_later(for_s, self._unmute)
        self._throttle()

    def _unmute(self) -> None:
        """Timers may be early: then wait for the rest."""
        left_s = self._muted_until - self._server.time()
        if left_s > 0:
            self._server.call_later(left_s, self._unmute)
        else:
            self.resume()

    def flush(self) -> None:
        """Write every response that is next in order, with one write."""
        ready: list[bytes] = []
        while self._slots and self._slots[0].data is not None:
            data = self._slots.popleft().data
            assert data is not None
            ready.append(data)
        if ready and self._transport is not None and not self._transport.is_closing():
            self.last_active = self._server.time()
            self._transport.write(ready[0] if len(ready) == 1 else b"".join(ready))
        if (self._slots or not self._write_room) and self.unsent > _UNSENT_CHECK_BYTES:
            self._server.close_largest_unsent()

    @property
    def is_open(self) -> bool:
        """The connection is not lost."""
        return self._transport is not None

    @property
    def unsent(self) -> int:
        """Bytes of finished responses that are not sent: out of order, or the client does not read."""
        made = sum(len(slot.data) for slot in self._slots if slot.data is not None)
        return made + (self._transport.get_write_buffer_size() if self._transport else 0)

    def abort(self) -> None:
        """Close at once; unsent responses are dropped."""
        self._drop_incoming()
        self._slots.clear()
        self.authentication.end()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def resume(self) -> None:
        """Hand over held requests: limits may allow it again."""
        self._hand_over_held()

    def refuse(self, error: QuorateError) -> None:
        """Close the connection because of an invalid request, and log the reason."""
        text = f"Closed the connection from {self.peer} on {self.listener}: {error}"
        kind = "Closed a connection because of an invalid request"
        self._server.log.log(logging.WARNING, kind, text, self.host)
        self.close(error.answer if isinstance(error, WireError) else b"")

    def close(self, last: bytes = b"") -> None:
        """Close after the responses that are written were sent, and then `last`."""
        self._drop_incoming()
        if self._transport is not None:
            self._transport.write(last)
            self._transport.close()


class Connections:
    """The connections of all listeners of a node.

    `on_frame` gets each request and the slot for its response. When it raises QuorateError, the
    connection is closed.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: ConnectionLimits,
        on_frame: Callable[[ResponseSlot, bytes], None],
        has_room: Callable[[], bool],
    ) -> None:
        self.limits = limits
        self.on_frame = on_frame
        self.has_room = has_room
        self.time = loop.time
        self.call_later = loop.call_later
        self.turnstile = Turnstile(loop.call_soon)
        self.admission: Callable[[str, str], Admission] = lambda listener, host: _AT_ONCE
        """What to do with a new connection to the listener, from the IP address."""
        self.kept_bytes: Callable[[bytes, int], int] = lambda start, size: size
        """How many bytes of a long request are kept, given its first ones and its size: `on_frame` gets a
        TruncatedFrame of a request of which fewer are kept. Raises WireError."""
        self.count_limits: Callable[[], ConnectionLimits] = lambda: limits
        """The limits on the number of connections that are in force now."""
        self.throttled: dict[InboundConnection, None] = {}
        """Throttled connections, longest wait first."""
        self.turn = 0
        """Counts the steps of the node."""
        self.incoming = 0
        """Bytes of all connections' requests that arrived and are not handed over."""
        self.failed_authentications: Counter[str] = Counter()
        """By secured listener: connections that failed the TLS handshake or the authentication."""
        self.log = RateLimitedLog(loop, _MAX_LINES)
        self._connections: set[InboundConnection] = set()
        self._count = ConnectionCount()

    @property
    def connection_count(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    @property
    def max_incoming(self) -> int:
        """The limit for `incoming`, in bytes."""
        return self.limits.max_incoming_bytes

    def admit(self, connection: InboundConnection) -> bool:
        """Register a new connection; returns False when a limit is reached."""
        why = self._count.refusal(connection.host, self.count_limits())
        if why is not None:
            text = f"Refused the connection from {connection.peer}: {why}"
            self.log.log(logging.WARNING, f"Refused a connection: {why}", text, connection.host)
            return False
        self._connections.add(connection)
        self._count.opened(connection.host)
        return True

    def forget(self, connection: InboundConnection) -> None:
        """Remove a closed connection."""
        self.throttled.pop(connection, None)
        if connection in self._connections:
            self._connections.remove(connection)
            self._count.closed(connection.host)

    def close_largest_unsent(self) -> None:
        """While all unsent responses exceed the limit, close the connection that holds the most."""
        unsent = {connection: connection.unsent for connection in self._connections}
        total = sum(unsent.values())
        while total > self.limits.max_unsent_bytes:
            worst = max(unsent, key=unsent.__getitem__)
            text = (
                f"Closed the connection from {worst.peer} on {worst.listener}: the client does not "
                f"read its responses, {unsent[worst]} bytes are unsent"
            )
            kind = "Closed a connection whose client does not read"
            self.log.log(logging.WARNING, kind, text, worst.host)
            worst.abort()
            total -= unsent.pop(worst)

    def account(self, grown: int) -> None:
        """Add `grown` bytes of held requests, or remove them when negative.

        Above the limit, close the connection that holds the most. This is never a peer's connection:
        raft requests are small.
        """
        self.incoming += grown
        if grown <= 0 or self.incoming <= self.limits.max_incoming_bytes:
            return
        worst = max(self._connections, key=lambda connection: connection.incoming)
        text = (
            f"Closed the connection from {worst.peer} on {worst.listener}: {self.incoming} bytes "
            f"of requests are incomplete or not yet processed, {worst.incoming} of them from this "
            f"connection; queued.max.request.bytes is {self.limits.max_incoming_bytes}"
        )
        kind = "Closed the connection that holds the most request bytes"
        self.log.log(logging.WARNING, kind, text, worst.host)
        worst.abort()

    def close_forwarding(self) -> None:
        """Close the connections of brokers that forward requests, after a change of the leader.

        A broker keeps its connection to the old controller until a request fails. Until then it also
        offers its clients the API versions of the old one. Closing makes it find the new controller.
        """
        for connection in list(self._connections):
            if connection.forwards:
                connection.close()

    def resume_throttled(self) -> None:
        """After a step of the node: resume throttled connections, longest wait first."""
        self.turn += 1
        waiting, self.throttled = iter(self.throttled), {}
        for connection in waiting:
            if not self.has_room():
                # Those not yet resumed keep their place, in front of those that are throttled again.
                served, self.throttled = self.throttled, {connection: None}
                self.throttled |= dict.fromkeys(waiting) | served
                return
            connection.resume()
