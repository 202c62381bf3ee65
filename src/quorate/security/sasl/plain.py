"""PLAIN (RFC 4616). The server's users are the options `user_NAME` of its JAAS text."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from quorate.base.java_utf8 import java_text
from quorate.security.sasl.mechanism import shown_error

_USER: Final = "user_"


class PlainServer:
    """The server's side (`PlainSaslServer`)."""

    name = "PLAIN"

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the users. `options`: those of PlainLoginModule."""
        self.principal: str | None = None
        self.expires_at_ms: int | None = None
        self.by_token = False
        self._options = options

    def is_slow(self, response: bytes) -> bool:
        return False

    def evaluate(self, response: bytes) -> bytes:
        parts = java_text(response).split("\0", 3)
        if len(parts) != 3:
            raise shown_error(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            raise shown_error("Authentication failed: username not specified")
        if not password:
            raise shown_error("Authentication failed: password not specified")
        expected = self._options.get(_USER + user)
        # An unknown user costs the same comparison as a known one.
        matches = hmac.compare_digest(
            password.encode(), (password + "?" if expected is None else expected).encode()
        )
        if not matches or expected is None:
            raise shown_error("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise shown_error(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.principal = user
        return b""


class PlainClient:
    """The client's side."""

    name = "PLAIN"

    def __init__(self, user: str, password: str) -> None:
        self._user, self._password = user, password

    def first(self) -> bytes:
        return f"\0{self._user}\0{self._password}".encode()

    def evaluate(self, challenge: bytes) -> bytes | None:
        return None
