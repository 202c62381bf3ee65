"""The short way of a plain PartitionRecord gives what the long way gives."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.image_strategies import calm, images, metadata_versions
from narrow import as_any
from quorate.base.ids import Uuid
from quorate.formats.errors import RecordError
from quorate.formats.records import (
    FeatureLevelRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from quorate.metadata.bulk import record_values, replay_plain_partition, replay_value
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import Image
from quorate.metadata.replay import ImageDelta, records, replay

T1 = Uuid(b"\x01" * 16)
BASE = replay(Image(), TopicRecord(name="t", topic_id=T1))

ids = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4)
long_ids = st.lists(st.integers(0, 5), min_size=125, max_size=130)
int32s = st.integers(-(2**31), 2**31 - 1)
uuids = st.sampled_from([bytes(16), b"\x07" * 16, b"\x08" * 16]).map(Uuid)


@st.composite
def partition_records(draw):
    replicas = draw(ids | long_ids)
    count = len(replicas)
    nothing: st.SearchStrategy[list[Any]] = st.just([])
    rarely = nothing | nothing | ids
    return PartitionRecord(
        partition_id=draw(int32s),
        topic_id=draw(st.just(T1) | st.just(T1) | uuids),
        replicas=replicas,
        isr=draw(st.just(replicas) | ids),
        removing_replicas=draw(rarely),
        adding_replicas=draw(rarely),
        leader=draw(int32s),
        leader_recovery_state=draw(st.sampled_from([0, 0, 0, 1, 2])),
        leader_epoch=draw(int32s),
        partition_epoch=draw(int32s),
        directories=draw(st.lists(uuids, min_size=count, max_size=count) | st.lists(uuids)),
        eligible_leader_replicas=draw(st.none() | rarely),
        last_known_elr=draw(st.none() | rarely),
    )


def outcome(way, value):
    delta = ImageDelta(BASE)
    try:
        way(delta, value)
    except (ReplayError, RecordError) as error:
        return type(error), str(error)
    return delta.apply()


def long_way(delta, value):
    delta.replay(decode_record(value)[0])


@calm
@given(partition_records(), st.integers(0, 2))
def test_every_partition_record(record, version):
    if version < 2:
        record.eligible_leader_replicas = record.last_known_elr = None
    if version < 1:
        record.directories = []
    value = encode_record(record, version)
    assert outcome(replay_value, value) == outcome(long_way, value)


PLAIN = PartitionRecord(
    partition_id=5,
    topic_id=T1,
    replicas=[1, 2, 3],
    isr=[2, 3],
    leader=2,
    leader_epoch=1,
    partition_epoch=9,
    directories=[Uuid(b"\x07" * 16)] * 3,
)


@pytest.mark.parametrize("version", [1, 2])
def test_any_byte_may_be_damaged(version):
    value = encode_record(PLAIN, version)
    for position in range(len(value)):
        for byte in (0, 1, 2, 3, 4, 5, 0x7F, 0x80, 0xFF):
            damaged = value[:position] + bytes([byte]) + value[position + 1 :]
            assert outcome(replay_value, damaged) == outcome(long_way, damaged)


@pytest.mark.parametrize("version", [1, 2])
def test_bytes_may_end_anywhere(version):
    value = encode_record(PLAIN, version)
    for size in range(1, len(value)):
        assert outcome(replay_value, value[:size]) == outcome(long_way, value[:size])
    assert outcome(replay_value, value + b"\0") == outcome(long_way, value + b"\0")


@pytest.mark.parametrize("version", [1, 2])
def test_the_plain_one_goes_the_short_way(version):
    delta = ImageDelta(BASE)
    assert replay_plain_partition(delta, encode_record(PLAIN, version))
    assert delta.apply() == replay(BASE, PLAIN)


@calm
@given(images(), metadata_versions)
def test_the_bytes_of_an_image_are_those_of_its_records(image, level):
    ours, theirs = [], []
    fast = record_values(image, metadata_version=level, on_loss=lambda e: ours.append(e.loss))
    slow = records(image, metadata_version=level, on_loss=lambda e: theirs.append(e.loss))
    assert list(fast) == [encode_record(record, version) for record, version in slow]
    assert ours == theirs


def test_a_plain_partition_is_written_the_short_way(monkeypatch):
    image = replay(BASE, FeatureLevelRecord(name="metadata.version", feature_level=30))
    image = replay(image, PLAIN)
    whole = list(record_values(image))
    monkeypatch.setattr("quorate.metadata.dump.PartitionRecord", None)
    assert list(record_values(image)) == whole
    assert whole[-1] == encode_record(PLAIN, 2)


def test_a_topic_is_released_when_the_next_one_is_written():
    image = replay(Image(), FeatureLevelRecord(name="metadata.version", feature_level=30))
    for number in range(3):
        image = replay(
            image, TopicRecord(name=f"t{number}", topic_id=Uuid(bytes([number + 1]) * 16))
        )
    first, second, third = image.topics.in_order()
    values = record_values(image)
    del image

    written = [as_any(decode_record(next(values))[0]).name for _ in range(3)]
    assert written == ["metadata.version", "t0", "t1"]
    references = [sys.getrefcount(topic) for topic in (first, second, third)]
    assert references == [references[0], references[0] + 1, references[0] + 1]


@pytest.mark.parametrize("count", [0, 1, 126, 127, 128, 200])
def test_long_lists_are_written_and_read(count):
    replicas = list(range(count))
    partition = PLAIN.replace(
        replicas=replicas, isr=replicas[:126], directories=[Uuid(b"\x07" * 16)] * count
    )
    image = replay(BASE, FeatureLevelRecord(name="metadata.version", feature_level=30))
    image = replay(image, partition)
    value = list(record_values(image))[-1]
    assert value == encode_record(partition, 2)
    assert outcome(replay_value, value) == replay(BASE, partition)


@calm
@given(st.binary(max_size=60))
def test_any_bytes(value):
    assert outcome(replay_value, value) == outcome(long_way, value)
