from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from formats.samples import named, short
from quorate.base.ids import Listener, OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.batch import (
    MAX_BATCH_SIZE,
    BatchView,
    encode_batch,
    encode_control_batch,
    iter_batches,
    raw_records,
    read_batches,
    values,
)
from quorate.formats.control import (
    SnapshotFooter,
    SnapshotHeader,
    VotersRecord,
    decode_message,
)
from quorate.formats.errors import BatchError, FormatError
from quorate.formats.files import parse_snapshot_name
from quorate.formats.snapshot import (
    BATCH_RECORDS,
    BOOTSTRAP_SNAPSHOT_ID,
    SnapshotEncoder,
    SnapshotReader,
    encode_snapshot,
    read_snapshot,
)
from quorate.raft.values import ControlState, KRaftVersion, LeaderChange, Voter

ID = OffsetAndEpoch(50, 3)
VOTERS = (Voter(ReplicaKey(1, Uuid(b"d" * 16)), (Listener("CONTROLLER", "host", 9093),), 0, 1),)
STATIC = ControlState(0, None)
HEADER = encode_control_batch(0, 3, 7, [SnapshotHeader(11)])
FOOTER = encode_control_batch(1, 3, 7, [SnapshotFooter()])


@pytest.mark.parametrize("path", named("*.checkpoint"), ids=short)
def test_every_sample_snapshot_is_written_again_from_what_was_read(path: Path) -> None:
    data = path.read_bytes()
    snapshot_id = parse_snapshot_name(path.name) or BOOTSTRAP_SNAPSHOT_ID
    snapshot = read_snapshot(data, snapshot_id)
    first, *middle, last = iter_batches(data)
    encoder = SnapshotEncoder(snapshot_id, snapshot.control, snapshot.last_contained_log_timestamp)
    written = [encoder.begin(first.max_timestamp)]
    for value in snapshot.values:
        assert encoder.add(value, 0) == b"", "the samples hold less than one batch of records"
    written.append(encoder.finish(last.max_timestamp))
    ours, kafkas = list(iter_batches(b"".join(written))), [first, *middle, last]
    assert [view.data for view in ours[-1:]] == [last.data]
    assert [values(view) for view in ours[1:-1]] == [values(view) for view in middle]
    if kafka_wrote_voters_in_order(first):
        assert ours[0].data == first.data
    assert len(ours[0].data) == len(first.data) and len(ours) == len(kafkas)


def kafka_wrote_voters_in_order(first: BatchView) -> bool:
    """Ours are always ordered by id, Kafka's as a Java map has them."""
    for key, value in raw_records(first):
        message = decode_message(key, value)
        if isinstance(message, VotersRecord):
            ids = [voter.voter_id for voter in message.voters]
            return ids == sorted(ids)
    return True


@kafka_scenario("RecordsIteratorTest", "controlRecordIterationWithKraftVersion0")
@kafka_scenario("SnapshotWriterReaderTest", "snapshotDelimiters")
@given(
    st.lists(st.binary(min_size=1, max_size=20), max_size=30),
    st.sampled_from([STATIC, ControlState(1, VOTERS), ControlState(1, None)]),
    st.integers(0, 2**40),
)
def test_what_is_written_is_read_back(
    written: list[bytes], control: ControlState, timestamp: int
) -> None:
    data = b"".join(encode_snapshot(ID, control, timestamp, written, 8))
    snapshot = read_snapshot(data, ID)
    assert snapshot.values == tuple(written)
    assert snapshot.control == control
    assert snapshot.last_contained_log_timestamp == timestamp
    assert {view.epoch for view in iter_batches(data)} == {3}


def test_a_batch_holds_1024_records() -> None:
    batches = list(encode_snapshot(ID, STATIC, 0, [b"v"] * (BATCH_RECORDS * 2 + 1), 0))
    views = list(iter_batches(b"".join(batches)))
    assert [view.count for view in views] == [1, 1024, 1024, 1, 1]
    assert [view.base_offset for view in views] == [0, 1, 1025, 2049, 2050]


@kafka_scenario("RecordsIteratorTest", "fileRecords")
def test_a_batch_stays_below_8_mib() -> None:
    data = b"".join(encode_snapshot(ID, STATIC, 0, [b"v" * (3 << 20)] * 5, 0))
    assert [view.count for view in iter_batches(data)] == [1, 2, 2, 1, 1]
    assert max(view.size for view in iter_batches(data)) <= MAX_BATCH_SIZE
    pieces = read_batches(lambda at, size: data[at : at + size], len(data))
    assert [view.data for view in pieces] == [view.data for view in iter_batches(data)]


def test_a_record_that_fits_no_batch_is_refused() -> None:
    encoder = SnapshotEncoder(ID, STATIC, 0)
    with pytest.raises(FormatError, match="does not fit a batch"):
        encoder.add(b"v" * MAX_BATCH_SIZE, 0)
    largest = MAX_BATCH_SIZE - 61 - 19
    assert encoder.add(b"v" * largest, 0) == b""
    assert len(encoder.finish(0)) <= MAX_BATCH_SIZE + len(FOOTER)


@kafka_scenario("RecordsIteratorTest", "controlRecordIterationWithKraftVersion1")
def test_control_records_of_a_snapshot_are_known_after_its_first_batch() -> None:
    reader = SnapshotReader()
    first = next(iter_batches(SnapshotEncoder(ID, ControlState(1, VOTERS), 9).begin(0)))
    assert reader.add(first) == []
    assert reader.header == SnapshotHeader(9)
    assert reader.control == ControlState(1, VOTERS)


@pytest.mark.parametrize(
    ("data", "what", "position"),
    [
        (b"", "without any batch", 0),
        (HEADER, "ends without its footer", len(HEADER)),
        (HEADER + FOOTER[:-1], "of a batch are there", len(HEADER)),
        (HEADER + FOOTER + FOOTER, "follows the snapshot's footer", len(HEADER + FOOTER)),
        (encode_batch(0, 3, 0, [b"v"]), "must begin with its header", 0),
        (encode_control_batch(0, 3, 0, [KRaftVersion(1)]), "not what a snapshot has", 0),
        (HEADER + encode_control_batch(1, 3, 0, [SnapshotHeader(1)]), "not what", len(HEADER)),
        (
            HEADER + encode_control_batch(1, 3, 0, [SnapshotFooter(), KRaftVersion(1)]),
            "a record follows",
            len(HEADER),
        ),
        (
            HEADER + encode_control_batch(1, 3, 0, [LeaderChange(1, (), ())]),
            "has no place in a snapshot",
            len(HEADER),
        ),
        (HEADER + encode_batch(2, 3, 0, [b"v"]), "should begin at offset 1", len(HEADER)),
        (HEADER + encode_batch(1, 4, 0, [b"v"]), "epoch 4 differs from 3", len(HEADER)),
    ],
)
def test_a_broken_snapshot_is_refused_with_its_place(data: bytes, what: str, position: int) -> None:
    with pytest.raises(BatchError, match=what) as raised:
        read_snapshot(data)
    assert raised.value.position == position


def test_a_snapshot_of_another_epoch_is_refused() -> None:
    with pytest.raises(BatchError, match="epoch 3 is not the 4"):
        read_snapshot(HEADER + FOOTER, OffsetAndEpoch(50, 4))


@given(st.data())
def test_every_flipped_byte_of_a_sample_is_found(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(named("*-0000000001.checkpoint")))
    snapshot = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(snapshot) - 1))
    snapshot[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(BatchError):
        read_snapshot(snapshot, parse_snapshot_name(path.name))
