"""What a cluster answers, as values: who is there, who leads, which levels are in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, Listener, Listeners, ReplicaKey
from quorate.client.connection import ClientError, NoAnswer
from quorate.wire.messages.quorum import DescribeQuorumResponse


class RequestFailed(ClientError):
    """The cluster answered with an error."""

    def __init__(self, code: int, message: str | None) -> None:
        self.code = ErrorCode.of(code)
        self.reason = message or self.code.name
        self.is_bare = self.code.is_all_of(message)
        """No reason is given: nothing was refused, it came to an end."""
        super().__init__(f"{message} ({self.code.name})" if message else self.code.name)


class Cluster(NamedTuple):
    cluster_id: str
    controller_id: int
    """-1 while there is none."""
    nodes: Mapping[int, Address]


class Replica(NamedTuple):
    """A voter or observer as the leader sees it; -1 where it knows no time (ms since 1970)."""

    key: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class Quorum(NamedTuple):
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]
    listeners: Mapping[int, Listeners]
    """Of the voters, where the leader tells them (DescribeQuorum version 2)."""

    @property
    def leader(self) -> Replica:
        """The leader's own row; ClientError when it is not a voter."""
        for voter in self.voters:
            if voter.key.id == self.leader_id:
                return voter
        raise ClientError(f"The leader {self.leader_id} is not among the voters")


class Features(NamedTuple):
    """Levels (min, max) that a node supports, and the levels in force with their epoch."""

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int]
    epoch: int


def check(code: int, message: str | None) -> None:
    """Raises RequestFailed for an error code."""
    if code != ErrorCode.NONE:
        raise RequestFailed(code, message)


def quorum_of(answer: DescribeQuorumResponse) -> Quorum:
    """Raises RequestFailed for its error, NoAnswer where it does not tell of the one partition."""
    check(answer.error_code, answer.error_message)
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    if len(partitions) != 1:
        raise NoAnswer(f"DescribeQuorum told of {len(partitions)} partitions instead of one")
    partition = partitions[0]
    check(partition.error_code, partition.error_message)
    return Quorum(
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


def _replica(state: DescribeQuorumResponse.TopicData.PartitionData.ReplicaState) -> Replica:
    return Replica(
        ReplicaKey(state.replica_id, state.replica_directory_id),
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )
