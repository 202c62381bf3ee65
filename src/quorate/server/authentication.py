"""What authenticates a connection: the hooks of a listener and of a connection to a peer.

A listener's `ListenerSecurity` says what comes before requests: TLS, an exchange of frames (SASL), both
or nothing. Until both are complete, a connection has at most `timeout_s` and `max_frame_bytes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from quorate.security.principal import ANONYMOUS, PrincipalError
from quorate.security.sasl.login import Login
from quorate.wire.errors import WireError

AUTHENTICATION_TIMEOUT_S: Final = 10.0
"""How long the TLS handshake and the authentication of a connection may take together.

Kafka has no limit but `connections.max.idle.ms`.
"""
_MOST_REASON: Final = 500
"""Characters of a logged reason: a client's text, such as a user name, may be as long as its frame."""
MAX_FRAME_BYTES: Final = 524_288
"""Default of `sasl.server.max.receive.size`."""

Send = Callable[[bytes], None]
"""Send the response to the frame, with its length. Call it once per frame; the next frame follows."""
Done = Callable[[str], None]
"""The principal, `type:name`, is authenticated. Call it before `Send` of the last response."""
Fail = Callable[[str, bytes, float], None]
"""Close: the reason for the log, a last response (may be empty), and the delay of both in s."""


class ConnectionInfo(Protocol):
    """What an authenticator may know of its connection."""

    listener: str
    peer: str
    """The address of the client, `host:port`."""
    host: str


class ConnectionAuthenticator(Protocol):
    """Authenticates one inbound connection."""

    @property
    def by_token(self) -> bool:
        """Whether a delegation token authenticated it."""

    def takes(self, frame: bytes) -> bool:
        """Whether a frame of an authenticated connection is for this object.

        It is when it begins a new authentication (KIP-368) or comes after the session expired.
        """

    def on_frame(self, frame: bytes, send: Send, done: Done, fail: Fail) -> None:
        """Take a frame, without its length. Exactly one of `send` and `fail` follows, on the loop."""


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """What a listener asks of a connection before its requests. The default is nothing."""

    authenticator: Callable[[ConnectionInfo], ConnectionAuthenticator] | None = None
    """Makes the authenticator of one connection; None: none is needed."""
    wrap: Callable[[SecuredProtocol], asyncio.Protocol] | None = None
    """Puts TLS below the protocol of one connection; None: plaintext."""
    max_frame_bytes: int = MAX_FRAME_BYTES
    """The largest frame before the connection is authenticated (`sasl.server.max.receive.size`)."""
    timeout_s: float = AUTHENTICATION_TIMEOUT_S
    principal_of: Callable[[ConnectionInfo, str], str] | None = None
    """Names the principal, given that of TLS or SASL. Raises PrincipalError. None: it stays."""


class SecuredProtocol(Protocol):
    """The protocol above TLS. It gets no data before `secured`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def connection_lost(self, error: Exception | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

    def secured(self, principal: str) -> None:
        """The handshake is complete; `principal` is that of the other side's certificate."""

    def insecure(self, reason: str) -> None:
        """The handshake failed, or the stream is broken: close."""


@dataclass(frozen=True, slots=True)
class PeerSecurity:
    """What a connection to a peer needs before requests. The default is nothing."""

    wrap: Callable[[SecuredProtocol, str], asyncio.Protocol] | None = None
    """Puts TLS below the protocol of a connection to the host."""
    login: Login | None = None
    """Begins the SASL exchange of a connection, and of each re-authentication."""


OPEN_LISTENER: Final = ListenerSecurity()
OPEN_PEER: Final = PeerSecurity()


class Slot(Protocol):
    """The place of one response."""

    data: bytes | None


