"""The changes of each record, thing by thing.

`quorate.metadata` defines the meaning of each record. The rules here apply it to one thing at a
time, so that tasks can work on different things independently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from immutables import Map

from quorate.formats.control import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from quorate.formats.records import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from quorate.formats.versions import KRAFT_VERSION
from quorate.metadata import cluster, security, settings
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import Broker, Cluster, Features, Topic, Topics
from quorate.metadata.interning import Interner
from quorate.metadata.topics import TopicsDelta, merge
from quorate.spark.tables.kinds import (
    ACLS,
    BROKERS,
    CONFIGS,
    CONTROLLERS,
    FEATURES,
    LEADERS,
    MECHANISMS,
    PARTITIONS,
    PRODUCER_IDS,
    QUOTAS,
    SCRAM,
    TOKENS,
    TOPICS,
    VOTERS,
    Key,
    ThingKind,
    TopicPartition,
    acl_row,
    config_type,
    feature_row,
    quota_key,
    text_of,
    token_row,
    word,
)
from quorate.wire.schema import Message

TOPIC_CONFIGS: Final = "topic"


class ThingChange(NamedTuple):
    """A thing before and after a record; None when it does not exist."""

    kind: ThingKind
    key: Key
    before: Any
    after: Any


class StateView(Protocol):
    """The state before a record, as the rules query it."""

    def get(self, kind: ThingKind, key: Key) -> Any:
        """The value of a thing; None when it does not exist."""

    def partitions(self, topic_id: str) -> Iterable[int]:
        """The partitions of a topic, ascending."""

    def topic_ids(self) -> Iterable[str]:
        """The ids of all topics."""

    def configs(self, resource_type: str, resource_name: str) -> Iterable[str]:
        """The names of the configs of a resource, sorted."""

    def voters(self) -> Iterable[Key]:
        """The keys of all voters."""

    @property
    def offset(self) -> int:
        """The offset at which the record takes effect."""

    @property
    def epoch(self) -> int:
        """The epoch of the leader that wrote the record."""

    @property
    def interner(self) -> Interner:
        """Shares equal tuples."""


Rule = Callable[[StateView, Any], Iterable[ThingChange]]


def thing_changes(state: StateView, record: Message) -> Iterable[ThingChange]:
    """The changes of a record; none for a type that does not concern the state.

    Raises ReplayError when the record does not fit the state.
    """
    rule = RULES.get(type(record))
    return () if rule is None else rule(state, record)


def remove_topic_configs(state: StateView, name: str) -> Iterator[ThingChange]:
    """The removal of the configs of a removed topic."""
    for config in state.configs(TOPIC_CONFIGS, name):
        yield _removal(state, CONFIGS, (TOPIC_CONFIGS, name, config))


def _set(state: StateView, kind: ThingKind, key: Key, value: Any) -> ThingChange:
    return ThingChange(kind, key, state.get(kind, key), value)


def _removal(state: StateView, kind: ThingKind, key: Key) -> ThingChange:
    return ThingChange(kind, key, state.get(kind, key), None)


def _create_topic(state: StateView, record: TopicRecord) -> Iterator[ThingChange]:
    key = (text_of(record.topic_id),)
    known = state.get(TOPICS, key)
    if known is not None:
        raise ReplayError(f"TopicRecord: id {key[0]} belongs to topic '{known[0]}'")
    yield ThingChange(TOPICS, key, None, (record.name,))


def _remove_topic(state: StateView, record: RemoveTopicRecord) -> Iterator[ThingChange]:
    topic_id = text_of(record.topic_id)
    topic = state.get(TOPICS, (topic_id,))
    if topic is None:
        raise ReplayError(f"RemoveTopicRecord: no topic has the id {topic_id}")
    for partition in state.partitions(topic_id):
        yield _removal(state, PARTITIONS, (topic_id, partition))
    yield ThingChange(TOPICS, (topic_id,), topic, None)


def _create_partition(state: StateView, record: PartitionRecord) -> Iterator[ThingChange]:
    topic_id, index = text_of(record.topic_id), record.partition_id
    topic = state.get(TOPICS, (topic_id,))
    if topic is None:
        raise ReplayError(
            f"PartitionRecord: partition {index} names topic {topic_id}, which does not exist"
        )
    alone = Topic(record.topic_id, topic[0], Map())
    delta = TopicsDelta(Topics(Map({alone.id: alone}), Map()), state.interner)
    delta.create_partition(record)
    made = delta.apply().by_id[alone.id].partitions[index]
    yield _set(state, PARTITIONS, (topic_id, index), TopicPartition(topic[0], made))


def _change_partition(state: StateView, record: PartitionChangeRecord) -> Iterator[ThingChange]:
    key = (text_of(record.topic_id), record.partition_id)
    before = state.get(PARTITIONS, key)
    if before is None:
        raise ReplayError(f"PartitionChangeRecord: topic {key[0]} has no partition {key[1]}")
    after = merge(before.state, record, state.interner)
    yield ThingChange(PARTITIONS, key, before, TopicPartition(before.topic_name, after))


def _clear_elr(state: StateView, record: ClearElrRecord) -> Iterator[ThingChange]:
    """Every slice gets this record: each clears the topics that it has."""
    for topic_id in state.topic_ids():
        topic = state.get(TOPICS, (topic_id,))
        if topic is None or record.topic_name not in ("", topic[0]):
            continue
        for index in state.partitions(topic_id):
            before = state.get(PARTITIONS, (topic_id, index))
            if before.state.elr or before.state.last_known_elr:
                epoch = before.state.partition_epoch + 1
                after = before.state._replace(elr=(), last_known_elr=(), partition_epoch=epoch)
                named = TopicPartition(before.topic_name, after)
                yield ThingChange(PARTITIONS, (topic_id, index), before, named)


def _broker(
    broker_id: Callable[[Any], int], change: Callable[[Cluster, Any], Cluster]
) -> Callable[[StateView, Any], Iterator[ThingChange]]:
    def rule(state: StateView, record: Any) -> Iterator[ThingChange]:
        id = broker_id(record)
        before: Broker | None = state.get(BROKERS, (id,))
        alone: Map[int, Broker] = Map() if before is None else Map({id: before})
        after = change(Cluster(brokers=alone), record).brokers.get(id)
        yield ThingChange(BROKERS, (id,), before, after)

    return rule


def _register_controller(
    state: StateView, record: RegisterControllerRecord
) -> Iterator[ThingChange]:
    id = record.controller_id
    made = cluster.register_controller(Cluster(), record).controllers[id]
    yield _set(state, CONTROLLERS, (id,), made)


def _unregister_controller(
    state: StateView, record: UnregisterControllerRecord
) -> Iterator[ThingChange]:
    yield _removal(state, CONTROLLERS, (record.controller_id,))


def _config(state: StateView, record: ConfigRecord) -> Iterator[ThingChange]:
    key = (config_type(record.resource_type), record.resource_name, record.name)
    value = None if record.value is None else (record.value,)
    yield _set(state, CONFIGS, key, value)


def _acl(state: StateView, record: AccessControlEntryRecord) -> Iterator[ThingChange]:
    yield _set(state, ACLS, (text_of(record.id),), acl_row(security.acl_of(record)))


def _remove_acl(state: StateView, record: RemoveAccessControlEntryRecord) -> Iterator[ThingChange]:
    key = (text_of(record.id),)
    before = state.get(ACLS, key)
    if before is None:
        raise ReplayError(f"RemoveAccessControlEntryRecord: no ACL has the id {key[0]}")
    yield ThingChange(ACLS, key, before, None)


def _quota(state: StateView, record: ClientQuotaRecord) -> Iterator[ThingChange]:
    entity = settings.quota_entity({part.entity_type: part.entity_name for part in record.entity})
    value = None if record.remove else (record.value,)
    yield _set(state, QUOTAS, quota_key(entity, record.key), value)


def _scram(state: StateView, record: UserScramCredentialRecord) -> Iterator[ThingChange]:
    key = (record.name, word(MECHANISMS, record.mechanism))
    yield _set(state, SCRAM, key, (record.iterations, state.offset))


def _remove_scram(
    state: StateView, record: RemoveUserScramCredentialRecord
) -> Iterator[ThingChange]:
    key = (record.name, word(MECHANISMS, record.mechanism))
    before = state.get(SCRAM, key)
    if before is None:
        raise ReplayError(
            f"RemoveUserScramCredentialRecord: user '{key[0]}' has no {key[1]} credential"
        )
    yield ThingChange(SCRAM, key, before, None)


def _feature(state: StateView, record: FeatureLevelRecord) -> Iterator[ThingChange]:
    if record.name == KRAFT_VERSION:
        return  # the KRaftVersion control record sets its level
    settings.set_feature(Features(), record)
    value = feature_row(record.name, record.feature_level) if record.feature_level else None
    yield _set(state, FEATURES, (record.name,), value)


def _producer_ids(state: StateView, record: ProducerIdsRecord) -> Iterator[ThingChange]:
    before = state.get(PRODUCER_IDS, ())
    after = settings.set_next_producer_id(-1 if before is None else before[0], record)
    yield ThingChange(PRODUCER_IDS, (), before, (after,))


def _token(state: StateView, record: DelegationTokenRecord) -> Iterator[ThingChange]:
    security.set_token(Map(), record)
    yield _set(state, TOKENS, (record.token_id,), token_row(record))


def _remove_token(state: StateView, record: RemoveDelegationTokenRecord) -> Iterator[ThingChange]:
    yield _removal(state, TOKENS, (record.token_id,))


def _leader(state: StateView, record: LeaderChangeMessage) -> Iterator[ThingChange]:
    voters = tuple(sorted(voter.voter_id for voter in record.voters))
    yield _set(state, LEADERS, (), (record.leader_id, state.epoch, voters))


def _kraft_version(state: StateView, record: KRaftVersionRecord) -> Iterator[ThingChange]:
    yield _set(state, FEATURES, (KRAFT_VERSION,), feature_row(KRAFT_VERSION, record.kraft_version))


def _voters(state: StateView, record: VotersRecord) -> Iterator[ThingChange]:
    """The record has the whole voter set; only voters that differ are changes."""
    voters: dict[Key, Any] = {}
    for voter in record.voters:
        ends = tuple({"name": e.name, "host": e.host, "port": e.port} for e in voter.endpoints)
        feature = voter.kraft_version_feature
        voters[voter.voter_id, text_of(voter.voter_directory_id)] = (
            ends,
            feature.min_supported_version,
            feature.max_supported_version,
        )
    for key in sorted(set(state.voters()) | set(voters)):
        before, after = state.get(VOTERS, key), voters.get(key)
        if before != after:
            yield ThingChange(VOTERS, key, before, after)


def _plain_id(record: Any) -> int:
    return int(record.id)


def _broker_id(record: Any) -> int:
    return int(record.broker_id)


RULES: Final[dict[type[Message], Rule]] = {
    TopicRecord: _create_topic,
    RemoveTopicRecord: _remove_topic,
    PartitionRecord: _create_partition,
    PartitionChangeRecord: _change_partition,
    ClearElrRecord: _clear_elr,
    RegisterBrokerRecord: _broker(_broker_id, cluster.register_broker),
    UnregisterBrokerRecord: _broker(_broker_id, cluster.unregister_broker),
    FenceBrokerRecord: _broker(_plain_id, cluster.fence_broker),
    UnfenceBrokerRecord: _broker(_plain_id, cluster.unfence_broker),
    BrokerRegistrationChangeRecord: _broker(_broker_id, cluster.change_broker),
    RegisterControllerRecord: _register_controller,
    UnregisterControllerRecord: _unregister_controller,
    ConfigRecord: _config,
    AccessControlEntryRecord: _acl,
    RemoveAccessControlEntryRecord: _remove_acl,
    ClientQuotaRecord: _quota,
    UserScramCredentialRecord: _scram,
    RemoveUserScramCredentialRecord: _remove_scram,
    FeatureLevelRecord: _feature,
    ProducerIdsRecord: _producer_ids,
    DelegationTokenRecord: _token,
    RemoveDelegationTokenRecord: _remove_token,
    LeaderChangeMessage: _leader,
    KRaftVersionRecord: _kraft_version,
    VotersRecord: _voters,
}
