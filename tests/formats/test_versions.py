from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.formats.versions import (
    DEFAULT,
    FEATURES,
    LATEST,
    LATEST_PRODUCTION,
    MINIMUM,
    FeatureError,
    MetadataVersion,
    default_levels,
    feature,
    metadata_changed_between,
    metadata_version_of,
    parse_metadata_version,
    record_version,
    supported_features,
)


def test_levels_and_names() -> None:
    assert [int(version) for version in MetadataVersion] == list(range(7, 35))
    assert str(MetadataVersion(7)) == "3.3-IV3"
    assert str(MetadataVersion(30)) == "4.3-IV0"
    assert MetadataVersion(30).release == "4.3"
    assert str(MetadataVersion(33)) == "4.4-IV2"
    assert (MINIMUM, DEFAULT, LATEST_PRODUCTION, LATEST) == (7, 30, 33, 34)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        *(("3.3-IV3", 7), ("3.3", 7), ("3.9", 21), ("3.9-IV0", 21), ("4.0", 25), ("4.0.1", 25)),
        *(("4.1-IV0", 26), ("4.3", 30), ("4.3.1", 30), ("3.7-IV4", 19), ("3.7.2", 19)),
        *(("4.4-IV0", 31), ("4.4-IV1", 32), ("4.4", 33), ("4.4.0", 33)),
    ],
)
def test_a_release_means_its_newest_level(text: str, level: int) -> None:
    assert parse_metadata_version(text) == level


@pytest.mark.parametrize("text", ["4.5", "4.5-IV0", "3.2", "abc", "", "5.0", "4.3-IV1"])
def test_an_unknown_release_lists_the_known_ones(text: str) -> None:
    with pytest.raises(FeatureError, match=r"Supported metadata.version are: 3.3-IV3, .*4.4-IV2$"):
        parse_metadata_version(text)


def test_unstable_levels_are_there_when_asked_for() -> None:
    assert parse_metadata_version("4.5-IV0", unstable=True) == 34
    assert not LATEST.in_production
    with pytest.raises(FeatureError, match=r"4.5-IV0$"):
        parse_metadata_version("9", unstable=True)


def test_a_level_without_a_version_is_refused() -> None:
    assert metadata_version_of(21) is MetadataVersion.IBP_3_9_IV0
    with pytest.raises(
        FeatureError, match=r"feature level 6. Valid feature levels are from 7 to 34.$"
    ):
        metadata_version_of(6)


AT_4_3 = {
    "kraft.version": 1,
    "transaction.version": 2,
    "group.version": 1,
    "eligible.leader.replicas.version": 1,
    "share.version": 1,
    "streams.version": 1,
}


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (7, {}),
        (21, {"kraft.version": 1}),
        (24, {"kraft.version": 1, "group.version": 1, "transaction.version": 2}),
        (30, AT_4_3),
        (31, AT_4_3 | {"share.version": 2}),
        (33, AT_4_3 | {"share.version": 2}),
    ],
)
def test_defaults_of_a_new_cluster(level: int, expected: dict[str, int]) -> None:
    found = default_levels(MetadataVersion(level))
    assert found == {"metadata.version": level} | expected


@kafka_scenario(
    "QuorumFeaturesTest",
    "defaultFeatureMap",
    "defaultFeatureMapWithUnstable",
    "ensureDefaultSupportedFeaturesRangeMaxNotZero",
)
def test_what_a_node_reports() -> None:
    assert supported_features() == {
        "metadata.version": (7, 33),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "share.version": (0, 2),
        "streams.version": (0, 1),
    }
    assert supported_features(unstable=True)["metadata.version"] == (7, 34)


def test_dependencies_are_checked() -> None:
    elr = feature("eligible.leader.replicas.version")
    elr.check(1, {"metadata.version": 23})
    elr.check(0, {})
    with pytest.raises(FeatureError, match=r"depends on metadata.version level 23"):
        elr.check(1, {"metadata.version": 22})
    with pytest.raises(FeatureError, match=r"depends on metadata.version=7 \(3.3-IV3\)"):
        feature("group.version").check(1, {})
    with pytest.raises(FeatureError, match=r"No feature:group.version with feature level 2"):
        feature("group.version").check(2, {"metadata.version": 30})
    with pytest.raises(FeatureError, match=r"Feature gruop.version not found"):
        feature("gruop.version")


def test_no_default_comes_before_its_dependencies() -> None:
    for version in MetadataVersion:
        levels = default_levels(version)
        for name, item in FEATURES.items():
            item.check(levels.get(name, 0), levels)


@kafka_scenario("ClusterControlManagerTest", "registerBrokerRecordVersion")
@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("RegisterBrokerRecord", {7: 1, 8: 2, 16: 2, 17: 3, 29: 3, 30: 4, 33: 4}),
        ("PartitionRecord", {7: 0, 16: 0, 17: 1, 22: 1, 23: 2, 30: 2, 33: 2}),
        ("PartitionChangeRecord", {7: 0, 17: 1, 23: 2}),
        ("RegisterControllerRecord", {15: 0, 30: 0}),
        ("UnregisterControllerRecord", {33: 0, 34: 0}),
        ("TopicRecord", {7: 0, 30: 0}),
    ],
)
def test_record_versions(name: str, versions: dict[int, int]) -> None:
    for level, version in versions.items():
        assert record_version(name, MetadataVersion(level)) == version


def test_controllers_cannot_register_below_3_7() -> None:
    with pytest.raises(FeatureError, match=r"not supported in MetadataVersion 3.6-IV2"):
        record_version("RegisterControllerRecord", MetadataVersion(14))


def test_controllers_cannot_unregister_below_4_4_iv2() -> None:
    with pytest.raises(FeatureError, match=r"not supported in MetadataVersion 4.4-IV1"):
        record_version("UnregisterControllerRecord", MetadataVersion(32))


def test_losing_metadata_on_a_downgrade_is_known() -> None:
    assert metadata_changed_between(MetadataVersion(30), MetadataVersion(29))
    assert not metadata_changed_between(MetadataVersion(29), MetadataVersion(23))
    assert metadata_changed_between(MetadataVersion(22), MetadataVersion(23))
    assert metadata_changed_between(MetadataVersion(33), MetadataVersion(32))
    assert metadata_changed_between(MetadataVersion(32), MetadataVersion(31))
    assert not metadata_changed_between(MetadataVersion(31), MetadataVersion(30))
    assert not metadata_changed_between(MetadataVersion(9), MetadataVersion(9))
