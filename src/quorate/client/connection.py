"""A blocking connection to one node, for command line tools.

Blocking sockets start faster than asyncio, and a tool has one request outstanding at a time.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar, cast

from quorate import __version__
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.errors import (
    ClientError,
    ClosedAtFirstRequestError,
    ConnectError,
    HandshakeTimeoutError,
    InvalidValueError,
    LoginError,
    NoResponseError,
    RequestNotSentError,
    ResponseTimeoutError,
    TlsRefusedError,
    UnsupportedVersionError,
)
from quorate.wire.errors import EncodeError, TlsBytesError, UnsupportedFieldError, WireError
from quorate.wire.frame import FrameReader
from quorate.wire.header import decode_response, encode_request
from quorate.wire.messages.cluster import ApiVersionsRequest, ApiVersionsResponse
from quorate.wire.registry import API_VERSIONS, api
from quorate.wire.schema import Message

if TYPE_CHECKING:
    import ssl

    from quorate.security.sasl.login import Login

_CHUNK: Final = 65536
_NOTHING_YET: Final = (2, 3)
"""ssl.SSL_ERROR_WANT_READ and _WRITE. A socket's errno is neither; a tool starts faster without ssl."""
_PLAINTEXT_HINT: Final = (
    " (before its first response: is it a TLS listener, or not Kafka at all? security.protocol of "
    "--command-config is PLAINTEXT or SASL_PLAINTEXT)"
)
_SASL_HINT: Final = " (is it a SASL listener? Then set security.protocol in --command-config)"
M = TypeVar("M", bound=Message)
Decode = Callable[[bytes, int, int], tuple[int, Message]]
"""From a frame, an API key and a version: the correlation id and the response."""


class Explain(Protocol):
    """Says in one line why TLS failed on this socket."""

    def __call__(self, error: Exception, stream: ssl.SSLSocket | None = None) -> str: ...


def _text(error: Exception, stream: ssl.SSLSocket | None = None) -> str:
    return str(error)


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """What a connection needs before its first request."""

    tls: ssl.SSLContext | None = None
    explain: Explain = _text
    is_refusal: Callable[[Exception], bool] = lambda error: False
    """Whether TLS failed for a reason that another attempt meets again."""
    login: Login | None = None
    """Begins the SASL exchange; None: the listener has none."""
    user: str | None = None
    """Who logs in, where the configuration says it."""
    subject: str | None = None
    """The subject of the certificate of this side; None: it has none."""


def principal_of(security: ClientSecurity | None) -> tuple[str, str]:
    """The principal as its node names it, "" where only the node knows; and a note about it."""
    if security is None or (security.login is None and security.subject is None):
        return "User:ANONYMOUS", " (this side showed no certificate and no login)"
    if security.login is not None:
        return f"User:{security.user}" if security.user else "", ""
    return f"User:{security.subject}", " (ssl.principal.mapping.rules there may shorten the name)"


class SentRequest(NamedTuple):
    """A request that waits for its response."""

    key: int
    version: int
    correlation: int
    deadline: float
    """When it is given up (monotonic, s)."""
    timeout_ms: int


