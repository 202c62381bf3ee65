"""Connections to the other nodes: one each, a handshake first, then the core's requests.

A request that cannot be answered is reported once: DISCONNECTED, TIMED_OUT or UNSUPPORTED_VERSION.
When a connection breaks it is made anew at once; if that is refused, nobody listens there any
more, and the core is told (ConnectionLost).
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final, cast

from quorate.base.frozen import frozen
from quorate.base.ids import Address
from quorate.node.translate_peer import api_versions_request
from quorate.raft.inputs import Failure
from quorate.server.logs import LOG
from quorate.wire.errors import EncodeError, UnsupportedFieldError, WireError
from quorate.wire.frame import FrameReader
from quorate.wire.header import correlation_id_of, decode_response, encode_request
from quorate.wire.messages import ApiVersionsResponse
from quorate.wire.registry import APIS
from quorate.wire.schema import Message

_API_VERSIONS: Final = 18
_UNSUPPORTED_VERSION: Final = 35
_MIN_BACKOFF_S: Final = 0.02
_MAX_BACKOFF_S: Final = 0.5
_NO_ADDRESS: Final = (ValueError, OverflowError)
"""What a host name or a port raises that cannot be one: no encoding as IDNA, or a NUL in it."""


@frozen
class Ask:
    """One request to a peer; exactly one of `answered` and `failed` is called, on the loop.

    `build` gives the message for the version that both sides speak.
    """

    api_key: int
    build: Callable[[int], Message]
    answered: Callable[[Message], None]
    failed: Callable[[Failure], None]
    timeout_ms: int


class _InFlight:
    __slots__ = ("ask", "deadline", "version")

    def __init__(self, ask: Ask, deadline: float) -> None:
        self.ask = ask
        self.deadline = deadline
        self.version = -1


class _Link(asyncio.Protocol):
    """One TCP connection of a Peer; silent once it is not the peer's current one."""

    def __init__(self, peer: Peer) -> None:
        self.transport: asyncio.Transport | None = None
        self._peer = peer
        self._reader = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if self._peer.link is not self:
            return
        try:
            for frame in self._reader.feed(data):
                self._peer.on_frame(frame)
        except WireError as error:
            LOG.warning("Closed the connection to %s: %s", self._peer, error)
            self._peer.drop(reconnect=False)

    def connection_lost(self, error: Exception | None) -> None:
        if self._peer.link is self:
            self._peer.drop(reconnect=True)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


