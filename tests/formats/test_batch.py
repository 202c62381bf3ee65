from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from fastcrc.crc32 import iscsi as crc32c
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from formats.samples import BATCH_FILES, DUMPED_FILES, dump_of, short
from quorate.formats.batch import (
    HEADER_SIZE,
    BatchView,
    encode_batch,
    encode_keyed_batch,
    iter_batches,
    raw_records,
    read_batch,
    values,
    whole_batches_size,
    with_base_offset_and_epoch,
)
from quorate.formats.errors import BatchError, IncompleteBatchError

record_values = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=80)


def encode_again(view: BatchView) -> bytes:
    if view.is_control:
        pairs = [(key or b"", value or b"") for key, value in raw_records(view)]
        return encode_keyed_batch(view.base_offset, view.epoch, view.base_timestamp, pairs)
    return encode_batch(view.base_offset, view.epoch, view.base_timestamp, values(view))


@pytest.mark.parametrize("path", BATCH_FILES, ids=short)
def test_every_sample_batch_encodes_back_to_the_same_bytes(path: Path) -> None:
    data = path.read_bytes()
    assert b"".join(encode_again(view) for view in iter_batches(data)) == data


@pytest.mark.parametrize("path", DUMPED_FILES, ids=short)
def test_headers_are_those_that_kafka_prints(path: Path) -> None:
    printed = re.findall(
        r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*partitionLeaderEpoch: (\d+) .*"
        r"isControl: (\w+) .*position: (\d+) CreateTime: (\d+) size: (\d+) .*crc: (\d+) ",
        dump_of(path).read_text(),
        re.MULTILINE,
    )
    ours = [
        (
            *(view.base_offset, view.last_offset, view.count, view.epoch),
            str(view.is_control).lower(),
            *(view.position, view.max_timestamp, view.size, view.crc),
        )
        for view in iter_batches(path.read_bytes())
    ]
    # the nodes ran on between copy and dump: one of both may end a batch earlier
    common = min(len(ours), len(printed))
    assert abs(len(ours) - len(printed)) <= 1
    assert [tuple(map(str, row)) for row in ours[:common]] == printed[:common]


@kafka_scenario("RecordsIteratorTest", "memoryRecords")
@given(st.integers(0, 2**62), st.integers(0, 2**31 - 1), st.integers(0, 2**62), record_values)
def test_what_is_encoded_is_read_back(
    base_offset: int, epoch: int, timestamp: int, records: list[bytes]
) -> None:
    (view,) = iter_batches(encode_batch(base_offset, epoch, timestamp, records))
    assert values(view) == records
    assert (view.base_offset, view.epoch, view.max_timestamp) == (base_offset, epoch, timestamp)
    assert view.end_offset == base_offset + len(records)
    assert not view.is_control


@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=4))
def test_values_of_any_size_are_read_back(sizes: list[int]) -> None:
    records = [bytes([index + 1]) * size for index, size in enumerate(sizes)]
    assert values(read_batch(encode_batch(0, 0, 0, records), 0)) == records


def test_more_records_than_a_two_byte_delta_counts() -> None:
    records = [b"x"] * 10_000
    assert values(read_batch(encode_batch(0, 0, 0, records), 0)) == records


