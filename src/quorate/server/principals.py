"""The operator's function that names the principals of connections (`quorate.principal.builder`)."""

from __future__ import annotations

from collections.abc import Callable

from quorate.config.node_config import PRINCIPAL_FUNCTION, NodeConfig
from quorate.security.principal import AuthenticatedClient, PrincipalError
from quorate.server.authentication import ConnectionInfo
from quorate.server.logs import LOG
from quorate.server.policies import load_function


def principal_builder(config: NodeConfig) -> Callable[[ConnectionInfo, str], str] | None:
    """What names the principal of a connection, given the one of Kafka's default builder.

    None without such a function. Raises ConfigError for one that cannot be loaded. What it returns
    raises PrincipalError when the function fails or returns no `type:name`.
    """
    function = load_function(config, PRINCIPAL_FUNCTION, config.principal_function)
    if function is None:
        return None

    def build(connection: ConnectionInfo, principal: str) -> str:
        protocol = config.security_protocols[connection.listener]
        client = AuthenticatedClient(connection.listener, protocol, connection.host, principal)
        try:
            found = function(client)
        except Exception as error:  # the function is the operator's, so anything may come
            LOG.exception("%s failed for %s", PRINCIPAL_FUNCTION, client)
            raise PrincipalError(f"{PRINCIPAL_FUNCTION} failed: {type(error).__name__}") from error
        if not isinstance(found, str) or ":" not in found:
            raise PrincipalError(f"{PRINCIPAL_FUNCTION} returned {found!r}, not a text type:name")
        return found

    return build
