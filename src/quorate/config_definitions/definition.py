"""What a config is: its name, type, default, allowed values and the configs in its place.

Source: `ConfigDef` of Kafka 4.3.1, with `ServerTopicConfigSynonyms`, `GroupConfig` and
`DynamicBrokerConfig`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from quorate.config_definitions import table
from quorate.metadata.resource_types import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)


class ConfigType(IntEnum):
    """The type of a config's value; the number is that of DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class UpdateMode(Enum):
    """How a broker's config changes while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Synonym(NamedTuple):
    """A broker's config in the place of a topic's or group's; `factor` converts its unit."""

    name: str
    factor: int = 1


class Definition(NamedTuple):
    """One config of a resource type."""

    name: str
    type: ConfigType
    default: str | None
    """As text; None: the config has no value unless it is set."""
    synonyms: tuple[Synonym, ...]
    """The first one that is set counts."""
    mode: UpdateMode | None
    """None: not a broker's config."""
    is_internal: bool
    """Described only where it is set."""
    allowed: str
    """The allowed values as Kafka describes them; empty: all of the type."""

    @property
    def is_sensitive(self) -> bool:
        """Nobody may read the value."""
        return self.type is ConfigType.PASSWORD


Definitions = Mapping[str, Definition]
"""By name, in Kafka's order."""


@cache
def topic_configs() -> Definitions:
    """The configs of a topic (`LogConfig`)."""
    return _parse(table.TOPIC)


@cache
def group_configs() -> Definitions:
    """The configs of a group (`GroupConfig`)."""
    return _parse(table.GROUP)


@cache
def client_metrics_configs() -> Definitions:
    """The configs of client metrics (`ClientMetricsConfigs`)."""
    return _parse(table.CLIENT_METRICS)


@cache
def broker_configs() -> Definitions:
    """What a node's properties file may set (`AbstractKafkaConfig`)."""
    return _parse(table.BROKER)


@cache
def broker_quotas() -> Definitions:
    """The configs of a broker that are only set dynamically (`QuotaConfig.brokerQuotaConfigs`)."""
    return _parse(table.BROKER_QUOTA)


def is_supported(resource_type: int, name: str) -> bool:
    """Whether Kafka knows the config; of a broker it takes any name (`SupportedConfigChecker`)."""
    if resource_type == BROKER_RESOURCE:
        return True
    known = _BY_RESOURCE.get(resource_type)
    return known is not None and name in known()


_BY_RESOURCE: Final = MappingProxyType(
    {
        TOPIC_RESOURCE: topic_configs,
        CLIENT_METRICS_RESOURCE: client_metrics_configs,
        GROUP_RESOURCE: group_configs,
    }
)


def _parse(lines: str) -> Definitions:
    return MappingProxyType({found.name: found for found in map(_definition, lines.splitlines())})


def _definition(line: str) -> Definition:
    name, type_name, default, more, visibility, allowed = (*line.split(" ", 5), "")[:6]
    is_brokers = more in _MODES
    return Definition(
        name=name,
        type=ConfigType[type_name],
        default=default[1:-1] if default.startswith('"') else None,
        synonyms=() if is_brokers or more == "-" else tuple(map(_synonym, more.split(","))),
        mode=UpdateMode(more) if is_brokers else None,
        is_internal=visibility == "internal",
        allowed=allowed,
    )


_MODES: Final = frozenset(mode.value for mode in UpdateMode)


def _synonym(text: str) -> Synonym:
    name, _, factor = text.partition("*")
    return Synonym(name, int(factor or 1))
