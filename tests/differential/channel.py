"""Who asks a controller, and the connection that a request goes through."""

from __future__ import annotations

import socket
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from interop.process import HOST
from quorate.security.sasl.client import SaslClient
from quorate.security.sasl.mechanism import ClientMechanism
from quorate.security.sasl.plain import PlainClient
from quorate.security.sasl.scram import ScramClient
from quorate.wire.codec import encode
from quorate.wire.frame import FrameReader
from quorate.wire.header import decode_response, encode_request
from quorate.wire.messages import DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse
from quorate.wire.schema import Message

CLIENT: Final = "differential"
PASSWORD: Final = "password"
LISTENER: Final = "LOGIN"
"""The second listener of both controllers: its clients log in with SASL."""
LOGINS: Final = ("admin", "alice", "bob", "carol")
"""The users that can log in with a password."""
TOKEN_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_TIMEOUT_S: Final = 30.0
_LENGTH_BYTES: Final = 4
_VERSIONS: Final = {17: 1, 36: 2}
"""Of SaslHandshake and SaslAuthenticate."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and how: without a login, in an Envelope, with a password or with a delegation token."""

    principal: str | None = None
    """Of the client, in an Envelope."""
    by_token: bool = False
    """The Envelope says that a delegation token authenticated the client."""
    user: str | None = None
    """Logs in with PLAIN."""
    token: int | None = None
    """Logs in with the delegation token of this number, counted from the first that was created."""


DIRECT: Final = Asker()


def keys() -> dict[str, str]:
    """Of the configuration of both controllers: a listener where clients log in."""
    module = "org.apache.kafka.common.security"
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in LOGINS)
    prefix = f"listener.name.{LISTENER.lower()}"
    return {
        "controller.listener.names": f"CONTROLLER,{LISTENER}",
        "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{LISTENER}:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(("PLAIN", *TOKEN_MECHANISMS)),
        f"{prefix}.plain.sasl.jaas.config": f"{module}.plain.PlainLoginModule required {users};",
        **{
            f"{prefix}.{name.lower()}.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;"
            for name in TOKEN_MECHANISMS
        },
    }


class Channel:
    """One connection. Raises OSError when it ends, SaslError when the login is refused."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), _TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0

    def ask(self, message: Message, version: int, client: str = CLIENT) -> Message:
        return self._call(self._frame(message, version, client), message, version)

    def forward(self, message: Message, version: int, asker: Asker, client: str) -> Message:
        """The response to a request in an Envelope; the EnvelopeResponse where that has an error."""
        assert asker.principal is not None
        kind, _, who = asker.principal.partition(":")
        named = DefaultPrincipalData(type=kind, name=who, token_authenticated=asker.by_token)
        envelope = EnvelopeRequest(
            request_data=self._frame(message, version, client)[_LENGTH_BYTES:],
            request_principal=bytes(2) + encode(named, 0),
            client_host_address=bytes((127, 0, 0, 1)),
        )
        answer = self._call(self._frame(envelope, 0, CLIENT), envelope, 0)
        assert isinstance(answer, EnvelopeResponse)
        if answer.error_code or answer.response_data is None:
            return answer
        return decode_response(answer.response_data, _key(message), version)[1]

    def log_in_with_password(self, user: str) -> None:
        self._log_in(PlainClient(user, PASSWORD))

    def log_in_with_token(self, mechanism: str, token_id: str, secret: bytes) -> None:
        self._log_in(ScramClient(mechanism, token_id, b64encode(secret).decode(), token=True))

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()

    def _log_in(self, mechanism: ClientMechanism) -> None:
        exchange = SaslClient(mechanism)
        message: Message | None = exchange.start()
        while message is not None:
            message = exchange.take(self.ask(message, _VERSIONS[_key(message)]))

    def _frame(self, message: Message, version: int, client: str) -> bytes:
        self._correlation += 1
        return encode_request(message, version, self._correlation, client)

    def _call(self, frame: bytes, message: Message, version: int) -> Message:
        self._socket.sendall(frame)
        reader = FrameReader()
        while True:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the controller closed the connection")
            if frames := reader.feed(data):
                return decode_response(frames[0], _key(message), version)[1]


def _key(message: Message) -> int:
    key = type(message).schema.key
    assert key is not None
    return key
