"""Records onto an image: the dispatch by record type.

Small parts of the image are replaced record by record; topics gather in a TopicsDelta, so that a
snapshot of a million partitions is not a million persistent updates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quorate.formats.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
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
    ZkMigrationStateRecord,
)
from quorate.metadata import cluster, security, settings
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import Image
from quorate.metadata.interning import Interner
from quorate.metadata.topics import ElectionCounts, TopicsDelta, Touched


class ImageDelta:
    """Changes to one image (`MetadataDelta`): replay records, then `apply` once.

    The image stays as it is. After an error the delta is of no use any more.
    """

    def __init__(
        self,
        image: Image,
        interner: Interner | None = None,
        touched: Touched | None = None,
        elections: ElectionCounts | None = None,
    ) -> None:
        """touched: filled with the topics and partitions that change; elections: counts them; None:
        not wanted."""
        self.image = image
        """The image so far, but for its topics."""
        self.interner = Interner() if interner is None else interner
        self._topics: TopicsDelta | None = None
        self._touched = touched
        self._elections = elections

    @property
    def topics(self) -> TopicsDelta:
        if self._topics is None:
            self._topics = TopicsDelta(
                self.image.topics, self.interner, self._touched, self._elections
            )
        return self._topics

    def replay(self, record: object) -> None:
        """Apply one record. Raises ReplayError when it does not fit."""
        rule = _RULES.get(type(record))
        if rule is None:
            raise ReplayError(f"{type(record).__name__} has no meaning to the image")
        rule(self, record)

    def apply(self) -> Image:
        """The image after all records; the parts that none of them touched are the same objects."""
        if self._topics is None:
            return self.image
        topics, self._topics = self._topics.apply(), None
        self.image = self.image.with_part("topics", topics)
        return self.image


Rule = Callable[[ImageDelta, Any], None]


def _part(name: str, change: Callable[[Any, Any], Any]) -> Rule:
    """The rule that replaces one part of the image, when `change` gives another."""

    def rule(delta: ImageDelta, record: object) -> None:
        before = getattr(delta.image, name)
        after = change(before, record)
        if after is not before:
            delta.image = delta.image.with_part(name, after)

    return rule


def _whole(change: Callable[[Image, Any], Image]) -> Rule:
    """The rule that replaces several parts of the image."""

    def rule(delta: ImageDelta, record: object) -> None:
        delta.image = change(delta.image, record)

    return rule


def _remove_topic(delta: ImageDelta, record: RemoveTopicRecord) -> None:
    name = delta.topics.remove_topic(record)
    before = delta.image.configs
    after = settings.remove_topic_configs(before, name)
    if after is not before:
        delta.image = delta.image.with_part("configs", after)


def _nothing(_delta: ImageDelta, _record: object) -> None:
    """NoOpRecord; ZkMigrationStateRecord, kept readable for logs that came from ZooKeeper."""


def _misplaced(_delta: ImageDelta, record: object) -> None:
    raise ReplayError(
        f"{type(record).__name__} marks a transaction: the Loader takes it, no image does"
    )


_RULES: Final[dict[type, Rule]] = {
    RegisterBrokerRecord: _part("cluster", cluster.register_broker),
    UnregisterBrokerRecord: _part("cluster", cluster.unregister_broker),
    TopicRecord: lambda delta, record: delta.topics.create_topic(record),
    PartitionRecord: lambda delta, record: delta.topics.create_partition(record),
    ConfigRecord: _part("configs", settings.set_config),
    PartitionChangeRecord: lambda delta, record: delta.topics.change_partition(record),
    FenceBrokerRecord: _part("cluster", cluster.fence_broker),
    UnfenceBrokerRecord: _part("cluster", cluster.unfence_broker),
    RemoveTopicRecord: _remove_topic,
    DelegationTokenRecord: _part("delegation_tokens", security.set_token),
    UserScramCredentialRecord: _part("scram", security.set_scram),
    FeatureLevelRecord: _part("features", settings.set_feature),
    ClientQuotaRecord: _part("client_quotas", settings.set_client_quota),
    ProducerIdsRecord: _part("next_producer_id", settings.set_next_producer_id),
    BrokerRegistrationChangeRecord: _part("cluster", cluster.change_broker),
    AccessControlEntryRecord: _whole(security.set_acl),
    RemoveAccessControlEntryRecord: _whole(security.remove_acl),
    NoOpRecord: _nothing,
    ZkMigrationStateRecord: _nothing,
    RemoveUserScramCredentialRecord: _part("scram", security.remove_scram),
    BeginTransactionRecord: _misplaced,
    EndTransactionRecord: _misplaced,
    AbortTransactionRecord: _misplaced,
    RemoveDelegationTokenRecord: _part("delegation_tokens", security.remove_token),
    RegisterControllerRecord: _part("cluster", cluster.register_controller),
    UnregisterControllerRecord: _part("cluster", cluster.unregister_controller),
    ClearElrRecord: lambda delta, record: delta.topics.clear_elr(record),
}
