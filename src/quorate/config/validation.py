"""Kafka's rules between keys (`KafkaConfig.validateValues`).

Most of these keys are a broker's. Kafka checks them in a controller's file too, so Quorate does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from quorate.base.ids import Listeners
from quorate.config.listeners import CONTROLLER_NAMES, LISTENERS, NO_NAME, PROTOCOL_MAP
from quorate.config.node_config import AUTHORIZER
from quorate.config.settings import Settings
from quorate.config_definitions.java_text import COMMA

BETWEEN_BROKERS: Final = "inter.broker.listener.name"
BROKER_PROTOCOL: Final = "security.inter.broker.protocol"
EARLY: Final = "early.start.listeners"
OVERRIDES: Final = "max.connections.per.ip.overrides"
DELAY: Final = "connection.failed.authentication.delay.ms"
_MECHANISMS: Final = "sasl.enabled.mechanisms"
_BROKER_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"
_WAIT: Final = "replica.fetch.wait.max.ms"
_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_MIB: Final = 1024 * 1024
_HOST: Final = re.compile(r"[0-9a-zA-Z\-%._:]*", re.ASCII)


def check_broker_times(settings: Settings) -> None:
    """Check a broker's segment, retention, cleaner and replica keys. Raises ConfigError."""
    for rule in (
        _check_roll,
        _check_jitter,
        _check_retention,
        _check_cleaner,
        _check_wait,
        _check_lag,
    ):
        settings.guarded(partial(rule, settings), None)


def _check_roll(settings: Settings) -> None:
    if _first_ms(settings, "log.roll.ms", ("log.roll.hours", 168, _HOUR_MS)) < 1:
        settings.refuse("log.roll.ms", "log.roll.ms must be greater than or equal to 1")


def _check_jitter(settings: Settings) -> None:
    if _first_ms(settings, "log.roll.jitter.ms", ("log.roll.jitter.hours", 0, _HOUR_MS)) < 0:
        settings.refuse(
            "log.roll.jitter.ms", "log.roll.jitter.ms must be greater than or equal to 0"
        )


def _check_retention(settings: Settings) -> None:
    minutes = ("log.retention.minutes", None, _MINUTE_MS)
    hours = ("log.retention.hours", 168, _HOUR_MS)
    if _first_ms(settings, "log.retention.ms", minutes, hours) == 0:
        settings.refuse(
            "log.retention.ms",
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        )


def _check_cleaner(settings: Settings) -> None:
    threads = _number(settings, "log.cleaner.threads", 1)
    buffer = _number(settings, "log.cleaner.dedupe.buffer.size", 128 * _MIB)
    if threads < 1 or buffer <= _MIB * threads:
        settings.refuse(
            "log.cleaner.dedupe.buffer.size",
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        )


def _check_wait(settings: Settings) -> None:
    wait = _number(settings, _WAIT, 500)
    if wait > _number(settings, "replica.socket.timeout.ms", 30_000):
        settings.refuse(
            "replica.socket.timeout.ms",
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to "
            "prevent unnecessary socket timeouts",
        )


def _check_lag(settings: Settings) -> None:
    if _number(settings, _WAIT, 500) > _number(settings, "replica.lag.time.max.ms", 30_000):
        settings.refuse(
            _WAIT,
            "replica.fetch.wait.max.ms should always be less than or equal to "
            "replica.lag.time.max.ms to prevent frequent changes in ISR",
        )


def _number(settings: Settings, key: str, default: int) -> int:
    value = settings.integer(key, default, bits=64)
    assert value is not None
    return value


def _first_ms(settings: Settings, key: str, *coarser: tuple[str, int | None, int]) -> int:
    """The value in ms of the first key that is set: `key` itself, then (key, default, unit in ms)."""
    value = settings.integer(key, None, bits=64)
    for other, default, unit_ms in coarser:
        if value is None:
            count = settings.integer(other, default)
            value = None if count is None else count * unit_ms
    assert value is not None
    return value


def check_early_start(settings: Settings, bound: Listeners) -> None:
    """Check that `early.start.listeners` names existing listeners. Raises ConfigError."""
    names = {listener.name for listener in bound}

    def check(name: str) -> None:
        if name not in names:
            settings.refuse(
                EARLY,
                f"{EARLY} contains listener {name}, but this is not contained in listeners or "
                "controller.listener.names",
            )

    early = settings.distinct(EARLY, may_be_empty=True) or ()
    settings.needs(LISTENERS, CONTROLLER_NAMES)
    settings.each(check, early)


