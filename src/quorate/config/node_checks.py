"""Checks of a node's configuration, key against key, in the order of `KafkaConfig.validateValues`."""

from __future__ import annotations

from quorate.base.ids import Listeners
from quorate.config import listeners as addresses
from quorate.config import validation as cross_checks
from quorate.config.node_config import NodeConfig
from quorate.config.settings import Settings


def check_node(config: NodeConfig, settings: Settings, given: Listeners | None) -> None:
    """Check keys against each other. Raises ConfigError for the first contradiction."""
    cross_checks.check_early_start(settings, config.listeners)
    cross_checks.check_broker_times(settings)
    if not config.static_voters and not config.bootstrap_servers:
        settings.refuse(
            addresses.BOOTSTRAP,
            f"If using process.roles, either {addresses.BOOTSTRAP} must contain the set of "
            f"bootstrap controllers or {addresses.VOTERS} must contain a parseable set of "
            "controllers.",
        )
    if config.is_controller:
        _validate_controller(config, settings)
    else:
        _validate_broker_only(config, settings)
    for endpoint in given or ():
        # Kafka refuses 0.0.0.0 only. `::` would send every peer to itself in the same way.
        if addresses.is_wildcard(endpoint.host):
            settings.refuse(
                addresses.ADVERTISED,
                f"{addresses.ADVERTISED} cannot use the nonroutable meta-address {endpoint.host}. "
                "Use a routable IP address.",
            )
    cross_checks.check_broker_sasl(settings, config.security_protocols)
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        settings.refuse(
            "queued.max.request.bytes",
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        )
    cross_checks.check_connections(
        settings,
        config.max_connections_per_ip,
        config.max_connections_by_host,
        config.connections_max_idle_ms,
    )


def _validate_controller(config: NodeConfig, settings: Settings) -> None:
    names = config.controller_listener_names
    if "broker" not in config.roles and len(config.advertised_listeners) != len(config.listeners):
        settings.refuse(
            addresses.LISTENERS,
            f"The {addresses.LISTENERS} config must only contain KRaft controller listeners from "
            f"{addresses.CONTROLLER_NAMES} when process.roles=controller",
        )
    if (
        "broker" not in config.roles
        and cross_checks.BETWEEN_BROKERS in settings
        and cross_checks.between_brokers(settings, config.security_protocols)[0] in names
    ):
        settings.refuse(
            cross_checks.BETWEEN_BROKERS,
            f"{addresses.CONTROLLER_NAMES} must not contain an explicitly set "
            "inter.broker.listener.name configuration value when process.roles=controller'",
        )
    ids = [voter.key.id for voter in config.static_voters]
    if ids and config.node_id not in ids:
        settings.refuse(
            addresses.VOTERS,
            "If process.roles contains the 'controller' role, the node id "
            f"{config.node_id} must be included in the set of voters "
            f"{addresses.VOTERS}=Set({', '.join(map(str, ids))})",
        )
    role = "when running the KRaft controller role"
    if not config.advertised_listeners:
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must contain at least one value appearing in the "
            f"'{addresses.LISTENERS}' configuration {role}",
        )
    if not set(names) <= {listener.name for listener in config.listeners}:
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must only contain values appearing in the "
            f"'{addresses.LISTENERS}' configuration {role}",
        )


def _validate_broker_only(config: NodeConfig, settings: Settings) -> None:
    ids = [voter.key.id for voter in config.static_voters]
    if config.node_id in ids:
        settings.refuse(
            addresses.VOTERS,
            f"If process.roles contains just the 'broker' role, the node id {config.node_id} must "
            f"not be included in the set of voters {addresses.VOTERS}="
            f"Set({', '.join(map(str, ids))})",
        )
    if config.controller_listeners():
        settings.refuse(
            addresses.CONTROLLER_NAMES,
            f"{addresses.CONTROLLER_NAMES} must not contain a value appearing in the "
            f"'{addresses.LISTENERS}' configuration when running KRaft with just the broker role",
        )
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
    if config.controller_quorum_auto_join_enable:
        settings.refuse(
            "controller.quorum.auto.join.enable",
            "controller.quorum.auto.join.enable is only supported when process.roles contains the "
            "'controller' role.",
        )
