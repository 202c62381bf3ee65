"""Decoded rows equal Kafka's own dump of the same bytes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.record_strategies import records, structs
from formats.samples import BATCH_FILES, DUMPED_FILES, dump_of, short
from quorate.base.ids import Uuid, uuid_to_text
from quorate.formats import bulk
from quorate.formats.batch import encode_batch, encode_keyed_batch
from quorate.formats.json_text import to_json, type_name
from quorate.formats.records import (
    RECORD_TYPES,
    ClientQuotaRecord,
    ConfigRecord,
    PartitionChangeRecord,
    encode_record,
)
from quorate.formats.varint import encode_unsigned
from quorate.spark.decode import rows as rows_module
from quorate.spark.decode.columns import COLUMNS, DECODED
from quorate.spark.decode.facts import facts
from quorate.spark.decode.walk import can_walk
from spark.kafka_dump import dumped_by_kafka
from spark.logs import NO_OP, START_MS, batches, fence, rows_of, topic
from time_budget import examples, one_in

EARLIEST = datetime(1, 1, 3, tzinfo=UTC)
LATEST = datetime(9999, 12, 29, 23, 59, 59, 999000, tzinfo=UTC)


@pytest.mark.parametrize("path", one_in(3, DUMPED_FILES), ids=short)
def test_every_row_of_every_sample_is_as_kafka_dumps_it(path):
    kafkas = dumped_by_kafka(dump_of(path).read_text())
    ours = rows_of(path.read_bytes())
    # the nodes ran on between copy and dump: one of both may end a batch of one record earlier
    assert abs(len(ours) - len(kafkas)) <= 1
    assert kafkas
    for row, expected in zip(ours, kafkas, strict=False):
        assert {name: row[name] for name in expected} == expected
        assert row["problem"] is None


@pytest.mark.parametrize("path", one_in(4, BATCH_FILES), ids=short)
def test_every_sample_is_read_without_a_problem(path):
    rows = rows_of(path.read_bytes())
    assert rows and all(row["problem"] is None and row["raw"] is None for row in rows)


@given(st.lists(records(), min_size=1, max_size=20))
def test_every_record_of_every_version_decodes_as_with_the_codec(found):
    values = [encode_record(record, version) for record, version in found]
    rows = rows_of(encode_batch(0, 3, START_MS, values), keep_raw=True)
    for row, (record, version), value in zip(rows, found, values, strict=True):
        expected = dict.fromkeys(("topic_name", "topic_id", "partition", "broker_id"))
        expected |= dict.fromkeys(("leader", "partition_epoch", "resource"))
        expected |= {
            "type": type(record).__name__,
            "type_id": type(record).schema.key,
            "version": version,
            "record": to_json(record, version),
            "raw": value,
            "problem": None,
            **facts(record),
        }
        assert {name: row[name] for name in expected} == expected


def alone(value: bytes) -> dict[str, Any]:
    """The decoded columns of a record that stands alone: by the codec."""
    (row,) = rows_of(encode_batch(0, 3, START_MS, [value]), keep_raw=True)
    return {name: row[name] for name in DECODED}


def together(values: list[bytes], *, lean: bool = False) -> list[dict[str, Any]]:
    """The same of records that are decoded as groups, however few there are of a kind.

    The extension in C changes nothing of it. With `lean` without the JSON, so that only the fields
    of key facts are taken.
    """
    names = DECODED - {"record"} if lean else DECODED
    data = encode_batch(0, 3, START_MS, values)
    with patch.object(rows_module, "_MANY", 1):
        rows = rows_of(data, names, keep_raw=True)
        with patch.object(bulk, "_NATIVE", None):
            assert rows_of(data, names, keep_raw=True) == rows
    return [{name: row[name] for name in names} for row in rows]


def without_json(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "record"} for row in rows]


@given(st.lists(records(), min_size=1, max_size=30))
def test_records_decoded_together_are_as_those_decoded_alone(found):
    values = [encode_record(record, version) for record, version in found]
    expected = [alone(value) for value in values]
    assert together(values) == expected
    assert together(values, lean=True) == without_json(expected)


PLAIN = [
    (cls, version)
    for cls in RECORD_TYPES.values()
    for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1)
    if can_walk(cls)
]


@settings(max_examples=examples(300))
@given(st.data())
def test_damaged_records_in_a_large_group_decode_as_with_the_codec(data):
    cls, version = data.draw(st.sampled_from(PLAIN))
    values = [
        encode_record(record, version)
        for record in data.draw(st.lists(structs(cls, version), min_size=1, max_size=6))
    ]
    place = data.draw(st.integers(0, len(values) - 1))
    value = bytearray(values[place])
    for _ in range(data.draw(st.integers(1, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(value) - 1))
    values[place] = bytes(value[: len(value) - cut] + data.draw(st.binary(max_size=3)))
    expected = [alone(value) for value in values]
    assert together(values) == expected
    assert together(values, lean=True) == without_json(expected)


def test_long_and_unusual_texts_are_decoded_among_many():
    texts = ["", "x" * 126, "x" * 127, "y" * 20_000, 'a"b', "a\\b", "\n\0", "für", "\u2028", "ok"]
    found = [
        ConfigRecord(resource_type=kind, resource_name=text, name=text, value=value)
        for text in texts
        for kind in (2, 4, 77)
        for value in (text, None)
    ]
    values = [encode_record(record, 0) for record in found]
    assert together(values) == [alone(value) for value in values]


def test_tags_of_a_newer_kafka_are_passed_over_among_many():
    values = []
    for tags in ((), ((40, b"new"),), ((3, b"x"), (40, b"y"))):
        change = PartitionChangeRecord(partition_id=1, isr=[1, 2], unknown_tags=())
        change.unknown_tags = tuple(tag for tag in tags if tag[0] > 8)
        values.append(encode_record(change, 0))
    assert values[0] != values[1]
    assert together(values) == [alone(value) for value in values]


def test_key_facts_of_a_change_and_of_a_config():
    change = PartitionChangeRecord(partition_id=4, topic_id=Uuid(bytes(range(16))), isr=[1])
    moved = PartitionChangeRecord(partition_id=4, topic_id=Uuid(bytes(range(16))), leader=-1)
    config = ConfigRecord(resource_type=2, resource_name="orders", name="a", value="b")
    part = ClientQuotaRecord.EntityData
    quota = ClientQuotaRecord(
        entity=[part(entity_type="user", entity_name="ann"), part(entity_type="client-id")], key="k"
    )
    quota.entity[1].entity_name = None
    found = [encode_record(record, 0) for record in (change, moved, config, quota)]
    one, two, three, four = rows_of(encode_batch(0, 1, START_MS, found))
    assert (one["topic_id"], one["partition"]) == (uuid_to_text(Uuid(bytes(range(16)))), 4)
    assert (one["leader"], two["leader"]) == (None, -1)
    assert (three["resource"], three["topic_name"]) == ("topic/orders", "orders")
    assert four["resource"] == "user/ann,client-id/<default>"


def test_columns_that_are_not_asked_for_are_not_made():
    data = b"".join(batches())
    every = rows_of(data)
    for columns in (["offset"], ["type", "offset"], ["record"], ["timestamp", "problem"]):
        assert rows_of(data, columns) == [{name: row[name] for name in columns} for row in every]


def test_an_unknown_record_type_is_kept_as_its_bytes_with_a_note():
    future = b"\1" + encode_unsigned(99) + b"\0payload"
    row, after = rows_of(encode_batch(5, 1, START_MS, [future, fence(1)]))
    assert (row["type"], row["type_id"], row["version"]) == ("unknown-99", 99, 0)
    assert row["raw"] == future and row["record"] is None
    assert row["problem"] == (
        "Unknown metadata id 99: a newer Kafka may have written it; its bytes are in the column raw"
    )
    assert (after["type"], after["problem"], after["offset"]) == ("FenceBrokerRecord", None, 6)


def test_a_version_from_the_future_is_kept_as_its_bytes_with_a_note():
    future = b"\1" + encode_unsigned(3) + b"\x09" + bytes(30)
    (row,) = rows_of(encode_batch(0, 1, START_MS, [future]))
    assert (row["type"], row["version"], row["raw"]) == ("PartitionRecord", 9, future)
    assert "version 9 is not supported, only 0 to 2" in row["problem"]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (b"\2\0\0", "unknown frame version 2"),
        (b"\0\0\0", "frame version 0"),
        (b"\1", "Error while reading type"),
        (b"\1\x07\0\0\0", "Failed to deserialize record with type 7"),
        (fence(1) + b"x", "1 byte(s) of garbage"),
        (b"\1\xff\xff\xff\x7f\0", "too large"),
    ],
)
def test_a_damaged_record_is_a_problem_of_its_row_alone(value: bytes, says: str):
    before, row, after = rows_of(encode_batch(0, 1, START_MS, [topic(1), value, topic(2)]))
    assert says in row["problem"] and row["raw"] == value
    assert (before["problem"], after["problem"], after["topic_name"]) == (None, None, "topic-2")


def test_an_unknown_control_record_is_reported():
    data = encode_keyed_batch(0, 1, START_MS, [(b"\0\0\0\x63", b"x"), (b"\0\0\0\0", b"x")])
    one, two = rows_of(data)
    assert (one["type"], one["raw"]) == ("unknown-control-99", b"x")
    assert "control record type 99 has no place" in one["problem"]
    assert (two["type"], two["type_id"]) == ("ABORT", 0)


def test_damage_is_a_row_with_its_position_and_nothing_decoded():
    parts = batches()
    middle = bytearray(parts[2])
    middle[-3] ^= 4
    position = len(parts[0]) + len(parts[1])
    rows = rows_of(b"".join([*parts[:2], bytes(middle), *parts[3:]]))
    (bad,) = [row for row in rows if row["problem"]]
    assert (bad["position"], bad["batch_length"], bad["crc_ok"]) == (position, len(middle), False)
    assert (bad["base_offset"], bad["last_offset"]) == (2, 4)
    decoded = set(COLUMNS) - {"cluster_id", "node_id", "file", "kind", "segment", "position"}
    decoded -= {"batch_length", "base_offset", "last_offset", "crc_ok", "crc", "problem"}
    assert {bad[name] for name in decoded} == {None}
    assert [row["offset"] for row in rows if not row["problem"]] == [0, 1, *range(5, 21)]


def test_uuids_and_bytes_are_in_the_base64_of_kafka():
    (row,) = rows_of(encode_batch(0, 1, START_MS, [topic(249)]))
    assert row["topic_id"] == base64.urlsafe_b64encode(bytes([249]) * 16).decode().rstrip("=")


def test_each_declared_record_has_a_name_that_kafka_spells_alike():
    for cls in RECORD_TYPES.values():
        assert "".join(word.title() for word in type_name(cls).split("_")) == cls.__name__


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (START_MS, datetime(2027, 1, 15, 8, tzinfo=UTC)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
        (1 << 62, LATEST),
        ((1 << 63) - 1, LATEST),
        (-(1 << 62), EARLIEST),
        (-(1 << 63), EARLIEST),
    ],
)
def test_a_time_that_no_calendar_has_is_the_next_that_can_be_shown(written, shown):
    """In any zone: people read timestamps in their own."""
    [row] = rows_of(encode_batch(12, 1, written, [NO_OP]), ("timestamp", "problem"))
    assert row == {"timestamp": shown, "problem": None}
    for hours in (-14, 14):
        assert row["timestamp"].astimezone(timezone(timedelta(hours=hours)))
