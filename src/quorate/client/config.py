"""How a tool reaches a cluster: its bootstrap list and a file of Kafka's client properties."""

from __future__ import annotations

from typing import Final

from quorate.client.admin import ClientConfig
from quorate.node.addresses import parse_host_port
from quorate.node.settings import ConfigError, Settings

CONTROLLERS: Final = "bootstrap.controllers"
SERVERS: Final = "bootstrap.servers"
_DEFAULTS: Final = ClientConfig(bootstrap=(), controllers=True)


def client_config(
    settings: Settings, servers: str | None = None, controllers: str | None = None
) -> ClientConfig:
    """The configuration from `host:port,...` of brokers or of controllers, and the file's keys.

    Exactly one of the two lists is given. Raises ConfigError.
    """
    name = SERVERS if controllers is None else CONTROLLERS
    text = servers if controllers is None else controllers
    addresses = []
    for entry in (text or "").split(","):
        if not entry.strip():
            continue
        address = parse_host_port(entry.strip())
        if address is None or not address.host:
            raise ConfigError(f"Invalid url in {name}: {entry}; it must be host:port", key=name)
        addresses.append(address)
    if not addresses:
        raise ConfigError(f"No resolvable bootstrap urls given in {name}", key=name)
    protocol = settings.text("security.protocol") or "PLAINTEXT"
    if protocol.upper() != "PLAINTEXT":
        settings.invalid("security.protocol", protocol, "quorate's tools speak PLAINTEXT only")
    return ClientConfig(
        bootstrap=tuple(addresses),
        controllers=controllers is not None,
        client_id=settings.text("client.id") or _DEFAULTS.client_id,
        default_api_timeout_ms=_ms(settings, "default.api.timeout.ms"),
        request_timeout_ms=_ms(settings, "request.timeout.ms"),
        retry_backoff_ms=_ms(settings, "retry.backoff.ms"),
        connect_timeout_ms=_ms(
            settings, "socket.connection.setup.timeout.ms", _DEFAULTS.connect_timeout_ms
        ),
    )


def _ms(settings: Settings, key: str, default: int | None = None) -> int:
    if default is None:
        default = getattr(_DEFAULTS, key.replace(".", "_"))
    value = settings.integer(key, default, at_least=0)
    assert value is not None
    return value
