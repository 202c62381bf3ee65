"""A log in a later run is compared with the log that the warehouse has."""

from __future__ import annotations

import pytest

from quorate.formats import records as r
from quorate.formats.batch import encode_batch
from quorate.formats.records import encode_record
from quorate.spark.files.histories import split_name
from quorate.spark.tables.continuity import contradicting_replicas
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.lineage import EpochGroup, EpochSpan
from quorate.spark.tables.summary import InvalidInputError
from quorate.spark.tables.survey import InputSurvey
from quorate.spark.tables.warehouse import open_store
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


def names_of(store) -> dict[str, str]:
    """The letters that the log of each cluster has."""
    found: dict[str, str] = {}
    for row in sorted(rows_of(store, "log"), key=lambda row: row["offset"]):
        letter = row["record"].split('"name":"')[1][0]
        found[row["cluster_id"]] = found.get(row["cluster_id"], "") + letter
    return found


SEAM = "another record at the seam"
OTHERS = {
    SEAM: log("abcdefghiJklm"),
    "of another day": log("abcdefghijklm", later_ms=5),
    "with a later epoch": log("Abcdefghijklmnop", epochs=(1, 2)),
}


def test_another_log_under_the_same_id_is_left_out_or_a_cluster_of_its_own(spark, tmp_path):
    """Three clusters of which the warehouse has ten records; then what is another log, and more of
    the same; and a fourth, of which only the same log comes. A log with the same beginning is a
    replica that must not be: it is left out. One with nothing in common is of another cluster.
    """
    clusters = [*OTHERS, "of the same log"]
    for name in clusters:
        log_directory(tmp_path / "first" / name, {0: log("abcdefghij")}, cluster=name)
        log_directory(tmp_path / "more" / name, {0: log("abcdefghijk")}, cluster=name, node=3)
    for name, other in OTHERS.items():
        log_directory(tmp_path / "other" / name, {0: other}, cluster=name, node=2)
    taken = str(tmp_path / "warehouse")
    ingest(spark, [str(tmp_path / "first")], taken)
    paths = [str(tmp_path / folder) for folder in ("other", "more")]
    with pytest.raises(InvalidInputError, match="two clusters under one id"):
        ingest(spark, paths, taken, fail_fast=True)
    assert names_of(open_store(taken)) == dict.fromkeys(clusters, "abcdefghij")
    summary = ingest(spark, paths, taken)
    assert summary.bad
    ((path, why),) = summary.clusters[SEAM].foreign_replicas.items()
    assert path == str(tmp_path / "other" / SEAM / "__cluster_metadata-0")
    assert "two clusters under one id" in why
    same = summary.clusters["of the same log"]
    assert (same.foreign_replicas, same.records, same.quarantined) == ({}, 1, {})
    found = names_of(open_store(taken))
    assert {name: found.pop(name) for name in clusters} == dict.fromkeys(clusters, "abcdefghijk")
    assert {split_name(name)[0]: letters for name, letters in found.items()} == {
        "of another day": "abcdefghijklm",
        "with a later epoch": "Abcdefghijklmnop",
    }
    assert not ingest(spark, paths[1:], taken).bad


COMMITTED = ClusterProgress("c", (EpochSpan(1, 0, 31), EpochSpan(2, 31, 62)), unproven=((50, 62),))


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (EpochGroup("/a", 5, 0, 20, 21, 0), "offsets 20 to 49, which were taken before"),
        (EpochGroup("/a", 5, 0, 40, 60, 0), "offsets 40 to 49"),
        (EpochGroup("/a", 5, 0, 50, 60, 0), None),
        (EpochGroup("/a", 1, 0, 0, 30, 0), None),
        (EpochGroup("/a", 2, 0, 31, 70, 0), None),
    ],
    ids=["formatted anew and cleaned", "from the middle", "an unproven tail", "older", "longer"],
)
def test_what_is_committed_is_not_taken_back(later, why):
    """A log that shares no epoch with what was taken cannot be compared with it."""
    found = [*contradicting_replicas(InputSurvey({"c": [later]}), {"c": COMMITTED})]
    if why is None:
        assert found == []
    else:
        [(cluster_id, replica, message)] = found
        assert (cluster_id, replica) == ("c", "/a") and why in message
        assert "two clusters under one id" in message
