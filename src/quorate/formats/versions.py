"""metadata.version and the other features: levels, names, defaults, dependencies.

Facts of Kafka 4.4.0 (`MetadataVersion`, `Feature` and its `*Version` enums). A level is an int;
which version of a record may be written at a metadata.version is answered by `record_version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from quorate.base.errors import QuorateError

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"


class FeatureError(QuorateError):
    """A feature or level that does not exist, or whose dependencies are not met."""


class MetadataVersion(IntEnum):
    """A level of metadata.version; the name of 30 is 4.3-IV0."""

    IBP_3_3_IV3 = 7
    IBP_3_4_IV0 = 8
    IBP_3_5_IV0 = 9
    IBP_3_5_IV1 = 10
    IBP_3_5_IV2 = 11
    IBP_3_6_IV0 = 12
    IBP_3_6_IV1 = 13
    IBP_3_6_IV2 = 14
    IBP_3_7_IV0 = 15
    IBP_3_7_IV1 = 16
    IBP_3_7_IV2 = 17
    IBP_3_7_IV3 = 18
    IBP_3_7_IV4 = 19
    IBP_3_8_IV0 = 20
    IBP_3_9_IV0 = 21
    IBP_4_0_IV0 = 22
    IBP_4_0_IV1 = 23
    IBP_4_0_IV2 = 24
    IBP_4_0_IV3 = 25
    IBP_4_1_IV0 = 26
    IBP_4_1_IV1 = 27
    IBP_4_2_IV0 = 28
    IBP_4_2_IV1 = 29
    IBP_4_3_IV0 = 30
    IBP_4_4_IV0 = 31
    IBP_4_4_IV1 = 32
    IBP_4_4_IV2 = 33
    IBP_4_5_IV0 = 34

    def __str__(self) -> str:
        """Return the version as people write it: `4.3-IV0`."""
        _, major, minor, sub = self.name.split("_")
        return f"{major}.{minor}-{sub}"

    @property
    def release(self) -> str:
        """`4.3` of `4.3-IV0`."""
        return str(self).partition("-")[0]

    @property
    def in_production(self) -> bool:
        """False for levels that still may change (`unstable.feature.versions.enable`)."""
        return self <= LATEST_PRODUCTION

    @property
    def changed_metadata(self) -> bool:
        """True when records written at this level cannot be read at the one before."""
        return self in _CHANGED_METADATA

    @property
    def scram(self) -> bool:
        return self >= MetadataVersion.IBP_3_5_IV2

    @property
    def bumps_leader_epoch_on_isr_shrink(self) -> bool:
        """Brokers of these levels need it (KAFKA-15021)."""
        return self < MetadataVersion.IBP_3_6_IV0

    @property
    def transactions(self) -> bool:
        """Metadata transactions (KIP-868)."""
        return self >= MetadataVersion.IBP_3_6_IV1

    @property
    def delegation_tokens(self) -> bool:
        return self >= MetadataVersion.IBP_3_6_IV2

    @property
    def controller_registration(self) -> bool:
        """RegisterControllerRecord (KIP-919)."""
        return self >= MetadataVersion.IBP_3_7_IV0

    @property
    def directory_assignment(self) -> bool:
        """Directories of replicas (KIP-858)."""
        return self >= MetadataVersion.IBP_3_7_IV2

    @property
    def elr(self) -> bool:
        """Eligible leader replicas (KIP-966)."""
        return self >= MetadataVersion.IBP_4_0_IV1

    @property
    def cordoned_log_dirs(self) -> bool:
        return self >= MetadataVersion.IBP_4_3_IV0

    @property
    def controller_unregistration(self) -> bool:
        """UnregisterControllerRecord (KIP-1312)."""
        return self >= MetadataVersion.IBP_4_4_IV2


MINIMUM: Final = MetadataVersion.IBP_3_3_IV3
DEFAULT: Final = MetadataVersion.IBP_4_3_IV0
"""The level of a new cluster; a later one only on request (decision 12)."""
LATEST_PRODUCTION: Final = MetadataVersion.IBP_4_4_IV2
LATEST: Final = MetadataVersion.IBP_4_5_IV0

_CHANGED_METADATA: Final = frozenset(
    MetadataVersion(level) for level in (7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33)
)


def metadata_version_of(level: int) -> MetadataVersion:
    """The metadata.version of a feature level; raises FeatureError for one that is unknown."""
    try:
        return MetadataVersion(level)
    except ValueError:
        raise FeatureError(
            f"No MetadataVersion with feature level {level}. "
            f"Valid feature levels are from {MINIMUM:d} to {LATEST:d}."
        ) from None


def parse_metadata_version(text: str, unstable: bool = False) -> MetadataVersion:
    """The metadata.version of `4.3-IV0`, or of a release `4.3` or `4.3.1` (its newest level).

    With `unstable` also those that may still change. Raises FeatureError.
    """
    last = LATEST if unstable else LATEST_PRODUCTION
    key = ".".join(text.split(".")[:2])
    for version in sorted(MetadataVersion, reverse=True):
        if version <= last and (str(version) == key or _names_release(version, key)):
            return version
    known = ", ".join(str(version) for version in MetadataVersion if version <= last)
    raise FeatureError(
        f"Unknown metadata.version '{text}'. Supported metadata.version are: {known}"
    )


def _names_release(version: MetadataVersion, key: str) -> bool:
    return version.in_production and version.release == key


def metadata_changed_between(one: MetadataVersion, other: MetadataVersion) -> bool:
    """True when going from the higher to the lower level would lose metadata."""
    low, high = sorted((one, other))
    return any(low < version <= high and version.changed_metadata for version in MetadataVersion)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature beside metadata.version; its levels count up from 0."""

    name: str
    latest_production: int
    bootstrap: tuple[MetadataVersion, ...]
    """For each level, the metadata.version from which it is the default of a new cluster."""
    dependencies: tuple[Mapping[str, int], ...]
    """For each level, the levels that other features must have at least."""

    @property
    def max_level(self) -> int:
        return len(self.bootstrap) - 1

    def default_level(self, metadata_version: MetadataVersion) -> int:
        """The level that a cluster formatted at `metadata_version` starts with."""
        fitting = [level for level, since in enumerate(self.bootstrap) if since <= metadata_version]
        return max(fitting, default=0)

    def check(self, level: int, levels: Mapping[str, int]) -> None:
        """Raise FeatureError unless `level` exists and may be set beside `levels` (by name)."""
        if not 0 <= level <= self.max_level:
            raise FeatureError(f"No feature:{self.name} with feature level {level}")
        if level and levels.get(METADATA_VERSION, 0) < MINIMUM:
            raise FeatureError(
                f"{self.name} could not be set to {level} because it depends on "
                f"metadata.version={MINIMUM:d} ({MINIMUM})"
            )
        for name, needed in self.dependencies[level].items():
            if levels.get(name, 0) < needed:
                raise FeatureError(
                    f"{self.name} could not be set to {level} because it depends on "
                    f"{name} level {needed:d}"
                )


