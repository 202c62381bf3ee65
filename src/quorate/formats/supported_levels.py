"""Is a feature's level one that this release supports? The text says which release has it.

A node that cannot apply a level must not take part in elections: it would stop when it applies the
record, as leader too (`FeatureControlManager.replay` is fatal for the same levels).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quorate.base.errors import QuorateError
from quorate.formats.records import FeatureLevelRecord, decode_record
from quorate.formats.versions import (
    FEATURES,
    LATEST_PRODUCTION,
    METADATA_VERSION,
    MINIMUM,
    MetadataVersion,
    supported_features,
)

FEATURE_LEVEL_FRAME: Final = b"\x01\x0c\x00"
"""How the value of each FeatureLevelRecord begins: version of the frame, type, version."""

RUN_NEWER: Final = (
    "run this node with a release that supports it (the directory needs no change), or add a new "
    "node of such a release and remove this one"
)
"""What to do about what a later release wrote."""
NEWER_RECORD: Final = (
    "The bytes are sound: a newer Kafka wrote a record that this release does not know"
)
"""What a reader says of such a record."""
OTHER_LEVEL: Final = "The bytes are sound: another release of Kafka wrote this metadata.version"
"""What a reader says of a level that it does not have."""


class UnsupportedLevelError(QuorateError):
    """A finalized feature has a level that this node does not support."""

    exit_code = 1
    feature: tuple[str, int] = ("", 0)
    """The name and the level."""


def check_level(name: str, level: int, unstable: bool, where: str) -> None:
    """Raise UnsupportedLevelError unless the level is in the advertised range.

    `unstable`: `unstable.feature.versions.enable`. `where`: where the level was found. The range of
    an unknown feature is 0 to 0, as in Kafka.
    """
    low, high = supported_features(unstable).get(name, (0, 0))
    if low <= level <= high:
        return
    supports = f"levels {low} to {high}" if high else "no level of it"
    if name == METADATA_VERSION:
        supports += f" ({MetadataVersion(low)} to {MetadataVersion(high)})"
    error = UnsupportedLevelError(
        f"{where}: feature {name} has level {level}{_called(name, level)}, and this node supports "
        f"{supports}. {_release(name, level)}"
    )
    error.feature = (name, level)
    raise error


def check_values(values: Iterable[bytes], unstable: bool, where: str) -> None:
    """Check each FeatureLevelRecord of these record values; `where` is what holds them.

    Raises UnsupportedLevelError, and RecordError for a damaged record.
    """
    for problem in level_problems(values, unstable, where):
        raise problem


def level_problems(
    values: Iterable[bytes], unstable: bool, where: str
) -> Iterator[UnsupportedLevelError]:
    """What `check_values` would raise, one after the other. Raises RecordError for a damaged record."""
    for value in values:
        if value.startswith(FEATURE_LEVEL_FRAME):
            record = decode_record(value)[0]
            assert isinstance(record, FeatureLevelRecord)
            try:
                check_level(record.name, record.feature_level, unstable, where)
            except UnsupportedLevelError as problem:
                yield problem


def _called(name: str, level: int) -> str:
    known = name == METADATA_VERSION and level in MetadataVersion.__members__.values()
    return f" ({MetadataVersion(level)})" if known else ""


def _release(name: str, level: int) -> str:
    """Which release has the level, and what to do."""
    newest = LATEST_PRODUCTION.release
    since: MetadataVersion | None = None
    if name == METADATA_VERSION:
        if level < MINIMUM:
            return (
                f"Kafka before {MINIMUM.release} has it: upgrade the cluster to "
                f"metadata.version {MINIMUM:d} with a release that has both levels"
            )
        if level in MetadataVersion.__members__.values():
            since = MetadataVersion(level)
    elif name in FEATURES and 0 <= level <= FEATURES[name].max_level:
        since = FEATURES[name].bootstrap[level]
    has_it = f"A release after Kafka {newest}" if since is None else f"Kafka {since.release}"
    advice = f"{has_it} has it: {RUN_NEWER}"
    if since is not None:
        advice += ". In a test, unstable.feature.versions.enable=true allows it"
    return advice
