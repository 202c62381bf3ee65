"""The key facts of a record: the topic, partition, broker or other resource that it concerns."""

from __future__ import annotations

from typing import Any, Final

from quorate.base.ids import Uuid, uuid_to_text
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
from quorate.wire.schema import Message

NO_CHANGE: Final = -2
"""The leader in a PartitionChangeRecord that does not change it; the column is null then."""

_BROKER: Final = {"broker_id": "broker_id"}
_PARTITION: Final = {"topic_id": "topic_id", "partition": "partition_id", "leader": "leader"}

FIELDS: Final[dict[type[Message], dict[str, str]]] = {
    TopicRecord: {"topic_name": "name", "topic_id": "topic_id"},
    RemoveTopicRecord: {"topic_id": "topic_id"},
    ClearElrRecord: {"topic_name": "topic_name"},
    PartitionRecord: {**_PARTITION, "partition_epoch": "partition_epoch"},
    PartitionChangeRecord: _PARTITION,
    RegisterBrokerRecord: _BROKER,
    UnregisterBrokerRecord: _BROKER,
    BrokerRegistrationChangeRecord: _BROKER,
    ProducerIdsRecord: _BROKER,
    FenceBrokerRecord: {"broker_id": "id"},
    UnfenceBrokerRecord: {"broker_id": "id"},
}
"""The field that fills each column."""

CONFIG_RESOURCES: Final = {
    2: "topic",
    4: "broker",
    8: "broker-logger",
    16: "client-metrics",
    32: "group",
}
"""`ConfigResource.Type`."""
ACL_RESOURCES: Final = dict(
    enumerate(
        ("any", "topic", "group", "cluster", "transactional-id", "delegation-token", "user"), 1
    )
)
"""`ResourceType`."""
DEFAULT: Final = "<default>"
TOPIC: Final = 2
"""The ConfigResource type of topics."""
PREFIXED: Final = 4
"""`PatternType`."""


RESOURCE_FIELDS: Final[dict[type[Message], tuple[str, str]]] = {
    RemoveAccessControlEntryRecord: ("acl", "id"),
    UserScramCredentialRecord: ("user", "name"),
    RemoveUserScramCredentialRecord: ("user", "name"),
    FeatureLevelRecord: ("feature", "name"),
    DelegationTokenRecord: ("token", "token_id"),
    RemoveDelegationTokenRecord: ("token", "token_id"),
    RegisterControllerRecord: ("controller", "controller_id"),
    UnregisterControllerRecord: ("controller", "controller_id"),
}
"""The kind of resource and the field that names it."""


def config_kind(resource_type: int) -> str:
    return CONFIG_RESOURCES.get(resource_type, f"type-{resource_type}")


def acl_kind(resource_type: int) -> str:
    return ACL_RESOURCES.get(resource_type, f"type-{resource_type}")


def resource(record: Message) -> str | None:
    """The resource of a record that is no topic, partition or broker, as `kind/name`.

    Examples: `topic/orders` (of a config), `broker/<default>`, `user/ann,client-id/<default>`,
    `feature/metadata.version`. The resource of an ACL with a prefixed pattern ends with `*`.
    """
    match record:
        case ConfigRecord():
            return f"{config_kind(record.resource_type)}/{record.resource_name or DEFAULT}"
        case AccessControlEntryRecord():
            end = "*" if record.pattern_type == PREFIXED else ""
            return f"{acl_kind(record.resource_type)}/{record.resource_name}{end}"
        case ClientQuotaRecord():
            return ",".join(
                f"{part.entity_type}/{DEFAULT if part.entity_name is None else part.entity_name}"
                for part in record.entity
            )
    known = RESOURCE_FIELDS.get(type(record))
    if known is None:
        return None
    kind, field = known
    name = getattr(record, field)
    return f"{kind}/{uuid_to_text(Uuid(name)) if isinstance(name, bytes) else name}"


def facts(record: Message) -> dict[str, Any]:
    """The columns of key facts that this record fills."""
    cls = type(record)
    found = {column: getattr(record, field) for column, field in FIELDS.get(cls, {}).items()}
    if "topic_id" in found:
        found["topic_id"] = uuid_to_text(found["topic_id"])
    if cls is PartitionChangeRecord and found["leader"] == NO_CHANGE:
        del found["leader"]
    if isinstance(record, ConfigRecord) and record.resource_type == TOPIC:
        found["topic_name"] = record.resource_name
    about = resource(record)
    if about is not None:
        found["resource"] = about
    return found
