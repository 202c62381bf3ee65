"""Who may read the pages of the HTTP listener: TLS, client certificates, users with passwords."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from base64 import b64decode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from quorate.base.errors import QuorateError
from quorate.base.file_errors import why
from quorate.base.file_stamp import file_stamp
from quorate.config.monitoring_settings import CREDENTIALS_FILE, PagesSettings
from quorate.security.principal import ANONYMOUS
from quorate.security.tls.contexts import server_context
from quorate.security.tls.reload import ReloadingContext
from quorate.server.authentication import SecuredProtocol
from quorate.server.logs import LOG
from quorate.server.tls_transport import TlsTransport

_BASIC: Final = "basic "


class CredentialsError(QuorateError):
    """The file with credentials cannot be used. The message has no password."""


class PageSecurity:
    """What a connection needs, and what each request needs. Raises StoreError, CredentialsError."""

    def __init__(self, settings: PagesSettings | None = None) -> None:
        given = settings or PagesSettings()
        self.certificates: ReloadingContext | None = None
        """Of the listener; None: it is plaintext."""
        if given.tls is not None:
            self.certificates = ReloadingContext(given.tls, server_context)
        self._open_paths = frozenset(given.open_paths)
        self._users = None if given.credentials is None else _Users(given.credentials)

    @property
    def is_secured(self) -> bool:
        """Whether it may refuse a connection or a request."""
        return self.certificates is not None or self._users is not None

    @property
    def wrap(self) -> Callable[[SecuredProtocol], asyncio.Protocol] | None:
        """Puts TLS below the protocol of one connection; None: plaintext."""
        certificates = self.certificates
        if certificates is None:
            return None
        return lambda upper: TlsTransport(upper, certificates.context, lambda _: ANONYMOUS)

    def refusal(self, path: str, headers: Mapping[str, str]) -> str | None:
        """Why the request is refused, without what it sent; None: it is allowed."""
        if self._users is None or path in self._open_paths:
            return None
        given = headers.get("authorization")
        if given is None:
            return "no user and password"
        if not given.lower().startswith(_BASIC):
            return "not Basic authentication"
        try:
            text = b64decode(given[len(_BASIC) :], validate=True).decode()
        except ValueError:  # not ASCII, not base64, not UTF-8
            return "an invalid Authorization header"
        user, colon, password = text.partition(":")
        if not colon:
            return "an invalid Authorization header"
        return None if self._users.knows(user, password) else "an unknown user or a wrong password"


class _Users:
    """The lines `user:password` of a file, read again when it changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = file_stamp(self._path)
        self._known = self._read()

    def knows(self, user: str, password: str) -> bool:
        """Whether the file has this user with this password; takes as long for every user."""
        stamp = file_stamp(self._path)
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._known = self._read()
                LOG.info("Read the changed users of %s", CREDENTIALS_FILE)
            except CredentialsError as error:
                LOG.error("%s; the old users stay", error)
        expected = self._known.get(user, b"")
        return hmac.compare_digest(_digest(password), expected)

    def _read(self) -> Mapping[str, bytes]:
        try:
            lines = self._path.read_text("utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise self._error(why(error)) from None
        known = {}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            user, colon, password = line.partition(":")
            if not colon or not user or not password:
                raise self._error(f"line {number} is not user:password")
            if user in known:
                raise self._error(f"line {number} names a user again")
            known[user] = _digest(password)
        if not known:
            raise self._error("it has no line user:password")
        return known

    def _error(self, why: str) -> CredentialsError:
        return CredentialsError(f"{CREDENTIALS_FILE}={self._path}: {why}")


def _digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()