class Peer:
    """One node that we ask. `on_lost` is called when it turns out that nobody listens there."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address: Address,
        client_id: str,
        on_lost: Callable[[], None],
        connect_timeout_s: float = 10.0,
    ) -> None:
        self.address = address
        self.link: _Link | None = None
        self._loop = loop
        self._client_id = client_id
        self._on_lost = on_lost
        self._connect_timeout_s = connect_timeout_s
        self._versions: dict[int, tuple[int, int]] | None = None
        self._correlation = 0
        self._handshake_version = APIS[_API_VERSIONS].max_version
        self._queue: list[_InFlight] = []
        self._in_flight: dict[int, _InFlight] = {}
        self._connecting: asyncio.Task[None] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._next_deadline = 0.0
        self._backoff_s = 0.0
        self._was_up = False
        self._useful = False
        """The connection has carried an answer: when it breaks, that is news."""
        self._probing = False
        """Such a connection broke, and it is not clear yet whether the node lives."""
        self._told = False
        """That the address is none."""
        self._closed = False
        self._last_active = loop.time()
        """When it was asked or answered last."""

    def __str__(self) -> str:
        return str(self.address)

    # -- asking -------------------------------------------------------------------------------
    def ask(self, ask: Ask) -> None:
        """Send as soon as there is a connection; connects when there is none."""
        self._last_active = self._loop.time()
        item = _InFlight(ask, self._last_active + ask.timeout_ms / 1000)
        if self._timer is None or item.deadline < self._next_deadline:
            self._watch(item.deadline)
        if self._versions is not None:
            self._send(item)
            return
        self._queue.append(item)
        if self.link is None and self._connecting is None and self._retry is None:
            self._connect()

    def is_idle(self, since: float) -> bool:
        """Was it not asked for anything since then (loop time), and owes no answer?"""
        return self._last_active < since and not self._queue and not self._in_flight

    def close(self) -> None:
        """Fail whatever waits, close the connection, never connect again."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._retry is not None:
            self._retry.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        self.drop(reconnect=False)

    def _send(self, item: _InFlight) -> None:
        assert self.link is not None and self.link.transport is not None
        version = self._common_version(item.ask.api_key)
        if version is None:
            item.ask.failed(Failure.UNSUPPORTED_VERSION)
            return
        self._correlation += 1
        try:
            frame = encode_request(
                item.ask.build(version), version, self._correlation, self._client_id
            )
        except UnsupportedFieldError:
            item.ask.failed(Failure.UNSUPPORTED_VERSION)
            return
        except EncodeError as error:
            LOG.error("Cannot encode a request to %s: %s", self, error)
            item.ask.failed(Failure.DISCONNECTED)
            return
        item.version = version
        self._in_flight[self._correlation] = item
        self.link.transport.write(frame)

    def _common_version(self, api_key: int) -> int | None:
        theirs = (self._versions or {}).get(api_key)
        if theirs is None:
            return None
        api = APIS[api_key]
        version = min(theirs[1], api.max_version)
        return version if version >= max(theirs[0], api.min_version) else None

    # -- the connection -----------------------------------------------------------------------
    def _connect(self) -> None:
        self._retry = None
        self._connecting = self._loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                _, link = await self._loop.create_connection(
                    lambda: _Link(self), self.address.host, self.address.port
                )
        except (OSError, *_NO_ADDRESS) as error:
            self._connecting = None
            self._refused(error)
            return
        self._connecting = None
        if self._closed:
            link.close()
            return
        self.link = link
        self._useful = False
        self._handshake()

    def _refused(self, error: Exception) -> None:
        """Nobody answered at this address; try again later if there is something to send."""
        if isinstance(error, _NO_ADDRESS) and not self._told:
            self._told = True
            LOG.warning("Cannot connect to %s, which is no address: %s", self, error)
        LOG.debug("Cannot connect to %s: %s", self, error)
        lost, self._was_up, self._probing = self._was_up, False, False
        self._fail_all(Failure.DISCONNECTED)
        self._retry_later()
        if lost and _is_refusal(error):
            self._on_lost()

    def _retry_later(self) -> None:
        self._backoff_s = min(max(self._backoff_s * 2, _MIN_BACKOFF_S), _MAX_BACKOFF_S)
        self._retry = self._loop.call_later(self._backoff_s, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        if (self._queue or self._probing) and not self._closed:
            self._connect()

    def drop(self, reconnect: bool) -> None:
        """The connection is of no use any more; `reconnect`: find out whether the node lives."""
        link, self.link, self._versions = self.link, None, None
        if link is not None:
            link.close()
        self._fail_all(Failure.DISCONNECTED)
        if not reconnect or self._closed or self._connecting is not None or self._retry is not None:
            return
        if self._useful:
            self._probing = True
            self._connect()
        elif self._probing:
            # A dying process may still accept: ask again until it is clear.
            self._retry_later()

    def _watch(self, deadline: float) -> None:
        """One timer for all requests: most are answered long before theirs would end."""
        if self._timer is not None:
            self._timer.cancel()
        self._next_deadline = deadline
        self._timer = self._loop.call_at(deadline, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        """Kafka's client gives up the whole connection when one request times out."""
        self._timer = None
        now = self._loop.time()
        waiting = [*self._in_flight.values(), *self._queue]
        late = [item for item in waiting if item.deadline <= now]
        rest = [item.deadline for item in waiting if item.deadline > now]
        if late:
            self._queue = [item for item in self._queue if item not in late]
            self._in_flight = {k: item for k, item in self._in_flight.items() if item not in late}
            for item in late:
                item.ask.failed(Failure.TIMED_OUT)
            self.drop(reconnect=False)
        elif rest:
            self._watch(min(rest))

    def _fail_all(self, failure: Failure) -> None:
        items = [*self._in_flight.values(), *self._queue]
        self._in_flight.clear()
        self._queue.clear()
        for item in items:
            item.ask.failed(failure)

    # -- what comes back ----------------------------------------------------------------------
    def _handshake(self) -> None:
        assert self.link is not None and self.link.transport is not None
        version = self._handshake_version
        self.link.transport.write(
            encode_request(api_versions_request(), version, 0, self._client_id)
        )

    def on_frame(self, frame: bytes) -> None:
        """One response. Raises WireError when it is none of ours: the connection is lost."""
        if self._versions is None:
            self._shake_hands(frame)
            return
        correlation = correlation_id_of(frame)
        item = self._in_flight.pop(correlation, None)
        if item is None:
            raise WireError(f"a response with the unknown correlation id {correlation}")
        self._useful = True
        self._last_active = self._loop.time()
        try:
            _, message = decode_response(frame, item.ask.api_key, item.version)
            item.ask.answered(message)
        except WireError:
            item.ask.failed(Failure.DISCONNECTED)
            raise

    def _shake_hands(self, frame: bytes) -> None:
        _, message = decode_response(frame, _API_VERSIONS, self._handshake_version)
        assert isinstance(message, ApiVersionsResponse)
        versions = {api.api_key: (api.min_version, api.max_version) for api in message.api_keys}
        if message.error_code == _UNSUPPORTED_VERSION and self._handshake_version > 0:
            known = versions.get(_API_VERSIONS, (0, 0))[1]
            self._handshake_version = max(min(known, self._handshake_version - 1), 0)
            self._handshake()
            return
        if message.error_code:
            raise WireError(f"the handshake ended with error {message.error_code}")
        self._versions = versions
        self._was_up, self._probing, self._backoff_s = True, False, 0.0
        waiting, self._queue = self._queue, []
        for item in waiting:
            self._send(item)


def _is_refusal(error: Exception) -> bool:
    """Nobody listens at any of the addresses that the host name has."""
    if isinstance(error, ConnectionRefusedError):
        return True
    text = str(error)
    return text.startswith("Multiple exceptions") and text.count("[Errno") == text.count(
        f"[Errno {errno.ECONNREFUSED}]"
    )
