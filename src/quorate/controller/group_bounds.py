"""The bounds that brokers set to the configs of groups, and the rules between those.

Source: `GroupConfig.validateValues`. Its order decides which of several problems is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from quorate.config_definitions.definition import broker_configs
from quorate.config_definitions.values import Value, parse


class _Bound(NamedTuple):
    """`name` is at least `least` and at most `most`, both configs of a broker."""

    name: str
    least: str | None
    most: str
    only_if_set: bool = False


def _bound(kind: str, rest: str, *, only_if_set: bool = False) -> _Bound:
    broker = f"group.{kind}"
    return _Bound(f"{kind}.{rest}", f"{broker}.min.{rest}", f"{broker}.max.{rest}", only_if_set)


_BOUNDS: Final = (
    _bound("consumer", "heartbeat.interval.ms"),
    _bound("consumer", "session.timeout.ms"),
    _bound("consumer", "assignment.interval.ms", only_if_set=True),
    _bound("share", "heartbeat.interval.ms"),
    _bound("share", "session.timeout.ms"),
    _bound("share", "record.lock.duration.ms"),
    _bound("share", "delivery.count.limit"),
    _bound("share", "partition.max.record.locks"),
    _bound("share", "assignment.interval.ms", only_if_set=True),
    _bound("streams", "heartbeat.interval.ms"),
    _bound("streams", "session.timeout.ms"),
    _Bound("streams.num.standby.replicas", None, "group.streams.max.standby.replicas"),
    _bound("streams", "assignment.interval.ms", only_if_set=True),
)


def check_bounds(
    values: Mapping[str, Value | None], given: Collection[str], broker: Mapping[str, str]
) -> str | None:
    """Why the values are refused; None: they are not.

    `given` are the configs that the group sets itself, `broker` is what the node's configs are.
    """
    for name, least, most, only_if_set in _BOUNDS:
        if only_if_set and name not in given:
            continue
        value = _int(values[name])
        if least is not None and value < _broker_int(least, broker):
            return f"{name} must be greater than or equal to {least}"
        if value > _broker_int(most, broker):
            return f"{name} must be less than or equal to {most}"
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _int(values[session]) <= _int(values[heartbeat]):
            return f"{session} must be greater than {heartbeat}"
    return None


def _broker_int(name: str, broker: Mapping[str, str]) -> int:
    definition = broker_configs()[name]
    return _int(parse(definition, broker.get(name, definition.default)))


def _int(value: Value | None) -> int:
    assert isinstance(value, int)
    return value
