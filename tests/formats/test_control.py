from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marker import kafka_scenario
from formats.samples import BATCH_FILES, DUMPED_FILES, dump_of, short
from quorate.base.ids import Listener, ReplicaKey, Uuid
from quorate.formats.batch import (
    BatchView,
    control_records,
    encode_batch,
    encode_control_batch,
    encode_keyed_batch,
    iter_batches,
    raw_records,
    read_batch,
    to_raft_batch,
)
from quorate.formats.control import (
    ControlRecord,
    ControlType,
    SnapshotFooter,
    SnapshotHeader,
    control_type,
    decode_control,
    decode_message,
    encode_control,
    encode_message,
)
from quorate.formats.errors import BatchError, RecordError
from quorate.formats.json_text import to_json
from quorate.raft.values import KRaftVersion, LeaderChange, Voter, Voters

node_ids = st.integers(0, 2**31 - 1)
listeners = st.builds(Listener, st.text(max_size=9), st.text(max_size=9), st.integers(0, 65535))
voters = st.builds(
    Voter,
    st.builds(ReplicaKey, node_ids, st.binary(min_size=16, max_size=16).map(Uuid)),
    st.lists(listeners, max_size=2).map(tuple),
    st.integers(0, 3),
    st.integers(0, 3),
)
ids = st.lists(node_ids, max_size=4).map(tuple)
records = st.one_of(
    st.builds(LeaderChange, node_ids, ids, ids),
    st.builds(KRaftVersion, st.integers(0, 3)),
    st.builds(
        Voters,
        st.lists(voters, max_size=4, unique_by=lambda voter: voter.key.id).map(
            lambda found: tuple(sorted(found, key=lambda voter: voter.key.id))
        ),
    ),
    st.builds(SnapshotHeader, st.integers(0, 2**62)),
    st.just(SnapshotFooter()),
)


def control_views(path: Path) -> list[BatchView]:
    return [view for view in iter_batches(path.read_bytes()) if view.is_control]


@pytest.mark.parametrize("path", BATCH_FILES, ids=short)
def test_every_sample_control_record_encodes_back_to_the_same_bytes(path: Path) -> None:
    for view in control_views(path):
        for key, value in raw_records(view):
            assert encode_message(decode_message(key, value)) == (key, value)


@pytest.mark.parametrize("path", DUMPED_FILES, ids=short)
def test_every_sample_control_record_says_what_kafka_prints(path: Path) -> None:
    printed = re.findall(
        r"headerKeys: \[\] (?:LeaderChange:|SnapshotHeader|SnapshotFooter|KRaftVersion|KRaftVoters)"
        r" (\{.*\})$",
        dump_of(path).read_text(),
        re.MULTILINE,
    )
    views = control_views(path)
    found = [decode_message(*pair) for view in views for pair in raw_records(view)]
    assert [to_json(message, 0) for message in found] == printed
    assert printed


@kafka_scenario("VoterSetTest", "recordRoundTrip")
@kafka_scenario("BatchAccumulatorTest", "multipleControlRecords")
@kafka_scenario("RecordsIteratorTest", "withAllSupportedControlRecords")
@given(st.lists(records, min_size=1, max_size=4), st.integers(0, 2**40), st.integers(0, 9))
def test_control_batches_are_read_back(
    written: list[ControlRecord], base_offset: int, epoch: int
) -> None:
    view = read_batch(encode_control_batch(base_offset, epoch, 5, written), 0)
    view.verify()
    assert view.is_control and view.end_offset == base_offset + len(written)
    assert control_records(view) == written


def test_the_core_gets_control_records_as_values_and_data_as_bytes() -> None:
    change = LeaderChange(1, (1, 2, 3), (1, 2))
    data = encode_control_batch(10, 4, 99, [change, KRaftVersion(1)])
    batch = to_raft_batch(read_batch(data, 0))
    assert batch.control == (change, KRaftVersion(1))
    assert (batch.base_offset, batch.last_offset, batch.epoch) == (10, 11, 4)
    assert batch.payload == data and batch.size == len(data)
    data = encode_batch(12, 4, 99, [b"value"])
    batch = to_raft_batch(read_batch(data, 0))
    assert batch.control == () and batch.payload == data


def test_a_log_holds_no_snapshot_header() -> None:
    view = read_batch(encode_control_batch(0, 1, 0, [SnapshotHeader(5)]), 0)
    with pytest.raises(BatchError, match="no place in a log"):
        to_raft_batch(view)


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        (None, b"\0\0\0", "must hold a version and a type"),
        (b"\0\0\0", b"\0\0\0", "must hold a version and a type"),
        (b"\xff\xff\0\4", b"\0\0\0", "has the version -1"),
        (b"\0\0\0\7", b"\0\0\0", "control record type 7 has no place"),
        (b"\0\0\0\1", b"\0\0\0", "control record type 1 has no place"),
        (b"\0\0\0\4", None, "SnapshotFooterRecord has no value"),
        (b"\0\0\0\4", b"", "SnapshotFooterRecord has no value"),
        (b"\0\0\0\4", b"\0\0", "SnapshotFooterRecord v0"),
        (b"\0\0\0\4", b"\0\0\0\0", "SnapshotFooterRecord v0: it ends at byte 3"),
    ],
)
def test_each_hazard_of_a_control_record_is_named(
    key: bytes | None, value: bytes | None, what: str
) -> None:
    with pytest.raises(RecordError, match=what):
        decode_control(key, value)


def test_a_damaged_control_record_names_its_batch() -> None:
    batch = encode_keyed_batch(7, 1, 0, [(b"\0\0\0\7", b"\0\0\0")])
    with pytest.raises(BatchError, match=r"base offset 7 \(batch at byte 300\)") as raised:
        control_records(read_batch(batch, 0, 300))
    assert raised.value.position == 300


@given(records, st.data())
def test_damaged_values_raise_only_record_errors(
    record: ControlRecord, data: st.DataObject
) -> None:
    key, value = encode_control(record)
    damaged = bytearray(value)
    damaged[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    del damaged[len(damaged) - data.draw(st.integers(0, 2)) :]
    try:
        decode_control(key, bytes(damaged))
    except RecordError as error:
        assert str(error)


@given(st.binary(max_size=40))
def test_random_values_raise_only_record_errors(value: bytes) -> None:
    for kind in ControlType:
        key = kind.to_bytes(4, "big")
        assert control_type(key) == kind
        try:
            decode_control(key, value)
        except RecordError as error:
            assert str(error)
