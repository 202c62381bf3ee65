"""Client configuration of a tool: a bootstrap list and a file of Kafka's client properties.

The whole file is checked, even keys that the tools do not use: types, ranges, choices and messages are
those of `AdminClientConfig.configDef` of Kafka 4.3.1. So the first tool that reads a shared file finds
its mistakes. An interop test compares the table. Keys of TLS are checked where security.protocol=SSL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.base.ids import Address
from quorate.client.admin.pool import ClientConfig
from quorate.client.connection import ClientSecurity
from quorate.config.host_port import parse_host_port

if TYPE_CHECKING:
    from quorate.config.settings import Settings
    from quorate.security.sasl.login import Login

CONTROLLERS: Final = "bootstrap.controllers"
SERVERS: Final = "bootstrap.servers"
RANGES: Final = """\
BOOLEAN: enable.metrics.push
INT -1..: send.buffer.bytes receive.buffer.bytes
INT 0..: retries request.timeout.ms default.api.timeout.ms
INT 1..: metrics.num.samples
LONG 0..: metadata.max.age.ms reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms
    retry.backoff.max.ms metrics.sample.window.ms metadata.recovery.rebootstrap.trigger.ms
LONG ..: socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms
    connections.max.idle.ms
"""
"""Lines of `TYPE LOWEST..HIGHEST: KEYS`, as `value_ranges` reads them."""

CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "client.dns.lookup": ("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "metrics.recording.level": ("INFO", "DEBUG", "TRACE"),
}
_VOTER_ID: Final = re.compile(r"\d+@")
_RECOVERY: Final = ("REBOOTSTRAP", "NONE")


class BootstrapError(QuorateError):
    """An invalid bootstrap list."""


def client_config(
    settings: Settings | None, servers: str | None = None, controllers: str | None = None
) -> ClientConfig:
    """Build the configuration from a bootstrap list and the file's keys.

    `servers` (brokers) or `controllers` is given as `host:port,...`, and replaces both lists of the
    file (`CommandLineUtils.initializeBootstrapProperties`). Raises BootstrapError unless there is
    exactly one list, and ConfigError for an invalid file.
    """
    if servers is None and controllers is None and settings is not None:
        servers = settings.text(SERVERS) or None
        controllers = settings.text(CONTROLLERS) or None
    if servers is not None and controllers is not None:
        raise BootstrapError(f"You cannot set both {SERVERS} and {CONTROLLERS}")
    if controllers is not None:
        config = ClientConfig(_addresses(CONTROLLERS, controllers), controllers=True)
    elif servers is not None:
        config = ClientConfig(_addresses(SERVERS, servers), controllers=False)
    else:
        raise BootstrapError(f"You must set either {SERVERS} or {CONTROLLERS}")
    return config if settings is None else _with_settings(config, settings)


def with_timeout(config: ClientConfig, seconds: float | None) -> ClientConfig:
    """The configuration with a limit for each call; None keeps its own."""
    if seconds is None:
        return config
    limit = max(round(seconds * 1000), 1)
    return config._replace(
        default_api_timeout_ms=limit,
        request_timeout_ms=min(limit, config.request_timeout_ms),
        connect_timeout_ms=min(limit, config.connect_timeout_ms),
        unreachable_after_ms=min(limit, config.unreachable_after_ms),
    )


def _addresses(name: str, text: str) -> tuple[Address, ...]:
    found = []
    for entry in filter(None, (entry.strip() for entry in text.split(","))):
        # A list of voters, `1@host:port,...`, names controllers too (KIP-853, an early version).
        voter = _VOTER_ID.match(entry) if name == CONTROLLERS else None
        address = parse_host_port(entry[voter.end() :] if voter else entry)
        if address is None:
            raise BootstrapError(f"Invalid url in {name}: {entry} (it must be host:port)")
        found.append(address if address.host else address._replace(host="localhost"))
    if not found:
        raise BootstrapError(f"No resolvable bootstrap urls given in {name}")
    return tuple(found)


def client_security(settings: Settings) -> ClientSecurity | None:
    """What connections need by `security.protocol`; None for PLAINTEXT. Raises ConfigError."""
    from quorate.config.listeners import PROTOCOLS

    protocol = settings.text("security.protocol") or "PLAINTEXT"
    if protocol.upper() not in PROTOCOLS:
        supported = " and ".join(PROTOCOLS)
        settings.invalid("security.protocol", protocol, f"quorate's tools support {supported}")
    return None if protocol.upper() == "PLAINTEXT" else _security(settings, protocol.upper())


def _with_settings(config: ClientConfig, settings: Settings) -> ClientConfig:
    check_client_keys(settings)
    config = config._replace(security=client_security(settings))

    def ms(key: str, default: int) -> int:
        value = settings.integer(key, default, at_least=0)
        return default if value is None else value

    limit = ms("default.api.timeout.ms", config.default_api_timeout_ms)
    return config._replace(
        client_id=settings.text("client.id") or config.client_id,
        default_api_timeout_ms=limit,
        request_timeout_ms=min(limit, ms("request.timeout.ms", config.request_timeout_ms)),
        retry_backoff_ms=ms("retry.backoff.ms", config.retry_backoff_ms),
        retry_backoff_max_ms=ms("retry.backoff.max.ms", config.retry_backoff_max_ms),
        connect_timeout_ms=min(
            limit, ms("socket.connection.setup.timeout.ms", config.connect_timeout_ms)
        ),
    )


def _security(settings: Settings, protocol: str) -> ClientSecurity:
    security = _tls(settings) if protocol.endswith("SSL") else ClientSecurity()
    if not protocol.startswith("SASL"):
        return security
    login, user = _login(settings)
    return replace(security, login=login, user=user)


def _login(settings: Settings) -> tuple[Login, str | None]:
    """The login of `sasl.mechanism` and `sasl.jaas.config`, and its user. Raises ConfigError."""
    from quorate.config.settings import ConfigError
    from quorate.security.jaas import JaasError, JaasText
    from quorate.security.sasl.login import TOKEN_URL, login_of, user_of
    from quorate.security.sasl.mechanism import GSSAPI_REFUSED

    mechanism = settings.text("sasl.mechanism") or "GSSAPI"
    if mechanism == "GSSAPI":
        settings.refuse("sasl.mechanism", f"sasl.mechanism: {GSSAPI_REFUSED}")
    _refuse_classes(settings, mechanism)
    text = settings.required("sasl.jaas.config")
    jaas = JaasText("sasl.jaas.config", text, settings.where("sasl.jaas.config"))
    try:
        return login_of(mechanism, jaas, settings.text(TOKEN_URL)), user_of(mechanism, jaas)
    except JaasError as error:
        raise ConfigError(str(error), key="sasl.jaas.config") from None


def _refuse_classes(settings: Settings, mechanism: str) -> None:
    """Raise ConfigError for a class of others, which would log in in another way than this side."""
    from quorate.config.sasl_keys import CLASSES, OAUTH

    checks = f"{OAUTH}jwt.validator.class"
    for key, classes in CLASSES.items():
        value = settings.text(key)
        known = classes.get(mechanism, ())
        if key == checks and known:
            known = (*known, known[0].replace("DefaultJwt", "ClientJwt"))
        if value and value not in known:
            choices = f"; known are {', '.join(known)}" if known else ""
            settings.refuse(
                key, f"{key}={value} names a Java class, which Quorate cannot run{choices}"
            )


def _tls(settings: Settings) -> ClientSecurity:
    # Imported here: reading certificates costs 50 ms, and most tools connect without TLS.
    from quorate.security.tls.contexts import client_context
    from quorate.security.tls.explain import explain, is_refusal, subject_text
    from quorate.security.tls.stores import StoreError

    try:
        context = client_context(settings.values)
    except StoreError as error:
        settings.refuse(error.key, str(error))
    subject = None if context.own is None else subject_text(context.own)
    return ClientSecurity(context, explain, is_refusal, subject=subject)


def check_client_keys(settings: Settings) -> None:
    """Raise ConfigError for the first value that Kafka's clients would refuse."""
    # Imported here: most calls of a tool have no file, and should not pay for a large module.
    from quorate.client.value_ranges import check_values

    check_values(settings, RANGES, CHOICES)
    recovery = settings.text("metadata.recovery.strategy")
    if recovery is not None and recovery.upper() not in _RECOVERY:
        choices = ", ".join(_RECOVERY)
        reason = f"String must be one of (case insensitive): {choices}"
        settings.invalid("metadata.recovery.strategy", recovery, reason)
