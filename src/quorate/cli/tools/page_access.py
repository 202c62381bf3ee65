"""How a tool reads a page of a node's HTTP listener: in plaintext or over TLS, with or without a user."""

from __future__ import annotations

import http.client
import socket
from base64 import b64encode
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.client.config import client_security
from quorate.client.connection import ClientSecurity
from quorate.config.properties_file import read_settings

_USER: Final = "quorate.metrics.user"
_PASSWORD: Final = "quorate.metrics.password"  # noqa: S105 - the name of a key
_TIMEOUT_S: Final = 5


class PageAccessError(QuorateError):
    """A page cannot be read. The message names the node and what to check."""


class PageAnswer(NamedTuple):
    """What a node answered."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class PageAccess:
    """What the HTTP listeners ask for."""

    security: ClientSecurity = field(default_factory=ClientSecurity)
    """TLS; a login has no meaning here."""
    authorization: str | None = field(default=None, repr=False)
    """The header with user and password."""

    def get(self, address: Address, path: str) -> PageAnswer:
        """The answer to a request. Raises PageAccessError where there is none, or 401."""
        client = http.client.HTTPConnection(*address, timeout=_TIMEOUT_S)
        try:
            client.connect()
            self._secure(client, address)
            headers = {} if self.authorization is None else {"Authorization": self.authorization}
            client.request("GET", path, headers=headers)
            answer = client.getresponse()
            found = PageAnswer(answer.status, answer.read())
        except (OSError, http.client.HTTPException) as error:
            why = self._why(error, client) or type(error).__name__
            raise PageAccessError(f"{address} does not answer: {why}") from None
        finally:
            client.close()
        if found.status == http.HTTPStatus.UNAUTHORIZED:
            hint = f"set {_USER} and {_PASSWORD} in --command-config"
            given = "refuses the user or the password" if self.authorization else "asks for a user"
            raise PageAccessError(f"{address} {given}: {hint}")
        return found

    def _secure(self, client: http.client.HTTPConnection, address: Address) -> None:
        if self.security.tls is not None:
            stream = self.security.tls.wrap_socket(
                client.sock, server_hostname=address.host, do_handshake_on_connect=False
            )
            client.sock = stream
            stream.do_handshake()

    def _why(self, error: Exception, client: http.client.HTTPConnection) -> str:
        sock: socket.socket | None = client.sock
        if self.security.tls is not None and not isinstance(error, TimeoutError):
            from ssl import SSLSocket

            if isinstance(sock, SSLSocket):
                return self.security.explain(error, sock)
        if isinstance(error, http.client.HTTPException | ConnectionResetError):
            return (
                f"{error} (is it a listener of HTTPS? Then set security.protocol=SSL in "
                "--command-config)"
            )
        return str(getattr(error, "strerror", None) or error)


def page_access(file: str | None) -> PageAccess:
    """The access by the keys of a client's properties file. Raises ConfigError."""
    if file is None:
        return PageAccess()
    settings = read_settings(file)
    user, password = settings.text(_USER), settings.text(_PASSWORD)
    if bool(user) != bool(password):
        settings.refuse(_USER, f"{_USER} and {_PASSWORD} need each other")
    header = None
    if user:
        header = "Basic " + b64encode(f"{user}:{password}".encode()).decode("ascii")
    security = client_security(settings) or ClientSecurity()
    return PageAccess(ClientSecurity(security.tls, security.explain, security.is_refusal), header)
