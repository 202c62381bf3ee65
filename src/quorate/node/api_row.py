"""The columns of the table of APIs (`quorate.node.apis`): what a row says of an API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from quorate.controller.building import Building
from quorate.controller.context import ControllerConfig
from quorate.controller.liveness import Liveness
from quorate.controller.result import WriteOperation
from quorate.node.request_context import NodeView
from quorate.node.requests import Call
from quorate.security.acl import AclOperation, AclResource
from quorate.wire.schema import Message

KIB: Final = 1024
MIB: Final = 1024 * KIB

SMALL_REQUEST_BYTES: Final = 64 * KIB
"""Size limit of a request about one partition, one node or a few features."""
BULK_REQUEST_BYTES: Final = 1 * MIB
"""Size limit of a request whose result has 10,000 records at most."""
ALL_PARTITIONS_BYTES: Final = 8 * MIB
"""Size limit of a request about all partitions of a broker."""


class Kind(Enum):
    """Who answers a request."""

    RAFT = "raft"
    """The raft core, whatever its role."""
    READ = "read"
    """Any node, from its committed image."""
    WRITE = "write"
    """The active controller, when its records are committed."""
    CONNECTION = "connection"
    """The node itself: the request is about its connection or wraps another request."""


class Audit(Enum):
    """Which requests of an API the audit trail has, besides those that an authorizer refuses."""

    NEVER = "never"
    CHANGES = "changes"
    """Those that change something or are refused."""
    ROUTINE = "routine"
    """What brokers send all the time: those that elect leaders."""


class AclRule(NamedTuple):
    """The permission that a request needs, where an authorizer is configured."""

    operation: AclOperation
    resource: AclResource | None = AclResource.CLUSTER
    """None: the resources that the request names, of several kinds."""


CLUSTER_ACTION: Final = AclRule(AclOperation.CLUSTER_ACTION)
ALTER: Final = AclRule(AclOperation.ALTER)
ALTER_ALL_CONFIGS: Final = AclRule(AclOperation.ALTER_CONFIGS)
ALTER_THEIR_CONFIGS: Final = AclRule(AclOperation.ALTER_CONFIGS, None)
CREATE_TOKENS: Final = AclRule(AclOperation.CREATE_TOKENS, AclResource.USER)
DESCRIBE: Final = AclRule(AclOperation.DESCRIBE)
DESCRIBE_ALL_CONFIGS: Final = AclRule(AclOperation.DESCRIBE_CONFIGS)
DESCRIBE_THEIR_CONFIGS: Final = AclRule(AclOperation.DESCRIBE_CONFIGS, None)


def topic_rule(operation: AclOperation) -> AclRule:
    """The rule for each topic that the request names: its decision asks for it."""
    return AclRule(operation, AclResource.TOPIC)


Handler = Callable[[NodeView, Call], Message | Building[Message] | None]
"""Gives the response, what builds it in steps, or None when it comes later."""


Arrival = Callable[[Liveness, Any, int], None]
"""Takes the request and the time, monotonic, ms."""


@dataclass(frozen=True, slots=True)
class ApiRow:
    """One API. A write has an operation, any other API a handler."""

    key: int
    name: str
    kind: Kind
    handler: Handler | None
    operation: WriteOperation[Any, Any] | None
    max_bytes: int
    """Of a request, header included. A node has one loop, and a short frame can name a million
    empty topics: what is decoded takes a hundred times its bytes. Kafka bounds a request by
    `socket.request.max.bytes` alone, as it has threads for requests; this comes on top."""
    acl: AclRule | None
    """What an authorizer asks for; None: every client may ask. A rule about the cluster is checked before
    the request is decided, another one by the decision."""
    refused_by: Callable[[NodeView], Message | None] | None = None
    """Gives the response where the API cannot be used yet. It is asked before the permission."""
    on_arrival: Arrival | None = None
    """What a write changes at the active controller before it waits for its turn."""
    timeout_ms: Callable[[ControllerConfig], int] | None = None
    """How long a write may wait, where the node's configuration says it."""
    prepare: Callable[[NodeView, Call], Building[Any]] | None = None
    """What any node does with a write, in steps, before it waits for its turn; the result is the write's
    request. None: the request is the message."""
    carries_data: bool = False
    """Its response is mostly batches or a part of a snapshot: `check_response_size` does not bound
    it, and only a leader is asked."""
    forwardable: bool = False
    """A broker may pass it on in an Envelope (`ApiKeys.forwardable`)."""
    throttled: bool = True
    """It counts for `request_percentage`, and its client may be throttled."""
    strict_since: int | None = None
    """The first version that refuses what exceeds `controller_mutation_rate`: clients of older versions do
    not know the error. None: the API changes no topics and is not bounded by that quota."""
    audit: Audit = Audit.NEVER
    reason: str = ""
    """Why a write that nobody asked for by name changes something, for its audit entry."""
