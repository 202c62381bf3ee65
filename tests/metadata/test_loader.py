"""Batches, transactions and snapshots: what may be seen, and when."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch
from quorate.formats import records as r
from quorate.formats.batch import encode_batch, encode_control_batch, iter_batches
from quorate.formats.records import encode_record
from quorate.metadata.image import Image
from quorate.metadata.loader import Loader, LogBatch, SnapshotBuilder, log_batch
from quorate.metadata.replay import ReplayError
from quorate.raft.values import LeaderChange

BEGIN = r.BeginTransactionRecord(name="move")
END = r.EndTransactionRecord()
ABORT = r.AbortTransactionRecord(reason="no")


def quota(key):
    return r.ProducerIdsRecord(next_producer_id=key)


class Log:
    """A loader and the batches that it is fed; the timestamp of a batch is 100 times its base."""

    def __init__(self):
        self.loader = Loader()

    def __call__(self, *found, epoch=1):
        base = self.loader.next_offset
        batch = LogBatch(base, base + len(found) - 1, epoch, base * 100, found)
        self.loader.feed(batch)
        return self

    @property
    def seen(self):
        """(next producer id, offset, epoch, timestamp, aligned)."""
        published = self.loader.published
        return (published.image.next_producer_id, *published.provenance)


@kafka_scenario("MetadataLoaderTest", "createAndClose")
@kafka_scenario("OffsetControlManagerTest", "initialValues")
def test_an_empty_log():
    log = Log()
    assert log.seen == (-1, -1, -1, -1, False)
    assert log.loader.published.image.is_empty
    assert log.loader.next_offset == 0


@kafka_scenario("OffsetControlManagerTest", "handleCommitBatch")
def test_a_batch_is_seen_when_it_is_whole():
    log = Log()(quota(1), quota(2))(quota(3), epoch=2)
    assert log.seen == (3, 2, 2, 200, True)
    assert log.loader.published.provenance.snapshot_id == OffsetAndEpoch(3, 2)


@kafka_scenario("MetadataLoaderTest", "publishTransaction")
@kafka_scenario(
    "MetadataBatchLoaderTest", "alignedTransactionBatches", "oneTransactionInMultipleBatches"
)
def test_a_transaction_is_seen_when_it_ends():
    log = Log()(quota(1))
    log(BEGIN, quota(2))
    assert log.seen == (1, 0, 1, 0, True)
    assert log.loader.transaction == ("move", 1)
    log(quota(3), epoch=2)
    assert log.seen == (1, 0, 1, 0, True)
    log(END, epoch=2)
    assert log.seen == (3, 4, 2, 400, True)
    assert log.loader.transaction is None


@kafka_scenario(
    "MetadataBatchLoaderTest", "singletonBeginAndEnd", "transactionAlignmentOnBatchBoundary"
)
def test_the_marks_of_a_transaction_may_stand_alone():
    log = Log()(quota(1))
    for batch in (BEGIN, quota(2)):
        assert log(batch).seen == (1, 0, 1, 0, True)
    assert log(END).seen == (2, 3, 1, 300, True)


@kafka_scenario("MetadataLoaderTest", "publishTransaction")
def test_an_aborted_transaction_leaves_nothing():
    log = Log()(quota(1))(BEGIN, quota(2))(ABORT)
    assert log.seen == (1, 3, 1, 300, True)
    # Also when more follows at once, in the same batch.
    log = Log()(quota(1))(BEGIN, quota(5), ABORT, quota(2))
    assert log.seen == (2, 4, 1, 100, True)


@kafka_scenario("SnapshotGeneratorTest", "noSnapshotCreatedWhenLastOffsetIsNotBatchAligned")
def test_what_precedes_a_begin_in_its_batch_is_seen_but_is_no_place_for_a_snapshot():
    log = Log()(quota(1), BEGIN, quota(2))
    assert log.seen == (1, 0, 1, 0, False)
    log(END)
    assert log.seen == (2, 3, 1, 300, True)


@kafka_scenario("MetadataLoaderTest", "publishTransactionWithinBatch")
@kafka_scenario(
    "MetadataBatchLoaderTest",
    "multipleTransactionsInOneBatch",
    "multipleTransactionsInOneBatchesWithNoOp",
)
def test_transactions_follow_each_other_within_a_batch():
    log = Log()(BEGIN, quota(1), END, quota(2), BEGIN, quota(3))
    assert log.seen == (2, 3, 1, 0, False)
    log(ABORT)
    assert log.seen == (2, 6, 1, 600, True)


@kafka_scenario(
    "MetadataBatchLoaderTest",
    "unexpectedBeginTransaction",
    "unexpectedEndTransaction",
    "unexpectedAbortTransaction",
)
@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([BEGIN], [BEGIN], "at offset 1 .* the transaction of offset 0 has not ended"),
        ([quota(1)], [END], "at offset 1 .*EndTransactionRecord: no transaction has begun"),
        ([quota(1)], [ABORT], "at offset 1 .*AbortTransactionRecord: no transaction has begun"),
        ([quota(1)], [quota(2), quota(2)], r"at offset 2 \(epoch 1\): ProducerIdsRecord"),
        ([quota(1)], [quota(2), b"\x01\x63\x00"], "at offset 2 .*Unknown metadata id 99"),
        ([quota(1)], [b"\x01\x0f\x00\x00"], "at offset 1 .*Failed to deserialize record"),
    ],
)
def test_a_batch_that_fails_changes_nothing(first, second, words):
    log = Log()(*first)
    before = (log.seen, log.loader.transaction, log.loader.next_offset)
    with pytest.raises(ReplayError, match=words):
        log(*second)
    assert (log.seen, log.loader.transaction, log.loader.next_offset) == before
    if log.loader.transaction is not None:
        log(END)
    assert log(quota(7)).seen[0] == 7


def test_batches_come_in_order():
    log = Log()(quota(1))
    with pytest.raises(InvariantError, match="batch after batch: 0, 1"):
        log.loader.feed(LogBatch(0, 0, 1, 0, [quota(2)]))


@kafka_scenario("MetadataLoaderTest", "loadEmptyBatch")
def test_bytes_of_a_log_are_fed_as_they_are():
    control = encode_control_batch(0, 3, 11, [LeaderChange(1, (1,), (1,))])
    data = encode_batch(1, 3, 22, [encode_record(quota(4), 0), encode_record(quota(5), 0)])
    loader = Loader()
    first, second = map(log_batch, iter_batches(control + data))
    loader.feed(first)
    assert loader.published.image == Image()
    assert loader.published.provenance == (0, 3, 11, True)
    loader.feed(second)
    assert loader.published.image.next_producer_id == 5
    assert loader.published.provenance == (2, 3, 22, True)


@kafka_scenario(
    "MetadataLoaderTest",
    "lastAppliedOffset",
    "reloadSnapshot",
    "snapshotDuringTransaction",
)
@kafka_scenario(
    "OffsetControlManagerTest",
    "handleLoadSnapshot",
    "loadSnapshotClearsTransactionalState",
)
def test_a_snapshot_takes_the_place_of_everything():
    log = Log()(quota(9))(BEGIN, r.TopicRecord(name="t"))
    builder = SnapshotBuilder(OffsetAndEpoch(50, 4), 77)
    builder.feed([encode_record(quota(1), 0)])
    builder.feed([quota(2)])
    log.loader.install(builder.finish())
    assert log.seen == (2, 49, 4, 77, True)
    assert log.loader.transaction is None
    assert log(quota(3)).seen[:2] == (3, 50)


@kafka_scenario("MetadataLoaderTest", "loadEmptySnapshot")
def test_a_snapshot_without_records_leaves_nothing_but_its_place():
    log = Log()(quota(9))
    log.loader.install(SnapshotBuilder(OffsetAndEpoch(301, 100), 4000).finish())
    assert log.loader.published.image.is_empty
    assert log.loader.published.provenance == (300, 100, 4000, True)
    assert log(quota(3), epoch=100).seen[:3] == (3, 301, 100)


@kafka_scenario(
    "OffsetControlManagerTest",
    "beginTransactionRecordNotAllowedInSnapshot",
    "endTransactionRecordNotAllowedInSnapshot",
    "abortTransactionRecordNotAllowedInSnapshot",
)
@pytest.mark.parametrize("mark", [BEGIN, END, ABORT])
def test_a_snapshot_has_no_transactions(mark):
    builder = SnapshotBuilder(OffsetAndEpoch(50, 4), 77)
    builder.feed([quota(1)])
    with pytest.raises(ReplayError, match="record 1 of the snapshot that ends at offset 50, epoch"):
        builder.feed([mark])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"\x01\x63\x00", "Unknown metadata id 99"),
        (b"\x01\x0f\x63\x00", "ProducerIdsRecord version 99 .*a newer Kafka may have written it"),
        (b"\x09\x0f\x00\x00", ".*unknown frame version 9"),
    ],
)
def test_a_record_that_no_release_knows_is_named_in_the_log_and_in_a_snapshot(value, words):
    builder = SnapshotBuilder(OffsetAndEpoch(50, 4), 77)
    builder.feed([quota(1)])
    where = "record 1 of the snapshot that ends at offset 50, epoch 4"
    with pytest.raises(ReplayError, match=f"{where}: {words}"):
        builder.feed([value])
    with pytest.raises(ReplayError, match=f"the record at offset 1 .*{words}"):
        Log()(quota(1))(value)
