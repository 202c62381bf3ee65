"""What a record changes, thing by thing.

The meaning of each record is the image's (`quorate.metadata`): here it is only asked about one
thing at a time, so that things can be worked on apart from one another.
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
    Kind,
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


class Change(NamedTuple):
    """A thing before and after a record; None where there is none."""

    kind: Kind
    key: Key
    before: Any
    after: Any


class State(Protocol):
    """What is known of the things before a record."""

    def get(self, kind: Kind, key: Key) -> Any:
        """The value of a thing, None when there is none."""

    def partitions(self, topic_id: str) -> Iterable[int]:
        """The partitions of a topic, ascending."""

    def topic_ids(self) -> Iterable[str]:
        """Every topic."""

    def configs(self, resource_type: str, resource_name: str) -> Iterable[str]:
        """The names of the configs that a resource has, sorted."""

    def voters(self) -> Iterable[Key]:
        """The keys of all voters."""

    @property
    def offset(self) -> int:
        """Where the record takes effect."""

    @property
    def epoch(self) -> int:
        """Of the leader that wrote the record."""

    @property
    def interner(self) -> Interner:
        """Shares equal tuples."""


Rule = Callable[[State, Any], Iterable[Change]]


def changes(state: State, record: Message) -> Iterable[Change]:
    """What the record changes; nothing for one that says nothing about the cluster's state.

    Raises ReplayError where the record does not fit the state.
    """
    rule = RULES.get(type(record))
    return () if rule is None else rule(state, record)


def remove_topic_configs(state: State, name: str) -> Iterator[Change]:
    """The configs that go with a removed topic."""
    for config in state.configs(TOPIC_CONFIGS, name):
        yield _removal(state, CONFIGS, (TOPIC_CONFIGS, name, config))


def _set(state: State, kind: Kind, key: Key, value: Any) -> Change:
    return Change(kind, key, state.get(kind, key), value)


def _removal(state: State, kind: Kind, key: Key) -> Change:
    return Change(kind, key, state.get(kind, key), None)


def _create_topic(state: State, record: TopicRecord) -> Iterator[Change]:
    key = (text_of(record.topic_id),)
    known = state.get(TOPICS, key)
    if known is not None:
        raise ReplayError(f"TopicRecord: id {key[0]} belongs to topic '{known[0]}'")
    yield Change(TOPICS, key, None, (record.name,))


def _remove_topic(state: State, record: RemoveTopicRecord) -> Iterator[Change]:
    topic_id = text_of(record.topic_id)
    topic = state.get(TOPICS, (topic_id,))
    if topic is None:
        raise ReplayError(f"RemoveTopicRecord: no topic has the id {topic_id}")
    for partition in state.partitions(topic_id):
        yield _removal(state, PARTITIONS, (topic_id, partition))
    yield Change(TOPICS, (topic_id,), topic, None)


def _create_partition(state: State, record: PartitionRecord) -> Iterator[Change]:
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


def _change_partition(state: State, record: PartitionChangeRecord) -> Iterator[Change]:
    key = (text_of(record.topic_id), record.partition_id)
    before = state.get(PARTITIONS, key)
    if before is None:
        raise ReplayError(f"PartitionChangeRecord: topic {key[0]} has no partition {key[1]}")
    after = merge(before.state, record, state.interner)
    yield Change(PARTITIONS, key, before, TopicPartition(before.topic_name, after))


def _clear_elr(state: State, record: ClearElrRecord) -> Iterator[Change]:
    """Told to every slice: each clears the topics that it has."""
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
                yield Change(PARTITIONS, (topic_id, index), before, named)


def _broker(
    broker_id: Callable[[Any], int], change: Callable[[Cluster, Any], Cluster]
) -> Callable[[State, Any], Iterator[Change]]:
    def rule(state: State, record: Any) -> Iterator[Change]:
        id = broker_id(record)
        before: Broker | None = state.get(BROKERS, (id,))
        alone: Map[int, Broker] = Map() if before is None else Map({id: before})
        after = change(Cluster(brokers=alone), record).brokers.get(id)
        yield Change(BROKERS, (id,), before, after)

    return rule


def _register_controller(state: State, record: RegisterControllerRecord) -> Iterator[Change]:
    id = record.controller_id
    made = cluster.register_controller(Cluster(), record).controllers[id]
    yield _set(state, CONTROLLERS, (id,), made)


def _config(state: State, record: ConfigRecord) -> Iterator[Change]:
    key = (config_type(record.resource_type), record.resource_name, record.name)
    value = None if record.value is None else (record.value,)
    yield _set(state, CONFIGS, key, value)


def _acl(state: State, record: AccessControlEntryRecord) -> Iterator[Change]:
    made = security.set_acl(Map(), record)[record.id]
    yield _set(state, ACLS, (text_of(record.id),), acl_row(made))


def _remove_acl(state: State, record: RemoveAccessControlEntryRecord) -> Iterator[Change]:
    key = (text_of(record.id),)
    before = state.get(ACLS, key)
    if before is None:
        raise ReplayError(f"RemoveAccessControlEntryRecord: no ACL has the id {key[0]}")
    yield Change(ACLS, key, before, None)


def _quota(state: State, record: ClientQuotaRecord) -> Iterator[Change]:
    entity = settings.quota_entity({part.entity_type: part.entity_name for part in record.entity})
    value = None if record.remove else (record.value,)
    yield _set(state, QUOTAS, quota_key(entity, record.key), value)


def _scram(state: State, record: UserScramCredentialRecord) -> Iterator[Change]:
    key = (record.name, word(MECHANISMS, record.mechanism))
    yield _set(state, SCRAM, key, (record.iterations, state.offset))


def _remove_scram(state: State, record: RemoveUserScramCredentialRecord) -> Iterator[Change]:
    key = (record.name, word(MECHANISMS, record.mechanism))
    before = state.get(SCRAM, key)
    if before is None:
        raise ReplayError(
            f"RemoveUserScramCredentialRecord: user '{key[0]}' has no {key[1]} credential"
        )
    yield Change(SCRAM, key, before, None)


def _feature(state: State, record: FeatureLevelRecord) -> Iterator[Change]:
    if record.name == KRAFT_VERSION:
        return  # its level is told by control records
    settings.set_feature(Features(), record)
    value = feature_row(record.name, record.feature_level) if record.feature_level else None
    yield _set(state, FEATURES, (record.name,), value)


def _producer_ids(state: State, record: ProducerIdsRecord) -> Iterator[Change]:
    before = state.get(PRODUCER_IDS, ())
    after = settings.set_next_producer_id(-1 if before is None else before[0], record)
    yield Change(PRODUCER_IDS, (), before, (after,))


def _token(state: State, record: DelegationTokenRecord) -> Iterator[Change]:
    security.set_token(Map(), record)
    yield _set(state, TOKENS, (record.token_id,), token_row(record))


def _remove_token(state: State, record: RemoveDelegationTokenRecord) -> Iterator[Change]:
    yield _removal(state, TOKENS, (record.token_id,))


def _leader(state: State, record: LeaderChangeMessage) -> Iterator[Change]:
    voters = tuple(sorted(voter.voter_id for voter in record.voters))
    yield _set(state, LEADERS, (), (record.leader_id, state.epoch, voters))


def _kraft_version(state: State, record: KRaftVersionRecord) -> Iterator[Change]:
    yield _set(state, FEATURES, (KRAFT_VERSION,), feature_row(KRAFT_VERSION, record.kraft_version))


def _voters(state: State, record: VotersRecord) -> Iterator[Change]:
    """The whole set is told each time; only what differs is a change."""
    told: dict[Key, Any] = {}
    for voter in record.voters:
        ends = tuple({"name": e.name, "host": e.host, "port": e.port} for e in voter.endpoints)
        feature = voter.kraft_version_feature
        told[voter.voter_id, text_of(voter.voter_directory_id)] = (
            ends,
            feature.min_supported_version,
            feature.max_supported_version,
        )
    for key in sorted(set(state.voters()) | set(told)):
        before, after = state.get(VOTERS, key), told.get(key)
        if before != after:
            yield Change(VOTERS, key, before, after)


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
