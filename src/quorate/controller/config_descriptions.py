"""DescribeConfigs: each config of a resource, its value, and every value that is in line for it.

Source: `ConfigHelper`, `ConfigHelperUtils`. Kafka describes configs in the order of a hash map, Quorate
by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import dropwhile
from typing import NamedTuple

from immutables import Map

from quorate.config_definitions.definition import (
    ConfigType,
    Definition,
    UpdateMode,
    broker_configs,
    broker_quotas,
    client_metrics_configs,
    group_configs,
    topic_configs,
)
from quorate.config_definitions.values import text_of
from quorate.controller.configs_in_force import NO_CONFIGS, ConfigsInForce
from quorate.controller.node_configs import (
    ConfigSource,
    Texts,
    applied,
    broker_synonyms,
    group_defaults,
    merged,
    topic_defaults,
)
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE


class ValueAt(NamedTuple):
    """A value that is in line for a config: where it stands, and under which name."""

    name: str
    value: str | None
    source: ConfigSource


class Description(NamedTuple):
    """One config of one resource. Sensitive values are None."""

    name: str
    value: str | None
    type: ConfigType
    line: tuple[ValueAt, ...]
    """The values in line; the first one is in force."""
    read_only: bool = False
    is_sensitive: bool = False

    @property
    def source(self) -> ConfigSource:
        """Return where the value in force stands."""
        return self.line[0].source if self.line else ConfigSource.DEFAULT


class Layers(NamedTuple):
    """The configs of one node, from the most special ones to the most general ones."""

    file: Map[str, str]
    node: Map[str, str]
    """The dynamic configs of this node."""
    everywhere: Map[str, str]
    """The dynamic configs of all brokers."""


def layers_of(configs: ConfigsInForce, image: Image) -> Layers:
    return Layers(configs.file, *configs.dynamic(image))


# -- resources ------------------------------------------------------------------------------------
def describe_topic(image: Image, topic: str, layers: Layers) -> dict[str, Description]:
    """Every config of the topic by name; internal ones, and those that Kafka does not know, where the
    topic sets them."""
    own = image.configs.get(ConfigResource(TOPIC_RESOURCE, topic), NO_CONFIGS)
    known, below = topic_configs(), _topics_below(*layers)
    return {
        **below,
        **{
            name: _own(name, text, known.get(name), ConfigSource.TOPIC, below.get(name))
            for name, text in own.items()
        },
    }


def describe_group(image: Image, group: str, layers: Layers) -> dict[str, Description]:
    """Every config of the group by name; the group need not exist."""
    own = image.configs.get(ConfigResource(GROUP_RESOURCE, group), NO_CONFIGS)
    known, below = group_configs(), _groups_below(*layers)
    return {
        **below,
        **{
            name: _own(name, text, known.get(name), ConfigSource.GROUP, below.get(name))
            for name, text in own.items()
        },
    }


def describe_client_metrics(image: Image, subscription: str) -> dict[str, Description]:
    """Every config of the subscription by name; it need not exist."""
    own = image.configs.get(ConfigResource(CLIENT_METRICS_RESOURCE, subscription), NO_CONFIGS)
    known = client_metrics_configs()
    return {
        **{name: Description(name, one.default, one.type, ()) for name, one in known.items()},
        **{
            name: _own(name, text, known.get(name), ConfigSource.CLIENT_METRICS, None)
            for name, text in own.items()
        },
    }


def describe_node(layers: Layers) -> dict[str, Description]:
    """Every config of this node by name; internal ones, and those of plugins, where it sets them."""
    texts = merged(*layers)
    public = [name for name, one in broker_configs().items() if not one.is_internal]
    names = dict.fromkeys((*public, *texts))
    return {name: _of_broker(name, texts.get(name), layers, everywhere=False) for name in names}


def describe_brokers(layers: Layers) -> dict[str, Description]:
    """The dynamic configs of all brokers, as this node follows them."""
    return {
        name: _of_broker(name, text, layers, everywhere=True)
        for name, text in applied(layers.everywhere, of_one_broker=False).items()
    }


# -- configs --------------------------------------------------------------------------------------
def _own(
    name: str,
    text: str,
    definition: Definition | None,
    source: ConfigSource,
    below: Description | None,
) -> Description:
    """A config that the resource itself sets. `below`: what it would be otherwise. One that is not
    known may be a secret."""
    if definition is None:
        hidden = ValueAt(name, None, source)
        return Description(name, None, ConfigType.UNKNOWN, (hidden,), is_sensitive=True)
    value = text_of(definition, text)
    line = (ValueAt(name, value, source), *(() if below is None else below.line))
    return Description(name, value, definition.type, line)


@lru_cache(maxsize=4)
def _topics_below(
    file: Map[str, str], node: Map[str, str], everywhere: Map[str, str]
) -> Mapping[str, Description]:
    """The public configs of a topic that sets none."""
    layers, defaults = Layers(file, node, everywhere), topic_defaults(file, node, everywhere)
    found = {}
    for name, one in topic_configs().items():
        if not one.is_internal:
            value = text_of(one, defaults.get(name, one.default))
            line = tuple(_line(one.synonyms[0].name, layers)) if one.synonyms else ()
            found[name] = Description(name, value, one.type, line)
    return found


@lru_cache(maxsize=4)
def _groups_below(
    file: Map[str, str], node: Map[str, str], everywhere: Map[str, str]
) -> Mapping[str, Description]:
    """The configs of a group that sets none."""
    layers, defaults = Layers(file, node, everywhere), group_defaults(file, node, everywhere)
    found = {}
    for name, one in group_configs().items():
        value = text_of(one, defaults.get(name, one.default))
        line: tuple[ValueAt, ...] = (ValueAt(name, value, ConfigSource.DEFAULT),)
        if one.synonyms:
            line = tuple(_line(one.synonyms[0].name, layers))
        found[name] = Description(name, value, one.type, line)
    return found


def _of_broker(name: str, text: str | None, layers: Layers, *, everywhere: bool) -> Description:
    exact = broker_configs().get(name) or broker_quotas().get(name)
    known = (exact, *(broker_configs().get(one) for one in broker_synonyms(name)))
    definition = next((one for one in known if one is not None), None)
    is_sensitive = definition is None or definition.is_sensitive
    value = None
    if definition is not None and not is_sensitive:
        # Kafka parses the public configs of its node. The others it shows as they were set, and so all
        # of what is set for every broker.
        is_parsed = not everywhere and name in broker_configs() and not definition.is_internal
        value = text
        if is_parsed:
            value = text_of(definition, definition.default if text is None else text)
    line = _line(name, layers, is_sensitive=is_sensitive)
    if everywhere:
        line = (one for one in line if one.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)
    return Description(
        name,
        value,
        ConfigType.UNKNOWN if definition is None else definition.type,
        tuple(line),
        read_only=exact is None or exact.mode is UpdateMode.READ_ONLY,
        is_sensitive=is_sensitive,
    )


def _line(name: str, layers: Layers, *, is_sensitive: bool = False) -> Iterator[ValueAt]:
    """The values in line for a broker's config. It begins at the first value under `name` itself: of a
    config for all listeners, what a listener has for itself is left out (`configSynonyms`)."""

    def all_of_them() -> Iterator[ValueAt]:
        for texts, source in _sources(*layers):
            for one in broker_synonyms(name):
                if one in texts:
                    yield ValueAt(one, None if is_sensitive else texts[one], source)

    return dropwhile(lambda found: found.name != name, all_of_them())


@lru_cache(maxsize=4)
def _sources(
    file: Map[str, str], node: Map[str, str], everywhere: Map[str, str]
) -> tuple[tuple[Texts, ConfigSource], ...]:
    defaults = {name: one.default for name, one in broker_configs().items()}
    return (
        (applied(node, of_one_broker=True), ConfigSource.DYNAMIC_BROKER),
        (applied(everywhere, of_one_broker=False), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (file, ConfigSource.STATIC_BROKER),
        ({name: text for name, text in defaults.items() if text is not None}, ConfigSource.DEFAULT),
    )