def _feature(name: str, *since: MetadataVersion, needs: Mapping[str, int] | None = None) -> Feature:
    levels = (MINIMUM, *since)
    dependencies: tuple[Mapping[str, int], ...] = ({},) + (needs or {},) * len(since)
    return Feature(name, len(since), levels, dependencies)


FEATURES: Final = {
    feature.name: feature
    for feature in (
        _feature(KRAFT_VERSION, MetadataVersion.IBP_3_9_IV0),
        _feature("transaction.version", MetadataVersion.IBP_4_0_IV2, MetadataVersion.IBP_4_0_IV2),
        _feature("group.version", MetadataVersion.IBP_4_0_IV0),
        _feature(
            "eligible.leader.replicas.version",
            MetadataVersion.IBP_4_1_IV0,
            needs={METADATA_VERSION: MetadataVersion.IBP_4_0_IV1},
        ),
        _feature("share.version", MetadataVersion.IBP_4_2_IV0, MetadataVersion.IBP_4_4_IV0),
        _feature("streams.version", MetadataVersion.IBP_4_2_IV1),
    )
}
"""By name, in Kafka's order. metadata.version itself is not one of them."""


def feature(name: str) -> Feature:
    """The feature of this name; raises FeatureError."""
    try:
        return FEATURES[name]
    except KeyError:
        raise FeatureError(f"Feature {name} not found.") from None


def supported_features(unstable: bool = False) -> dict[str, tuple[int, int]]:
    """(min, max) level by name: what a node reports in registrations and ApiVersions."""
    ranges = {METADATA_VERSION: (int(MINIMUM), int(LATEST if unstable else LATEST_PRODUCTION))}
    for name, item in FEATURES.items():
        ranges[name] = (0, item.max_level if unstable else item.latest_production)
    return ranges


def default_levels(metadata_version: MetadataVersion) -> dict[str, int]:
    """Level by name that a cluster formatted at `metadata_version` starts with, without those at 0.

    metadata.version is among them; kraft.version too where it is 1.
    """
    levels = {name: item.default_level(metadata_version) for name, item in FEATURES.items()}
    return {METADATA_VERSION: int(metadata_version)} | {
        name: level for name, level in levels.items() if level
    }


_RECORD_VERSIONS: Final[dict[str, tuple[tuple[MetadataVersion, int], ...]]] = {
    "RegisterBrokerRecord": (
        (MetadataVersion.IBP_4_3_IV0, 4),
        (MetadataVersion.IBP_3_7_IV2, 3),
        (MetadataVersion.IBP_3_4_IV0, 2),
        (MetadataVersion.IBP_3_3_IV3, 1),
    ),
    "PartitionRecord": (
        (MetadataVersion.IBP_4_0_IV1, 2),
        (MetadataVersion.IBP_3_7_IV2, 1),
    ),
    "PartitionChangeRecord": (
        (MetadataVersion.IBP_4_0_IV1, 2),
        (MetadataVersion.IBP_3_7_IV2, 1),
    ),
}


def record_version(name: str, metadata_version: MetadataVersion) -> int:
    """Which version of the record type `name` is written at `metadata_version`.

    Raises FeatureError for a record of a controller's registration where the level has none.
    BrokerRegistrationChangeRecord is the exception: see `records.change_version`.
    """
    if name == "RegisterControllerRecord" and not metadata_version.controller_registration:
        raise FeatureError(
            f"Controller registration is not supported in MetadataVersion {metadata_version}"
        )
    if name == "UnregisterControllerRecord" and not metadata_version.controller_unregistration:
        raise FeatureError(
            f"Controller unregistration is not supported in MetadataVersion {metadata_version}"
        )
    for since, version in _RECORD_VERSIONS.get(name, ()):
        if metadata_version >= since:
            return version
    return 0
