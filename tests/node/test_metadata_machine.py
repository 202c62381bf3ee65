"""The state machine of a controller: the collector of the interpreter, records that do not fit."""

import gc
from contextlib import contextmanager

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from narrow import not_none
from quorate.base.ids import OffsetAndEpoch, Uuid
from quorate.formats.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    encode_record,
)
from quorate.formats.versions import METADATA_VERSION
from quorate.metadata.errors import ReplayError
from quorate.node.metadata_machine import MetadataMachine
from quorate.replica.state_machine import CommittedBatch

TOPICS = 1_500
BATCH = 250


def topic_id(number):
    return Uuid(number.to_bytes(16, "big"))


def log():
    """Topics of one partition; then each partition loses a replica from its ISR."""
    yield encode_record(FeatureLevelRecord(name=METADATA_VERSION, feature_level=30), 0)
    for number in range(1, TOPICS + 1):
        yield encode_record(TopicRecord(name=f"t{number}", topic_id=topic_id(number)), 0)
        partition = PartitionRecord(
            topic_id=topic_id(number), partition_id=0, replicas=[1, 2], isr=[1, 2], leader=1
        )
        yield encode_record(partition, 0)
    for number in range(1, TOPICS + 1):
        change = PartitionChangeRecord(topic_id=topic_id(number), partition_id=0, isr=[1])
        yield encode_record(change, 0)


@contextmanager
def full_collections(threshold):
    """A list that gets an item for each full collection; the collector runs this often."""
    found, before = [], gc.get_threshold()

    def called(phase, info):
        if phase == "start" and info["generation"] == 2:
            found.append(info)

    gc.collect()
    gc.freeze()
    gc.collect()  # from now on nothing counts as long-lived
    gc.callbacks.append(called)
    gc.set_threshold(threshold, 10, 10)
    try:
        yield found
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(called)
        gc.unfreeze()


def apply_log(machine):
    """Apply all of `log`."""
    values, offset = list(log()), 0
    while offset < len(values):
        batch = values[offset : offset + BATCH]
        machine.apply(CommittedBatch(offset, offset + len(batch) - 1, 1, 0, batch))
        offset += len(batch)


def test_no_full_collection_visits_the_image_while_it_grows():
    # It would free nothing, and every request would wait for it.
    machine = MetadataMachine(owns_process=True)
    with full_collections(threshold=100) as found:
        apply_log(machine)
    assert len(machine.image.topics.by_id) == TOPICS
    assert not_none(machine.image.topics.named("t7")).partitions[0].isr == (1,)
    assert found == []


def test_what_a_snapshot_is_written_from_is_no_work_for_the_collector():
    machine, frozen = MetadataMachine(owns_process=True), gc.get_freeze_count()
    apply_log(machine)
    assert list(not_none(machine.freeze()))
    assert gc.get_freeze_count() > frozen
    gc.unfreeze()


def test_a_process_of_others_keeps_its_garbage_collector():
    # A world of the simulator would never be freed, and a thousand fill the memory.
    machine, frozen = MetadataMachine(), gc.get_freeze_count()
    apply_log(machine)
    snapshot = list(not_none(machine.freeze()))
    machine.begin_load(OffsetAndEpoch(9, 1), 0)
    assert gc.isenabled()
    machine.load(snapshot)
    machine.end_load()
    assert gc.get_freeze_count() == frozen


# -- records that do not fit -----------------------------------------------------------------------
ORPHAN = encode_record(
    PartitionRecord(partition_id=0, topic_id=Uuid(b"t" * 16), replicas=[1], isr=[1], leader=1), 0
)
"""A partition of a topic that is not there."""


@kafka_guarantee("StandardAuthorizerTest", "completeInitialLoadWithException")
@kafka_guarantee("SnapshotGeneratorTest", "snapshotsDisabled")
@kafka_scenario("QuorumControllerTest", "fatalMetadataErrorDuringLogLoading")
def test_a_record_of_the_log_that_does_not_fit_ends_the_node_with_its_offset():
    machine = MetadataMachine()
    with pytest.raises(ReplayError, match="PartitionRecord"):
        machine.apply(CommittedBatch(0, 0, 1, 1, [ORPHAN]))
    assert not machine.image.topics.by_id


@kafka_scenario("QuorumControllerTest", "fatalMetadataErrorDuringSnapshotLoading")
def test_a_record_of_a_snapshot_that_does_not_fit_ends_the_node():
    machine = MetadataMachine()
    machine.begin_load(OffsetAndEpoch(1, 1), 1)
    with pytest.raises(ReplayError, match="PartitionRecord"):
        machine.load([ORPHAN])


NEWER = {
    "id": b"\x01\x63\x00",
    "version": b"\x01\x02\x09",
    "frame": b"\x02\x02\x00",
}


@pytest.mark.parametrize("kind", NEWER)
def test_a_record_of_a_later_release_ends_the_node_with_what_to_do(kind):
    expected = "wrote it: run this node with a release that supports it"
    with pytest.raises(ReplayError, match=f"offset 0 .*{expected}"):
        MetadataMachine().apply(CommittedBatch(0, 0, 1, 1, [NEWER[kind]]))
    machine = MetadataMachine()
    machine.begin_load(OffsetAndEpoch(1, 1), 1)
    with pytest.raises(ReplayError, match=f"snapshot .*{expected}"):
        machine.load([NEWER[kind]])
