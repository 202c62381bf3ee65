"""Requests about topics that the clients of a world with brokers send.

Some topics are kept: no client deletes them or reduces their partitions. A check may rely on their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.sim.prng import Prng
from quorate.wire.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from quorate.wire.schema import Message

KEPT: Final = "kept"
"""Prefix of the names of topics that no client deletes."""
_NAMES: Final = (f"{KEPT}1", f"{KEPT}2", f"{KEPT}3", "dropped1", "dropped2")
_TOPIC: Final = 2
_SET: Final = 0
_MOST_PARTITIONS: Final = 4
_TIMEOUTS_MS: Final = (1, 60_000, 60_000)
"""The short one passes while another decision holds the queue."""
_UNCLEAN: Final = "unclean.leader.election.enable"
_MIN_ISR: Final = "min.insync.replicas"


def topic_request(rng: Prng, number: int, brokers: int) -> Message:
    """The request with this number (from 1) of all clients of a world; broker ids are 1 to `brokers`."""
    if number <= len(_NAMES):
        return _create(rng, _NAMES[number - 1], brokers)
    draw = rng.pick(_DRAWS)
    return draw(rng, rng.pick(_NAMES), brokers)


def _create(rng: Prng, name: str, brokers: int) -> Message:
    topic = CreateTopicsRequest.CreatableTopic
    count, factor = rng.between(1, _MOST_PARTITIONS), rng.between(1, min(3, brokers))
    made = topic(name=name, num_partitions=count, replication_factor=factor)
    return CreateTopicsRequest(topics=[made], timeout_ms=rng.pick(_TIMEOUTS_MS))


def _delete(rng: Prng, name: str, brokers: int) -> Message:
    if name.startswith(KEPT):
        return _create(rng, name, brokers)
    topics = [DeleteTopicsRequest.DeleteTopicState(name=name)]
    return DeleteTopicsRequest(topics=topics, timeout_ms=rng.pick(_TIMEOUTS_MS))


def _add_partitions(rng: Prng, name: str, brokers: int) -> Message:
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    more = topic(name=name, count=rng.between(2, _MOST_PARTITIONS + 2), assignments=None)
    return CreatePartitionsRequest(topics=[more], timeout_ms=rng.pick(_TIMEOUTS_MS))


def _elect(rng: Prng, name: str, brokers: int) -> Message:
    topics = [ElectLeadersRequest.TopicPartitions(topic=name, partitions=[0, 1])]
    return ElectLeadersRequest(election_type=rng.below(2), topic_partitions=topics)


def _reassign(rng: Prng, name: str, brokers: int) -> Message:
    request = AlterPartitionReassignmentsRequest
    target = rng.shuffled(list(range(1, brokers + 1)))[: rng.between(1, min(3, brokers))]
    replicas = None if rng.happens(0.3) else target
    partition = request.ReassignableTopic.ReassignablePartition(
        partition_index=rng.below(2), replicas=replicas
    )
    return request(topics=[request.ReassignableTopic(name=name, partitions=[partition])])


def _configure(rng: Prng, name: str, brokers: int) -> Message:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config, value = rng.pick(
        ((_UNCLEAN, "true"), (_UNCLEAN, "false"), (_MIN_ISR, "1"), (_MIN_ISR, "2"))
    )
    change = resource.AlterableConfig(name=config, config_operation=_SET, value=value)
    found = resource(resource_type=_TOPIC, resource_name=name, configs=[change])
    return IncrementalAlterConfigsRequest(resources=[found])


_DRAWS: Final[tuple[Callable[[Prng, str, int], Message], ...]] = (
    _create,
    _delete,
    _add_partitions,
    _elect,
    _reassign,
    _reassign,
    _configure,
)
