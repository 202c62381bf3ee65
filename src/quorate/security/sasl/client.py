"""The client's side of a connection's authentication (`SaslClientAuthenticator`). Pure."""

from __future__ import annotations

from quorate.base.errors import ErrorCode
from quorate.security.sasl.mechanism import ClientMechanism, SaslError
from quorate.wire.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from quorate.wire.schema import Message


class SaslClient:
    """One exchange: send `start`, then what `take` returns, until it returns None.

    SaslHandshake is sent in version 1 or later, so every token comes in SaslAuthenticate. `take` may
    take tens of milliseconds: SCRAM derives keys from the password.
    """

    def __init__(self, mechanism: ClientMechanism) -> None:
        self.lifetime_ms = 0
        """How long the session lasts, once complete; 0: it does not expire."""
        self._mechanism = mechanism

    def start(self) -> Message:
        return SaslHandshakeRequest(mechanism=self._mechanism.name)

    def take(self, response: Message) -> Message | None:
        """The next request; None when authenticated. Raises SaslError."""
        if isinstance(response, SaslHandshakeResponse):
            self._check_handshake(response)
            return SaslAuthenticateRequest(auth_bytes=self._mechanism.first())
        assert isinstance(response, SaslAuthenticateResponse)
        if response.error_code != ErrorCode.NONE:
            name = ErrorCode.of(response.error_code).name
            text = response.error_message or "no reason given"
            raise SaslError(
                f"the server refused the login ({name}: {text}); check user, password and mechanism "
                f"({self._mechanism.name}) in sasl.jaas.config here, and the server's credentials"
            )
        self.lifetime_ms = response.session_lifetime_ms
        token = self._mechanism.evaluate(bytes(response.auth_bytes))
        return None if token is None else SaslAuthenticateRequest(auth_bytes=token)

    def _check_handshake(self, response: SaslHandshakeResponse) -> None:
        if response.error_code == ErrorCode.NONE:
            return
        offered = ", ".join(response.mechanisms) or "none"
        name = ErrorCode.of(response.error_code).name
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise SaslError(
                f"the server does not offer the mechanism {self._mechanism.name} ({name}); it offers "
                f"{offered}: compare sasl.mechanism here with sasl.enabled.mechanisms there"
            )
        raise SaslError(
            f"the server refused the SASL handshake ({name}): is its listener a SASL listener? Compare "
            "security.protocol here with the listener's protocol there"
        )
