"""The kinds of things in the metadata of a cluster, and the columns of each in gold.

A thing (a topic, a partition, a config ...) has a key, which is the tuple of its key columns, and a
value. Most values are the tuple of their columns. Partitions and brokers are objects of the image,
because their change records hold only the fields that change. Uuids are text in keys and columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa

from quorate.base.ids import Uuid, uuid_from_text, uuid_to_text
from quorate.formats.records import DelegationTokenRecord
from quorate.formats.versions import METADATA_VERSION, MetadataVersion
from quorate.metadata.image import (
    Acl,
    Broker,
    Controller,
    Endpoint,
    Partition,
    QuotaEntity,
    VersionRange,
)
from quorate.spark.decode.facts import ACL_RESOURCES, CONFIG_RESOURCES

Key = tuple[Any, ...]
Row = tuple[Any, ...]
Fields = tuple[tuple[str, pa.DataType], ...]

TEXT: Final = pa.string()
INT: Final = pa.int32()
LONG: Final = pa.int64()
IDS: Final = pa.list_(pa.int32())
TEXTS: Final = pa.list_(pa.string())
LISTENERS: Final = pa.list_(
    pa.struct([("name", TEXT), ("host", TEXT), ("port", INT), ("security_protocol", INT)])
)
RANGES: Final = pa.list_(pa.struct([("name", TEXT), ("min", INT), ("max", INT)]))

HIDDEN: Final = "[hidden]"
"""Replaces a value that the tables do not keep."""


class TopicPartition(NamedTuple):
    """The value of a partition: the name of its topic, and its state."""

    topic_name: str
    state: Partition


def _same(value: Any) -> Any:
    return value


def _tuples(_key: Key, row: Row) -> Row:
    """The row with tuples instead of Arrow's lists, so that equal rows are equal values."""
    return tuple(tuple(item) if isinstance(item, list) else item for item in row)


@dataclass(frozen=True)
class ThingKind:
    """A kind of thing; its gold table has the same name."""

    name: str
    keys: Fields
    values: Fields
    to_values: Callable[[Any], Row] = _same
    """The columns of a value."""
    from_values: Callable[[Key, Row], Any] = _tuples
    """The value of a thing with these columns: the inverse of `to_values`."""
    group: Callable[[Key], str] = lambda key: ""
    """The group of a key. Its hash gives the slice, so things of a group are in one slice."""
    parent: int = 0
    """How many key columns name the parent, with which a thing is removed."""
    state: Callable[[Any], Any] = _same
    """The part of a value that a snapshot holds. Values that are equal in it are one version."""
    conceals: Callable[[Any], bool] = lambda value: False
    """Whether a value is hidden: equal values may differ then, so each set is a new version."""

    @property
    def fields(self) -> Fields:
        return self.keys + self.values


@lru_cache(maxsize=65536)
def uuid_of(text: str) -> Uuid:
    """The uuid of a text (cached)."""
    return uuid_from_text(text)


@lru_cache(maxsize=65536)
def text_of(value: Uuid) -> str:
    """The text of a uuid (cached)."""
    return uuid_to_text(value)


def _partition_values(value: TopicPartition) -> Row:
    state = value.state
    return (
        value.topic_name,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        state.replicas,
        state.isr,
        state.elr,
        state.last_known_elr,
        state.adding_replicas,
        state.removing_replicas,
        tuple(map(text_of, state.directories)),
        state.leader_recovery_state,
    )


def _partition(_key: Key, row: Row) -> TopicPartition:
    name, leader, leader_epoch, epoch, replicas, isr, elr, last, adding, removing = row[:10]
    state = Partition(
        tuple(replicas),
        tuple(map(uuid_of, row[10])),
        tuple(isr),
        tuple(removing),
        tuple(adding),
        leader,
        row[11],
        leader_epoch,
        epoch,
        tuple(elr),
        tuple(last),
    )
    return TopicPartition(name, state)


