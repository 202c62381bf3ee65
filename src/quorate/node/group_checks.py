"""Kafka's rules that tie the keys of its group coordinators together.

A Quorate node coordinates no groups, but with a file that breaks one of these Kafka does not start,
as a controller neither (`GroupCoordinatorConfig`, `ShareGroupConfig` and `ShareCoordinatorConfig`
of Kafka 4.3.1, in their order and words).
"""

from __future__ import annotations

from typing import Final

from quorate.node.settings import Settings

_CODECS: Final = (
    "offsets.topic.compression.codec",
    "share.coordinator.state.topic.compression.codec",
)
_CODEC_IDS: Final = range(5)
_SHARE_ASSIGNORS: Final = "group.share.assignors"
_MIGRATION: Final = "group.consumer.migration.policy"
_POLICIES: Final = ("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL")

_HEARTBEAT: Final = "heartbeat.interval.ms"
_SESSION: Final = "session.timeout.ms"
_ASSIGNMENT: Final = "assignment.interval.ms"
_DEFAULTS: Final = {
    **{
        f"group.{kind}.{bound}{name}": default
        for kind in ("consumer", "share", "streams")
        for name, defaults in (
            (_HEARTBEAT, (5_000, 5_000, 15_000)),
            (_SESSION, (45_000, 45_000, 60_000)),
            (_ASSIGNMENT, (1_000, 0, 15_000)),
        )
        for bound, default in zip(("", "min.", "max."), defaults, strict=True)
    },
    "group.streams.num.standby.replicas": 0,
    "group.streams.max.standby.replicas": 2,
    "group.share.delivery.count.limit": 5,
    "group.share.min.delivery.count.limit": 2,
    "group.share.max.delivery.count.limit": 10,
    "group.share.partition.max.record.locks": 2_000,
    "group.share.min.partition.max.record.locks": 100,
    "group.share.max.partition.max.record.locks": 4_000,
    "group.share.record.lock.duration.ms": 30_000,
    "group.share.min.record.lock.duration.ms": 15_000,
    "group.share.max.record.lock.duration.ms": 60_000,
    "group.share.max.share.sessions": 2_000,
    "group.share.max.size": 200,
}
"""What Kafka takes where a key is not set."""


def check_group_lists(settings: Settings) -> None:
    """Lists and choices by themselves; classes are not looked for, Kafka alone can find them."""
    settings.distinct("group.consumer.assignors")
    settings.distinct(_SHARE_ASSIGNORS)
    policy = settings.text(_MIGRATION)
    if policy is not None and policy.upper() not in _POLICIES:
        right = ", ".join(_POLICIES)
        settings.invalid(_MIGRATION, policy, f"String must be one of (case insensitive): {right}")


def check_groups(settings: Settings) -> None:
    """Raise ConfigError for the first rule between keys that the file breaks."""
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
    codec = settings.integer(key, 0)
    if codec not in _CODEC_IDS:
        settings.refuse(key, f"Unknown compression type id: {codec}")


def _check_times(settings: Settings, kind: str) -> None:
    group = f"group.{kind}."
    _check_bounds(settings, group, _HEARTBEAT)
    _check_bounds(settings, group, _SESSION)
    if _number(settings, group + _HEARTBEAT) >= _number(settings, group + _SESSION):
        settings.refuse(
            group + _HEARTBEAT, f"{group}{_HEARTBEAT} must be less than {group}{_SESSION}"
        )
    count = len(set(settings.items(_SHARE_ASSIGNORS) or ("simple",)))
    if kind == "share" and count != 1:
        settings.refuse(
            _SHARE_ASSIGNORS,
            f"{_SHARE_ASSIGNORS} must contain exactly one assignor, but found {count}",
        )
    _check_bounds(settings, group, _ASSIGNMENT)


def _check_bounds(settings: Settings, group: str, name: str) -> None:
    _not_below(settings, f"{group}max.{name}", f"{group}min.{name}")
    _not_below(settings, group + name, f"{group}min.{name}")
    _in_order(settings, group + name, f"{group}max.{name}")


def _not_below(settings: Settings, larger: str, smaller: str) -> None:
    if _number(settings, larger) < _number(settings, smaller):
        settings.refuse(larger, f"{larger} must be greater than or equal to {smaller}")


def _in_order(settings: Settings, smaller: str, larger: str) -> None:
    if _number(settings, smaller) > _number(settings, larger):
        settings.refuse(smaller, f"{smaller} must be less than or equal to {larger}")


def _number(settings: Settings, key: str) -> int:
    value = settings.integer(key, _DEFAULTS[key])
    assert value is not None
    return value
