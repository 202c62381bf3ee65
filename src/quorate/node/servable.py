"""What Quorate does not do yet, and would be wrong to leave out in silence."""

from __future__ import annotations

from quorate.node import addresses
from quorate.node.config import AUTHORIZER, ConfigError, NodeConfig


def check_servable(config: NodeConfig) -> None:
    """Raise ConfigError with the reason when Quorate cannot run this node."""
    if "broker" in config.roles:
        raise ConfigError(
            "process.roles contains 'broker', but Quorate runs controllers only: set "
            "process.roles=controller here and run the broker with Kafka as a node of its own",
            key="process.roles",
            where=config.source or None,
        )
    for voter in config.static_voters:
        if voter.listeners[0].host == addresses.WILDCARD:
            raise ConfigError(
                f"Host string ({addresses.WILDCARD}) of voter {voter.key.id} is not routeable: "
                f"name an address in {addresses.VOTERS} that the others can connect to",
                key=addresses.VOTERS,
                where=config.source or None,
            )
    for listener in config.listeners:
        protocol = config.security_protocols[listener.name]
        if protocol != "PLAINTEXT":
            raise ConfigError(
                f"Listener {listener.name} uses {protocol}, but Quorate speaks PLAINTEXT only: "
                f"map it to PLAINTEXT in {addresses.PROTOCOL_MAP}",
                key=addresses.PROTOCOL_MAP,
                where=config.source or None,
            )
    if config.authorizer:
        raise ConfigError(
            f"{AUTHORIZER}={config.authorizer}: Quorate has no authorizer yet, and while it leads "
            "would do for every client of every broker what Kafka's controllers refuse. Take the "
            "key out of this file only where all who can reach the controllers or a broker may "
            "change the quorum",
            key=AUTHORIZER,
            where=config.source or None,
        )