def _broker_values(value: Broker) -> Row:
    cordoned = value.cordoned_directories
    return (
        value.epoch,
        text_of(value.incarnation_id),
        value.rack,
        value.fenced,
        value.in_controlled_shutdown,
        value.is_migrating_zk_broker,
        [end._asdict() for end in value.listeners],
        [item._asdict() for item in value.features],
        list(map(text_of, value.directories)),
        None if cordoned is None else list(map(text_of, cordoned)),
    )


def _broker(key: Key, row: Row) -> Broker:
    epoch, incarnation, rack, fenced, shutdown, migrating, ends, ranges, dirs, cordoned = row
    return Broker(
        id=key[0],
        epoch=epoch,
        incarnation_id=uuid_of(incarnation),
        listeners=tuple(Endpoint(**end) for end in ends),
        features=tuple(VersionRange(**item) for item in ranges),
        rack=rack,
        fenced=fenced,
        in_controlled_shutdown=shutdown,
        is_migrating_zk_broker=migrating,
        directories=tuple(map(uuid_of, dirs)),
        cordoned_directories=None if cordoned is None else tuple(map(uuid_of, cordoned)),
    )


def _controller_values(value: Controller) -> Row:
    return (
        text_of(value.incarnation_id),
        value.zk_migration_ready,
        [end._asdict() for end in value.listeners],
        [item._asdict() for item in value.features],
    )


def _controller(key: Key, row: Row) -> Controller:
    incarnation, ready, ends, ranges = row
    return Controller(
        id=key[0],
        incarnation_id=uuid_of(incarnation),
        zk_migration_ready=ready,
        listeners=tuple(Endpoint(**end) for end in ends),
        features=tuple(VersionRange(**item) for item in ranges),
    )


PATTERNS: Final = {3: "literal", 4: "prefixed"}
OPERATIONS: Final = {
    2: "all",
    3: "read",
    4: "write",
    5: "create",
    6: "delete",
    7: "alter",
    8: "describe",
    9: "cluster-action",
    10: "describe-configs",
    11: "alter-configs",
    12: "idempotent-write",
    13: "create-tokens",
    14: "describe-tokens",
    15: "two-phase-commit",
}
PERMISSIONS: Final = {2: "deny", 3: "allow"}
MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


def word(words: dict[int, str], code: int) -> str:
    """Kafka's word for a code; the code itself when it is unknown."""
    return words.get(code, str(code))


def config_type(code: int) -> str:
    """The word for a ConfigResource type: `topic` for 2."""
    return word(CONFIG_RESOURCES, code)


def acl_row(acl: Acl) -> Row:
    """The value columns of an ACL."""
    return (
        word(ACL_RESOURCES, acl.resource_type),
        acl.resource_name,
        word(PATTERNS, acl.pattern_type),
        acl.principal,
        acl.host,
        word(OPERATIONS, acl.operation),
        word(PERMISSIONS, acl.permission_type),
    )


def feature_row(name: str, level: int) -> Row:
    """The value columns of a feature: its level, and the level as text."""
    if name == METADATA_VERSION and level in MetadataVersion.__members__.values():
        return level, str(MetadataVersion(level))
    return level, str(level)


def quota_key(entity: QuotaEntity, quota: str) -> Key:
    """The entity as JSON with sorted names, null for a type's default, and the quota's name."""
    names = dict(entity)
    return json.dumps(names, ensure_ascii=False, separators=(",", ":")), quota


def token_row(record: DelegationTokenRecord) -> Row:
    """The value columns of a delegation token; times are ms since 1970."""
    return (
        record.owner,
        record.requester,
        tuple(record.renewers),
        record.issue_timestamp,
        record.max_timestamp,
        record.expiration_timestamp,
    )


