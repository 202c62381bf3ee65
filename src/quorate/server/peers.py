"""Connections to the other nodes: opened on demand, reopened when they break.

A failed request is reported once, as DISCONNECTED, TIMED_OUT or UNSUPPORTED_VERSION. When the peer closes
a connection, the node connects again at once. If that is refused, the peer's process has ended: the core
gets ConnectionLost, and a follower that loses its leader so starts a pre-vote at once, without waiting for
the fetch timeout.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Final

from quorate.base.ids import Address
from quorate.raft.inputs import SendFailure
from quorate.server.authentication import OPEN_PEER, PeerSecurity
from quorate.server.logs import RateLimitedLog
from quorate.server.name_resolution import connect_to_first, is_refusal
from quorate.server.peer_connection import PeerConnection, PeerRequest, PendingRequest, fail

_MIN_BACKOFF_S: Final = 0.02
_MAX_BACKOFF_S: Final = 0.5
_MAX_UNREACHABLE: Final = 1_000
_NO_ADDRESS: Final = (ValueError, OverflowError)
"""What an invalid host name or port raises, e.g. a name with a NUL or without an IDNA encoding."""

_EARLY_CLOSES: Final = 5
"""A node that is stopping closes fewer connections early before its port refuses them."""
_CLOSED_EARLY: Final = (
    f"it accepted {_EARLY_CLOSES} connections and closed each before its first response. Compare the "
    "security protocols of both nodes in listener.security.protocol.map. A proxy whose server is down "
    "does the same"
)


class Peer:
    """One other node. `on_lost` is called when its process turns out to have ended.

    It is connected, connecting, waiting to reconnect (retry backoff), or idle until the next request.
    Requests wait in a queue until the connection is ready.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        client_id: str,
        on_lost: Callable[[], None],
        log: RateLimitedLog,
        unreachable: set[tuple[Address, bool]],
        connect_timeout_s: float = 10.0,
    ) -> None:
        """Begin unconnected.

        `unreachable`: addresses already logged, shared by all peers of a node; True where it was logged
        that connections are closed early.
        """
        self.address = address
        self._log = log
        self.security: PeerSecurity = OPEN_PEER
        """What its connections need before requests; set it before the first one."""
        self._unreachable = unreachable
        self._loop = loop
        self._client_id = client_id
        self._on_lost = on_lost
        self._connect_timeout_s = connect_timeout_s
        self._queue: list[PendingRequest] = []
        self._link: PeerConnection | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._backoff_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline = 0.0
        self._was_ready = False
        """A connection became ready since the last refusal."""
        self._probing = False
        """A connection that had carried responses broke: find out whether the process ended."""
        self._early_closes = 0
        """Connections in a row that the peer accepted and closed before its first response."""
        self._closed = False
        self._asked_at = loop.time()

    def __str__(self) -> str:
        return str(self.address)

    def send(self, request: PeerRequest) -> None:
        """Send the request as soon as a connection is ready; connect if there is none."""
        self._asked_at = self._loop.time()
        item = PendingRequest(request, self._asked_at + request.timeout_ms / 1000)
        if self._timer is None or item.deadline < self._timer_deadline:
            self._watch(item.deadline)
        if self._link is not None and self._link.is_ready:
            self._link.send(item)
            return
        self._queue.append(item)
        if not self._is_busy:
            self._connect()

    def is_idle(self, since: float) -> bool:
        """Whether it had no request since then (loop time, s) and none is pending."""
        if self._link is not None and (self._link.pending or self._link.answered_at >= since):
            return False
        return self._asked_at < since and not self._queue

    def close(self) -> None:
        """Fail all requests and close the connection for good."""
        self._closed = True
        for running in (self._timer, self._retry, self._connecting):
            if running is not None:
                running.cancel()
        self._drop()

    @property
    def _is_busy(self) -> bool:
        """Whether it is connected, connecting, or waiting to reconnect."""
        return not (self._link is None and self._connecting is None and self._retry is None)

    def _drop(self) -> None:
        """Close the connection, if any, and fail all requests."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
        waiting, self._queue = self._queue, []
        fail(waiting, SendFailure.DISCONNECTED)

    # -- connecting ---------------------------------------------------------------------------
    def _connect(self) -> None:
        self._connecting = self._loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            link = await self._reach()
        except (OSError, *_NO_ADDRESS) as error:
            self._connecting = None
            self._refused(error)
            return
        self._connecting = None
        if self._closed:
            link.close()
        elif link.is_closed:  # the peer closed it before this task ran again
            self._ended(by_peer=True)
        else:
            self._link = link
            link.start()

    async def _reach(self) -> PeerConnection:
        async def connect(ip: str) -> PeerConnection:
            link = self._new_link()
            wrap = self.security.wrap
            top = link if wrap is None else wrap(link, self.address.host)
            await self._loop.create_connection(lambda: top, ip, self.address.port)
            return link

        return await connect_to_first(self.address.host, self._connect_timeout_s, connect)

    def _new_link(self) -> PeerConnection:
        link = PeerConnection(self.address, self._client_id, self._ready, self._ended, self._log)
        link.login = self.security.login
        if self.security.wrap is not None:
            link.require_tls(self._insecure)
        return link

    def _insecure(self, reason: str) -> None:
        """TLS failed: log it once, the connection ends as others do."""
        self._log_unreachable(f"Cannot connect to {self}: {reason}")

    def _ready(self) -> None:
        assert self._link is not None
        # A completed handshake shows that the process lives: stop probing.
        self._was_ready, self._probing, self._backoff_s = True, False, 0.0
        self._early_closes = 0
        logged = {(self.address, False), (self.address, True)} & self._unreachable
        if logged:
            self._unreachable.difference_update(logged)
            text = f"Connected to {self}"
            self._log.log(logging.INFO, text, text)
        waiting, self._queue = self._queue, []
        for item in waiting:
            self._link.send(item)

    def _ended(self, by_peer: bool) -> None:
        """The connection ended by itself: decide whether to connect again."""
        link = self._link
        was_ready = link is not None and link.is_ready
        if by_peer and not was_ready:
            self._early_closes += 1
            if self._early_closes == _EARLY_CLOSES:
                self._log_unreachable(f"Cannot connect to {self}: {_CLOSED_EARLY}", is_early=True)
        may_be_dead = by_peer and link is not None and link.has_answered
        self._drop()
        if self._closed or self._is_busy:
            return
        if may_be_dead:
            # 1. The peer closed a working connection. Connect again at once: a refusal proves that the
            #    process has ended, a new connection that it lives (it may just close idle ones).
            self._probing = True
            self._connect()
        elif self._probing or not was_ready:
            # 2. A dying process may still accept connections, so probe until it refuses or completes a
            #    handshake. Back off: what is not a Kafka node closes every connection at once.
            self._retry_later()

    def _refused(self, error: Exception) -> None:
        """Connecting failed; retry after the backoff if there is something to send."""
        self._log_unreachable(f"Cannot connect to {self}{self._reason(error)}")
        self._early_closes = 0
        # Report the loss once: `_was_ready` is set again only by the next completed handshake.
        lost, self._was_ready, self._probing = self._was_ready, False, False
        self._drop()
        self._retry_later()
        if lost and is_refusal(error):
            self._on_lost()

    def _reason(self, error: Exception) -> str:
        if isinstance(error, socket.gaierror):
            return f", whose name cannot be resolved: {error}"
        if isinstance(error, _NO_ADDRESS):
            return f", which is not a valid address: {error}"
        if isinstance(error, OSError) and error.errno:
            return f": {os.strerror(error.errno)}"
        return f": no connection within {self._connect_timeout_s:g} s"

    def _log_unreachable(self, text: str, *, is_early: bool = False) -> None:
        """Log that the address is unreachable: once until the next connection is ready.

        A peer that was down and then closes connections early (`is_early`) is logged for both.
        """
        found = self.address, is_early
        if found not in self._unreachable:
            # bounded: AddRaftVoter may name any address
            if len(self._unreachable) >= _MAX_UNREACHABLE:
                self._unreachable.clear()
            self._unreachable.add(found)
            self._log.log(logging.WARNING, text, text)

    def _retry_later(self) -> None:
        self._backoff_s = min(max(self._backoff_s * 2, _MIN_BACKOFF_S), _MAX_BACKOFF_S)
        self._retry = self._loop.call_later(self._backoff_s, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        if (self._queue or self._probing) and not self._closed:
            self._connect()

    # -- deadlines ----------------------------------------------------------------------------
    def _watch(self, deadline: float) -> None:
        """Set the timer to `deadline`. One timer serves all requests: nearly all end before theirs."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer_deadline = deadline
        self._timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        """Fail the late requests and close the connection, as Kafka's `NetworkClient` does.

        The other requests fail as DISCONNECTED: responses come in order, so theirs would be late too.
        """
        self._timer = None
        now = self._loop.time()
        link = self._link
        sent = {} if link is None else link.pending
        waiting = [*sent.values(), *self._queue]
        late = [item for item in waiting if item.deadline <= now]
        if late:
            silent = [key for key, item in sent.items() if item.deadline <= now]
            if silent or (link is not None and not link.is_ready):
                self._log_unreachable(f"No response from {self} in time: closed the connection")
            for key in silent:
                del sent[key]
            self._queue = [item for item in self._queue if item.deadline > now]
            fail(late, SendFailure.TIMED_OUT)
            self._drop()
        elif waiting:
            self._watch(min(item.deadline for item in waiting))