class AuthenticatedConnection(ConnectionInfo, Protocol):
    """What `Authentication` asks of its connection."""

    def call_later(self, delay_s: float, call: Callable[[], None]) -> asyncio.TimerHandle: ...
    def flush(self) -> None: ...
    def resume(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...
    def limit_frames(self, max_bytes: int | None) -> None:
        """Allow frames up to this size; None: as large as requests may be."""

    def stop_reading(self, reason: str) -> None:
        """Log why the connection is refused, and drop what it sends."""


class Authentication:
    """How far the authentication of one inbound connection is."""

    def __init__(self, security: ListenerSecurity, connection: AuthenticatedConnection) -> None:
        has_nothing = security.wrap is None and security.authenticator is None
        self.is_complete = has_nothing and security.principal_of is None
        self.is_refused = False
        self.principal = ANONYMOUS
        """Who sends the requests, as `type:name`."""
        self._has_begun = False
        self._is_secured = security.wrap is None
        self._security = security
        self._connection = connection
        self._authenticator: ConnectionAuthenticator | None = None
        self._slot: Slot | None = None
        self._is_taking = False
        self._deadline: asyncio.TimerHandle | None = None
        if not self.is_complete:  # from the first byte on: a transport may read once after a pause
            connection.limit_frames(security.max_frame_bytes)

    @property
    def is_waiting(self) -> bool:
        """Whether the next frame must wait: for `begin`, or for the response to the last one."""
        return self._slot is not None or not (self._has_begun or self.is_complete)

    @property
    def by_token(self) -> bool:
        """Whether a delegation token authenticated the principal."""
        return self._authenticator is not None and self._authenticator.by_token

    def begin(self) -> None:
        """The connection is admitted: the time for TLS handshake and authentication runs."""
        if self.is_complete:
            return
        self._has_begun = True
        if self._is_secured and self._security.authenticator is None:
            self._done(ANONYMOUS)
            return
        if self._security.authenticator is not None:
            self._authenticator = self._security.authenticator(self._connection)
        self._deadline = self._connection.call_later(self._security.timeout_s, self._late)

    def end(self) -> None:
        """The connection is closed."""
        self._slot = None
        self._cancel_deadline()

    def secured(self, principal: str) -> None:
        """The TLS handshake is complete; without an exchange of frames, all is."""
        self._is_secured = True
        if self._security.authenticator is None:
            self._done(principal)

    def refuse(self, reason: str) -> None:
        """Refuse and close at once: TLS failed or took too long."""
        if not self.is_refused:
            self.is_refused = True
            self._connection.stop_reading(reason[:_MOST_REASON])
            self._connection.abort()

    def takes(self, frame: bytes) -> bool:
        """Whether the frame is for the authenticator."""
        authenticator = self._authenticator
        return authenticator is not None and (not self.is_complete or authenticator.takes(frame))

    def check_size(self, size: int) -> None:
        """Raise WireError where a frame for the authenticator is longer than it takes."""
        most = self._security.max_frame_bytes
        if size > most:
            raise WireError(f"a frame of {size} bytes is announced; to log in, {most} are allowed")

    def take(self, frame: bytes, slot: Slot) -> None:
        """Give the frame to the authenticator; its response goes to `slot`."""
        assert self._authenticator is not None
        self._slot, self._is_taking = slot, True
        try:
            self._authenticator.on_frame(frame, self._send, self._done, self._fail)
        finally:
            self._is_taking = False

    def _send(self, data: bytes) -> None:
        slot, self._slot = self._slot, None
        if slot is None:
            return  # the connection was closed meanwhile
        slot.data = data
        self._connection.flush()
        if not self._is_taking:
            self._connection.resume()

    def _done(self, principal: str) -> None:
        name = self._security.principal_of
        if name is not None:
            try:
                principal = name(self._connection, principal)
            except PrincipalError as error:
                self.refuse(str(error))
                return
        self.principal = principal
        self.is_complete = True
        self._connection.limit_frames(None)
        self._cancel_deadline()

    def _fail(self, reason: str, data: bytes, delay_s: float) -> None:
        slot, self._slot = self._slot, None
        if self.is_refused or slot is None:
            return
        self.is_refused = True
        self._connection.stop_reading(reason[:_MOST_REASON])
        self._connection.call_later(delay_s, lambda: self._finish(slot, data))

    def _finish(self, slot: Slot, data: bytes) -> None:
        slot.data = data
        self._connection.flush()
        self._connection.close()

    def _late(self) -> None:
        self._deadline = None
        if not self.is_complete:
            what = "authentication" if self._is_secured else "TLS handshake"
            self.refuse(f"the {what} was not complete within {self._security.timeout_s:g} s")

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
