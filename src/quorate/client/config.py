"""How a tool reaches a cluster: its bootstrap list and a file of Kafka's client properties."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.client.admin import ClientConfig
from quorate.node.host_port import parse_host_port

if TYPE_CHECKING:
    from quorate.node.settings import Settings

CONTROLLERS: Final = "bootstrap.controllers"
SERVERS: Final = "bootstrap.servers"


class BootstrapError(QuorateError):
    """A bootstrap list that cannot be used."""


def client_config(
    settings: Settings | None, servers: str | None = None, controllers: str | None = None
) -> ClientConfig:
    """The configuration from `host:port,...` of brokers or of controllers, and the file's keys.

    Exactly one of the two lists is given. Raises BootstrapError or ConfigError.
    """
    if controllers is None:
        config = ClientConfig(_addresses(SERVERS, servers or ""), controllers=False)
    else:
        config = ClientConfig(_addresses(CONTROLLERS, controllers), controllers=True)
    return config if settings is None else _with_settings(config, settings)


def _addresses(name: str, text: str) -> tuple[Address, ...]:
    found = []
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        address = parse_host_port(entry)
        if address is None:
            raise BootstrapError(f"Invalid url in {name}: {entry} (it must be host:port)")
        found.append(address if address.host else address._replace(host="localhost"))
    if not found:
        raise BootstrapError(f"No resolvable bootstrap urls given in {name}")
    return tuple(found)


def _with_settings(config: ClientConfig, settings: Settings) -> ClientConfig:
    # Here, for most calls of a tool have no file, and all are to start at once.
    from quorate.client.keys import check_client_keys

    check_client_keys(settings)
    protocol = settings.text("security.protocol") or "PLAINTEXT"
    if protocol.upper() != "PLAINTEXT":
        settings.invalid("security.protocol", protocol, "quorate's tools speak PLAINTEXT only")

    def ms(key: str, default: int) -> int:
        value = settings.integer(key, default, at_least=0)
        return default if value is None else value

    return config._replace(
        client_id=settings.text("client.id") or config.client_id,
        default_api_timeout_ms=ms("default.api.timeout.ms", config.default_api_timeout_ms),
        request_timeout_ms=ms("request.timeout.ms", config.request_timeout_ms),
        retry_backoff_ms=ms("retry.backoff.ms", config.retry_backoff_ms),
        connect_timeout_ms=ms("socket.connection.setup.timeout.ms", config.connect_timeout_ms),
    )
