"""The listeners of a node: accept connections, and close those that are idle."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from quorate.server.authentication import OPEN_LISTENER, ListenerSecurity
from quorate.server.connections import Connections, InboundConnection, ResponseSlot
from quorate.server.limits import ConnectionLimits


class Acceptor(Connections):
    """All listeners of a node, and their connections."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limits: ConnectionLimits,
        on_frame: Callable[[ResponseSlot, bytes], None],
        has_room: Callable[[], bool],
    ) -> None:
        """on_frame: as in Connections."""
        super().__init__(loop, limits, on_frame, has_room)
        self._loop = loop
        self._servers: list[asyncio.Server] = []
        self._sweep: asyncio.TimerHandle | None = None

    async def listen(
        self, name: str, sock: socket.socket, security: ListenerSecurity = OPEN_LISTENER
    ) -> None:
        """Serve a bound socket as the listener `name` (upper case)."""

        def accept() -> asyncio.Protocol:
            connection = InboundConnection(self, name, security)
            return connection if security.wrap is None else security.wrap(connection)

        server = await self._loop.create_server(accept, sock=sock, backlog=self.limits.backlog)
        self._servers.append(server)
        if security is not OPEN_LISTENER:
            self.failed_authentications[name] = 0
        if self._sweep is None:
            self._schedule_sweep()

    def close(self) -> None:
        """Close the listeners and all connections."""
        if self._sweep is not None:
            self._sweep.cancel()
        self.log.flush()
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.close()

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
                connection.abort()  # `close` would wait for a client that never reads
        self._schedule_sweep()
