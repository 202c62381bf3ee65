"""A minimal HTTP/1.1 server on the node's loop: GET and HEAD of a few fixed pages.

It is meant for Prometheus, probes and curl, not for browsers or the open internet. Request bodies are
refused; head size, connections and idle time are limited.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, cast
from urllib.parse import parse_qsl

from quorate.base.ids import Address
from quorate.server.logs import LOG, RateLimitedLog
from quorate.server.page_security import PageSecurity

MAX_HEAD_BYTES: Final = 8192
MAX_CONNECTIONS: Final = 64
HANDSHAKE_S: Final = 10.0
"""Time for a TLS handshake."""
_MAX_LINES: Final = 10
IDLE_S: Final = 60.0
"""Time from one response to the end of the next request before the connection is closed."""
_REQUEST_LINE: Final = re.compile(r"([A-Za-z]+) (/\S*) HTTP/1\.([01])")
_TEXT: Final = "text/plain; charset=utf-8"


class Page(NamedTuple):
    """The response of a route."""

    status: HTTPStatus
    content_type: str
    body: bytes


class Question(NamedTuple):
    """What a request says besides its path."""

    headers: Mapping[str, str]
    """Names in lower case."""
    query: Mapping[str, str]
    """The parameters after `?`; the last value of each."""


Route = Callable[[Question], Page]
"""Runs on the loop: it must be quick."""


class _RefusedError(Exception):
    """The request is invalid; the connection is closed after the error response."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class WebServer:
    """Serves `routes` (path -> Route) on one socket."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        routes: Mapping[str, Route],
        idle_s: float = IDLE_S,
        max_connections: int = MAX_CONNECTIONS,
        security: PageSecurity | None = None,
    ) -> None:
        """security: who may read the pages; None: everybody."""
        self.loop = loop
        self.routes = routes
        self.idle_s = idle_s
        self.max_connections = max_connections
        self.connections: dict[_Connection, None] = {}
        """Open connections, least recently active first."""
        self.on_refused: Callable[[], None] = lambda: None
        """Called for each handshake and request that is refused."""
        self._security = security or PageSecurity()
        self._log = RateLimitedLog(loop, _MAX_LINES)
        self._server: asyncio.Server | None = None

    async def listen(self, sock: socket.socket) -> None:
        """Serve a bound socket, until `close`."""
        wrap = self._security.wrap

        def accept() -> asyncio.Protocol:
            connection = _Connection(self, HANDSHAKE_S if wrap else self.idle_s)
            return connection if wrap is None else wrap(connection)

        self._server = await self.loop.create_server(accept, sock=sock)

    def close(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.abort()

    def admit(self, connection: _Connection) -> None:
        """Register a connection; at the limit, close the one that has been idle longest.

        So idle connections never keep a probe out.
        """
        if len(self.connections) >= self.max_connections:
            oldest = next(iter(self.connections))
            del self.connections[oldest]
            oldest.abort()
        self.connections[connection] = None

    def mark_active(self, connection: _Connection) -> None:
        """Move the connection to the end of the order of idleness."""
        if connection in self.connections:
            del self.connections[connection]
            self.connections[connection] = None

    def refuse(self, peer: str, why: str) -> None:
        """Count and log a refusal; `why` has no password."""
        self.on_refused()
        text = f"Refused {peer} on the HTTP listener: {why}"
        host = peer.rpartition(":")[0]
        self._log.log(logging.WARNING, "Refused on the HTTP listener", text, host)

    def answer(self, method: str, target: str, headers: Mapping[str, str], peer: str = "?") -> Page:
        """The page of a request, or an error page: 401, 404, 405 or 500."""
        path, _, query = target.partition("?")
        why = self._security.refusal(path, headers)
        if why is not None:
            self.refuse(peer, why)
            return _plain(HTTPStatus.UNAUTHORIZED, "This page needs a user and a password")
        route = self.routes.get(path)
        if route is None:
            return _plain(HTTPStatus.NOT_FOUND, f"Pages: {', '.join(self.routes)}")
        if method not in ("GET", "HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED, "Only GET and HEAD")
        try:
            return route(Question(headers, dict(parse_qsl(query))))
        except Exception:
            # A monitoring request must not stop the node.
            LOG.exception("Cannot render the page %s", path)
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, "See the node's log")


class _Connection(asyncio.Protocol):
    def __init__(self, server: WebServer, first_s: float) -> None:
        """first_s: the time until the first request is complete."""
        self._server = server
        self._peer = "?"
        self._limit_s = first_s
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._timer: asyncio.TimerHandle | None = None
        self._writable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        host, port = (transport.get_extra_info("peername") or ("?", 0))[:2]
        self._peer = str(Address(host, port))
        self._server.admit(self)
        self._restart_timer()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._server.connections.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._answer_requests()

    def pause_writing(self) -> None:
        self._writable = False
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._answer_requests()

    def secured(self, principal: str) -> None:
        """The TLS handshake is complete."""
        self._limit_s = self._server.idle_s
        self._restart_timer()

    def insecure(self, reason: str) -> None:
        """TLS failed: log it and close."""
        self._server.refuse(self._peer, reason)
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _restart_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._server.loop.call_later(self._limit_s, self.abort)

    def _answer_requests(self) -> None:
        """Answer every complete request in the buffer."""
        while self._writable and self._transport is not None and not self._transport.is_closing():
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0 or end > MAX_HEAD_BYTES:
                if self._buffer and not self._buffer[:1].isalpha():
                    # Answer a Kafka client that connects here by mistake: each would wait for the other.
                    self._refuse(HTTPStatus.BAD_REQUEST, "Not an HTTP request")
                elif len(self._buffer) > MAX_HEAD_BYTES:
                    why = f"At most {MAX_HEAD_BYTES} bytes"
                    self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why)
                return
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            try:
                self._request(head)
            except _RefusedError as refused:
                self._refuse(refused.status, str(refused))

    def _request(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        match = _REQUEST_LINE.fullmatch(first)
        if match is None:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "Not an HTTP/1.0 or HTTP/1.1 request")
        method, target, minor = match.groups()
        headers = _headers(lines)
        page = self._server.answer(method, target, headers, self._peer)
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if has_body and page.status is HTTPStatus.OK:
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "Request bodies are not supported")
        keep_alive = minor == "1" and headers.get("connection", "").lower() != "close"
        self._write(page, is_head=method == "HEAD", last=has_body or not keep_alive)

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._write(_plain(status, why), is_head=False, last=True)

    def _write(self, page: Page, *, is_head: bool, last: bool) -> None:
        assert self._transport is not None
        lines = [
            f"HTTP/1.1 {page.status.value} {page.status.phrase}",
            f"Content-Type: {page.content_type}",
            f"Content-Length: {len(page.body)}",
            "Cache-Control: no-store",
        ]
        if page.status is HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET, HEAD")
        if page.status is HTTPStatus.UNAUTHORIZED:
            lines.append('WWW-Authenticate: Basic realm="quorate", charset="UTF-8"')
        if last:
            lines.append("Connection: close")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        self._transport.write(head if is_head else head + page.body)
        self._server.mark_active(self)
        self._restart_timer()
        if last:
            self._transport.close()


def _headers(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise _RefusedError(HTTPStatus.BAD_REQUEST, "Not a header line")
        headers[name.lower()] = value.strip()
    return headers


def _plain(status: HTTPStatus, text: str) -> Page:
    return Page(status, _TEXT, f"{text}\n".encode())