TOPICS: Final = ThingKind(
    "topics", (("topic_id", TEXT),), (("topic_name", TEXT),), group=lambda key: str(key[0])
)
PARTITIONS: Final = ThingKind(
    "partitions",
    (("topic_id", TEXT), ("partition", INT)),
    (
        ("topic_name", TEXT),
        ("leader", INT),
        ("leader_epoch", INT),
        ("partition_epoch", INT),
        ("replicas", IDS),
        ("isr", IDS),
        ("elr", IDS),
        ("last_known_elr", IDS),
        ("adding_replicas", IDS),
        ("removing_replicas", IDS),
        ("directories", TEXTS),
        ("leader_recovery_state", INT),
    ),
    _partition_values,
    _partition,
    group=lambda key: str(key[0]),
    parent=1,
)
_NODE: Final = (("listeners", LISTENERS), ("features", RANGES))
BROKERS: Final = ThingKind(
    "brokers",
    (("broker_id", INT),),
    (
        ("broker_epoch", LONG),
        ("incarnation_id", TEXT),
        ("rack", TEXT),
        ("fenced", pa.bool_()),
        ("in_controlled_shutdown", pa.bool_()),
        ("is_migrating_zk_broker", pa.bool_()),
        *_NODE,
        ("directories", TEXTS),
        ("cordoned_directories", TEXTS),
    ),
    _broker_values,
    _broker,
)
CONTROLLERS: Final = ThingKind(
    "controllers",
    (("controller_id", INT),),
    (("incarnation_id", TEXT), ("zk_migration_ready", pa.bool_()), *_NODE),
    _controller_values,
    _controller,
)
VOTERS: Final = ThingKind(
    "voters",
    (("voter_id", INT), ("directory_id", TEXT)),
    (
        ("listeners", pa.list_(pa.struct([("name", TEXT), ("host", TEXT), ("port", INT)]))),
        ("min_kraft_version", INT),
        ("max_kraft_version", INT),
    ),
)
LEADERS: Final = ThingKind(
    "leaders", (), (("leader_id", INT), ("leader_epoch", INT), ("voters", IDS))
)
CONFIGS: Final = ThingKind(
    "configs",
    (("resource_type", TEXT), ("resource_name", TEXT), ("name", TEXT)),
    (("value", TEXT),),
    group=lambda key: f"{key[0]}/{key[1]}",
    parent=2,
    conceals=lambda value: HIDDEN in value,
)
ACLS: Final = ThingKind(
    "acls",
    (("acl_id", TEXT),),
    (
        ("resource_type", TEXT),
        ("resource_name", TEXT),
        ("pattern_type", TEXT),
        ("principal", TEXT),
        ("host", TEXT),
        ("operation", TEXT),
        ("permission", TEXT),
    ),
    group=lambda key: str(key[0]),
)
QUOTAS: Final = ThingKind("quotas", (("entity", TEXT), ("quota", TEXT)), (("value", pa.float64()),))
SCRAM: Final = ThingKind(
    "scram",
    (("user", TEXT), ("mechanism", TEXT)),
    (("iterations", INT), ("set_at_offset", LONG)),
    state=lambda value: value and value[0],
)
FEATURES: Final = ThingKind("features", (("name", TEXT),), (("level", INT), ("level_text", TEXT)))
PRODUCER_IDS: Final = ThingKind("producer_ids", (), (("next_producer_id", LONG),))
TOKENS: Final = ThingKind(
    "tokens",
    (("token_id", TEXT),),
    (
        ("owner", TEXT),
        ("requester", TEXT),
        ("renewers", TEXTS),
        ("issue_timestamp", LONG),
        ("max_timestamp", LONG),
        ("expiration_timestamp", LONG),
    ),
)

KINDS: Final = {
    kind.name: kind
    for kind in (
        *(TOPICS, PARTITIONS, BROKERS, CONTROLLERS, VOTERS, LEADERS, CONFIGS, ACLS, QUOTAS),
        *(SCRAM, FEATURES, PRODUCER_IDS, TOKENS),
    )
}
"""By name; each has a table of its name in gold."""
