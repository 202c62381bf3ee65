"""The configs of one node: its properties file, and the dynamic configs of brokers above it.

Source: `DynamicBrokerConfig`, `KafkaConfig.extractLogConfigMap`,
`GroupCoordinatorConfig.extractGroupConfigMap`, `ServerTopicConfigSynonyms`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from immutables import Map

from quorate.config_definitions.definition import (
    Definition,
    Synonym,
    UpdateMode,
    broker_configs,
    broker_quotas,
    group_configs,
    topic_configs,
)
from quorate.config_definitions.java_text import BLANKS, parse_integer
from quorate.config_definitions.values import ConfigValueError, parse

_RETENTION_MS: Final = "retention.ms"
_SCHEDULER: Final = "log.flush.scheduler.interval.ms"
_ONLY_PER_LISTENER: Final = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")
"""How the configs begin that Kafka takes only with the prefix of a listener."""

_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
_OF_MECHANISMS: Final = (
    *("sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class"),
    *("sasl.server.callback.handler.class", "connections.max.reauth.ms"),
)
"""Configs that a listener has for each mechanism of SASL."""

Texts = Mapping[str, str]
"""Values as text, by the name of the config."""


class ConfigSource(IntEnum):
    """Where a value comes from; the number is that of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Effective(NamedTuple):
    """A value in force as text, and where it comes from; None: there is no value."""

    value: str | None
    source: ConfigSource


def applied(layer: Texts, *, of_one_broker: bool) -> dict[str, str]:
    """The dynamic configs of brokers that a node follows (`DynamicBrokerConfig.fromPersistentProps`).

    It ignores what cannot change while it runs, what is not allowed, and in the defaults of all
    brokers what each broker has for itself.
    """
    return {name: text for name, text in layer.items() if _is_applied(name, text, of_one_broker)}


def _is_applied(name: str, text: str, of_one_broker: bool) -> bool:
    definition = broker_configs().get(name) or broker_quotas().get(name)
    if definition is None:
        return of_one_broker or not name.startswith("listener.name.")
    if definition.mode is UpdateMode.READ_ONLY or name.startswith(_ONLY_PER_LISTENER):
        return False
    if definition.mode is UpdateMode.PER_BROKER and not of_one_broker:
        return False
    try:
        parse(definition, text)
    except ConfigValueError:
        return False
    return True


def broker_synonyms(name: str) -> tuple[str, ...]:
    """The configs of a broker that set the same thing, the most special one first; a listener's config
    before that of all listeners (`DynamicBrokerConfig.brokerConfigSynonyms`)."""
    found = _LISTENER.fullmatch(name)
    if found is None:
        return _broker_synonyms().get(name, (name,))
    of_mechanism = (one for one in _OF_MECHANISMS if found[1].endswith(one))
    return name, next(of_mechanism, found[1])


@lru_cache(maxsize=1)
def _broker_synonyms() -> dict[str, tuple[str, ...]]:
    found = {}
    for definition in topic_configs().values():
        names = tuple(synonym.name for synonym in definition.synonyms)
        if len(names) > 1:
            found.update(dict.fromkeys((name for name in names if name != _SCHEDULER), names))
    return found


@lru_cache(maxsize=4)
def merged(file: Map[str, str], node: Map[str, str], everywhere: Map[str, str]) -> Texts:
    """What the file and the dynamic configs set; the more special one counts.

    A dynamic config replaces its synonyms too: a dynamic `log.roll.hours` replaces `log.roll.ms` of
    the file (`DynamicBrokerConfig.overrideProps`).
    """
    texts = dict(file)
    layers = (applied(everywhere, of_one_broker=False), applied(node, of_one_broker=True))
    for layer in layers:
        for name, text in layer.items():
            for synonym in (name,) if _LISTENER.match(name) else broker_synonyms(name):
                texts.pop(synonym, None)
            texts[name] = text
    return texts


@lru_cache(maxsize=4)
def topic_defaults(file: Map[str, str], node: Map[str, str], everywhere: Map[str, str]) -> Texts:
    """The values of the topic configs that broker configs stand in for (`extractLogConfigMap`)."""
    found = _stand_ins(topic_configs(), merged(file, node, everywhere))
    if int(found[_RETENTION_MS]) < 0:
        found[_RETENTION_MS] = "-1"
    return found


@lru_cache(maxsize=4)
def group_defaults(file: Map[str, str], node: Map[str, str], everywhere: Map[str, str]) -> Texts:
    """The values of the group configs that broker configs stand in for."""
    return _stand_ins(group_configs(), merged(file, node, everywhere))


def _stand_ins(definitions: Mapping[str, Definition], texts: Texts) -> dict[str, str]:
    return {
        name: _stand_in(definition.synonyms, texts)
        for name, definition in definitions.items()
        if definition.synonyms
    }


def _stand_in(synonyms: tuple[Synonym, ...], texts: Texts) -> str:
    """The first synonym that is set, or else the first one with a default: the last one has one."""
    for synonym in synonyms:
        if synonym.name in texts:
            return converted(synonym, texts[synonym.name])
    known = broker_configs()
    found = ((synonym, known[synonym.name].default) for synonym in synonyms)
    return next(converted(synonym, text) for synonym, text in found if text is not None)


def number_in(texts: Texts, name: str, key: str, otherwise: int) -> int:
    """The number that `name` has, by the definition of the broker config `key`.

    A value that is missing or not allowed gives `otherwise`.
    """
    if name not in texts:
        return otherwise
    try:
        value = parse(broker_configs()[key], texts[name])
    except ConfigValueError:
        return otherwise
    return value if isinstance(value, int) else otherwise


def converted(synonym: Synonym, text: str) -> str:
    """The value in the unit of the topic's config; what is no number counts as 0 (`ConfigSynonym`)."""
    if synonym.factor == 1:
        return text
    return str((parse_integer(text.strip(BLANKS), 32) or 0) * synonym.factor)


@lru_cache(maxsize=4)
def below_topic(
    file: Map[str, str], node: Map[str, str], everywhere: Map[str, str]
) -> Mapping[str, Effective]:
    """Every config of a topic that sets none itself, without the internal ones."""
    layers = (
        (node, ConfigSource.DYNAMIC_BROKER),
        (everywhere, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        (file, ConfigSource.STATIC_BROKER),
    )
    return {
        name: _below_topic(definition, layers)
        for name, definition in topic_configs().items()
        if not definition.is_internal
    }


def _below_topic(
    definition: Definition, layers: tuple[tuple[Texts, ConfigSource], ...]
) -> Effective:
    for texts, source in layers:
        for synonym in definition.synonyms:
            if synonym.name in texts:
                return Effective(converted(synonym, texts[synonym.name]), source)
    return Effective(definition.default, ConfigSource.DEFAULT)
