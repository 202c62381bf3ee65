"""A listener with TLS on a loop of its own, for tests of both sides of a handshake."""

from __future__ import annotations

import asyncio
import socket

from quorate.security.principal import SslPrincipalMapper
from quorate.security.tls.contexts import client_context, server_context
from quorate.security.tls.names import subject_of
from quorate.server.authentication import OPEN_LISTENER, ListenerSecurity
from quorate.server.limits import ConnectionLimits
from quorate.server.listener import Acceptor
from quorate.server.tls_transport import TlsTransport
from server.in_thread import InThread


class Listener(InThread):
    """A listener that answers every frame with the principal of its connection.

    values: the `ssl.*` keys; None for plaintext
    """

    def __init__(self, values, **keys):
        if values is None:
            self.security = OPEN_LISTENER
            return
        mapper = SslPrincipalMapper("RULE:^.*CN=([^,]+).*$/$1/,DEFAULT")

        def principal_of(certificate):
            if certificate is None:
                return "User:ANONYMOUS"
            return f"User:{mapper.name_of(subject_of(certificate))}"

        context = server_context(values)
        self.security = ListenerSecurity(
            wrap=lambda upper: TlsTransport(upper, context, principal_of), **keys
        )

    async def serve(self):
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.address = sock.getsockname()
        self.acceptor = Acceptor(loop, ConnectionLimits(), self.on_frame, lambda: True)
        await self.acceptor.listen("CONTROLLER", sock, self.security)
        await self.opened()
        self.acceptor.close()

    def on_frame(self, slot, frame):
        text = slot.connection.authentication.principal.encode() + frame
        slot.data = len(text).to_bytes(4, "big") + text
        slot.connection.flush()
        self.loop.call_soon(self.acceptor.resume_throttled)

    def ask(self, values, frame=b"", host="localhost"):
        with (
            socket.create_connection(self.address, 5) as raw,
            client_context(values).wrap_socket(raw, server_hostname=host) as tls,
        ):
            tls.sendall(len(frame).to_bytes(4, "big") + frame)
            size = int.from_bytes(tls.recv(4), "big")
            text = b""
            while len(text) < size:
                text += tls.recv(65536)
            return text
