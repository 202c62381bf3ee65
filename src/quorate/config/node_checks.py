"""Checks of a node's configuration, key against key, in the order of `KafkaConfig.validateValues`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from quorate.base.ids import Listeners
from quorate.config import listeners as addresses
from quorate.config import validation as cross_checks
from quorate.config.node_config import NodeConfig
from quorate.config.settings import Settings

_Rule = Callable[[NodeConfig, Settings], None]
_ROLE: Final = "when running the KRaft controller role"


def check_node(config: NodeConfig, settings: Settings, given: Listeners | None) -> None:
    """Check keys against each other. Raises ConfigError for the first contradiction."""
    settings.guarded(lambda: cross_checks.check_early_start(settings, config.listeners), None)
    cross_checks.check_broker_times(settings)
    _each(settings, config, _check_bootstrap)
    if config.is_controller:
        _each(settings, config, *_OF_CONTROLLER)
    else:
        _each(settings, config, *_OF_BROKER)
    settings.guarded(lambda: _check_advertised(settings, given), None)
    settings.guarded(
        lambda: cross_checks.check_broker_sasl(settings, config.security_protocols), None
    )
    _each(settings, config, _check_queue)
    cross_checks.check_connections(
        settings,
        config.max_connections_per_ip,
        config.max_connections_by_host,
        config.connections_max_idle_ms,
    )


def _each(settings: Settings, config: NodeConfig, *rules: _Rule) -> None:
    for rule in rules:
        settings.guarded(partial(rule, config, settings), None)


def _check_bootstrap(config: NodeConfig, settings: Settings) -> None:
    settings.needs(addresses.VOTERS, addresses.BOOTSTRAP)
    if not config.static_voters and not config.bootstrap_servers:
        settings.refuse(
            addresses.BOOTSTRAP,
            f"If using process.roles, either {addresses.BOOTSTRAP} must contain the set of "
            f"bootstrap controllers or {addresses.VOTERS} must contain a parseable set of "
            "controllers.",
        )


def _check_advertised(settings: Settings, given: Listeners | None) -> None:
    for endpoint in given or ():
        # Kafka refuses 0.0.0.0 only. `::` would send every peer to itself in the same way.
        if addresses.is_wildcard(endpoint.host):
            settings.refuse(
                addresses.ADVERTISED,
                f"{addresses.ADVERTISED} cannot use the nonroutable meta-address {endpoint.host}. "
                "Use a routable IP address.",
            )


def _check_queue(config: NodeConfig, settings: Settings) -> None:
    settings.needs("queued.max.request.bytes", "socket.request.max.bytes")
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        settings.refuse(
            "queued.max.request.bytes",
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        )


def _check_count(config: NodeConfig, settings: Settings) -> None:
    settings.needs("process.roles", addresses.LISTENERS, addresses.CONTROLLER_NAMES)
    if "broker" not in config.roles and len(config.advertised_listeners) != len(config.listeners):
        settings.refuse(
            addresses.LISTENERS,
            f"The {addresses.LISTENERS} config must only contain KRaft controller listeners from "
            f"{addresses.CONTROLLER_NAMES} when process.roles=controller",
        )


def _check_between(config: NodeConfig, settings: Settings) -> None:
    settings.needs("process.roles", addresses.CONTROLLER_NAMES)
    if (
        "broker" not in config.roles
        and cross_checks.BETWEEN_BROKERS in settings
        and cross_checks.between_brokers(settings, config.security_protocols)[0]
        in config.controller_listener_names
    ):
        settings.refuse(
            cross_checks.BETWEEN_BROKERS,
            f"{addresses.CONTROLLER_NAMES} must not contain an explicitly set "
            "inter.broker.listener.name configuration value when process.roles=controller'",
        )


def _check_own_vote(config: NodeConfig, settings: Settings) -> None:
    settings.needs("node.id", addresses.VOTERS)
    ids = [voter.key.id for voter in config.static_voters]
    if ids and config.node_id not in ids:
        settings.refuse(
            addresses.VOTERS,
            "If process.roles contains the 'controller' role, the node id "
            f"{config.node_id} must be included in the set of voters "
            f"{addresses.VOTERS}=Set({', '.join(map(str, ids))})",
        )


def _check_any_listener(config: NodeConfig, settings: Settings) -> None:
    settings.needs(addresses.LISTENERS, addresses.CONTROLLER_NAMES)
    if not config.advertised_listeners:
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must contain at least one value appearing in the "
            f"'{addresses.LISTENERS}' configuration {_ROLE}",
        )


def _check_all_listeners(config: NodeConfig, settings: Settings) -> None:
    settings.needs(addresses.LISTENERS, addresses.CONTROLLER_NAMES)
    names = config.controller_listener_names
    if not set(names) <= {listener.name for listener in config.listeners}:
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must only contain values appearing in the "
            f"'{addresses.LISTENERS}' configuration {_ROLE}",
        )


def _check_no_vote(config: NodeConfig, settings: Settings) -> None:
    settings.needs("node.id", addresses.VOTERS)
    ids = [voter.key.id for voter in config.static_voters]
    if config.node_id in ids:
        settings.refuse(
            addresses.VOTERS,
            f"If process.roles contains just the 'broker' role, the node id {config.node_id} must "
            f"not be included in the set of voters {addresses.VOTERS}="
            f"Set({', '.join(map(str, ids))})",
        )


def _check_no_controller(config: NodeConfig, settings: Settings) -> None:
    settings.needs(addresses.LISTENERS, addresses.CONTROLLER_NAMES)
    if config.controller_listeners():
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must not contain a value appearing in the "
            f"'{addresses.LISTENERS}' configuration when running KRaft with just the broker role",
        )


def _check_protocols(config: NodeConfig, settings: Settings) -> None:
    settings.needs(addresses.PROTOCOL_MAP, addresses.CONTROLLER_NAMES)
    for name in config.controller_listener_names:
        if name.upper() not in config.security_protocols:
            settings.refuse(
                addresses.PROTOCOL_MAP,
                f"Controller listener with name {name.upper()} defined in "
                f"{addresses.CONTROLLER_NAMES} not found in {addresses.PROTOCOL_MAP}  (an explicit "
                "security mapping for each controller listener is required if "
                f"{addresses.PROTOCOL_MAP} is non-empty, or if there are security protocols other "
                "than PLAINTEXT in use)",
            )


def _check_no_join(config: NodeConfig, settings: Settings) -> None:
    if config.controller_quorum_auto_join_enable:
        settings.refuse(
            "controller.quorum.auto.join.enable",
            "controller.quorum.auto.join.enable is only supported when process.roles contains the "
            "'controller' role.",
        )


_OF_CONTROLLER: Final[tuple[_Rule, ...]] = (
    _check_count,
    _check_between,
    _check_own_vote,
    _check_any_listener,
    _check_all_listeners,
)
_OF_BROKER: Final[tuple[_Rule, ...]] = (
    _check_no_vote,
    _check_no_controller,
    _check_protocols,
    _check_no_join,
)
