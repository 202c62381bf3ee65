"""Refuse configurations that Quorate does not support yet and must not ignore."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.config import listeners as addresses
from quorate.config import security_settings
from quorate.config.node_config import (
    AUTHORIZER,
    POLICIES,
    PRINCIPAL_FUNCTION,
    QUOTA_CALLBACK,
    STANDARD_AUTHORIZER,
    NodeConfig,
)
from quorate.config.settings import ConfigError


def check_servable(config: NodeConfig) -> None:
    """Raise ConfigError with the first reason why Quorate cannot run this node."""
    for reason in unsupported(config):
        raise reason


def unsupported(config: NodeConfig) -> Iterator[ConfigError]:
    """Every reason why Quorate cannot run this node."""

    def refused(key: str, why: str) -> ConfigError:
        return ConfigError(why, key=key, where=config.source or None)

    if "broker" in config.roles:
        yield refused(
            "process.roles",
            "process.roles contains 'broker', but Quorate runs controllers only: set "
            "process.roles=controller here and run the broker with Kafka as a separate node",
        )
    for voter in config.static_voters:
        host = voter.listeners[0].host
        if addresses.is_wildcard(host):
            yield refused(
                addresses.VOTERS,
                f"Host string ({host}) of voter {voter.key.id} is not routeable: "
                f"name an address in {addresses.VOTERS} that the other nodes can connect to",
            )
    builder = config.file.get(security_settings.PRINCIPAL_BUILDER, "")
    is_default = builder in ("", security_settings.DEFAULT_PRINCIPAL_BUILDER)
    if not is_default and not config.principal_function:
        yield refused(
            security_settings.PRINCIPAL_BUILDER,
            f"{security_settings.PRINCIPAL_BUILDER}={builder} names a Java class, which Quorate cannot "
            f"run: take the key out and use {security_settings.MAPPING_RULES}, or name a Python function "
            f"in {PRINCIPAL_FUNCTION}=module:attribute",
        )
    if config.sasl.problem is not None:
        yield config.sasl.problem
    if config.authorizer not in ("", STANDARD_AUTHORIZER):
        yield refused(
            AUTHORIZER,
            f"{AUTHORIZER}={config.authorizer}: Quorate has Kafka's {STANDARD_AUTHORIZER} only, and "
            "without an authorizer would allow every client of every broker what yours refuses",
        )
    for ours, kafkas in POLICIES.items():
        if config.file.get(kafkas) and not config.file.get(ours):
            yield refused(
                kafkas,
                f"{kafkas}={config.file[kafkas]} names a Java class, which Quorate cannot run: name a "
                f"Python function with the same rules in {ours}=module:attribute, or take the key out "
                "of this file only where every client may do what the policy refuses",
            )
    callback = config.file.get(QUOTA_CALLBACK)
    if callback:
        yield refused(
            QUOTA_CALLBACK,
            f"{QUOTA_CALLBACK}={callback} names a Java class, which Quorate cannot run: take the key out "
            "of this file where the quotas of the metadata are right for requests to controllers",
        )
