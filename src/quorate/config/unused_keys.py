"""Check the values of Kafka keys that a Quorate node does not use.

Kafka refuses to start with a wrong value of any key, so Quorate does too: the same file is valid or
invalid for both. Types, ranges, choices and messages are Kafka's (`quorate.config_definitions`). The
second half holds the rules between the keys of the group coordinators (`GroupCoordinatorConfig`,
`ShareGroupConfig`, `ShareCoordinatorConfig`); `validation` has the other rules between keys. Values that
only a broker with its libraries can check are ignored: names of classes and files.
"""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import Final

from quorate.config.settings import Settings
from quorate.config_definitions.definition import ConfigType, Definition, broker_configs
from quorate.config_definitions.values import ConfigValueError, parse

_GROUPS: Final = "group.coordinator.rebalance.protocols"


def check_unused(settings: Settings, used: Container[str]) -> None:
    """Raise ConfigError for the first value that Kafka would refuse, alone or with other values.

    `used`: the keys that the node checks itself.
    """
    for key, definition in broker_configs().items():
        if key in settings and key not in used:
            settings.guarded(partial(_check, settings, definition), None)
    settings.guarded(lambda: _check_protocols(settings), None)
    check_groups(settings)


def _check_protocols(settings: Settings) -> None:
    protocols = settings.items(_GROUPS)
    if protocols is not None and "classic" not in protocols:
        settings.refuse(_GROUPS, "Disabling the 'classic' protocol is not supported.")


def _check(settings: Settings, definition: Definition) -> None:
    key, allowed = definition.name, definition.allowed
    if definition.type is ConfigType.LIST and allowed.startswith("distinct"):
        choices = allowed.partition("[")[2].rstrip("]")
        settings.distinct(
            key,
            one_of=choices.split(", ") if choices else (),
            may_be_empty=not allowed.startswith("distinct non-empty"),
        )
        return
    try:
        parse(definition, settings.text(key))
    except ConfigValueError as error:
        settings.refuse(key, str(error))


# -- rules between the keys of the group coordinators, in Kafka's order and with its messages --------
_CODECS: Final = (
    "offsets.topic.compression.codec",
    "share.coordinator.state.topic.compression.codec",
)
_CODEC_IDS: Final = range(5)
_SHARE_ASSIGNORS: Final = "group.share.assignors"

_HEARTBEAT: Final = "heartbeat.interval.ms"
_SESSION: Final = "session.timeout.ms"
_ASSIGNMENT: Final = "assignment.interval.ms"


def check_groups(settings: Settings) -> None:
    """Raise ConfigError for the first rule between keys that the settings break."""
    offsets, states = _CODECS
    _check_codec(settings, offsets)
    _check_times(settings, "consumer")
    _check_times(settings, "share")
    _check_times(settings, "streams")
    _in_order(settings, "group.streams.num.standby.replicas", "group.streams.max.standby.replicas")
    for name in ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms"):
        own, most, least = (f"group.share.{bound}{name}" for bound in ("", "max.", "min."))
        bounds = ((own, least), (most, own)) if name.endswith("ms") else ((most, own), (own, least))
        for larger, smaller in bounds:
            _not_below(settings, larger, smaller)
    _not_below(settings, "group.share.max.share.sessions", "group.share.max.size")
    _check_codec(settings, states)


def _check_codec(settings: Settings, key: str) -> None:
    def check() -> None:
        codec = settings.integer(key, 0)
        if codec not in _CODEC_IDS:
            settings.refuse(key, f"Unknown compression type id: {codec}")

    settings.guarded(check, None)


def _check_times(settings: Settings, kind: str) -> None:
    group = f"group.{kind}."
    _check_bounds(settings, group, _HEARTBEAT)
    _check_bounds(settings, group, _SESSION)
    settings.guarded(lambda: _check_heartbeat(settings, group), None)
    if kind == "share":
        settings.guarded(lambda: _check_assignors(settings), None)
    _check_bounds(settings, group, _ASSIGNMENT)


def _check_heartbeat(settings: Settings, group: str) -> None:
    if _number(settings, group + _HEARTBEAT) >= _number(settings, group + _SESSION):
        settings.refuse(
            group + _HEARTBEAT, f"{group}{_HEARTBEAT} must be less than {group}{_SESSION}"
        )


def _check_assignors(settings: Settings) -> None:
    count = len(set(settings.items(_SHARE_ASSIGNORS) or ("simple",)))
    if count != 1:
        settings.refuse(
            _SHARE_ASSIGNORS,
            f"{_SHARE_ASSIGNORS} must contain exactly one assignor, but found {count}",
        )


def _check_bounds(settings: Settings, group: str, name: str) -> None:
    _not_below(settings, f"{group}max.{name}", f"{group}min.{name}")
    _not_below(settings, group + name, f"{group}min.{name}")
    _in_order(settings, group + name, f"{group}max.{name}")


def _not_below(settings: Settings, larger: str, smaller: str) -> None:
    def check() -> None:
        if _number(settings, larger) < _number(settings, smaller):
            settings.refuse(larger, f"{larger} must be greater than or equal to {smaller}")

    settings.guarded(check, None)


def _in_order(settings: Settings, smaller: str, larger: str) -> None:
    def check() -> None:
        if _number(settings, smaller) > _number(settings, larger):
            settings.refuse(smaller, f"{smaller} must be less than or equal to {larger}")

    settings.guarded(check, None)


def _number(settings: Settings, key: str) -> int:
    settings.needs(key)
    definition = broker_configs()[key]
    value = parse(definition, settings.values.get(key, definition.default))
    assert isinstance(value, int)
    return value
