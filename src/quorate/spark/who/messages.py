"""Lines of Kafka's authorizer and controllers.

The authorizer's line is that of `StandardAuthorizerData.buildAuditMessage`, or that of
AclAuthorizer before Kafka 4 (`Operation = AlterConfigs`, no rule). The node that authorizes a
request writes it: of a request that a broker forwards (Envelope) the active controller, with the
principal and the address of the client.
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
    REPORTED,
    THE_CLUSTER,
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

_DELIMITERS: Final = re.compile(
    r" is (?:Allowed|Denied) [Oo]peration = | from host = | on resource = "
    r"| for request = \w+ with resourceRefCount = "
)
"""Each occurs once in a line. More than that means that a name contains one of them, perhaps to
forge a line."""

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
    "UnregisterController": ("ALTER", ("Cluster",)),
    "AddRaftVoter": ("ALTER", ("Cluster",)),
    "RemoveRaftVoter": ("ALTER", ("Cluster",)),
    "CreateDelegationToken": ("CREATE_TOKENS", ("User",)),
}
"""By request: the operation that `ControllerApis` (for Metadata `KafkaApis`) authorizes, and the
types of its resource."""

NAMES_TOPICS: Final = frozenset(
    {"CreateTopics", "Metadata", "StreamsGroupHeartbeat", "DeleteTopics"}
)
"""For these, Kafka does not check each topic if the principal has the right on the cluster."""

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


class EvidenceKey(NamedTuple):
    """What a line is evidence for, and how strong it is (a constant of `keys`)."""

    key: str
    strength: int


def parse_authorizer(message: str) -> Authorized | None:
    """The parsed message; None for other lines, and for one that could be a forgery."""
    found = AUTHORIZER.fullmatch(message)
    if found is None or len(_DELIMITERS.findall(message)) != 4:
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


def authorizer_evidence(line: Authorized) -> Iterator[EvidenceKey]:
    """The keys for which a line is evidence: none if it was denied or cannot change metadata."""
    about = (line.resource_type, line.resource_name)
    causing = CAUSING.get(line.request)
    if not line.allowed or causing is None:
        return
    operation, types = causing
    if line.operation == operation and line.resource_type in types:
        weak = about == THE_CLUSTER and line.request in NAMES_TOPICS
        yield EvidenceKey(key(line.request, *about), CLUSTER if weak else NAMED)
    elif line.request == "CreateTopics" and line.operation == "DESCRIBE_CONFIGS":
        yield EvidenceKey(key(line.request, *about), MENTION)


def controller_evidence(message: str) -> Iterator[EvidenceKey]:
    """The keys that a line of `org.apache.kafka.controller` explains."""
    if found := _FENCING.search(message):
        yield EvidenceKey(fence_key(found[1]), REPORTED)
    elif _CHANGING.search(message):
        yield EvidenceKey(ELECTIONS, REPORTED)
    elif found := _NEW_TOPIC.search(message):
        yield EvidenceKey(clock_key(found[1]), REPORTED)
