"""One outbound connection to another node: an ApiVersions handshake, a login, then requests."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Callable, Iterable
from typing import Final, cast

from quorate.base.frozen import frozen
from quorate.base.ids import Address
from quorate.node.raft_rpc_outbound import api_versions_request
from quorate.node.request_limits import check_response_size
from quorate.raft.inputs import SendFailure
from quorate.security.sasl.client import SaslClient
from quorate.security.sasl.login import Login
from quorate.security.sasl.mechanism import SaslError
from quorate.server.logs import RateLimitedLog
from quorate.wire.errors import EncodeError, UnsupportedFieldError, WireError
from quorate.wire.frame import FrameReader
from quorate.wire.header import correlation_id_of, decode_response, encode_request
from quorate.wire.messages import ApiVersionsResponse
from quorate.wire.registry import APIS
from quorate.wire.schema import Message

_API_VERSIONS: Final = 18
_UNSUPPORTED_VERSION: Final = 35


@frozen
class PeerRequest:
    """A request to a peer. Exactly one of `answered` and `failed` takes effect, on the loop.

    `build` makes the message for the version that both sides support. When `answered` raises
    WireError, the response is invalid and `failed` is called.
    """

    api_key: int
    build: Callable[[int], Message]
    answered: Callable[[Message], None]
    failed: Callable[[SendFailure], None]
    timeout_ms: int


class PendingRequest:
    """A request without a response yet; `deadline` is in loop time (s)."""

    __slots__ = ("ask", "deadline", "version")

    def __init__(self, ask: PeerRequest, deadline: float) -> None:
        self.ask = ask
        self.deadline = deadline
        self.version = -1


def fail(pending: Iterable[PendingRequest], failure: SendFailure) -> None:
    """Report the same failure for all of them."""
    for item in pending:
        item.ask.failed(failure)


class PeerConnection(asyncio.Protocol):
    """A TCP connection. It takes requests once it `is_ready`; then it calls `on_ready`.

    When the connection ends by itself, `on_end` gets True if the peer closed it, False after an
    invalid response. `close` does not call `on_end`. Both fail the pending requests.
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        on_ready: Callable[[], None],
        on_end: Callable[[bool], None],
        log: RateLimitedLog,
    ) -> None:
        self.has_answered = False
        """Whether a response arrived. Only then does losing the connection suggest a dead node."""
        self.answered_at = 0.0
        """When the last response arrived (loop time, s)."""
        self.is_closed = False
        self.pending: dict[int, PendingRequest] = {}
        self._address = address
        self._client_id = client_id
        self._on_ready = on_ready
        self._on_end = on_end
        self._log = log
        self._is_secured = True
        """Whether there is no TLS handshake to wait for."""
        self._is_started = False
        self._on_insecure: Callable[[str], None] | None = None
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader()
        self._loop = asyncio.get_running_loop()
        self._handshake_version = APIS[_API_VERSIONS].max_version
        self._versions: dict[int, tuple[int, int]] | None = None
        self._correlation = 0
        self.login: Login | None = None
        """Begins the exchange that logs in (SASL); None: the peer needs none. Set before `start`."""
        self._is_logged_in = False
        self._exchange: SaslClient | None = None
        self._exchange_call = (0, 0, 0)
        """Correlation id, API key and version of the login's request."""
        self._login_timer: asyncio.TimerHandle | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the handshake is complete: the versions are known, and this node is logged in."""
        return self._versions is not None and self._is_logged_in

    def require_tls(self, on_insecure: Callable[[str], None]) -> None:
        """Before `start`: a TLS handshake comes first; `on_insecure` gets why it failed."""
        self._is_secured = False
        self._on_insecure = on_insecure

    def start(self) -> None:
        """Send ApiVersions, after the TLS handshake where there is one."""
        self._is_started = True
        if self._is_secured:
            self._send_versions()

    def secured(self, principal: str) -> None:
        """The TLS handshake is complete."""
        self._is_secured = True
        if self._is_started:
            self._send_versions()

    def insecure(self, reason: str) -> None:
        """TLS failed: report the reason and close."""
        if self.is_closed:
            return
        if self._on_insecure is not None:
            self._on_insecure(reason)
        self._end(by_peer=False)

    def _send_versions(self) -> None:
        self._write(
            encode_request(api_versions_request(), self._handshake_version, 0, self._client_id)
        )

    def send(self, item: PendingRequest) -> None:
        """Send in the newest common version; without one, the request fails at once."""
        ask = item.ask
        version = self._common_version(ask.api_key)
        if version is None:
            ask.failed(SendFailure.UNSUPPORTED_VERSION)
            return
        self._correlation += 1
        try:
            frame = encode_request(ask.build(version), version, self._correlation, self._client_id)
        except UnsupportedFieldError:
            ask.failed(SendFailure.UNSUPPORTED_VERSION)
            return
        except EncodeError as error:
            what = f"Cannot encode a request to {self._address}"
            self._log.log(logging.ERROR, what, f"{what}: {error}")
            ask.failed(SendFailure.DISCONNECTED)
            return
        item.version = version
        self.pending[self._correlation] = item
        self._write(frame)

    def close(self) -> None:
        """Close the connection and fail the pending requests."""
        self.is_closed = True
        if self._login_timer is not None:
            self._login_timer.cancel()
        if self._transport is not None:
            self._transport.close()
        waiting, self.pending = self.pending, {}
        fail(waiting.values(), SendFailure.DISCONNECTED)

    def _common_version(self, api_key: int) -> int | None:
        theirs = (self._versions or {}).get(api_key)
        if theirs is None:
            return None
        api = APIS[api_key]
        version = min(theirs[1], api.max_version)
        return version if version >= max(theirs[0], api.min_version) else None

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        if self.is_closed:
            return  # an authenticator that worked in a thread meanwhile
        self._transport.write(frame)

    # -- asyncio.Protocol ---------------------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        if self.is_closed:
            return
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except WireError as error:
            what = f"Closed the connection to {self._address}"
            self._log.log(logging.WARNING, what, f"{what}: {error}")
            self._end(by_peer=False)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.is_closed:
            self._end(by_peer=True)

    def _end(self, *, by_peer: bool) -> None:
        self.close()
        self._on_end(by_peer)

    # -- responses -------------------------------------------------------------------
    def _take(self, frame: bytes) -> None:
        """Process a response. Raises WireError when it is invalid or belongs to no request."""
        if self._versions is None:
            self._finish_handshake(frame)
            return
        correlation = correlation_id_of(frame)
        if self._exchange is not None and correlation == self._exchange_call[0]:
            self._continue_login(frame)
            return
        item = self.pending.pop(correlation, None)
        if item is None:
            raise WireError(f"a response with the unknown correlation id {correlation}")
        self.has_answered = True
        self.answered_at = self._loop.time()
        try:
            check_response_size(frame, item.ask.api_key)
            _, message = decode_response(frame, item.ask.api_key, item.version)
            item.ask.answered(message)
        except WireError:
            item.ask.failed(SendFailure.DISCONNECTED)
            raise

    def _finish_handshake(self, frame: bytes) -> None:
        """Take the peer's versions, or repeat ApiVersions in a version that the peer supports.

        KIP-511: a broker answers an unknown version with UNSUPPORTED_VERSION in version 0, and names
        its own range.
        """
        check_response_size(frame, _API_VERSIONS)
        _, message = decode_response(frame, _API_VERSIONS, self._handshake_version)
        assert isinstance(message, ApiVersionsResponse)
        versions = {api.api_key: (api.min_version, api.max_version) for api in message.api_keys}
        if message.error_code == _UNSUPPORTED_VERSION and self._handshake_version > 0:
            known = versions.get(_API_VERSIONS, (0, 0))[1]
            self._handshake_version = max(min(known, self._handshake_version - 1), 0)
            self._send_versions()
            return
        if message.error_code:
            raise WireError(f"the handshake ended with error {message.error_code}")
        self._versions = versions
        if self.login is None:
            self._is_logged_in = True
            self._on_ready()
        else:
            self._begin_login()

    # -- the login ----------------------------------------------------------------------------
    def _begin_login(self) -> None:
        """Log in, or again before the session ends (KIP-368): other requests wait meanwhile."""
        if self.is_closed or self.login is None:
            return
        self._is_logged_in = False
        self._exchange = self.login()
        self._send_login(self._exchange.start())

    def _send_login(self, message: Message) -> None:
        key = type(message).schema.key
        assert key is not None, "only requests have an API key"
        version = self._common_version(key)
        if version is None:
            self._login_failed(f"it does not support {APIS[key].name}")
            return
        self._correlation += 1
        self._exchange_call = self._correlation, key, version
        self._write(encode_request(message, version, self._correlation, self._client_id))

    def _continue_login(self, frame: bytes) -> None:
        """Take a response of the login; deriving keys from the password takes a thread."""
        exchange = self._exchange
        assert exchange is not None
        _, key, version = self._exchange_call
        _, message = decode_response(frame, key, version)
        waiting = self._loop.run_in_executor(None, _next_of_login, exchange, message)
        waiting.add_done_callback(self._login_continued)

    def _login_continued(self, future: asyncio.Future[Message | SaslError | None]) -> None:
        exchange = self._exchange
        if self.is_closed or future.cancelled() or exchange is None:
            return
        outcome = future.result()
        if isinstance(outcome, SaslError):
            self._login_failed(str(outcome))
        elif outcome is not None:
            self._send_login(outcome)
        else:
            self._exchange, self._is_logged_in = None, True
            if exchange.lifetime_ms > 0:
                # Kafka's clients take 85 to 95 % of the session, too.
                share = random.uniform(0.85, 0.95)  # noqa: S311 - keeps no secret
                wait_s = exchange.lifetime_ms / 1000 * share
                self._login_timer = self._loop.call_later(wait_s, self._begin_login)
            self._on_ready()

    def _login_failed(self, why: str) -> None:
        what = f"Cannot log in at {self._address}"
        self._log.log(logging.ERROR, what, f"{what}: {why}")
        self._end(by_peer=False)


def _next_of_login(exchange: SaslClient, message: Message) -> Message | SaslError | None:
    try:
        return exchange.take(message)
    except SaslError as error:
        return error
