"""The rules of replay, one by one, and what each refuses."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from conformance.marker import kafka_scenario
from quorate.base.ids import Uuid
from quorate.formats import records as r
from quorate.metadata.image import MIGRATING_DIRECTORY, ConfigResource, Image
from quorate.metadata.replay import ImageDelta, ReplayError, replay

T1, T2, T3 = (Uuid(bytes(15) + bytes([n])) for n in (1, 2, 3))
D1, D2, HIGH = Uuid(b"\x01" * 16), Uuid(b"\x02" * 16), Uuid(b"\xff" * 16)


def image_of(*found):
    """The image after these records: one by one, and in one go, which must not differ."""
    delta = ImageDelta(Image())
    for record in found:
        delta.replay(record)
    image = functools.reduce(replay, found, Image())
    assert delta.apply() == image
    return image


def partition_of(image, topic_id=T1, index=0):
    return image.topics.partition(topic_id, index)


TOPIC = r.TopicRecord(name="orders", topic_id=T1)
PARTITION = r.PartitionRecord(
    partition_id=0,
    topic_id=T1,
    replicas=[1, 2],
    isr=[1, 2],
    leader=1,
    leader_epoch=4,
    partition_epoch=7,
    directories=[D1, D2],
)
BROKER = r.RegisterBrokerRecord(
    broker_id=1,
    broker_epoch=50,
    end_points=[
        r.RegisterBrokerRecord.BrokerEndpoint(name="B", host="h", port=2),
        r.RegisterBrokerRecord.BrokerEndpoint(name="A", host="h", port=1),
    ],
    log_dirs=[D2, HIGH, D1],
)


def change(**fields):
    return r.PartitionChangeRecord(partition_id=0, topic_id=T1, **fields)


class TestPartitions:
    def test_a_change_without_a_leader_keeps_the_leader_epoch(self):
        after = partition_of(image_of(TOPIC, PARTITION, change(isr=[1])))
        assert (after.isr, after.leader, after.leader_epoch, after.partition_epoch) == (
            (1,),
            1,
            4,
            8,
        )

    @pytest.mark.parametrize("leader", [1, 2, -1])
    def test_a_named_leader_raises_the_leader_epoch_even_the_same_one(self, leader):
        after = partition_of(image_of(TOPIC, PARTITION, change(leader=leader)))
        assert (after.leader, after.leader_epoch, after.partition_epoch) == (leader, 5, 8)

    def test_empty_lists_are_changes_and_null_is_none(self):
        busy = change(removing_replicas=[2], adding_replicas=[3])
        image = image_of(TOPIC, PARTITION, busy)
        assert partition_of(image).adding_replicas == (3,)
        image = replay(image, change(adding_replicas=[]))
        assert partition_of(image).adding_replicas == ()
        assert partition_of(image).removing_replicas == (2,)

    def test_new_replicas_need_new_directories(self):
        image = image_of(TOPIC, PARTITION)
        moved = replay(image, change(replicas=[1, 2, 3], directories=[D1, D2, D1]))
        assert partition_of(moved).directories == (D1, D2, D1)
        with pytest.raises(ReplayError, match="has 3 replicas but 2 directories"):
            replay(image, change(replicas=[1, 2, 3]))

    def test_replicas_without_directories_are_migrating(self):
        record = r.PartitionRecord(partition_id=0, topic_id=T1, replicas=[1, 2])
        image = image_of(TOPIC, record)
        assert partition_of(image).directories == (MIGRATING_DIRECTORY,) * 2
        image = replay(image, change(replicas=[1, 2, 3]))
        assert partition_of(image).directories == (MIGRATING_DIRECTORY,) * 3

    def test_a_second_partition_record_takes_the_place_of_the_first(self):
        again = r.PartitionRecord(partition_id=0, topic_id=T1, replicas=[3], leader=3)
        assert partition_of(image_of(TOPIC, PARTITION, again)).replicas == (3,)

    def test_recovery_state(self):
        image = image_of(TOPIC, PARTITION, change(leader=2, leader_recovery_state=1))
        assert partition_of(image).leader_recovery_state == 1
        assert partition_of(replay(image, change(isr=[2]))).leader_recovery_state == 1
        assert partition_of(replay(image, change(leader_recovery_state=0))).leader_epoch == 5

    def test_the_preferred_leader_is_the_first_replica(self):
        assert partition_of(image_of(TOPIC, PARTITION)).preferred_leader == 1
        none = r.PartitionRecord(partition_id=0, topic_id=T1)
        assert partition_of(image_of(TOPIC, none)).preferred_leader == -1


class TestTopics:
    def test_removal_takes_partitions_name_and_configs(self):
        config = r.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="1")
        other = r.ConfigRecord(resource_type=4, resource_name="orders", name="a", value="1")
        image = image_of(TOPIC, PARTITION, config, other, r.RemoveTopicRecord(topic_id=T1))
        assert image == image_of(other)
        assert image.topics.named("orders") is None

    def test_a_removed_name_may_come_back_with_another_id(self):
        again = r.TopicRecord(name="orders", topic_id=T2)
        image = image_of(TOPIC, PARTITION, r.RemoveTopicRecord(topic_id=T1), again)
        assert image.topics.named("orders").id == T2
        assert len(image.topics.named("orders").partitions) == 0

    def test_clear_elr_changes_only_partitions_that_have_any(self):
        with_elr = change(eligible_leader_replicas=[2], last_known_elr=[1])
        other = r.TopicRecord(name="other", topic_id=T2)
        plain = r.PartitionRecord(partition_id=0, topic_id=T2, replicas=[1], partition_epoch=3)
        image = image_of(TOPIC, PARTITION, with_elr, other, plain)

        assert replay(image, r.ClearElrRecord(topic_name="other")) == image
        for name in ("orders", ""):
            clear = r.ClearElrRecord(topic_name=name)
            cleared = replay(image, clear)
            assert cleared == image_of(TOPIC, PARTITION, other, plain, with_elr, clear)
            after = partition_of(cleared)
            assert (after.elr, after.last_known_elr, after.partition_epoch) == ((), (), 9)
            assert partition_of(cleared, T2) is partition_of(image, T2)


class TestBrokers:
    def test_listeners_and_directories_are_sorted(self):
        broker = image_of(BROKER).cluster.brokers[1]
        assert [endpoint.name for endpoint in broker.listeners] == ["A", "B"]
        # Uuid.compareTo is signed: what begins with 0xff comes first.
        assert broker.directories == (HIGH, D1, D2)

    def test_the_change_record_changes_what_it_names(self):
        at: dict[str, Any] = {"broker_id": 1, "broker_epoch": 50}
        image = image_of(BROKER, r.BrokerRegistrationChangeRecord(**at, fenced=-1))
        assert not image.cluster.brokers[1].fenced
        assert image.cluster.brokers[1].directories == (HIGH, D1, D2)
        shutdown = r.BrokerRegistrationChangeRecord(**at, in_controlled_shutdown=1)
        image = replay(image, shutdown)
        assert image.cluster.brokers[1].in_controlled_shutdown
        assert replay(image, r.BrokerRegistrationChangeRecord(**at)) is image
        dirs = r.BrokerRegistrationChangeRecord(**at, log_dirs=[D1], cordoned_log_dirs=[])
        broker = replay(image, dirs).cluster.brokers[1]
        assert (broker.directories, broker.cordoned_directories) == ((D1,), ())

    def test_the_old_records_fence_and_unfence(self):
        image = image_of(BROKER, r.UnfenceBrokerRecord(id=1, epoch=50))
        assert not image.cluster.brokers[1].fenced
        assert replay(image, r.FenceBrokerRecord(id=1, epoch=50)).cluster.brokers[1].fenced

    def test_unregistered_means_gone(self):
        gone = r.UnregisterBrokerRecord(broker_id=1, broker_epoch=50)
        assert image_of(BROKER, gone) == Image()


class TestControllers:
    def test_unregistered_means_gone(self):
        controller = r.RegisterControllerRecord(controller_id=2, incarnation_id=T1)
        gone = r.UnregisterControllerRecord(controller_id=2)
        assert list(image_of(controller).cluster.controllers) == [2]
        assert image_of(controller, gone) == Image()

    def test_an_image_without_the_controller_stays_as_it_is(self):
        """`ClusterDelta` asks for no registration; `Head` does, where the record is written."""
        image = image_of(r.RegisterControllerRecord(controller_id=2))
        assert replay(image, r.UnregisterControllerRecord(controller_id=3)) is image


class TestSettings:
    def test_a_feature_at_level_0_is_gone(self):
        level = functools.partial(r.FeatureLevelRecord, name="group.version")
        assert image_of(level(feature_level=1)).features.levels["group.version"] == 1
        assert image_of(level(feature_level=1), level(feature_level=0)) == Image()

    def test_kraft_version_is_no_feature_of_the_image(self):
        assert image_of(r.FeatureLevelRecord(name="kraft.version", feature_level=1)) == Image()

    def test_a_config_set_to_null_is_gone_and_its_resource_too(self):
        first = r.ConfigRecord(resource_type=4, resource_name="", name="a", value="1")
        second = r.ConfigRecord(resource_type=4, resource_name="", name="b", value="")
        image = image_of(first, second)
        assert dict(image.configs[ConfigResource(4, "")]) == {"a": "1", "b": ""}
        gone = [
            r.ConfigRecord(resource_type=4, resource_name="", name=n, value=None) for n in "cab"
        ]
        assert functools.reduce(replay, gone, image) == Image()

    def test_a_quota_belongs_to_its_entity_in_any_order(self):
        user = r.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)
        client = r.ClientQuotaRecord.EntityData(entity_type="client-id", entity_name="c")
        quota = r.ClientQuotaRecord(entity=[user, client], key="producer_byte_rate", value=5.0)
        image = image_of(quota)
        assert list(image.client_quotas) == [(("client-id", "c"), ("user", None))]
        gone = r.ClientQuotaRecord(entity=[client, user], key="producer_byte_rate", remove=True)
        assert replay(image, gone) == Image()

    def test_records_without_effect(self):
        for record in (r.NoOpRecord(), r.ZkMigrationStateRecord(zk_migration_state=3)):
            assert replay(Image(), record) == Image()


REFUSED = [
    ([], PARTITION, "names topic AAAAAAAAAAAAAAAAAAAAAQ, which does not exist"),
    ([], change(leader=1), "PartitionChangeRecord: .*which does not exist"),
    ([TOPIC], change(leader=1), "has no partition 0"),
    ([TOPIC, PARTITION], change(leader_recovery_state=7), "7 is no leader recovery state"),
    (
        [TOPIC],
        r.PartitionRecord(partition_id=3, topic_id=T1, replicas=[1], directories=[D1, D2]),
        "partition 3 .* has 1 replicas but 2 directories",
    ),
    (
        [TOPIC],
        r.PartitionRecord(
            partition_id=3, topic_id=T1, replicas=[1], directories=[MIGRATING_DIRECTORY] * 2
        ),
        "partition 3 .* has 1 replicas but 2 directories",
    ),
    ([TOPIC], TOPIC, "'orders' exists already with id"),
    ([TOPIC], r.TopicRecord(name="orders", topic_id=T2), "'orders' exists already with id"),
    ([TOPIC], r.TopicRecord(name="new", topic_id=T1), "belongs to topic 'orders'"),
    ([], r.RemoveTopicRecord(topic_id=T3), "no topic has the id AAAAAAAAAAAAAAAAAAAAAw"),
    ([], r.ClearElrRecord(topic_name="x"), "there is no topic 'x'"),
    ([], r.UnregisterBrokerRecord(broker_id=9), "broker 9 is not registered"),
    ([BROKER], r.FenceBrokerRecord(id=1, epoch=49), "with epoch 50, the record says 49"),
    ([BROKER], r.UnfenceBrokerRecord(id=1, epoch=49), "with epoch 50, the record says 49"),
    (
        [BROKER],
        r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=50, fenced=3),
        "fenced cannot be 3",
    ),
    (
        [BROKER],
        r.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=50, in_controlled_shutdown=-1),
        "in controlled shutdown cannot be -1",
    ),
    (
        [],
        r.RegisterBrokerRecord(end_points=[r.RegisterBrokerRecord.BrokerEndpoint()]),
        "broker 0 has a listener without a name",
    ),
    (
        [],
        r.RegisterControllerRecord(
            end_points=[
                r.RegisterControllerRecord.ControllerEndpoint(name="C", security_protocol=4)
            ]
        ),
        "listener C has the unknown security protocol 4",
    ),
    (
        [],
        r.FeatureLevelRecord(name="metadata.version", feature_level=35),
        "No MetadataVersion with feature level 35",
    ),
    (
        [r.ProducerIdsRecord(next_producer_id=1000)],
        r.ProducerIdsRecord(next_producer_id=1000),
        "1000 is not above the current 1000",
    ),
    ([], r.RemoveAccessControlEntryRecord(id=T1), "no ACL has the id"),
    (
        [],
        r.RemoveUserScramCredentialRecord(name="alice", mechanism=1),
        "user 'alice' has no credential of mechanism 1",
    ),
    (
        [],
        r.DelegationTokenRecord(token_id="t", owner="alice", requester="User:b"),
        "token t: 'alice' is no principal",
    ),
    (
        [],
        r.DelegationTokenRecord(
            token_id="t", owner="User:a", requester="User:b", renewers=["User:c", "carol"]
        ),
        "token t: 'carol' is no principal",
    ),
    ([], r.BeginTransactionRecord(), "BeginTransactionRecord marks a transaction"),
    ([], "no record", "str has no meaning to the image"),
]


@kafka_scenario("ReplicationControlManagerTest", "duplicateTopicIdReplay")
@pytest.mark.parametrize(("before", "record", "words"), REFUSED, ids=lambda v: str(v)[:40])
def test_what_does_not_fit_is_refused_with_the_facts(before, record, words):
    image = image_of(*before)
    with pytest.raises(ReplayError, match=words) as caught:
        replay(image, record)
    assert str(caught.value).startswith(type(record).__name__)


def test_a_token_is_removed_whether_or_not_it_is_there():
    token = r.DelegationTokenRecord(token_id="x", owner="User:a", requester="User:a")
    gone = r.RemoveDelegationTokenRecord(token_id="x")
    assert len(image_of(token).delegation_tokens) == 1
    assert image_of(token, gone, gone) == Image()
