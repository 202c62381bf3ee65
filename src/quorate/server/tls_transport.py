"""TLS between a socket and a protocol: a transport that encrypts, with the reasons of failures.

asyncio's own TLS reports a failed handshake to nobody, and admits a connection only after it. Here the
protocol above exists from the first byte on: the limits of a listener hold during the handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

from quorate.base.errors import QuorateError
from quorate.security.tls.explain import explain
from quorate.server.authentication import SecuredProtocol
from quorate.wire.errors import TlsBytesError

_HANDSHAKE: Final = 0x16
"""The first byte of a TLS handshake."""
_OWN_CLIENT: Final = b"quorate"
"""The name in ApiVersions of the clients here. They understand the alert that answers plaintext. A client
of Java takes it for the size of a response, and allocates 336 MiB (KAFKA-4090)."""
_MAX_HANDSHAKE_BYTES: Final = 524_288
_RECORD: Final = 16_384
"""The most bytes of a TLS record, and so of a read: a larger buffer costs time for nothing."""
_PLAINTEXT: Final = (
    "it sent plaintext, but this is a TLS listener: set security.protocol there, or the listener's "
    "protocol in listener.security.protocol.map here"
)


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """The lower protocol of a socket, and the transport of the protocol above.

    `principal_of` maps the other side's certificate (DER, None without one) to a principal.
    """

    def __init__(
        self,
        upper: SecuredProtocol,
        context: ssl.SSLContext,
        principal_of: Callable[[bytes | None], str],
        *,
        server_hostname: str | None = None,
    ) -> None:
        super().__init__()
        self._upper = upper
        self._principal_of = principal_of
        self._is_server = server_hostname is None
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._in, self._out, server_side=self._is_server, server_hostname=server_hostname
        )
        self._lower: asyncio.Transport | None = None
        self._is_secured = False
        self._is_broken = False
        self._is_paused = False
        self._early = b""
        """What arrived before the handshake may begin: a transport may read once after its pause."""
        self._handshake_bytes = 0

    # -- the lower side: asyncio.Protocol -------------------------------------------------------
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._lower = cast(asyncio.Transport, transport)
        self._upper.connection_made(self)
        if not self._is_server:
            self._shake_hands()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_secured and not self._is_broken:
            if not self._is_server:
                self._break(explain(error or ConnectionResetError(), self._tls))
            elif self._handshake_bytes:
                self._break("the connection was closed during the TLS handshake")
        self._upper.connection_lost(error)

    def pause_writing(self) -> None:
        self._upper.pause_writing()

    def resume_writing(self) -> None:
        self._upper.resume_writing()

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        if self._is_broken:
            return
        if not self._is_secured:
            if self._is_paused:
                self._early += data
                self.pause_reading()
                return
            if self._is_server and not self._handshake_bytes and data[0] != _HANDSHAKE:
                if _OWN_CLIENT in data and self._lower is not None:
                    self._lower.write(TlsBytesError.answer)
                self._break(_PLAINTEXT)
                return
            self._handshake_bytes += len(data)
            if self._handshake_bytes > _MAX_HANDSHAKE_BYTES:
                self._break(f"the TLS handshake is over {_MAX_HANDSHAKE_BYTES} bytes")
                return
        self._in.write(data)
        if self._is_secured or (self._shake_hands() and self._in.pending):
            self._read()

    def _shake_hands(self) -> bool:
        """Go on with the handshake; whether it is complete."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except (ssl.SSLError, ValueError) as error:
            self._flush()
            self._break(explain(error, self._tls))
            return False
        self._is_secured = True
        try:
            principal = self._principal_of(self._tls.getpeercert(binary_form=True))
        except (QuorateError, ValueError) as error:
            self._flush()
            self._break(f"the name in its certificate: {error}")
            return False
        self._upper.secured(principal)
        # One write less: the end of a client's handshake leaves with its first request, and the session
        # tickets of TLS 1.3 with the first answer.
        if not self._is_server or self._tls.version() != "TLSv1.3":
            self._flush()
        return True

    def _read(self) -> None:
        while not self._is_broken:
            try:
                data = self._tls.read(_RECORD)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                self.close()
                break
            except ssl.SSLError as error:
                self._flush()
                self._break(explain(error, self._tls))
                return
            if not data:
                self.close()
                break
            self._upper.data_received(data)
            if not (self._in.pending or self._tls.pending()):
                break  # another read would only raise SSLWantReadError, which is slow
        self._flush()

    def _break(self, reason: str) -> None:
        self._is_broken = True
        self._upper.insecure(reason)

    def _flush(self) -> None:
        lower = self._lower
        if self._out.pending and lower is not None and not lower.is_closing():
            lower.write(self._out.read())

    # -- the upper side: asyncio.Transport ------------------------------------------------------
    def write(self, data: Any) -> None:
        if self._is_broken or not self._is_secured:
            return
        try:
            self._tls.write(data)
        except ssl.SSLError as error:
            self._break(explain(error, self._tls))
            return
        self._flush()

    def close(self) -> None:
        lower = self._lower
        if lower is None or lower.is_closing():
            return
        if self._is_secured and not self._is_broken:
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()  # writes the notice; the answer of the other side is not awaited
            self._flush()
        lower.close()

    def abort(self) -> None:
        """Close at once, but let the alert of a failed handshake leave first."""
        if self._lower is not None:
            if self._is_broken and not self._lower.get_write_buffer_size():
                self._lower.close()
            else:
                self._lower.abort()

    def is_closing(self) -> bool:
        return self._lower is None or self._lower.is_closing()

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._lower is not None:
            self._lower.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._lower is not None:
            self._lower.resume_reading()
        early, self._early = self._early, b""
        if early:
            self.data_received(early)

    def get_write_buffer_size(self) -> int:
        return 0 if self._lower is None else self._lower.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default if self._lower is None else self._lower.get_extra_info(name, default)