@given(record_values, st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_a_batch_is_moved_without_touching_its_checksum(
    records: list[bytes], base_offset: int, epoch: int
) -> None:
    moved = with_base_offset_and_epoch(encode_batch(1, 2, 3, records), base_offset, epoch)
    assert moved == encode_batch(base_offset, epoch, 3, records)


@kafka_scenario("KafkaRaftLogTest", "emptyAppendNotAllowed")
def test_an_empty_batch_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch(0, 0, 0, [])


@given(st.lists(record_values, min_size=1, max_size=4), st.data())
def test_a_cut_tail_is_distinguished_from_damage(
    batches: list[list[bytes]], data: st.DataObject
) -> None:
    whole = [encode_batch(index, 1, 0, records) for index, records in enumerate(batches)]
    log = b"".join(whole)
    cut = data.draw(st.integers(0, len(log)))
    kept = [view.data for view in iter_batches(log[:cut], cut_tail=True)]
    assert kept == whole[: len(kept)]
    sound = sum(map(len, kept))
    assert whole_batches_size(log[:cut]) == sound
    if sound < cut:
        with pytest.raises(IncompleteBatchError) as raised:
            list(iter_batches(log[:cut], origin=1000))
        assert raised.value.position == 1000 + sound


@kafka_scenario("RecordsIteratorTest", "crcValidation")
@given(record_values, st.data())
def test_every_flipped_bit_is_found_or_moves_offset_or_epoch(
    records: list[bytes], data: st.DataObject
) -> None:
    batch = encode_batch(7, 3, 0, records)
    bit = data.draw(st.integers(0, len(batch) * 8 - 1))
    flipped = bytearray(batch)
    flipped[bit // 8] ^= 1 << bit % 8
    try:
        views = list(iter_batches(flipped))
    except BatchError as error:
        assert error.position == 0
    else:
        # the checksum covers neither the base offset nor the epoch: the log's own order does
        assert (views[0].base_offset, views[0].epoch) != (7, 3)
        assert bit // 8 < 8 or 12 <= bit // 8 < 16


@kafka_scenario("KafkaRaftLogTest", "randomRecords")
@given(st.binary(max_size=400))
def test_random_bytes_raise_only_batch_errors(data: bytes) -> None:
    with pytest.raises(BatchError):
        for view in iter_batches(data + b"\0"):
            raw_records(view)


@given(record_values, st.data())
def test_damaged_records_under_a_right_checksum_raise_only_batch_errors(
    records: list[bytes], data: st.DataObject
) -> None:
    batch = bytearray(encode_batch(0, 0, 0, records))
    for _ in range(data.draw(st.integers(1, 3))):
        batch[data.draw(st.integers(HEADER_SIZE, len(batch) - 1))] = data.draw(st.integers(0, 255))
    view = sealed(batch)
    try:
        slow = [value for key, value in raw_records(view) if key is None and value]
    except BatchError:
        slow = None
    try:
        fast = values(view)
    except BatchError:
        return
    assert fast == slow, "the quick reader accepts nothing that the strict one refuses"


def sealed(batch: bytes | bytearray) -> BatchView:
    """The batch with the checksum that fits its bytes."""
    data = bytearray(batch)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return read_batch(data, 0)


def with_record(body: bytes, count: int = 1) -> BatchView:
    """A batch whose records are these bytes."""
    batch = bytearray(encode_batch(0, 0, 0, [b"x"]))[:HEADER_SIZE] + body
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">i", batch, 57, count)
    return sealed(batch)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        # length, attributes, timestamp and offset delta, key and value length, value, headers
        (b"\x0e\0\x02\0\x01\x02v\0", "timestamp delta 1"),
        (b"\x0e\0\0\x02\x01\x02v\0", "offset delta 1"),
        (b"\x10\0\0\0\x02k\x02v\0", "has a key"),
        (b"\x0c\0\0\0\x01\0\0", "no value"),
        (b"\x0c\0\0\0\x01\x01\0", "no value"),
        (b"\x0e\0\0\0\x01\x02v\x02", "headers"),
        (b"\x10\0\0\0\x01\x02v\0\0", "headers or bytes after its value"),
        (b"\x0e\0\0\0\x01\x08v\0", "passes the record's end"),
        (b"\x7e\0\0\0\x01\x02v\0", "has the length 63"),
        (b"\0", "has the length 0"),
        (b"\x01", "has the length -1"),
        (b"\x0e\0\0\0\x01\x02v\0\0", "1 bytes are left"),
        (b"\xff\xff\xff\xff\xff\xff", "too long"),
        (b"", "cut"),
    ],
)
def test_each_hazard_of_a_data_record_is_named(body: bytes, what: str) -> None:
    with pytest.raises(BatchError, match=what):
        values(with_record(body))


def test_a_value_longer_than_its_record_by_a_padded_length_is_refused() -> None:
    # three-byte spelling of a length whose third byte the quick reader must not take for data
    body = b"\x0e\0\0\0\x01\x82\x80\0v\0"
    with pytest.raises(BatchError):
        values(with_record(body))


def test_padded_lengths_are_read_as_kafka_reads_them() -> None:
    assert values(with_record(b"\x92\x80\0\0\0\0\x01\x82\x80\0v\0")) == [b"v"]


@pytest.mark.parametrize(
    ("at", "change", "what"),
    [
        (16, b"\x01", "batch format 1 is not supported"),
        (17, b"\0\0\0\0", "checksum does not match"),
        (0, b"\xff", "negative base offset"),
    ],
)
def test_a_foreign_header_is_refused(at: int, change: bytes, what: str) -> None:
    batch = bytearray(encode_batch(0, 0, 0, [b"v"]))
    batch[at : at + len(change)] = change
    with pytest.raises(BatchError, match=what):
        list(iter_batches(batch))


@pytest.mark.parametrize(
    ("attributes", "what"),
    [(1, "compression gzip"), (4, "compression zstd"), (7, r"unknown \(7\)"), (8, "0x0008")],
)
def test_attributes_without_meaning_in_a_metadata_log_are_refused(
    attributes: int, what: str
) -> None:
    batch = bytearray(encode_batch(0, 0, 0, [b"v"]))
    struct.pack_into(">h", batch, 21, attributes)
    with pytest.raises(BatchError, match=what):
        sealed(batch).verify()


@pytest.mark.parametrize("count", [0, 2, -1])
def test_a_count_that_does_not_fit_the_last_offset_is_refused(count: int) -> None:
    batch = bytearray(encode_batch(0, 0, 0, [b"v"]))
    struct.pack_into(">i", batch, 57, count)
    with pytest.raises(BatchError, match="do not fit last offset delta 0"):
        sealed(batch).verify()


def test_a_length_below_the_header_is_damage_and_not_a_torn_tail() -> None:
    batch = bytearray(encode_batch(0, 0, 0, [b"v"]))
    struct.pack_into(">i", batch, 8, 20)
    with pytest.raises(BatchError, match="less than a batch's header") as raised:
        list(iter_batches(batch, cut_tail=True))
    assert not isinstance(raised.value, IncompleteBatchError)
