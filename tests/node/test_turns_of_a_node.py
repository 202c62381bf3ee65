"""A decision in turns on a whole node: what it holds on to while other writes come in between."""

import weakref

from node.world import World
from quorate.base.ids import Uuid
from quorate.controller.activation import Bootstrap
from quorate.controller.result import Result, controller_task
from quorate.formats.records import (
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    encode_record,
)

LEVEL = encode_record(FeatureLevelRecord(name="metadata.version", feature_level=30), 0)
DIRECTORY = Uuid(bytes(15) + b"\x07")
PARTITIONS, PART = 12, 3
TOPIC = Uuid(bytes(15) + b"\x09")


def test_a_fencing_in_turns_frees_the_images_that_are_replaced_meanwhile():
    """Else its last turn frees all of them at once: 115 ms after a million partitions."""
    world = World([1], bootstrap=Bootstrap((LEVEL,)), part_records=PART)
    task = controller_task("load", lambda head, request, context: Result(list(records()), False))
    world.nodes[1].running.add_task(task, 1)
    world.run_until(lambda: world.active and world.active.image.topics.by_id)
    world.crash(1)  # a new active controller expects a heartbeat from every broker
    world.start(1)
    leader = world.run_until(lambda: world.active)
    first = weakref.ref(leader.image.topics.by_id)
    world.run_until(lambda: left(leader) > PART)
    assert left(leader) < PARTITIONS, "other turns are to come"
    assert first() is None
    world.run_until(lambda: leader.image.cluster.brokers[8].fenced)
    assert left(leader) == PARTITIONS


def records():
    for broker_id in (8, 9):
        yield RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=Uuid(broker_id.to_bytes(16, "big")),
            broker_epoch=5,
            fenced=broker_id == 9,
            log_dirs=[DIRECTORY],
        )
    yield TopicRecord(name="topic", topic_id=TOPIC)
    for index in range(PARTITIONS):
        yield PartitionRecord(
            partition_id=index,
            topic_id=TOPIC,
            replicas=[8, 9],
            isr=[8, 9],
            leader=8,
            directories=[DIRECTORY] * 2,
        )


def left(leader):
    """How many partitions the broker has left."""
    found = leader.image.topics.by_id.get(TOPIC)
    return sum(partition.leader == -1 for partition in found.partitions.values())
