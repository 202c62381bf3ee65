"""Random images and random records, small enough that records meet each other."""

from __future__ import annotations

import functools

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from immutables import Map

from quorate.base.ids import Uuid
from quorate.formats import records as r
from quorate.formats.versions import LATEST_PRODUCTION, MetadataVersion
from quorate.metadata.image import (
    ELR_FEATURE,
    MIGRATING_DIRECTORY,
    Acl,
    Broker,
    Cluster,
    ConfigResource,
    Controller,
    DelegationToken,
    Endpoint,
    Features,
    Image,
    Partition,
    ScramCredential,
    ScramKey,
    Topic,
    Topics,
    VersionRange,
    uuid_sort_key,
)
from time_budget import examples

metadata_versions = st.sampled_from([v for v in MetadataVersion if v <= LATEST_PRODUCTION])


# A busy machine is no failure.
calm = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(60)
)


def uuid_of(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
some_names = st.sampled_from(["", "a", "b", "überall"])
any_uuids = st.binary(min_size=16, max_size=16).map(Uuid)
node_ids = st.integers(0, 3)
epochs = st.integers(0, 2**31 - 2)
longs = st.integers(-(2**63), 2**63 - 1)
int8s = st.integers(-128, 127)
id_tuples = st.lists(node_ids, max_size=3, unique=True).map(tuple)
principals = st.builds("{}:{}".format, st.sampled_from(["User", "Group"]), names)
quota_values = st.floats(allow_nan=False)


def maps(keys, values, max_size=3):
    return st.dictionaries(keys, values, max_size=max_size).map(Map)


def sorted_by_name(elements):
    return st.lists(elements, max_size=3, unique_by=lambda e: e.name).map(
        lambda found: tuple(sorted(found))
    )


endpoints = sorted_by_name(
    st.builds(Endpoint, names.filter(bool), names, st.integers(0, 65535), st.integers(0, 3))
)
version_ranges = sorted_by_name(
    st.builds(VersionRange, names, st.integers(0, 32767), st.integers(0, 32767))
)
directory_lists = st.lists(any_uuids, max_size=3).map(
    lambda found: tuple(sorted(found, key=uuid_sort_key))
)
quota_entities = st.dictionaries(
    st.sampled_from(["user", "client-id", "ip"]), st.none() | names, min_size=1, max_size=2
).map(lambda entity: tuple(sorted(entity.items(), key=lambda pair: pair[0])))


@functools.cache
@st.composite
def brokers(draw, version):
    return Broker(
        id=draw(node_ids),
        epoch=draw(longs),
        incarnation_id=draw(any_uuids),
        listeners=draw(endpoints),
        features=draw(version_ranges),
        rack=draw(st.none() | names),
        fenced=draw(st.booleans()),
        in_controlled_shutdown=draw(st.booleans()),
        is_migrating_zk_broker=version >= MetadataVersion.IBP_3_4_IV0 and draw(st.booleans()),
        directories=draw(directory_lists) if version.directory_assignment else (),
        cordoned_directories=draw(st.none() | directory_lists)
        if version.cordoned_log_dirs
        else None,
    )


controllers = st.builds(
    Controller,
    id=node_ids,
    incarnation_id=any_uuids,
    zk_migration_ready=st.booleans(),
    listeners=endpoints,
    features=version_ranges,
)


@functools.cache
@st.composite
def partitions(draw, version, elr):
    replicas = draw(id_tuples)
    count = len(replicas)
    directories = (MIGRATING_DIRECTORY,) * count
    if version.directory_assignment:
        directories = draw(
            st.just(directories) | st.lists(any_uuids, min_size=count, max_size=count).map(tuple)
        )
    return Partition(
        replicas,
        directories,
        draw(id_tuples),
        draw(st.just(()) | id_tuples),
        draw(st.just(()) | id_tuples),
        draw(st.integers(-1, 3)),
        draw(st.integers(0, 1)),
        draw(epochs),
        draw(epochs),
        draw(id_tuples) if elr else (),
        draw(id_tuples) if elr else (),
    )


@functools.cache
@st.composite
def topic_images(draw, version, elr):
    by_name = draw(
        st.dictionaries(
            names,
            st.tuples(any_uuids, maps(st.integers(0, 40), partitions(version, elr), 4)),
            max_size=3,
        )
    )
    by_id = {topic_id: Topic(topic_id, name, found) for name, (topic_id, found) in by_name.items()}
    return Topics(Map(by_id), Map({topic.name: topic.id for topic in by_id.values()}))


acls = st.builds(Acl, int8s, names, int8s, principals, names, int8s, int8s)
tokens = st.builds(
    DelegationToken,
    principals,
    principals,
    st.lists(principals, max_size=2).map(tuple),
    longs,
    longs,
    longs,
)
secrets = st.binary(max_size=8)
credentials = st.builds(ScramCredential, secrets, secrets, secrets, epochs)
scram_keys = st.builds(ScramKey, st.integers(1, 2), names)
nonempty = st.dictionaries(names, names, min_size=1, max_size=2).map(Map)
quotas = st.dictionaries(names, quota_values, min_size=1, max_size=2).map(Map)
feature_levels = maps(names.filter(lambda n: "version" not in n), st.integers(1, 32767))
acl_maps = maps(any_uuids, acls)
scram_maps = maps(scram_keys, credentials)
token_maps = maps(names, tokens)
config_maps = maps(st.builds(ConfigResource, int8s, names), nonempty)
quota_maps = maps(quota_entities, quotas)


@st.composite
def images(draw, versions=metadata_versions):
    """Images that can be written at their own metadata.version without a loss."""
    version = draw(versions)
    levels = draw(feature_levels)
    elr = version.elr and draw(st.booleans())
    if elr:
        levels = levels.set(ELR_FEATURE, 1)
    found_brokers = draw(st.lists(brokers(version), max_size=3))
    found_controllers = draw(st.lists(controllers, max_size=3))
    if not version.controller_registration:
        found_controllers = []
    return Image(
        features=Features(version, levels),
        cluster=Cluster(
            Map({broker.id: broker for broker in found_brokers}),
            Map({controller.id: controller for controller in found_controllers}),
        ),
        topics=draw(topic_images(version, elr)),
        configs=draw(config_maps),
        client_quotas=draw(quota_maps),
        next_producer_id=draw(st.just(-1) | st.integers(0, 2**63 - 1)),
        acls=draw(acl_maps),
        scram=draw(scram_maps) if version.scram else Map(),
        delegation_tokens=draw(token_maps) if version.delegation_tokens else Map(),
    )


topic_ids = st.integers(1, 3).map(uuid_of)
directory_ids = st.integers(0, 3).map(uuid_of)
indexes = st.integers(0, 2)
small_epochs = st.integers(0, 1)
id_lists = st.lists(node_ids, max_size=3)
few_names = st.sampled_from(["a", "b", "c"])
few_principals = st.sampled_from(["User:a", "User:b"])
optional_ids = st.none() | id_lists
directory_id_lists = st.lists(directory_ids, max_size=3)


@st.composite
def partition_records(draw):
    replicas = draw(id_lists)
    count = len(replicas)
    paired = st.lists(directory_ids, min_size=count, max_size=count)
    return r.PartitionRecord(
        partition_id=draw(indexes),
        topic_id=draw(topic_ids),
        replicas=replicas,
        isr=draw(id_lists),
        removing_replicas=draw(id_lists),
        adding_replicas=draw(id_lists),
        leader=draw(st.integers(-1, 3)),
        leader_recovery_state=draw(st.sampled_from([0, 0, 0, 1, 2])),
        leader_epoch=draw(st.integers(0, 3)),
        partition_epoch=draw(st.integers(0, 3)),
        directories=draw(paired | paired | directory_id_lists),
        eligible_leader_replicas=draw(optional_ids),
        last_known_elr=draw(optional_ids),
    )


partition_change_records = st.builds(
    r.PartitionChangeRecord,
    partition_id=indexes,
    topic_id=topic_ids,
    isr=optional_ids,
    leader=st.integers(-2, 3),
    replicas=optional_ids,
    removing_replicas=optional_ids,
    adding_replicas=optional_ids,
    leader_recovery_state=st.sampled_from([-1, -1, 0, 1, 5]),
    directories=st.none() | directory_id_lists,
    eligible_leader_replicas=optional_ids,
    last_known_elr=optional_ids,
)

broker_endpoints = st.builds(
    r.RegisterBrokerRecord.BrokerEndpoint,
    name=some_names,
    host=few_names,
    port=st.integers(0, 2),
    security_protocol=st.sampled_from([0, 1, 2, 3, 3, 4]),
)
broker_features = st.builds(
    r.RegisterBrokerRecord.BrokerFeature,
    name=few_names,
    min_supported_version=st.integers(0, 2),
    max_supported_version=st.integers(0, 2),
)
controller_endpoints = st.builds(
    r.RegisterControllerRecord.ControllerEndpoint,
    name=some_names,
    host=few_names,
    port=st.integers(0, 2),
    security_protocol=st.integers(0, 4),
)
quota_parts = st.builds(
    r.ClientQuotaRecord.EntityData,
    entity_type=st.sampled_from(["user", "client-id"]),
    entity_name=st.none() | few_names,
)

by_type = {
    r.RegisterBrokerRecord: st.builds(
        r.RegisterBrokerRecord,
        broker_id=node_ids,
        broker_epoch=small_epochs,
        incarnation_id=topic_ids,
        end_points=st.lists(broker_endpoints, max_size=2),
        features=st.lists(broker_features, max_size=2),
        rack=st.none() | few_names,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=st.lists(any_uuids, max_size=2),
        cordoned_log_dirs=st.none() | directory_id_lists,
    ),
    r.UnregisterBrokerRecord: st.builds(
        r.UnregisterBrokerRecord, broker_id=node_ids, broker_epoch=small_epochs
    ),
    r.TopicRecord: st.builds(r.TopicRecord, name=few_names, topic_id=topic_ids),
    r.PartitionRecord: partition_records(),
    r.ConfigRecord: st.builds(
        r.ConfigRecord,
        resource_type=st.sampled_from([2, 4]),
        resource_name=few_names,
        name=few_names,
        value=st.none() | few_names,
    ),
    r.PartitionChangeRecord: partition_change_records,
    r.FenceBrokerRecord: st.builds(r.FenceBrokerRecord, id=node_ids, epoch=small_epochs),
    r.UnfenceBrokerRecord: st.builds(r.UnfenceBrokerRecord, id=node_ids, epoch=small_epochs),
    r.RemoveTopicRecord: st.builds(r.RemoveTopicRecord, topic_id=topic_ids),
    r.DelegationTokenRecord: st.builds(
        r.DelegationTokenRecord,
        owner=few_principals | few_names,
        requester=few_principals,
        renewers=st.lists(few_principals, max_size=2),
        issue_timestamp=small_epochs,
        token_id=few_names,
    ),
    r.UserScramCredentialRecord: st.builds(
        r.UserScramCredentialRecord,
        name=few_names,
        mechanism=st.integers(1, 2),
        salt=st.binary(max_size=2),
        iterations=small_epochs,
    ),
    r.FeatureLevelRecord: st.builds(
        r.FeatureLevelRecord,
        name=st.sampled_from(["metadata.version", "kraft.version", "group.version"]),
        feature_level=st.integers(0, 35),
    ),
    r.ClientQuotaRecord: st.builds(
        r.ClientQuotaRecord,
        entity=st.lists(quota_parts, max_size=2),
        key=few_names,
        value=quota_values,
        remove=st.booleans(),
    ),
    r.ProducerIdsRecord: st.builds(r.ProducerIdsRecord, next_producer_id=st.integers(0, 5)),
    r.BrokerRegistrationChangeRecord: st.builds(
        r.BrokerRegistrationChangeRecord,
        broker_id=node_ids,
        broker_epoch=small_epochs,
        fenced=st.integers(-1, 2),
        in_controlled_shutdown=st.integers(0, 2),
        log_dirs=st.lists(any_uuids, max_size=2),
        cordoned_log_dirs=st.none() | directory_id_lists,
    ),
    r.AccessControlEntryRecord: st.builds(
        r.AccessControlEntryRecord,
        id=topic_ids,
        resource_type=st.integers(2, 3),
        resource_name=few_names,
        principal=few_principals,
    ),
    r.RemoveAccessControlEntryRecord: st.builds(r.RemoveAccessControlEntryRecord, id=topic_ids),
    r.NoOpRecord: st.builds(r.NoOpRecord),
    r.ZkMigrationStateRecord: st.builds(r.ZkMigrationStateRecord, zk_migration_state=int8s),
    r.RemoveUserScramCredentialRecord: st.builds(
        r.RemoveUserScramCredentialRecord, name=few_names, mechanism=st.integers(1, 2)
    ),
    r.RemoveDelegationTokenRecord: st.builds(r.RemoveDelegationTokenRecord, token_id=few_names),
    r.RegisterControllerRecord: st.builds(
        r.RegisterControllerRecord,
        controller_id=node_ids,
        incarnation_id=topic_ids,
        zk_migration_ready=st.booleans(),
        end_points=st.lists(controller_endpoints, max_size=2),
    ),
    r.UnregisterControllerRecord: st.builds(r.UnregisterControllerRecord, controller_id=node_ids),
    r.ClearElrRecord: st.builds(r.ClearElrRecord, topic_name=st.just("") | few_names),
    r.BeginTransactionRecord: st.builds(r.BeginTransactionRecord),
    r.EndTransactionRecord: st.builds(r.EndTransactionRecord),
    r.AbortTransactionRecord: st.builds(r.AbortTransactionRecord),
}
any_records = st.one_of(*by_type.values())
