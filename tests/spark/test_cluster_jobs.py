"""Every job of the pipeline on a standalone cluster of which a worker is killed meanwhile.

What it gives must be what an undisturbed run on `local[2]` gives. `kill -9` takes the worker, its
executor and the task; so a task is done twice, and the files of the first are left behind.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from quorate.spark.audit import audit_here
from quorate.spark.generate import FleetSpec, generate
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.warehouse import open_store
from spark import cluster_jobs as jobs
from spark.fleet import rows_of
from time_budget import one_day_in

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.xdist_group("spark-cluster")]

FLEET = FleetSpec(clusters=2, records=6_000, replicas=3, topics=20, segment_bytes=100_000)
TABLES = ("log", "snapshots", "quarantine", "changes", *KINDS, "epochs", "clusters")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Two clusters, three replicas of each, of which one has a damaged batch."""
    home = tmp_path_factory.mktemp("logs")
    generate(home / "all", FLEET)
    damaged = sorted((home / "all" / "cluster-1" / "node-2").rglob("*.log"))[1]
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 0xFF
    damaged.write_bytes(data)
    later = {path.name for path in (home / "all").rglob("*.log")} - {f"{0:020}.log"}
    assert later, "there must be several segments"
    shutil.copytree(home / "all", home / "first", ignore=lambda _, names: later & set(names))
    return home


@pytest.fixture(scope="module")
def whole(spark, logs, tmp_path_factory):
    """The warehouse of an undisturbed local run."""
    home = str(tmp_path_factory.mktemp("whole") / "warehouse")
    jobs.take(spark, str(logs / "all"), home)
    return open_store(home)


@pytest.fixture(scope="module")
def disturbed(driver, logs, tmp_path_factory):
    """The warehouse of runs on the cluster, each of which lost a worker.

    The first while it wrote bronze, the second while it wrote gold.
    """
    home = tmp_path_factory.mktemp("disturbed") / "warehouse"
    for part, table in (("first", "log"), ("all", "partitions")):
        before = written(home, table)
        driver.run_and_lose_a_worker(
            *(jobs.take, str(logs / part), str(home)),
            when=lambda table=table, before=before: written(home, table) - before,
        )
    return open_store(str(home))


def written(home: Path, table: str) -> set[Path]:
    """The files of a table, those too that are of no use."""
    return set(home.glob(f"*/{table}/**/*.parquet"))


def contents(store, table, *left_out):
    """Every row, without the columns that say which run wrote it and which copy of the log it came from."""
    unseen = {"run", "file", *left_out}
    return sorted(
        json.dumps({k: v for k, v in row.items() if k not in unseen}, default=str)
        for row in rows_of(store, table)
    )


def test_ingest(disturbed, whole, logs, driver):
    for table in TABLES:
        assert contents(disturbed, table) == contents(whole, table), table
    assert len(contents(whole, "log")) == FLEET.clusters * FLEET.records
    assert [row["reason"] for row in rows_of(whole, "quarantine")] == ["damaged"]
    last = disturbed.last_run()
    again = driver.submit(jobs.take, str(logs / "all"), disturbed.root)
    assert again.result() is True and disturbed.last_run() == last


@one_day_in(2, 0)
def test_history_and_time_travel(driver, spark, disturbed, whole):
    cluster = rows_of(whole, "clusters")[0]["cluster_id"]
    lost = driver.run_and_lose_a_worker(jobs.answers, disturbed.root, cluster, 4_500, tries=5)
    assert lost == jobs.answers(spark, whole.root, cluster, 4_500)
    assert all(lost.values())


@one_day_in(3, 2)
def test_report(driver, spark, disturbed, whole, tmp_path):
    pages = [
        driver.run_and_lose_a_worker(jobs.page, disturbed.root, str(tmp_path / "one.html")),
        jobs.page(spark, whole.root, str(tmp_path / "two.html")),
    ]
    assert pages[0] == pages[1]


@one_day_in(2, 1)
def test_audit(driver, logs):
    """Three replicas each, and the damage is found, by a task or by the one that comes after it."""
    found = driver.run_and_lose_a_worker(jobs.verdicts, str(logs / "all"))
    here = audit_here([str(logs / "all")])
    assert found == json.loads(json.dumps(here.to_json(), default=str))
    assert not here.ok


def test_compact(driver, disturbed, whole):
    """Last: it deletes what the other tests look at."""
    home = Path(disturbed.root)
    before = written(home, "changes")
    joined, fresh = driver.run_and_lose_a_worker(
        jobs.join_files, disturbed.root, when=lambda: written(home, "changes") - before
    )
    assert joined > fresh > 0
    for table in TABLES:
        assert contents(disturbed, table) == contents(whole, table), table


@one_day_in(3, 1)
def test_stream(driver, logs, whole, tmp_path):
    """The same log in micro-batches; none of it twice, though one of them lost its tasks."""
    home = tmp_path / "warehouse"
    batches = driver.run_and_lose_a_worker(
        *(jobs.tail, str(logs / "all"), str(home)), when=lambda: written(home, "log")
    )
    assert batches > 1
    store = open_store(str(home))
    for table in ("log", "changes", *KINDS, "epochs"):
        assert contents(store, table, "position", "node_id") == contents(
            whole, table, "position", "node_id"
        ), table
