"""How a request to a node fails: what was sent, and whether another attempt can help."""

from __future__ import annotations

from quorate.base.errors import QuorateError


class ClientError(QuorateError):
    """A request failed."""


class ConnectError(ClientError):
    """No connection could be made: the node did not receive the request."""


class RequestNotSentError(ConnectError):
    """The connection was closed before the request was sent."""


class NoResponseError(ClientError):
    """The connection broke or timed out after sending: the node may have processed the request."""

    def __init__(self, message: str, note: str = "") -> None:
        """Keep `note`: what the request may have done."""
        super().__init__(message)
        self.note = note


class ClosedAtFirstRequestError(NoResponseError):
    """The node took ApiVersions, and closed the connection at the request after it."""


class SilentNodeError(ClientError):
    """The node accepted the connection and did not answer in time."""


class HandshakeTimeoutError(ConnectError, SilentNodeError):
    """The node did not complete the TLS handshake in time."""


class ResponseTimeoutError(NoResponseError, SilentNodeError):
    """The node did not answer a request in time."""


class UnsupportedVersionError(ClientError):
    """The node does not support the request, or no version that has all needed fields."""


class InvalidValueError(ClientError):
    """A value is not in the range of its field; nothing was sent."""


class LoginError(ClientError):
    """The node refused the login, or this side has no credential; another attempt fails too."""


class TlsRefusedError(LoginError):
    """This side or the node does not accept the other's certificate, version of TLS or ciphers."""
