"""Typed views have the fields that Kafka declares, in both ways to read them."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from formats.record_strategies import records, structs
from formats.samples import DATA
from quorate.base.ids import Uuid
from quorate.formats.batch import encode_batch
from quorate.formats.errors import FormatError
from quorate.formats.records import (
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UserScramCredentialRecord,
    encode_record,
)
from quorate.spark.data_source import FORMAT
from quorate.spark.decode import rows as rows_module
from quorate.spark.decode.batches import ViewDecoder, decoded_batches
from quorate.spark.decode.rows import Origin
from quorate.spark.decode.typed import HEAD, VIEWS, column_name, plain_field, view, view_type, views
from quorate.spark.files.paths import SourceError
from quorate.spark.files.scan import runs
from quorate.wire.schema import Message
from spark.logs import START_MS, batches, fence, log_directory, topic
from time_budget import examples

TELLING = (
    *(RegisterBrokerRecord, PartitionRecord, PartitionChangeRecord, ClientQuotaRecord, NoOpRecord),
    *(BrokerRegistrationChangeRecord, UserScramCredentialRecord, DelegationTokenRecord),
    FenceBrokerRecord,
)
"""With structs, lists, tags, floats, bytes, nothing, and a field that is renamed."""
VERSIONS = [
    (cls, version)
    for cls in RECORD_TYPES.values()
    for version in range(cls.schema.versions[0], cls.schema.versions[1] + 1)
]


def view_rows(
    cls: type[Message], data: bytes, columns: list[str] | None = None
) -> list[dict[str, Any]]:
    return decoded(ViewDecoder(cls, columns or view_type(cls).names), data)


def decoded(decoder: ViewDecoder, data: bytes) -> list[dict[str, Any]]:
    found = runs(lambda position, size: data[position : position + size], len(data))
    batches = decoded_batches(decoder, Origin("c", 1, "a.log", 0), found)
    return [row for batch in batches for row in batch.to_pylist()]


def fields(record: Message, version: int) -> dict[str, Any]:
    return {
        column_name(one): plain_field(record, one) if one.in_version(version) else None
        for one in type(record).schema.fields
    }


@settings(max_examples=examples(200))
@given(st.data())
def test_a_view_has_the_fields_of_every_record_of_its_type(data):
    cls, version = data.draw(st.sampled_from(VERSIONS))
    mine = data.draw(st.lists(structs(cls, version), min_size=1, max_size=5))
    others = data.draw(st.lists(records(), max_size=5))
    every = data.draw(st.permutations([*((one, version) for one in mine), *others]))
    log = encode_batch(100, 2, START_MS, [encode_record(*pair) for pair in every])
    expected = [
        {"offset": offset, "version": number, **fields(record, number)}
        for offset, (record, number) in enumerate(every, 100)
        if type(record) is cls
    ]
    for many in (1, 1000):
        with patch.object(rows_module, "_MANY", many):
            rows = view_rows(cls, log)
        assert [{name: row[name] for name in expected[0]} for row in rows] == expected


def test_the_head_columns_locate_a_record():
    (row, *_) = view_rows(FenceBrokerRecord, b"".join(batches()))
    assert {name: row[name] for name in HEAD} == {
        "cluster_id": "c",
        "node_id": 1,
        "file": "a.log",
        "kind": "log",
        "snapshot_offset": None,
        "snapshot_epoch": None,
        "offset": 3,
        "epoch": 1,
        "timestamp": datetime.fromtimestamp(START_MS / 1000 + 2, UTC),
        "version": 0,
    }
    assert (row["id"], row["brokerEpoch"]) == (3, 7)


def test_a_view_has_only_the_columns_asked_for_and_skips_what_cannot_be_decoded():
    data = encode_batch(0, 1, START_MS, [fence(1), fence(2) + b"x", topic(1), fence(3)])
    assert view_rows(FenceBrokerRecord, data, ["id", "offset"]) == [
        {"id": 1, "offset": 0},
        {"id": 3, "offset": 3},
    ]
    strict = ViewDecoder(FenceBrokerRecord, ["id"], fail_fast=True)
    with pytest.raises(SourceError, match=r"^a\.log: Found 1 byte"):
        decoded(strict, data)
    with pytest.raises(FormatError, match="FenceBrokerRecord has no column 'x'; there are: clus"):
        ViewDecoder(FenceBrokerRecord, ["x"])


@pytest.fixture(scope="module")
def every_type(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with records of every type and version, plain and with all that they may have."""
    found = [cls() for cls, _ in VERSIONS]
    values = [
        encode_record(record, version) for record, (_, version) in zip(found, VERSIONS, strict=True)
    ]
    feature = RegisterBrokerRecord.BrokerFeature(name="f", max_supported_version=3)
    end = RegisterBrokerRecord.BrokerEndpoint(name="A", host="h", port=65535, security_protocol=2)
    full = [
        (RegisterBrokerRecord(end_points=[end], features=[feature], log_dirs=[Uuid(bytes(16))]), 4),
        (PartitionChangeRecord(isr=[1, 2], leader=1, directories=[Uuid(bytes(range(16)))]), 2),
        (BrokerRegistrationChangeRecord(broker_id=3, fenced=-1), 3),
    ]
    values += [encode_record(*pair) for pair in full]
    home = tmp_path_factory.mktemp("every")
    log_directory(home, {0: encode_batch(0, 1, START_MS, values)})
    return home


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row without its head, in what JSON can say."""
    return {
        name: b64encode(value).decode() if isinstance(value, bytes) else value
        for name, value in row.items()
        if name not in HEAD or name in ("offset", "version")
    }


@pytest.mark.slow
def test_views_made_of_json_are_as_those_made_of_bytes(spark, every_type: Path):
    frame = spark.read.format(FORMAT).load(str(every_type)).cache()
    made = {cls.__name__: view(frame, cls) for cls in TELLING}
    keep = {"ignoreNullFields": "false"}
    frames = [
        one.select(f.lit(name).alias("name"), f.to_json(f.struct("*"), keep).alias("row"))
        for name, one in made.items()
    ]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in made}
    for row in reduce(DataFrame.unionAll, frames).orderBy("name").collect():
        found[row["name"]].append(as_json(json.loads(row["row"])))
    (log,) = every_type.rglob("*.log")
    frame.unpersist()
    for name in made:
        cls = VIEWS[name]
        direct = [as_json(row) for row in view_rows(cls, log.read_bytes())]
        assert found[name] == direct and direct, name
        assert made[name].columns == view_type(cls).names


@pytest.mark.slow
def test_a_view_is_read_by_the_source_and_is_a_table_of_sql(spark, every_type: Path):
    made = views(spark, spark.read.format(FORMAT).load(str(every_type)))
    assert made.keys() == VIEWS.keys()
    rows = spark.sql("SELECT * FROM PartitionChangeRecord")
    joined = spark.sql("SELECT * FROM PartitionChangeRecord a JOIN TopicRecord b USING (kind)")
    counts = [made[name].count() for name in ("PartitionChangeRecord", "TopicRecord")]
    assert joined.count() == counts[0] * counts[1] > 0
    direct = spark.read.format(FORMAT).option("view", "PartitionChangeRecord").load(str(every_type))
    assert direct.schema == view_type(PartitionChangeRecord)
    assert sorted(map(str, direct.collect())) == sorted(map(str, rows.collect()))
    narrow = spark.read.format(FORMAT).option("view", "PartitionChangeRecord")
    found = narrow.schema("isr array<int>, version int").load(str(DATA / "b-failover" / "node1"))
    assert found.filter("size(isr) = 2").count() > 3
