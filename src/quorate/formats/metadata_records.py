"""The 27 record types of a metadata log, each in all its versions.

Declared as Kafka 4.4.0's `metadata/src/main/resources/common/metadata` says; those files
and KIP-631 define the meanings of the fields. Types 6, 13 and 16 do not exist.
"""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    binary,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class RegisterBrokerRecord(Message, kind="metadata", key=0, versions=(0, 4), flexible=0):
    class BrokerEndpoint(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class BrokerFeature(Struct):
        name: str = string(key=True)
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(since=2)
    incarnation_id: Uuid = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable=0)
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean(since=1)
    log_dirs: list[Uuid] = array("uuid", since=3, tag=0)
    cordoned_log_dirs: list[Uuid] | None = array("uuid", since=4, nullable=4, tag=1, default=None)


class UnregisterBrokerRecord(Message, kind="metadata", key=1, versions=(0, 0), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64()


class TopicRecord(Message, kind="metadata", key=2, versions=(0, 0), flexible=0):
    name: str = string()
    topic_id: Uuid = uuid()


class PartitionRecord(Message, kind="metadata", key=3, versions=(0, 2), flexible=0):
    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    replicas: list[int] = array("int32")
    isr: list[int] = array("int32")
    removing_replicas: list[int] = array("int32")
    adding_replicas: list[int] = array("int32")
    leader: int = int32(default=-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[Uuid] = array("uuid", since=1)
    eligible_leader_replicas: list[int] | None = array(
        "int32", since=2, nullable=2, tag=1, default=None
    )
    last_known_elr: list[int] | None = array("int32", since=2, nullable=2, tag=2, default=None)


class ConfigRecord(Message, kind="metadata", key=4, versions=(0, 0), flexible=0):
    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable=0)


class PartitionChangeRecord(Message, kind="metadata", key=5, versions=(0, 2), flexible=0):
    partition_id: int = int32(default=-1)
    topic_id: Uuid = uuid()
    isr: list[int] | None = array("int32", nullable=0, tag=0, default=None)
    leader: int = int32(tag=1, default=-2)
    replicas: list[int] | None = array("int32", nullable=0, tag=2, default=None)
    removing_replicas: list[int] | None = array("int32", nullable=0, tag=3, default=None)
    adding_replicas: list[int] | None = array("int32", nullable=0, tag=4, default=None)
    leader_recovery_state: int = int8(tag=5, default=-1)
    directories: list[Uuid] | None = array("uuid", since=1, nullable=1, tag=8, default=None)
    eligible_leader_replicas: list[int] | None = array(
        "int32", since=2, nullable=2, tag=6, default=None
    )
    last_known_elr: list[int] | None = array("int32", since=2, nullable=2, tag=7, default=None)


class FenceBrokerRecord(Message, kind="metadata", key=7, versions=(0, 0), flexible=0):
    id: int = int32()
    epoch: int = int64()


class UnfenceBrokerRecord(Message, kind="metadata", key=8, versions=(0, 0), flexible=0):
    id: int = int32()
    epoch: int = int64()


class RemoveTopicRecord(Message, kind="metadata", key=9, versions=(0, 0), flexible=0):
    topic_id: Uuid = uuid()


class DelegationTokenRecord(Message, kind="metadata", key=10, versions=(0, 0), flexible=0):
    owner: str = string()
    requester: str = string()
    renewers: list[str] = array("string")
    issue_timestamp: int = int64()
    max_timestamp: int = int64()
    expiration_timestamp: int = int64()
    token_id: str = string()


class UserScramCredentialRecord(Message, kind="metadata", key=11, versions=(0, 0), flexible=0):
    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary()
    stored_key: bytes = binary()
    server_key: bytes = binary()
    iterations: int = int32()


class FeatureLevelRecord(Message, kind="metadata", key=12, versions=(0, 0), flexible=0):
    name: str = string()
    feature_level: int = int16()


class ClientQuotaRecord(Message, kind="metadata", key=14, versions=(0, 0), flexible=0):
    class EntityData(Struct):
        entity_type: str = string()
        entity_name: str | None = string(nullable=0)

    entity: list[EntityData] = array(EntityData)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class ProducerIdsRecord(Message, kind="metadata", key=15, versions=(0, 0), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


class BrokerRegistrationChangeRecord(Message, kind="metadata", key=17, versions=(0, 3), flexible=0):
    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    in_controlled_shutdown: int = int8(since=1, tag=1)
    log_dirs: list[Uuid] = array("uuid", since=2, tag=2)
    cordoned_log_dirs: list[Uuid] | None = array("uuid", since=3, nullable=3, tag=3, default=None)


class AccessControlEntryRecord(Message, kind="metadata", key=18, versions=(0, 0), flexible=0):
    id: Uuid = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


class RemoveAccessControlEntryRecord(Message, kind="metadata", key=19, versions=(0, 0), flexible=0):
    id: Uuid = uuid()


class NoOpRecord(Message, kind="metadata", key=20, versions=(0, 0), flexible=0):
    """No fields."""


class ZkMigrationStateRecord(Message, kind="metadata", key=21, versions=(0, 0), flexible=0):
    zk_migration_state: int = int8()


class RemoveUserScramCredentialRecord(
    Message, kind="metadata", key=22, versions=(0, 0), flexible=0
):
    name: str = string()
    mechanism: int = int8()


class BeginTransactionRecord(Message, kind="metadata", key=23, versions=(0, 0), flexible=0):
    name: str | None = string(nullable=0, tag=0, default=None)


class EndTransactionRecord(Message, kind="metadata", key=24, versions=(0, 0), flexible=0):
    """No fields."""


class AbortTransactionRecord(Message, kind="metadata", key=25, versions=(0, 0), flexible=0):
    reason: str | None = string(nullable=0, tag=0, default=None)


class RemoveDelegationTokenRecord(Message, kind="metadata", key=26, versions=(0, 0), flexible=0):
    token_id: str = string()


class RegisterControllerRecord(Message, kind="metadata", key=27, versions=(0, 0), flexible=0):
    class ControllerEndpoint(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class ControllerFeature(Struct):
        name: str = string(key=True)
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)


class ClearElrRecord(Message, kind="metadata", key=28, versions=(0, 0), flexible=0):
    topic_name: str = string()


class UnregisterControllerRecord(Message, kind="metadata", key=29, versions=(0, 0), flexible=0):
    controller_id: int = int32()
