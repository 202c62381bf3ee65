"""The keys `delegation.token.*` of the node's configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from quorate.security.principal import ANONYMOUS

PLAINTEXT: Final = "PLAINTEXT"
SSL: Final = "SSL"


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """Times are in ms."""

    secret_key: str | None = field(default=None, repr=False)
    """`delegation.token.secret.key`; None: there are no tokens."""
    max_lifetime_ms: int = 7 * 24 * 60 * 60 * 1000
    """`delegation.token.max.lifetime.ms`"""
    expiry_time_ms: int = 24 * 60 * 60 * 1000
    """`delegation.token.expiry.time.ms`: how long a token lives without being renewed."""
    check_interval_ms: int = 60 * 60 * 1000
    """`delegation.token.expiry.check.interval.ms`"""


NO_TOKENS: Final = TokenConfig()


def may_ask_for_tokens(
    principal: str, *, token_authenticated: bool, is_forwarded: bool, protocol: str
) -> bool:
    """Whether tokens may be asked for on a connection (`ControllerApis.allowTokenRequests`).

    A token must not make another token. A connection without authentication gets none; what a broker
    forwards, the broker has checked by its own listener.
    """
    if token_authenticated:
        return False
    if is_forwarded:
        return True
    return protocol != PLAINTEXT and not (protocol == SSL and principal == ANONYMOUS)
