"""What the state machines of both sides ask of a SASL mechanism."""

from __future__ import annotations

from typing import Final, Protocol

from quorate.base.errors import QuorateError

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""The supported mechanisms."""
GSSAPI_REFUSED: Final = (
    "GSSAPI (Kerberos), Kafka's default, is not supported: set it to one of "
    f"{', '.join(MECHANISMS)}"
)


class SaslError(QuorateError):
    """The authentication failed. The message is for the log of this side.

    `shown` is the text for the other side; None stands for the text that has no detail.
    """

    def __init__(self, reason: str, shown: str | None = None) -> None:
        super().__init__(reason)
        self.shown = shown


def shown_error(text: str) -> SaslError:
    """A failure whose text the other side may read."""
    return SaslError(text, text)


class ServerMechanism(Protocol):
    """The server's side of one exchange."""

    name: str
    principal: str | None
    """The authenticated user's name, once the exchange is complete."""
    expires_at_ms: int | None
    """When the credential expires, in ms since 1970; None: never, or not complete."""
    by_token: bool
    """Whether a delegation token authenticated the user."""

    def is_slow(self, response: bytes) -> bool:
        """Whether `evaluate` of it may take more than a fraction of a millisecond."""

    def evaluate(self, response: bytes) -> bytes:
        """The next challenge; raises SaslError."""


class ClientMechanism(Protocol):
    """The client's side of one exchange."""

    name: str

    def first(self) -> bytes:
        """The initial response. Raises SaslError when there is no credential."""

    def evaluate(self, challenge: bytes) -> bytes | None:
        """The next response; None when the exchange is complete. Raises SaslError.

        It may take tens of milliseconds.
        """
