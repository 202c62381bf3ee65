"""Accepts connections, cuts frames, keeps answers in the order of their requests.

Kafka's rules: a connection's answers leave in the order in which its requests came; bytes that are
no request close the connection (`Processor`, `SocketServer`).
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
from quorate.server.limits import Limits
from quorate.server.logs import Sparing
from quorate.wire.errors import WireError
from quorate.wire.frame import FrameReader

MOST_A_TURN: Final = 4
"""Requests of one connection in one step of the node: a few that flood must not keep the others,
which may be its followers, out. (Kafka has one of each connection in work at a time.)"""
_MOST_WAITING: Final = 128
"""Requests of one connection that may wait for an answer before it is no longer read."""
_MUCH_UNSENT: Final = 65_536
"""Bytes of one connection from which on all are summed up."""
_IPV4_IN_IPV6: Final = "::ffff:"
_MOST_LINES: Final = 10
"""Log lines about connections of which each minute has so many of a kind at most."""


class Slot:
    """The place of one answer in a connection's row."""

    __slots__ = ("connection", "data")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.data: bytes | None = None


class Connection(asyncio.Protocol):
    """One client or peer that asks us."""

    def __init__(self, server: Acceptor, listener: str) -> None:
        self.listener = listener
        self.peer = "?"
        self.host = ""
        self.last_active = 0.0
        self.forwards = False
        """Does a broker pass on its clients' requests here?"""
        self.incoming = 0
        """Bytes of requests that came and are not handed over: in part, or there is no room."""
        self._server = server
        self._reader = FrameReader(server.limits.max_request_bytes)
        self._transport: asyncio.Transport | None = None
        self._slots: deque[Slot] = deque()
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._reading = True
        self._write_room = True
        self._turn = 0
        self._taken = 0
        """Requests that were handed over in that turn."""

    # -- asyncio's calls ----------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername") or ("?", 0)
        self.host = str(peer[0]).removeprefix(_IPV4_IN_IPV6)
        self.peer = str(Address(self.host, peer[1]))
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.last_active = self._server.time()
        if not self._server.admit(self):
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._slots.clear()
        self._drop_incoming()
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        self.last_active = self._server.time()
        try:
            frames = self._reader.feed(data)
        except WireError as error:
            self.refuse(error)
            return
        self._held.extend(frames)
        self._held_bytes += sum(map(len, frames))
        self._admit_held()

    def pause_writing(self) -> None:
        self._write_room = False
        self._throttle()

    def resume_writing(self) -> None:
        self._write_room = True
        self._admit_held()

    # -- requests and answers -----------------------------------------------------------------
    def _admit_held(self) -> None:
        """Hand over what came, as far as there is room; then stop or go on reading."""
        while self._held and self._transport is not None and self._may_ask():
            slot = Slot(self)
            self._slots.append(slot)
            self._taken += 1
            frame = self._held.popleft()
            self._held_bytes -= len(frame)
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
        self._reader = FrameReader(self._server.limits.max_request_bytes)
        self._held.clear()
        self._held_bytes = 0
        self._account()

    def _has_room(self) -> bool:
        return self._write_room and len(self._slots) < _MOST_WAITING and self._server.has_room()

    def _may_ask(self) -> bool:
        if self._turn != self._server.turn:
            self._turn, self._taken = self._server.turn, 0
        return self._taken < MOST_A_TURN and self._has_room()

    def _throttle(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wanted = not self._held and self._has_room()
        if wanted and not self._reading:
            transport.resume_reading()
        elif self._reading and not wanted:
            transport.pause_reading()
        if not wanted:
            self._server.throttled[self] = None
        self._reading = wanted

    def flush(self) -> None:
        """Write every answer whose turn it is, all at once."""
        ready: list[bytes] = []
        while self._slots and self._slots[0].data is not None:
            data = self._slots.popleft().data
            assert data is not None
            ready.append(data)
        if ready and self._transport is not None and not self._transport.is_closing():
            self.last_active = self._server.time()
            self._transport.write(ready[0] if len(ready) == 1 else b"".join(ready))
        if (self._slots or not self._write_room) and self.unsent > _MUCH_UNSENT:
            self._server.relieve()

    @property
    def unsent(self) -> int:
        """Bytes of answers that are made and not sent: their turn has not come, or nobody reads."""
        made = sum(len(slot.data) for slot in self._slots if slot.data is not None)
        return made + (self._transport.get_write_buffer_size() if self._transport else 0)

    def abort(self) -> None:
        """Close at once; what was not sent is dropped."""
        self._drop_incoming()
        self._slots.clear()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def take_turn(self) -> None:
        """There may be room again."""
        self._admit_held()

    def refuse(self, error: QuorateError) -> None:
        """Close the connection because of what came over it."""
        text = f"Closed the connection from {self.peer} on {self.listener}: {error}"
        self._server.log.log(logging.WARNING, "Closed a connection for what came over it", text)
        self.close()

    def close(self) -> None:
        """Close when the answers that are made have been taken."""
        self._drop_incoming()
        if self._transport is not None:
            self._transport.close()


class Acceptor:
    """All listeners of a node. `on_frame(slot, frame)` may raise QuorateError: close."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: Limits,
        on_frame: Callable[[Slot, bytes], None],
        has_room: Callable[[], bool],
    ) -> None:
        self.limits = limits
        self.on_frame = on_frame
        self.has_room = has_room
        self.time = loop.time
        self.throttled: dict[Connection, None] = {}
        """Who waits to be read again, in order."""
        self.turn = 0
        self.incoming = 0
        """Bytes of all connections' requests that came and are not handed over."""
        self.log = Sparing(loop, _MOST_LINES)
        self._loop = loop
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._by_host: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def max_incoming(self) -> int:
        return self.limits.max_incoming_bytes

    async def listen(self, name: str, sock: socket.socket) -> None:
        """Serve a bound socket as the listener `name` (upper case)."""
        server = await self._loop.create_server(
            lambda: Connection(self, name), sock=sock, backlog=self.limits.backlog
        )
        self._servers.append(server)
        if self._sweep is None:
            self._schedule_sweep()

    def close(self) -> None:
        """Accept no more, close what is open."""
        if self._sweep is not None:
            self._sweep.cancel()
        self.log.tell()
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.close()

    def admit(self, connection: Connection) -> bool:
        """Count a new connection; False when there are too many."""
        limits = self.limits
        if len(self._connections) >= limits.max_connections:
            self._refused(connection, f"max.connections ({limits.max_connections}) reached")
            return False
        if len(self._connections) >= limits.fitting_connections:
            most = limits.fitting_connections
            self._refused(
                connection,
                f"{most} are open, and the node's own files need the rest "
                "of the descriptors: raise the limit on open files (ulimit -Hn)",
            )
            return False
        most = limits.max_connections_by_ip.get(connection.host, limits.max_connections_per_ip)
        if self._by_host[connection.host] >= most:
            self._refused(connection, f"max.connections.per.ip ({most}) reached")
            return False
        self._connections.add(connection)
        self._by_host[connection.host] += 1
        return True

    def _refused(self, connection: Connection, why: str) -> None:
        text = f"Refused the connection from {connection.peer}: {why}"
        self.log.log(logging.WARNING, f"Refused a connection: {why}", text)

    def forget(self, connection: Connection) -> None:
        self.throttled.pop(connection, None)
        if connection in self._connections:
            self._connections.remove(connection)
            self._by_host[connection.host] -= 1
            if not self._by_host[connection.host]:
                del self._by_host[connection.host]

    def relieve(self) -> None:
        """Close the connections with the most unsent answers until they are not too many in all."""
        unsent = {connection: connection.unsent for connection in self._connections}
        total = sum(unsent.values())
        while total > self.limits.max_unsent_bytes:
            worst = max(unsent, key=unsent.__getitem__)
            text = (
                f"Closed the connection from {worst.peer} on {worst.listener}: it does not take "
                f"its answers, of which {unsent[worst]} bytes wait"
            )
            self.log.log(logging.WARNING, "Closed a connection that takes no answers", text)
            worst.abort()
            total -= unsent.pop(worst)

    def account(self, grown: int) -> None:
        """`grown` more bytes of requests wait, or fewer. When there are too many in all, the
        connection with the most is closed: never a peer's, whose requests are small."""
        self.incoming += grown
        if grown <= 0 or self.incoming <= self.limits.max_incoming_bytes:
            return
        worst = max(self._connections, key=lambda connection: connection.incoming)
        text = (
            f"Closed the connection from {worst.peer} on {worst.listener}: {self.incoming} bytes "
            f"of requests wait to be whole or to be taken, {worst.incoming} of them from here; "
            f"queued.max.request.bytes is {self.limits.max_incoming_bytes}"
        )
        self.log.log(logging.WARNING, "Closed a connection for the requests that wait", text)
        worst.abort()

    def close_forwarding(self) -> None:
        """A broker keeps to the controller that it is connected to, and offers its clients what
        that one serves, until a request fails: let it look for the new one at once."""
        for connection in list(self._connections):
            if connection.forwards:
                connection.close()

    def next_turn(self) -> None:
        """The node took what was handed over: who waited longest goes on first."""
        self.turn += 1
        waiting, self.throttled = iter(self.throttled), {}
        for connection in waiting:
            if not self.has_room():
                served, self.throttled = self.throttled, {connection: None}
                self.throttled |= dict.fromkeys(waiting) | served
                return
            connection.take_turn()

    def _schedule_sweep(self) -> None:
        every = self.limits.sweep_s
        if every is not None:
            self._sweep = self._loop.call_later(every, self._close_idle)

    def _close_idle(self) -> None:
        oldest = self.time() - self.limits.max_idle_ms / 1000
        for connection in list(self._connections):
            if connection.last_active < oldest:
                text = f"Closed the idle connection from {connection.peer}"
                self.log.log(logging.INFO, "Closed an idle connection", text)
                connection.abort()  # whoever takes no answers would keep it open for ever
        self._schedule_sweep()