def late_listeners(settings: Settings, bound: Listeners, of_quorum: str) -> frozenset[str]:
    """The listeners that open when the authorizer knows its entries (`KafkaConfig.earlyStartListeners`).

    Without `authorizer.class.name` or `early.start.listeners` there are none. `of_quorum`, the listener
    on which controllers elect a leader, is none either: nobody would lead, and no entry be known.
    """
    early = settings.items(EARLY)
    if early is None or not settings.text(AUTHORIZER):
        return frozenset()
    return frozenset({one.name for one in bound} - {*early, of_quorum.upper()})


def between_brokers(settings: Settings, protocols: Mapping[str, str]) -> tuple[str, str]:
    """The name and security protocol of the inter-broker listener. Raises ConfigError."""
    name = settings.text(BETWEEN_BROKERS)
    if name is None:
        protocol = settings.text(BROKER_PROTOCOL) or "PLAINTEXT"
        return protocol, protocol
    if BROKER_PROTOCOL in settings:
        settings.refuse(
            BETWEEN_BROKERS, f"Only one of {BETWEEN_BROKERS} and {BROKER_PROTOCOL} should be set."
        )
    if not name:
        settings.refuse(BETWEEN_BROKERS, NO_NAME)
    settings.needs(PROTOCOL_MAP, CONTROLLER_NAMES)
    if name.upper() not in protocols:
        settings.refuse(
            BETWEEN_BROKERS,
            f"Listener with name {name.upper()} defined in {BETWEEN_BROKERS} not found in "
            "listener.security.protocol.map.",
        )
    return name.upper(), protocols[name.upper()]


def check_broker_sasl(settings: Settings, protocols: Mapping[str, str]) -> None:
    """Check that the inter-broker SASL mechanism is enabled, if SASL is used. Raises ConfigError."""
    name, protocol = between_brokers(settings, protocols)
    if not protocol.startswith("SASL_"):
        return
    enabled = settings.items(f"listener.name.{name.lower()}.{_MECHANISMS}")
    if enabled is None:
        enabled = settings.items(_MECHANISMS)
    mechanism = settings.text(_BROKER_MECHANISM) or "GSSAPI"
    if mechanism not in (("GSSAPI",) if enabled is None else enabled):
        settings.refuse(
            _BROKER_MECHANISM,
            f"{_BROKER_MECHANISM} must be included in {_MECHANISMS} when SASL is used for "
            "inter-broker communication",
        )


def connections_by_host(text: str) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides` into host -> limit. Raises ValueError."""
    entries = COMMA.split(text)
    while entries and not entries[-1]:  # Java's `split` drops empty strings at the end
        entries.pop()
    found = {}
    for entry in entries:
        host, colon, most = entry.rpartition(":")
        if not colon:
            raise ValueError(
                f"Error parsing configuration property '{OVERRIDES}': '{entry}' is not of the "
                "form host:connections"
            )
        number = re.fullmatch(r"[+-]?[0-9]{1,10}", most.strip(), re.ASCII)
        if number is None or not -(1 << 31) <= int(number[0]) < 1 << 31:
            raise ValueError(f'For input string: "{most.strip()}"')
        found[host.strip()] = int(number[0])
    return found


def check_connections(
    settings: Settings, per_ip: int, by_host: Mapping[str, int], max_idle_ms: int
) -> None:
    """Check the connection limits and the idle time against each other. Raises ConfigError."""

    def check_zero() -> None:
        settings.needs(OVERRIDES)
        if per_ip == 0 and not by_host:
            settings.refuse(
                "max.connections.per.ip",
                f"max.connections.per.ip can be set to zero only if {OVERRIDES} property is set.",
            )

    settings.guarded(check_zero, None)
    settings.guarded(lambda: _check_hosts(settings, by_host), None)
    settings.guarded(lambda: _check_idle(settings, max_idle_ms), None)


def _check_hosts(settings: Settings, by_host: Mapping[str, int]) -> None:
    wrong = [host for host in by_host if not _HOST.fullmatch(host)]
    if wrong:
        settings.refuse(OVERRIDES, f"{OVERRIDES} contains invalid addresses : {','.join(wrong)}")


def _check_idle(settings: Settings, max_idle_ms: int) -> None:
    settings.needs("connections.max.idle.ms")
    delay_ms = _number(settings, DELAY, 100)
    if 0 <= max_idle_ms <= delay_ms:
        settings.refuse(
            "connections.max.idle.ms",
            f"{DELAY}={delay_ms} should always be less than connections.max.idle.ms={max_idle_ms} "
            "to prevent failed authentication responses from timing out",
        )
