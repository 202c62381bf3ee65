"""Results of requests to a cluster. The names are those of Kafka's Admin API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, Listener, Listeners, ReplicaKey
from quorate.client.errors import ClientError, NoResponseError
from quorate.wire.messages.quorum import DescribeQuorumResponse

DENIED: Final = frozenset(
    (
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    )
)
"""What an authorizer refuses."""


class RequestFailedError(ClientError):
    """The cluster answered with an error code."""

    def __init__(self, code: int, message: str | None) -> None:
        self.code = ErrorCode.of(code)
        self.reason = message or self.code.message or self.code.name
        """The node's text, or Kafka's text for the code."""
        self.is_bare = self.code.is_all_of(message)
        """Whether the response has no message of its own: the request was not refused, it expired."""
        self.note = ""
        """What an earlier attempt of the call may have done, whose response was lost."""
        super().__init__(f"{self.reason} ({self.code.name})")

    @property
    def text(self) -> str:
        """The reason and the note, for people."""
        return f"{self.reason}; {self.note}" if self.note else self.reason

    def __str__(self) -> str:
        without_note = super().__str__()
        return f"{without_note}; {self.note}" if self.note else without_note


class MismatchedEndpointTypeError(RequestFailedError):
    """A node is a broker where a controller was expected, or the other way around (KIP-919)."""


class UnsupportedEndpointTypeError(RequestFailedError):
    """The call cannot be made on this kind of node (KIP-919)."""


class NodeDescription(NamedTuple):
    """A broker or a controller."""

    address: Address
    rack: str | None = None
    is_fenced: bool = False


class ClusterDescription(NamedTuple):
    """The answer of DescribeCluster."""

    cluster_id: str
    controller_id: int
    """-1 while no controller is active."""
    nodes: Mapping[int, NodeDescription]


class ReplicaStatus(NamedTuple):
    """A voter or observer in the leader's view. Times are ms since 1970, -1 for unknown."""

    key: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumInfo(NamedTuple):
    """The answer of DescribeQuorum (`QuorumInfo`)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaStatus, ...]
    observers: tuple[ReplicaStatus, ...]
    listeners: Mapping[int, Listeners]
    """Listeners of the voters by node id; empty before DescribeQuorum version 2."""

    @property
    def leader(self) -> ReplicaStatus:
        """The leader's own entry. Raises ClientError when the leader is not a voter."""
        for voter in self.voters:
            if voter.key.id == self.leader_id:
                return voter
        raise ClientError(f"The leader {self.leader_id} is not among the voters")


class FeatureMetadata(NamedTuple):
    """Supported levels (min, max) of a node, and the finalized levels with their epoch."""

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int]
    epoch: int


def check(code: int, message: str | None) -> None:
    """Raise RequestFailedError for any code other than NONE."""
    error = failure_of(code, message)
    if error is not None:
        raise error


def failure_of(code: int, message: str | None) -> RequestFailedError | None:
    """The error of a code and its message; None for NONE."""
    if code == ErrorCode.NONE:
        return None
    if code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
        return MismatchedEndpointTypeError(code, message)
    if code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE:
        return UnsupportedEndpointTypeError(code, message)
    return RequestFailedError(code, message)


def refusal_of(outcome: Any) -> tuple[RequestFailedError, object] | None:
    """The first refusal by an authorizer in what a call raised or returned, and its item (or None)."""
    for item, error in errors_of(outcome):
        if isinstance(error, RequestFailedError) and error.code in DENIED:
            return error, item
    return None


def errors_of(outcome: Any) -> Iterator[tuple[object, Any]]:
    """The items of what a call raised or returned (None where they have no name), each with its value."""
    if isinstance(outcome, Exception):
        yield None, getattr(outcome, "cause", outcome)
    elif isinstance(outcome, Mapping):
        yield from outcome.items()
    elif isinstance(outcome, tuple | list):
        yield from ((None, each) for each in outcome)


def quorum_of(answer: DescribeQuorumResponse) -> QuorumInfo:
    """Convert the response.

    Raises RequestFailedError for an error code, NoResponseError unless it has one partition.
    """
    check(answer.error_code, answer.error_message)
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    if len(partitions) != 1:
        raise NoResponseError(
            f"DescribeQuorum returned {len(partitions)} partitions instead of one"
        )
    partition = partitions[0]
    check(partition.error_code, partition.error_message)
    return QuorumInfo(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(map(_replica, partition.current_voters)),
        tuple(map(_replica, partition.observers)),
        {
            node.node_id: tuple(Listener(end.name, end.host, end.port) for end in node.listeners)
            for node in answer.nodes
        },
    )


def _replica(state: DescribeQuorumResponse.TopicData.PartitionData.ReplicaState) -> ReplicaStatus:
    return ReplicaStatus(
        ReplicaKey(state.replica_id, state.replica_directory_id),
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
