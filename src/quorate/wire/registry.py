"""Which messages belong to an api key, and which apis a controller offers.

A family of messages is imported when one of its apis is first asked for: a tool that speaks four
of them should not wait for forty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeVar

from quorate.wire.schema import Message

V = TypeVar("V")


class Api(NamedTuple):
    """An api of the Kafka protocol; versions inclusive."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible_since: int | None

    def request_header_version(self, version: int) -> int:
        return 2 if self._is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        """ApiVersions always has 0: its client cannot know yet what the server speaks."""
        return 1 if self._is_flexible(version) and self.key != API_VERSIONS else 0

    def _is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since


API_VERSIONS: Final = 18

_FAMILIES: Final[Mapping[int, tuple[str, str]]] = {
    1: ("Fetch", "fetch"),
    3: ("Metadata", "cluster"),
    16: ("ListGroups", "groups"),
    17: ("SaslHandshake", "security"),
    18: ("ApiVersions", "cluster"),
    19: ("CreateTopics", "topics"),
    20: ("DeleteTopics", "topics"),
    29: ("DescribeAcls", "acls"),
    30: ("CreateAcls", "acls"),
    31: ("DeleteAcls", "acls"),
    32: ("DescribeConfigs", "configs"),
    33: ("AlterConfigs", "configs"),
    34: ("AlterReplicaLogDirs", "log_dirs"),
    35: ("DescribeLogDirs", "log_dirs"),
    36: ("SaslAuthenticate", "security"),
    37: ("CreatePartitions", "topics"),
    38: ("CreateDelegationToken", "security"),
    39: ("RenewDelegationToken", "security"),
    40: ("ExpireDelegationToken", "security"),
    41: ("DescribeDelegationToken", "security"),
    43: ("ElectLeaders", "partitions"),
    44: ("IncrementalAlterConfigs", "configs"),
    45: ("AlterPartitionReassignments", "partitions"),
    46: ("ListPartitionReassignments", "partitions"),
    48: ("DescribeClientQuotas", "quotas"),
    49: ("AlterClientQuotas", "quotas"),
    50: ("DescribeUserScramCredentials", "security"),
    51: ("AlterUserScramCredentials", "security"),
    52: ("Vote", "election"),
    53: ("BeginQuorumEpoch", "election"),
    54: ("EndQuorumEpoch", "election"),
    55: ("DescribeQuorum", "quorum"),
    56: ("AlterPartition", "partitions"),
    57: ("UpdateFeatures", "quotas"),
    58: ("Envelope", "envelope"),
    59: ("FetchSnapshot", "fetch"),
    60: ("DescribeCluster", "cluster"),
    62: ("BrokerRegistration", "nodes"),
    63: ("BrokerHeartbeat", "nodes"),
    64: ("UnregisterBroker", "nodes"),
    67: ("AllocateProducerIds", "partitions"),
    70: ("ControllerRegistration", "nodes"),
    73: ("AssignReplicasToDirs", "partitions"),
    74: ("ListConfigResources", "configs"),
    75: ("DescribeTopicPartitions", "topics"),
    80: ("AddRaftVoter", "quorum"),
    81: ("RemoveRaftVoter", "quorum"),
    82: ("UpdateRaftVoter", "quorum"),
    94: ("UnregisterController", "nodes"),
}
"""Api key -> name, and the module of `quorate.wire.messages` that declares it."""

_NOT_ON_CONTROLLERS: Final = frozenset({3, 16, 34, 35})
"""Metadata, ListGroups and the log directories: only brokers answer them."""

BEYOND_KAFKA: Final = frozenset({48, 74, 75})
"""DescribeClientQuotas, ListConfigResources, DescribeTopicPartitions: a controller of Kafka does not
answer them, one of Quorate does."""


_NO_API: Final[Mapping[str, str]] = {
    "RequestHeader": "headers",
    "ResponseHeader": "headers",
    "DefaultPrincipalData": "envelope",
}
"""Messages without an api of their own, and their modules."""


@cache
def api(key: int) -> Api:
    """The api of `key`. Raises KeyError when this package does not know it."""
    name, family = _FAMILIES[key]
    module = import_module(f"quorate.wire.messages.{family}")
    request: type[Message] = getattr(module, f"{name}Request")
    response: type[Message] = getattr(module, f"{name}Response")
    low, high = request.schema.versions
    return Api(key, name, request, response, low, high, request.schema.flexible)


class _Table(Mapping[int, V]):
    """`value` of the api of each of `keys`, imported when it is looked at."""

    def __init__(self, keys: Iterable[int], value: Callable[[Api], V]) -> None:
        self._keys = dict.fromkeys(keys)
        self._value = value
        self._known: dict[int, V] = {}

    def __getitem__(self, key: int) -> V:
        found = self._known.get(key)
        if found is None:
            if key not in self._keys:
                raise KeyError(key)
            found = self._known[key] = self._value(api(key))
        return found

    def get(self, key: int, default: Any = None) -> Any:  # that of Mapping raises and catches
        return self[key] if key in self._known or key in self._keys else default

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


APIS: Final[Mapping[int, Api]] = _Table(_FAMILIES, lambda found: found)
"""Every api of this package by key."""

CONTROLLER_API_VERSIONS: Final[Mapping[int, tuple[int, int]]] = _Table(
    (key for key in _FAMILIES if key not in _NOT_ON_CONTROLLERS),
    lambda found: (found.min_version, found.max_version),
)
"""What a controller of Kafka 4.4.0 advertises, and BEYOND_KAFKA: lowest and highest version by key."""


def family_of(message_name: str) -> str | None:
    """The module of `quorate.wire.messages` that declares a class; None when there is none."""
    return _home().get(message_name)


@cache
def _home() -> dict[str, str]:
    found = dict(_NO_API)
    for name, family in _FAMILIES.values():
        found[f"{name}Request"] = found[f"{name}Response"] = family
    return found
