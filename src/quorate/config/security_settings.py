"""The security keys of a node: those of one listener, with its prefix applied (`ListenerName`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PRINCIPAL_BUILDER: Final = "principal.builder.class"
DEFAULT_PRINCIPAL_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)
MAPPING_RULES: Final = "ssl.principal.mapping.rules"
CLIENT_AUTH: Final = "ssl.client.auth"
TLS_KEYS: Final = frozenset(
    (
        *("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type"),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
        *("ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type"),
        *("ssl.truststore.certificates", CLIENT_AUTH),
        *("ssl.allow.dn.changes", "ssl.allow.san.changes"),
        *("ssl.endpoint.identification.algorithm", "ssl.enabled.protocols", "ssl.protocol"),
        *("ssl.cipher.suites", MAPPING_RULES, PRINCIPAL_BUILDER),
        *("ssl.provider", "ssl.engine.factory.class", "ssl.secure.random.implementation"),
        *("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm", "security.providers"),
    )
)
"""The keys of TLS and of principals that a node reads, if only to refuse what it cannot do."""
TLS_PROTOCOLS: Final = ("SSL", "SASL_SSL")
DYNAMIC_STORES: Final = frozenset(
    (
        *("ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"),
        *("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.key.password"),
        *("ssl.truststore.type", "ssl.truststore.location", "ssl.truststore.password"),
        "ssl.truststore.certificates",
    )
)
"""What a dynamic config of a node changes for a listener (`SslConfigs.RECONFIGURABLE_CONFIGS`)."""
_PREFIX: Final = "listener.name."


def listener_prefix(listener: str) -> str:
    """The prefix of keys for one listener only."""
    return f"listener.name.{listener.lower()}."


def listener_values(file: Mapping[str, str], listener: str, protocol: str) -> dict[str, str]:
    """The keys of a file as they hold for a listener: `listener.name.<name>.x` goes before `x`.

    A listener with SASL_SSL takes `ssl.client.auth` with its prefix only (KIP-684).
    """
    prefix = listener_prefix(listener)
    own = {key[len(prefix) :]: value for key, value in file.items() if key.startswith(prefix)}
    found = {**file, **own}
    if asks_in_vain(found, listener, protocol):
        del found[CLIENT_AUTH]
    return found


def asks_in_vain(file: Mapping[str, str], listener: str, protocol: str) -> bool:
    """Whether `ssl.client.auth` has no effect on the listener."""
    return (
        protocol == "SASL_SSL"
        and CLIENT_AUTH in file
        and listener_prefix(listener) + CLIENT_AUTH not in file
    )


def dynamic_stores(configs: Mapping[str, str], listener: str) -> dict[str, str]:
    """The stores that a node's dynamic configs set for a listener. They need its prefix, as in Kafka."""
    prefix = listener_prefix(listener)
    found = {key[len(prefix) :]: value for key, value in configs.items() if key.startswith(prefix)}
    return {key: value for key, value in found.items() if key in DYNAMIC_STORES}


def dynamic_without_effect(
    configs: Mapping[str, str], file: Mapping[str, str], listener: str
) -> list[str]:
    """The security keys of a listener that dynamic configs set and a running node does not read.

    Kafka's controllers do not read them either (`DynamicBrokerConfig.addReconfigurables`). One that the file
    sets to the same value is in force.
    """
    prefix = listener_prefix(listener)
    return sorted(
        key
        for key, value in configs.items()
        if key.startswith(prefix)
        and _is_security_key(key[len(prefix) :])
        and file.get(key) != value
    )


def _is_security_key(name: str) -> bool:
    """Whether a node reads the key of a listener, also with a mechanism before it, at its start only."""
    return (
        (name in TLS_KEYS and name not in DYNAMIC_STORES)
        or "sasl." in name
        or name.endswith("connections.max.reauth.ms")
    )


def is_tls_key(key: str) -> bool:
    """Whether a node reads the key, alone or for one listener, whose name is in lower case there."""
    if not key.startswith(_PREFIX):
        return key in TLS_KEYS
    listener, _, name = key[len(_PREFIX) :].partition(".")
    return name in TLS_KEYS and listener == listener.lower()
