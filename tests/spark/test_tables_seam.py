"""A log that comes in a later run is held against the one of before."""

from __future__ import annotations

import pytest

from quorate.formats import records as r
from quorate.formats.batch import encode_batch
from quorate.formats.records import encode_record
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.store import open_store
from quorate.spark.tables.summary import BadInput
from spark.fleet import rows_of
from spark.logs import START_MS, log_directory


def config(name: str) -> bytes:
    record = r.ConfigRecord(resource_type=2, resource_name="t", name=name, value="1")
    return encode_record(record, 0)


def log(names: str, epochs: tuple[int, ...] = (1,), later_ms: int = 0) -> bytes:
    """A batch of one config for each letter, the epochs one after the other."""
    share = -(-len(names) // len(epochs))
    return b"".join(
        encode_batch(offset, epochs[offset // share], START_MS + offset + later_ms, [config(name)])
        for offset, name in enumerate(names)
    )


def names_of(store) -> str:
    rows = sorted(rows_of(store, "log"), key=lambda row: row["offset"])
    return "".join(row["resource"] and row["record"].split('"name":"')[1][0] for row in rows)


@pytest.fixture
def taken(spark, tmp_path):
    """A warehouse that has a log of ten records."""
    log_directory(tmp_path / "n1", {0: log("abcdefghij")})
    warehouse = str(tmp_path / "warehouse")
    ingest(spark, [str(tmp_path / "n1")], warehouse)
    return warehouse


def test_what_follows_the_same_log_is_taken(spark, tmp_path, taken):
    log_directory(tmp_path / "n2", {0: log("abcdefghijklm")}, node=2)
    summary = ingest(spark, [str(tmp_path / "n2")], taken)
    assert not summary.bad and summary.records == 3
    assert names_of(open_store(taken)) == "abcdefghijklm"


@pytest.mark.parametrize(
    "other",
    [
        log("abcdefghiJklm"),
        log("abcdefghijklm", later_ms=5),
        log("Abcdefghijklmnop", epochs=(1, 2)),
    ],
    ids=["another record at the seam", "of another day", "with a later epoch"],
)
def test_another_log_under_the_same_id_is_left_out(spark, tmp_path, taken, other):
    log_directory(tmp_path / "n2", {0: other}, node=2)
    log_directory(tmp_path / "n3", {0: log("abcdefghijk")}, node=3)
    paths = [str(tmp_path / name) for name in ("n2", "n3")]
    with pytest.raises(BadInput, match="two clusters under one id"):
        ingest(spark, paths, taken, fail_fast=True)
    assert names_of(open_store(taken)) == "abcdefghij"
    summary = ingest(spark, paths, taken)
    assert summary.bad
    ((path, why),) = summary.clusters["cluster-a"].strangers.items()
    assert path == str(tmp_path / "n2" / "__cluster_metadata-0")
    assert "two clusters under one id" in why
    assert names_of(open_store(taken)) == "abcdefghijk", "the good replica is taken"
    assert not ingest(spark, paths[1:], taken).bad
