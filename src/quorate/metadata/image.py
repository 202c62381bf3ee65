"""The image: all that a metadata log says, at one offset, immutable.

Maps are persistent (`immutables.Map`): a change copies a path of a few small nodes, whatever the
size, and shares everything else with the image before it. So images are cheap to keep, to compare
and to hand to another thread. Equality is by content.

What is many and mostly alike is a NamedTuple (a partition with RF 3 takes about 200 bytes in all;
its tuples of ids are shared, see `interning`). What is one of a kind is a frozen dataclass.

Source of the content: the classes of `org.apache.kafka.image`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from struct import Struct
from typing import Any, Final, NamedTuple

from immutables import Map

from quorate.base.frozen import frozen
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.formats.versions import MetadataVersion
from quorate.metadata.order import in_order

NO_LEADER: Final = -1

RECOVERED: Final = 0
RECOVERING: Final = 1
"""Leader recovery states: RECOVERING after an unclean election."""

MIGRATING_DIRECTORY: Final = ZERO_UUID
"""The directory of a replica that was placed before directories were recorded."""

ELR_FEATURE: Final = "eligible.leader.replicas.version"

_NONE: Final[Map[Any, Any]] = Map()

_SIGNED_LONGS: Final = Struct(">qq")


class Endpoint(NamedTuple):
    """A named address of a node; `security_protocol` is Kafka's number for it (0 to 3)."""

    name: str
    host: str
    port: int
    security_protocol: int


class VersionRange(NamedTuple):
    """The levels of a feature that a node supports, both inclusive."""

    name: str
    min: int
    max: int


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker's registration. Listeners and features are sorted by name, one of a name."""

    id: int
    epoch: int
    incarnation_id: Uuid
    listeners: tuple[Endpoint, ...] = ()
    features: tuple[VersionRange, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    directories: tuple[Uuid, ...] = ()
    """Online log directories, sorted as Kafka sorts uuids (two signed 64-bit halves)."""
    cordoned_directories: tuple[Uuid, ...] | None = None
    """Directories that get no new replicas; None when the broker never said."""


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller's registration (KIP-919). Listeners and features as of a Broker."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool = False
    listeners: tuple[Endpoint, ...] = ()
    features: tuple[VersionRange, ...] = ()


class Partition(NamedTuple):
    """The state of one partition; `directories` stands beside `replicas`, one each.

    `leader` is NO_LEADER without one; `elr` and `last_known_elr` are KIP-966's sets.
    """

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0] if self.replicas else NO_LEADER


class Topic(NamedTuple):
    """A topic and its partitions by index."""

    id: Uuid
    name: str
    partitions: Map[int, Partition]


class ConfigResource(NamedTuple):
    """Whose configs: the type (2 topic, 4 broker, 16 client metrics, 32 group) and the name.

    The name of a broker is its id as text, or empty for the default of all brokers.
    """

    type: int
    name: str


QuotaEntity = tuple[tuple[str, str | None], ...]
"""(type, name) pairs sorted by type, one of a type; name None means the type's default."""


class Acl(NamedTuple):
    """One access control entry; numbers are Kafka's codes of its enums."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    @property
    def pattern(self) -> AclPattern:
        return AclPattern(self.resource_type, self.pattern_type, self.resource_name)


class AclPattern(NamedTuple):
    """Which resources an entry is about: pattern type 3 is literal, 4 is prefixed."""

    resource_type: int
    pattern_type: int
    name: str


class ScramKey(NamedTuple):
    """Whose credential: mechanism (1 SHA-256, 2 SHA-512) and user."""

    mechanism: int
    user: str


class ScramCredential(NamedTuple):
    """A salted password, never printed."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential([hidden])"


class DelegationToken(NamedTuple):
    """A token without its secret; principals are `type:name`, times are ms since 1970."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiration_timestamp: int


@dataclass(frozen=True, slots=True)
class Features:
    """metadata.version (None before the first record of it) and the other features above 0."""

    metadata_version: MetadataVersion | None = None
    levels: Map[str, int] = _NONE

    @property
    def elr_enabled(self) -> bool:
        return self.levels.get(ELR_FEATURE, 0) >= 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """The registered nodes by id."""

    brokers: Map[int, Broker] = _NONE
    controllers: Map[int, Controller] = _NONE


@dataclass(frozen=True, slots=True)
class Topics:
    """Topics by id; `ids` finds an id by name. Both always hold the same topics."""

    by_id: Map[Uuid, Topic] = _NONE
    ids: Map[str, Uuid] = _NONE

    def named(self, name: str) -> Topic | None:
        topic_id = self.ids.get(name)
        return None if topic_id is None else self.by_id[topic_id]

    def partition(self, topic_id: Uuid, index: int) -> Partition | None:
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def __iter__(self) -> Iterator[Topic]:
        """The topics in the order of hashes, which differs by process. `in_order` is the same in all."""
        return iter(self.by_id.values())

    def in_order(self) -> Iterator[Topic]:
        """The topics by name."""
        for name in in_order(self.ids):
            yield self.by_id[self.ids[name]]


@frozen
class Image:
    """Everything; `Image()` is the image of an empty log."""

    features: Features = Features()
    cluster: Cluster = Cluster()
    topics: Topics = Topics()
    configs: Map[ConfigResource, Map[str, str]] = _NONE
    """Only resources that have a config."""
    client_quotas: Map[QuotaEntity, Map[str, float]] = _NONE
    """Only entities that have a quota."""
    next_producer_id: int = -1
    """First producer id that is in no block yet; -1 before the first block."""
    acls: Map[Uuid, Acl] = _NONE
    acls_by_pattern: Map[AclPattern, Map[Uuid, Acl]] = field(default=_NONE, compare=False)
    """The same entries, where an authorizer looks for them."""
    acls_by_principal: Map[AclPattern, Map[str, Map[Uuid, Acl]]] = field(
        default=_NONE, compare=False
    )
    """The entries of crowded patterns once more, see `acl_index`."""
    acl_prefix_lengths: Map[int, Map[int, int]] = field(default=_NONE, compare=False)
    """Resource type -> length of the prefixes that entries name -> how many such patterns there are.

    An authorizer tries these lengths only: a name may have 32,767 characters.
    """
    scram: Map[ScramKey, ScramCredential] = _NONE
    delegation_tokens: Map[str, DelegationToken] = _NONE

    @property
    def is_empty(self) -> bool:
        return self == _EMPTY

    def with_part(self, name: str, part: object) -> Image:
        """The image with another part of this name. Each record of a log makes one:
        `dataclasses.replace` takes four times as long."""
        parts = [*_parts_of(self)]
        parts[_PARTS.index(name)] = part
        return Image(*parts)


_EMPTY: Final = Image()
_PARTS: Final = tuple(part.name for part in fields(Image))
_parts_of: Final = attrgetter(*_PARTS)


def uuid_sort_key(value: Uuid) -> tuple[int, int]:
    """Orders uuids as `Uuid.compareTo`: by two signed 64-bit halves."""
    high, low = _SIGNED_LONGS.unpack(value)
    return high, low
