"""What Kafka's authorizer and controllers write into their logs.

The authorizer's line is of `StandardAuthorizerData.buildAuditMessage`; that of AclAuthorizer before
Kafka 4 (`Operation = AlterConfigs`, no rule) is read too. The node that decides writes it: for a
request that a broker forwards (Envelope) that is the active controller, with the principal and the
address of the client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from quorate.spark.who.keys import (
    CLUSTER,
    ELECTIONS,
    MENTION,
    NAMED,
    THE_CLUSTER,
    TOLD,
    clock_key,
    fence_key,
    key,
)

AUTHORIZER: Final = re.compile(
    r"Principal = (?P<principal>.*) is (?P<result>Allowed|Denied) [Oo]peration = (?P<operation>\w+)"
    r" from host = (?P<host>\S+) on resource = (?P<type>\w+):(?P<pattern>[A-Z]+):(?P<name>.*)"
    r" for request = (?P<request>\w+) with resourceRefCount = \d+(?: based on rule (?P<rule>.*))?",
    re.DOTALL,
)

_MARKS: Final = re.compile(
    r" is (?:Allowed|Denied) [Oo]peration = | from host = | on resource = "
    r"| for request = \w+ with resourceRefCount = "
)
"""Each once in a line, unless a name has one; who picked that name may have meant to deceive."""

CAUSING: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "CreateTopics": ("CREATE", ("Topic", "Cluster")),
    "Metadata": ("CREATE", ("Topic", "Cluster")),
    "StreamsGroupHeartbeat": ("CREATE", ("Topic", "Cluster")),
    "DeleteTopics": ("DELETE", ("Topic", "Cluster")),
    "CreatePartitions": ("ALTER", ("Topic",)),
    "IncrementalAlterConfigs": ("ALTER_CONFIGS", ("Topic", "Group", "Cluster")),
    "AlterConfigs": ("ALTER_CONFIGS", ("Topic", "Group", "Cluster")),
    "AlterClientQuotas": ("ALTER_CONFIGS", ("Cluster",)),
    "CreateAcls": ("ALTER", ("Cluster",)),
    "DeleteAcls": ("ALTER", ("Cluster",)),
    "AlterUserScramCredentials": ("ALTER", ("Cluster",)),
    "UpdateFeatures": ("ALTER", ("Cluster",)),
    "ElectLeaders": ("ALTER", ("Cluster",)),
    "AlterPartitionReassignments": ("ALTER", ("Cluster",)),
    "UnregisterBroker": ("ALTER", ("Cluster",)),
    "AddRaftVoter": ("ALTER", ("Cluster",)),
    "RemoveRaftVoter": ("ALTER", ("Cluster",)),
    "CreateDelegationToken": ("CREATE_TOKENS", ("User",)),
}
"""The operation that `ControllerApis` (for Metadata `KafkaApis`) asks for, and on what."""

NAMES_TOPICS: Final = frozenset(
    {"CreateTopics", "Metadata", "StreamsGroupHeartbeat", "DeleteTopics"}
)
"""Of these a right on the cluster spares the check of each topic."""

_FENCING: Final = re.compile(r"Fencing broker (\d+) at epoch ")
_CHANGING: Final = re.compile(r"([\w\-\[\]]+): changing (?:\d+ )?partition\(s\)")
_NEW_TOPIC: Final = re.compile(r"Replayed TopicRecord for topic .* with topic ID ([\w-]{22})\.")


class Authorized(NamedTuple):
    """A line of the authorizer."""

    principal: str
    allowed: bool
    operation: str
    """As AclOperation: `ALTER_CONFIGS`."""
    host: str
    resource_type: str
    """As in the line: `Topic`, `Cluster`, `Group`, ..."""
    resource_name: str
    request: str
    rule: str | None


class Offer(NamedTuple):
    """What a line can be evidence for."""

    key: str
    strength: int


def parse_authorizer(message: str) -> Authorized | None:
    """The line's message, None when it is no line of an authorizer, or could be two of them."""
    found = AUTHORIZER.fullmatch(message)
    if found is None or len(_MARKS.findall(message)) != 4:
        return None
    return Authorized(
        found["principal"],
        found["result"] == "Allowed",
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found["operation"]).upper(),
        found["host"],
        found["type"],
        found["name"],
        found["request"],
        found["rule"],
    )


def authorizer_offers(line: Authorized) -> Iterator[Offer]:
    """What an allowed line is evidence for; nothing for one that was denied or changes nothing."""
    about = (line.resource_type, line.resource_name)
    causing = CAUSING.get(line.request)
    if not line.allowed or causing is None:
        return
    operation, types = causing
    if line.operation == operation and line.resource_type in types:
        weak = about == THE_CLUSTER and line.request in NAMES_TOPICS
        yield Offer(key(line.request, *about), CLUSTER if weak else NAMED)
    elif line.request == "CreateTopics" and line.operation == "DESCRIBE_CONFIGS":
        yield Offer(key(line.request, *about), MENTION)


def controller_offers(message: str) -> Iterator[Offer]:
    """What a line of `org.apache.kafka.controller` explains."""
    if found := _FENCING.search(message):
        yield Offer(fence_key(found[1]), TOLD)
    elif _CHANGING.search(message):
        yield Offer(ELECTIONS, TOLD)
    elif found := _NEW_TOPIC.search(message):
        yield Offer(clock_key(found[1]), TOLD)
