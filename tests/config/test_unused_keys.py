"""The rules between the keys of Kafka's group coordinators."""

import pytest

from config.test_config import GOOD
from quorate.config.node_file import load_config
from quorate.config.settings import ConfigError

KINDS = ("consumer", "share", "streams")
NAMES = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")


def _least(kind, name):
    return {f"group.{kind}.max.{name}": "3", f"group.{kind}.min.{name}": "4"}


GROUP_REFUSALS = [
    *(
        (_least(kind, name), f"group.{kind}.max.{name} must be greater than or equal to ")
        for kind in KINDS
        for name in NAMES
    ),
    ({"group.share.heartbeat.interval.ms": "4999"}, "greater than or equal to group.share.min.hea"),
    ({"group.streams.session.timeout.ms": "60001"}, "must be less than or equal to group.str"),
    ({"group.consumer.assignment.interval.ms": "15001"}, "less than or equal to group.consumer.m"),
    (
        {
            "group.consumer.max.heartbeat.interval.ms": "45000",
            "group.consumer.heartbeat.interval.ms": "45000",
        },
        "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
    ),
    (
        {"group.streams.num.standby.replicas": "3"},
        "must be less than or equal to group.streams.max.standby.replicas",
    ),
    (
        {"group.share.delivery.count.limit": "7", "group.share.max.delivery.count.limit": "6"},
        "group.share.max.delivery.count.limit must be greater than or equal to group.share.deliver",
    ),
    (
        {"group.share.delivery.count.limit": "2", "group.share.min.delivery.count.limit": "3"},
        "group.share.delivery.count.limit must be greater than or equal to group.share.min.deliver",
    ),
    ({"group.share.partition.max.record.locks": "4001"}, "group.share.max.partition.max.record.lo"),
    (
        {
            "group.share.min.partition.max.record.locks": "300",
            "group.share.partition.max.record.locks": "200",
        },
        "greater than or equal to group.share.min.partition.max.record.locks",
    ),
    ({"group.share.record.lock.duration.ms": "14999"}, "equal to group.share.min.record.lock.dur"),
    ({"group.share.record.lock.duration.ms": "60001"}, "group.share.max.record.lock.duration.ms"),
    ({"group.share.max.share.sessions": "199"}, "greater than or equal to group.share.max.size"),
    ({"offsets.topic.compression.codec": "5"}, "Unknown compression type id: 5"),
    (
        {"share.coordinator.state.topic.compression.codec": "-1"},
        "Unknown compression type id: -1",
    ),
    ({"group.consumer.assignors": ""}, "Valid values include: any non-empty value"),
    ({"group.consumer.assignors": "uniform,,range"}, "values must not be empty."),
    ({"group.share.assignors": ","}, "Configuration 'group.share.assignors' values must not be em"),
    ({"group.share.assignors": "simple,range"}, "exactly one assignor, but found 2"),
    ({"group.consumer.migration.policy": "x"}, "String must be one of (case insensitive): "),
    ({"sasl.enabled.mechanisms": "PLAIN,,GSSAPI"}, "values must not be empty."),
]

GROUP_ACCEPTED = [
    {"group.consumer.session.timeout.ms": "60000", "group.consumer.heartbeat.interval.ms": "15000"},
    {"group.share.assignors": "simple, simple", "group.consumer.assignors": "range,uniform"},
    {"offsets.topic.compression.codec": "4", "group.consumer.migration.policy": "upGrade"},
    {"sasl.enabled.mechanisms": ""},
    {"group.streams.max.standby.replicas": "0", "group.share.max.size": "1000"},
]


@pytest.fixture
def load(tmp_path):
    def load(change):
        path = tmp_path / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in (GOOD | change).items()))
        return load_config(path)

    return load


@pytest.mark.parametrize(("change", "message"), GROUP_REFUSALS, ids=str)
def test_contradictory_group_keys_are_refused(load, change, message):
    with pytest.raises(ConfigError) as caught:
        load(change)
    assert message in str(caught.value)


@pytest.mark.parametrize("change", GROUP_ACCEPTED, ids=str)
def test_consistent_group_keys_are_accepted(load, change):
    load(change)
