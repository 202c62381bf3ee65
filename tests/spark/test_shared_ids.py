"""Several clusters with one cluster id in a warehouse."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from metadata.samples import OUTSIDE
from quorate.spark.frame import frame_of
from quorate.spark.tables.control import load_progress, plan_progress
from quorate.spark.tables.ingest import ingest, ingest_rows
from quorate.spark.tables.store import RunPlan
from quorate.spark.tables.warehouse import open_store
from spark.fleet import rows_of
from spark.shared_ids import ID, A, B, cleaned, undecided

EVERY = [str(OUTSIDE / name) for name in ("compose-a", "compose-b", "no-meta")]
CLUSTER_A, CLUSTER_B, NO_META = EVERY


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OUTSIDE, tmp_path / "outside"))


def topics(store) -> dict[str, set[str]]:
    """The topics of each cluster, of the present state."""
    found: dict[str, set[str]] = {}
    for row in rows_of(store, "topics"):
        found.setdefault(row["cluster_id"], set()).add(row["topic_name"])
    return found


def records(store) -> Counter[str]:
    return Counter(row["cluster_id"] for row in rows_of(store, "log"))


ORDERS, CLICKS = {"orders-1", "orders-2"}, {"clicks-1", "clicks-2", "clicks-3"}


@pytest.mark.smoke
def test_two_clusters_with_one_id_have_histories_of_their_own(pipeline, tmp_path):
    home = tmp_path / "home"
    code, out, err = pipeline("ingest", *EVERY, "-w", home, "--json", "--quiet")
    assert code == 1, err
    summary = json.loads(out)
    assert {name: one["records"] for name, one in summary["clusters"].items()} == {
        A: 14,
        B: 20,
        "unknown": 0,
    }
    assert summary["clusters"][A]["same_id"] == [B]
    assert "no-meta/node1" in summary["clusters"]["unknown"]["examples"]["damaged"]
    store = open_store(str(home))
    assert records(store) == {A: 14, B: 20}
    assert topics(store) == {A: ORDERS, B: CLICKS}
    code, out, _ = pipeline("ingest", *EVERY, "-w", home)
    assert code == 1 and "0 records and 0 events" in out
    assert f"another cluster with the same id: {A}" in out
    code, out, _ = pipeline("ingest", *EVERY[:2], "-w", home)
    assert code == 0, out
    assert {row["reason"] for row in rows_of(store, "quarantine")} == {"damaged"}


def test_the_first_cluster_keeps_the_id_and_cleaned_replicas_find_their_own(spark, outside):
    taken = str(outside / "warehouse")
    store = open_store(taken)
    assert not ingest(spark, [CLUSTER_A], taken).bad
    assert set(load_progress(store)) == {ID}
    cleaned(outside / "compose-b/node1", 8)
    cleaned(outside / "compose-a/node1", 8)
    assert not ingest(spark, [CLUSTER_B], taken).bad
    assert set(load_progress(store)) == {ID, B}
    late = [str(outside / "compose-b/node1"), str(outside / "compose-a/node1")]
    summary = ingest(spark, late, taken)
    assert not summary.bad and summary.records == 0
    assert topics(store) == {ID: ORDERS, B: CLICKS}


def test_an_undecided_log_is_named_until_it_is_given_a_name(pipeline, spark, outside):
    late = undecided(outside)
    home = outside / "home"
    given = [outside / name for name in ("compose-a", "compose-b", "late")]
    code, out, _ = pipeline("ingest", *given, "-w", home, "--fail-fast")
    assert code == 1 and not out
    code, out, _ = pipeline("ingest", *given, "-w", home)
    assert code == 1
    assert f"nothing shows whether this log is one of {A}, {B}: name it (--cluster NAME=PATH" in out
    assert records(open_store(str(home))) == {A: 14, B: 14, late: 6}
    again = outside / "again"
    code, out, _ = pipeline("ingest", *given[:2], "-w", again, "--cluster", f"{B}={given[2]}")
    assert "nothing shows" not in out
    assert code == 1 and "1 damaged" in out, "the snapshot of its beginning is missing"
    assert topics(open_store(str(again))) == {A: ORDERS, B: CLICKS}


def merged_by_an_older_release(spark, warehouse: str) -> None:
    """A warehouse that took both clusters for one, and has no checksums."""
    store = open_store(warehouse)

    def rows(columns, where=""):
        from pyspark.sql import functions as F

        words = {"columns": ",".join(columns), "where": where}
        return frame_of(spark, EVERY[:2], words).withColumn("cluster_id", F.lit(ID))

    ingest_rows(spark, rows, store)
    known = load_progress(store)[ID]
    spans = (span._replace(first_crc=None, last_crc=None) for span in known.spans)
    plan = RunPlan(store.next_run(), "bronze")
    plan_progress(store, plan, {ID: replace(known, spans=tuple(spans))})
    store.commit(plan)


def test_a_warehouse_in_which_two_clusters_were_merged_is_separated(spark, tmp_path):
    taken = str(tmp_path / "warehouse")
    merged_by_an_older_release(spark, taken)
    store = open_store(taken)
    assert records(store)[ID] == 20 and topics(store)[ID] & CLICKS, "as the older release left it"
    summary = ingest(spark, EVERY[:2], taken)
    (part,) = summary.clusters[ID].taken_back
    assert (part.start, part.end) == (14, 20)
    assert "another cluster with the id" in part.reason
    assert records(store) == {ID: 14, B: 20}
    assert topics(store) == {ID: ORDERS, B: CLICKS}
    assert not ingest(spark, EVERY[:2], taken).clusters[B].quarantined


def test_a_warehouse_of_an_older_release_keeps_its_names(spark, tmp_path):
    taken = str(tmp_path / "warehouse")
    store = open_store(taken)
    ingest(spark, [CLUSTER_A], taken)
    known = load_progress(store)[ID]
    spans = (span._replace(first_crc=None, last_crc=None) for span in known.spans)
    plan = RunPlan(store.next_run(), "bronze")
    plan_progress(store, plan, {ID: replace(known, spans=tuple(spans))})
    store.commit(plan)
    summary = ingest(spark, EVERY[:2], taken)
    assert not summary.bad and topics(store) == {ID: ORDERS, B: CLICKS}
