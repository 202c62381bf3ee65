"""Logs of older metadata versions, written by Kafka 4.3.1, are ingested like any other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from formats.samples import VERSIONS
from quorate.spark.audit import audit_here
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.read import read_table
from quorate.spark.tables.warehouse import open_store
from spark.kafka_dump import dumped_by_kafka

LEVELS = {"3.9": 21, "4.0": 25, "4.1": 27}
"""The metadata.version of each release."""
FOLDERS = [VERSIONS / release for release in LEVELS]


def dumped(folder: Path) -> list[dict[str, Any]]:
    (text,) = folder.glob("*.log.dump.txt")
    return dumped_by_kafka(text.read_text())


def cluster_of(folder: Path) -> str:
    found = re.search(r"^cluster\.id=(.+)$", (folder / "meta.properties").read_text(), re.M)
    assert found
    return found[1]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_audit_finds_them_sound(folder):
    report = audit_here([str(folder)])
    assert report.ok and report.clusters[0].committed_end == len(dumped(folder))


def test_every_record_that_kafka_dumps_is_in_the_tables(spark, tmp_path):
    home = str(tmp_path / "home")
    summary = ingest(spark, [str(VERSIONS / "*")], home)
    assert not summary.bad and len(summary.clusters) == len(FOLDERS)
    store = open_store(home)
    rows = read_table(spark, store, "log").orderBy("cluster_id", "offset").collect()
    features = read_table(spark, store, "features").where("is_current").collect()
    quotas = {row.cluster_id for row in read_table(spark, store, "quotas").collect()}
    acls = {row.cluster_id for row in read_table(spark, store, "acls").collect()}
    for folder in FOLDERS:
        id = cluster_of(folder)
        ours = [(row.offset, row.type, row.version) for row in rows if row.cluster_id == id]
        kafkas = [(row["offset"], row["type"], row["version"]) for row in dumped(folder)]
        assert ours == kafkas
        level = [row for row in features if row.cluster_id == id and row.name == "metadata.version"]
        assert [row.level for row in level] == [LEVELS[folder.name]]
        assert id in quotas and id in acls