class ConnectAttempt:
    """A connection that is being made, which another thread may give up."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._is_aborted = False

    def take(self, made: socket.socket) -> None:
        """Go on with this socket. Raises OSError where the attempt was given up."""
        self._socket = made
        if self._is_aborted:
            raise ConnectionAbortedError(errno.ECONNABORTED, "the call was cancelled")

    def abort(self) -> None:
        """End the attempt: what waits for the node fails."""
        self._is_aborted = True
        if self._socket is not None:
            with suppress(OSError):  # it is broken already
                self._socket.shutdown(socket.SHUT_RDWR)


class Connection:
    """Sends one request at a time. Close it, or use it as a context manager."""

    def __init__(
        self,
        address: Address,
        client_id: str,
        timeout_ms: int,
        security: ClientSecurity | None = None,
        attempt: ConnectAttempt | None = None,
    ) -> None:
        """Connect, exchange ApiVersions and log in; all of it takes up to `timeout_ms`.

        `security`: what comes before requests; None for PLAINTEXT. `attempt` can end it earlier.
        Raises ConnectError, LoginError (TlsRefusedError too), or NoResponseError when the peer does not
        speak Kafka's protocol.
        """
        self._login = None if security is None else security.login
        self._security = None if security is None or security.tls is None else security
        self._log_in_at: float | None = None
        """When to log in again (monotonic, s)."""
        self.address = address
        self._client_id = client_id
        self._correlation = 0
        self._reader = FrameReader()
        self._is_aborted = False
        self.is_usable = True
        """It was neither closed nor aborted."""
        self._ready_by: float | None = time.monotonic() + timeout_ms / 1000
        """When the connection must be made (monotonic, s); None: it is."""
        attempt = attempt or ConnectAttempt()
        try:
            self._socket = socket.create_connection(address, timeout_ms / 1000)
        except (OSError, UnicodeError) as error:  # UnicodeError: a response named an invalid host
            why = getattr(error, "strerror", None) or error
            raise ConnectError(f"Cannot connect to {address}: {why}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with self._named_failures(timeout_ms):
                attempt.take(self._socket)
            if security is not None:
                self._secure(security, timeout_ms)
                with self._named_failures(timeout_ms):
                    attempt.take(self._socket)
            self.features = self._negotiate(timeout_ms)
        except BaseException:
            self.close()
            raise
        self._versions = {
            entry.api_key: (entry.min_version, entry.max_version)
            for entry in self.features.api_keys
        }
        if self._login is not None:
            try:
                self._log_in(timeout_ms)
            except BaseException:
                self.close()
                raise
        self._ready_by = None

    def _left_s(self, timeout_ms: int) -> float:
        """The time of one step in s: until the connection is made, what is left of the whole."""
        if self._ready_by is None:
            return max(timeout_ms, 1) / 1000
        return max(self._ready_by - time.monotonic(), 0.001)

    def _secure(self, security: ClientSecurity, timeout_ms: int) -> None:
        """Do the TLS handshake. Raises ConnectError or TlsRefusedError: the node got no request."""
        if security.tls is None:
            return
        stream = None
        try:
            self._socket = stream = security.tls.wrap_socket(
                self._socket,
                server_hostname=self.address.host,
                do_handshake_on_connect=False,
            )
            stream.settimeout(self._left_s(timeout_ms))
            stream.do_handshake()
        except TimeoutError:
            why = f"it did not complete the TLS handshake within {timeout_ms} ms"
            raise HandshakeTimeoutError(f"Cannot connect to {self.address}: {why}") from None
        except (OSError, ValueError) as error:
            kind = TlsRefusedError if security.is_refusal(error) else ConnectError
            why = security.explain(error, stream)
            raise kind(f"Cannot connect to {self.address}: {why}") from None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; may be called again. An aborted connection waits for `release`."""
        self.is_usable = False
        if not self._is_aborted:
            self._socket.close()

    def release(self) -> None:
        """Close the socket of an aborted connection, once no thread uses it."""
        self._socket.close()

    def abort(self) -> None:
        """Break the connection from another thread: a call that waits ends with NoResponseError.

        The socket stays open. Closed, its number would be that of the next connection. A thread that
        is about to wait for this one would wait for the bytes of that.
        """
        self._is_aborted = True
        self.is_usable = False
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # it is broken already

    def call(self, request: Message, answer: type[M], timeout_ms: int, at_least: int = 0) -> M:
        """Send the request in the newest common version and return the response.

        `timeout_ms` limits the whole exchange. `at_least` is the lowest version that has the needed
        fields. Raises NoResponseError or UnsupportedVersionError.
        """
        return self.receive(self.send(request, timeout_ms, at_least), answer)

    def send(self, request: Message, timeout_ms: int, at_least: int = 0) -> SentRequest:
        """The first half of `call`: what `receive` needs. Raises as `call` does.

        Raises RequestNotSentError where the node has closed the connection before.
        """
        key = type(request).schema.key
        assert key is not None, "only requests have an api key"
        version = self._version(key, at_least)
        self._check_open()
        if self._log_in_at is not None and time.monotonic() >= self._log_in_at:
            self._log_in(timeout_ms)
        return self._send(request, key, version, timeout_ms)

    def _check_open(self) -> None:
        """Raise RequestNotSentError if the node has closed the connection while it was idle.

        Nodes do so with connections that are idle for long (`connections.max.idle.ms`), and when they
        end. A request sent then has no response, and whether it was applied would be unknown.
        """
        try:
            self._socket.settimeout(0)
            if self._socket.recv(1):
                why = "the node sent bytes that no request asked for"
            else:
                why = "the node closed it"
        except OSError as error:
            # Also ssl.SSLWantReadError: a TLS session ticket came, or nothing.
            if isinstance(error, BlockingIOError) or error.errno in _NOTHING_YET:
                return
            why = str(error.strerror or error)
        raise RequestNotSentError(
            f"The connection to {self.address} was closed before the request: {why}"
        )

    def receive(self, sent: SentRequest, answer: type[M], decode: Decode = decode_response) -> M:
        """The second half of `call`. Raises as `call` does."""
        with self._named_failures(sent.timeout_ms):
            frame = self._read_frame(sent.deadline)
            correlation, message = decode(frame, sent.key, sent.version)
        if correlation != sent.correlation or not isinstance(message, answer):
            raise NoResponseError(f"{self.address} sent the response to another request")
        return message

    def serves(self, key: int) -> bool:
        """Whether the node serves the API `key` in any version."""
        return key in self._versions

    def supports(self, key: int, version: int) -> bool:
        """Whether the node supports this version of the API `key`."""
        low, high = self._versions.get(key, (0, -1))
        return low <= version <= high

    def _version(self, key: int, at_least: int) -> int:
        own = api(key)
        low, high = self._versions.get(key, (0, -1))
        version = min(high, own.max_version)
        if version < max(low, own.min_version, at_least):
            raise UnsupportedVersionError(
                f"{self.address} does not support {own.name}"
                + (f" in version {at_least} or later" if at_least and high >= 0 else "")
            )
        return version

    def _negotiate(self, timeout_ms: int) -> ApiVersionsResponse:
        """Exchange ApiVersions; a node that rejects the newest version names its own (KIP-511)."""
        request = ApiVersionsRequest(
            client_software_name="quorate", client_software_version=__version__
        )
        version = api(API_VERSIONS).max_version
        while True:
            found = self._exchange(request, ApiVersionsResponse, API_VERSIONS, version, timeout_ms)
            if found.error_code == ErrorCode.NONE:
                return found
            if found.error_code != ErrorCode.UNSUPPORTED_VERSION or version == 0:
                break
            named = (one.max_version for one in found.api_keys if one.api_key == API_VERSIONS)
            version = max(min(next(named, 0), version - 1), 0)
        code = ErrorCode.of(found.error_code)
        raise NoResponseError(f"{self.address} refused ApiVersions: {code.name}")

    def _log_in(self, timeout_ms: int) -> None:
        """Log in, or again before the session ends (KIP-368). Raises ClientError."""
        from quorate.security.sasl.mechanism import SaslError

        assert self._login is not None
        exchange = self._login()
        message: Message | None = exchange.start()
        try:
            while message is not None:
                key = type(message).schema.key
                assert key is not None, "only requests have an api key"
                answer = api(key).response
                version = self._version(key, 0)
                message = exchange.take(self._exchange(message, answer, key, version, timeout_ms))
        except SaslError as error:
            raise LoginError(f"Cannot log in at {self.address}: {error}") from None
        lifetime_s = exchange.lifetime_ms / 1000
        self._log_in_at = time.monotonic() + 0.85 * lifetime_s if lifetime_s else None

    def _exchange(
        self, request: Message, answer: type[M], key: int, version: int, timeout_ms: int
    ) -> M:
        return self.receive(self._send(request, key, version, timeout_ms), answer)

    def _send(self, request: Message, key: int, version: int, timeout_ms: int) -> SentRequest:
        self._correlation += 1
        left_s = self._left_s(timeout_ms)
        sent = SentRequest(key, version, self._correlation, time.monotonic() + left_s, timeout_ms)
        try:
            frame = encode_request(request, version, sent.correlation, self._client_id)
        except UnsupportedFieldError as error:
            raise UnsupportedVersionError(f"{self.address} has no place for it: {error}") from None
        except EncodeError as error:
            raise InvalidValueError(str(error)) from None
        with self._named_failures(timeout_ms):
            self._socket.settimeout(left_s)
            self._socket.sendall(frame)
        return sent

    @contextmanager
    def _named_failures(self, timeout_ms: int) -> Iterator[None]:
        """Raise NoResponseError for each way in which an exchange fails."""
        try:
            yield
        except TimeoutError:
            raise ResponseTimeoutError(
                f"{self.address} did not answer within {timeout_ms} ms"
            ) from None
        except OSError as error:
            raise self._broken(error) from None
        except TlsBytesError:
            protocol = "SSL or SASL_SSL" if self._login is None else "SASL_SSL"
            raise TlsRefusedError(
                f"Cannot connect to {self.address}: the node expects TLS, and this side speaks "
                f"plaintext: set security.protocol={protocol} in --command-config"
            ) from None
        except WireError as error:
            raise NoResponseError(
                f"{self.address} sent an invalid response: {error}{self._hint()}"
            ) from None

    def _broken(self, error: OSError) -> ClientError:
        """Return the error of a broken connection.

        With TLS 1.3 a node refuses the client's certificate only after the client's handshake.

        Its alert is read even where the node has closed the connection before the request was sent.
        """
        security = self._security
        if security is not None and self._correlation <= 1:
            if isinstance(error, ConnectionError):
                error = self._alert() or error
            if security.is_refusal(error):
                stream = cast("ssl.SSLSocket", self._socket)
                why = security.explain(error, stream)
                return TlsRefusedError(f"Cannot connect to {self.address}: {why}")
        why = str(error.strerror or error)
        hint = self._hint()
        kind = ClosedAtFirstRequestError if hint == _SASL_HINT else NoResponseError
        return kind(f"The connection to {self.address} broke: {why}{hint}")

    def _alert(self) -> OSError | None:
        """What the socket still has to say after a failed write."""
        try:
            self._socket.settimeout(0)
            self._socket.recv(_CHUNK)
        except OSError as error:
            return error
        return None

    def _hint(self) -> str:
        """A likely cause of a failure before the first response."""
        if self._correlation <= 1:
            return _PLAINTEXT_HINT if self._security is None else ""
        return _SASL_HINT if self._correlation == 2 and self._login is None else ""

    def _read_frame(self, deadline: float) -> bytes:
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining)
            data = self._socket.recv(_CHUNK)
            if not data:
                raise ConnectionError("the node closed it")
            frames = self._reader.feed(data)
            if frames:
                return frames[0]
