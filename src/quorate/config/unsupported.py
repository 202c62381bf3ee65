"""Refuse configurations that Quorate does not support yet and must not ignore."""

from __future__ import annotations

from quorate.config import listeners as addresses
from quorate.config import security_settings
from quorate.config.node_config import (
    AUTHORIZER,
    POLICIES,
    STANDARD_AUTHORIZER,
    ConfigError,
    NodeConfig,
)


def check_servable(config: NodeConfig) -> None:
    """Raise ConfigError with the reason when Quorate cannot run this node."""
    if "broker" in config.roles:
        raise ConfigError(
            "process.roles contains 'broker', but Quorate runs controllers only: set "
            "process.roles=controller here and run the broker with Kafka as a separate node",
            key="process.roles",
            where=config.source or None,
        )
    for voter in config.static_voters:
        host = voter.listeners[0].host
        if addresses.is_wildcard(host):
            raise ConfigError(
                f"Host string ({host}) of voter {voter.key.id} is not routeable: "
                f"name an address in {addresses.VOTERS} that the other nodes can connect to",
                key=addresses.VOTERS,
                where=config.source or None,
            )
    builder = config.file.get(security_settings.PRINCIPAL_BUILDER, "")
    if builder not in ("", security_settings.DEFAULT_PRINCIPAL_BUILDER):
        raise ConfigError(
            f"{security_settings.PRINCIPAL_BUILDER}={builder} names a Java class, which Quorate cannot "
            f"run: take the key out and use {security_settings.MAPPING_RULES}",
            key=security_settings.PRINCIPAL_BUILDER,
            where=config.source or None,
        )
    if config.sasl.problem is not None:
        raise config.sasl.problem
    if config.authorizer not in ("", STANDARD_AUTHORIZER):
        raise ConfigError(
            f"{AUTHORIZER}={config.authorizer}: Quorate has Kafka's {STANDARD_AUTHORIZER} only, and "
            "without an authorizer would allow every client of every broker what yours refuses",
            key=AUTHORIZER,
            where=config.source or None,
        )
    for ours, kafkas in POLICIES.items():
        if config.file.get(kafkas) and not config.file.get(ours):
            raise ConfigError(
                f"{kafkas}={config.file[kafkas]} names a Java class, which Quorate cannot run: name a "
                f"Python function with the same rules in {ours}=module:attribute, or take the key out "
                "of this file only where every client may do what the policy refuses",
                key=kafkas,
                where=config.source or None,
            )
