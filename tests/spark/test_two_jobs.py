"""Two jobs in one warehouse: whatever commits between two steps of a job, the tables stay right.

The first tests interleave small jobs that read and commit as the real ones do, without Spark. The
next ones interleave real jobs, and the last one starts two real processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from quorate.spark.history.timetravel import state_at
from quorate.spark.jobs.compact import compact_warehouse
from quorate.spark.jobs.repair import repair_warehouse
from quorate.spark.tables.control import ClusterProgress, load_progress
from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.files import TableWriter, file_name, read_file, run_of, safe_name
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.lineage import EpochSpan, covered
from quorate.spark.tables.read_version import (
    ReadVersion,
    check_version,
    commit_run,
    read_again,
    read_version,
)
from quorate.spark.tables.store import COMPACT, ConcurrentRunError, RunPlan, TableStore
from quorate.spark.tables.warehouse import open_store
from spark.cluster import PATIENCE
from spark.fleet import DYNAMIC, STATIC, places, rows_of
from time_budget import LONG, TURN, one_day_in, share

Job = Callable[[TableStore], Iterator[None]]
"""A job that stops at each point at which another one may commit."""
END = 4


def add_rows(
    store: TableStore, plan: RunPlan, table: str, cluster: str, offsets: Iterable[int]
) -> None:
    path = f"{safe_name(cluster)}/{file_name('0', plan.run)}"
    writer = TableWriter(store.root, table, path, store.hidden)
    for offset in offsets:
        cells = {
            "cluster_id": cluster,
            "offset": offset,
            "effective_offset": offset,
            "run": plan.run,
        }
        writer.add(tuple(cells.get(name) for name in TABLES[table].names))
    plan.add(writer.close())


def kept_rows(read: ReadVersion, plan: RunPlan, table: str, cluster: str, end: int) -> None:
    """Plan that a table keeps only the rows of a cluster before an offset."""
    for file in read.tables.files(table):
        if file.path.startswith(f"{cluster}/"):
            plan.remove(table, [file.path])
            offsets = read_file(read.tables.root, table, file.path).column("offset").to_pylist()
            kept = [offset for offset in offsets if offset < end]
            add_rows(read.tables.store, plan, table, cluster, kept)


def retried(steps: Callable[[TableStore], Iterator[None]]) -> Job:
    def job(store: TableStore) -> Iterator[None]:
        while True:
            try:
                yield from steps(store)
                return
            except (ConcurrentRunError, FileNotFoundError):
                # plain Parquet deletes replaced files at once: a job that reads them is started again
                yield

    return job


def takes(cluster: str, end: int = END) -> Job:
    """Bronze, then silver: two runs, as `ingest` and each micro-batch of `stream` commit them."""

    def steps(store: TableStore) -> Iterator[None]:
        read = read_version(store, [cluster])
        yield
        known = read.progress.get(cluster, ClusterProgress(cluster))
        if known.log_end < end:
            plan = read.plan("bronze")
            add_rows(store, plan, "log", cluster, range(known.log_end, end))
            add_rows(store, plan, "quarantine", cluster, [known.log_end])
            yield
            span = EpochSpan(1, known.log_end, end, 0, 0)
            commit_run(read, plan, {cluster: known.with_spans([span])})
            yield
            read = read_again(read, plan.run)
        yield from applied(read, cluster)

    return retried(steps)


def applied(read: ReadVersion, cluster: str) -> Iterator[None]:
    known = read.progress[cluster]
    if (known.applied_end or 0) < known.log_end:
        plan = read.plan("state")
        offsets = range(known.applied_end or 0, known.log_end)
        add_rows(read.tables.store, plan, "changes", cluster, offsets)
        yield
        commit_run(read, plan, {cluster: replace(known, applied_end=known.log_end)})


def streams(cluster: str) -> Job:
    def job(store: TableStore) -> Iterator[None]:
        yield from takes(cluster, END // 2)(store)
        yield from takes(cluster)(store)

    return job


def takes_back(cluster: str) -> Job:
    def steps(store: TableStore) -> Iterator[None]:
        read, end = read_version(store, [cluster]), END // 2
        yield
        known = read.progress.get(cluster)
        if known is None or known.log_end <= end:
            return
        plan = read.plan("rewind")
        for table in ("log", "changes"):
            kept_rows(read, plan, table, cluster, end)
        yield
        after = ClusterProgress(cluster, (EpochSpan(1, 0, end, 0, 0),))
        applied_end = known.applied_end and min(known.applied_end, end)
        commit_run(read, plan, {cluster: replace(after, applied_end=applied_end)})

    return retried(steps)


def repairs(cluster: str) -> Job:
    """Derives the state again, as `repair` does of a cluster that has lost files of silver."""

    def steps(store: TableStore) -> Iterator[None]:
        read = read_version(store)
        yield
        if cluster not in read.progress:
            return
        plan = read.plan("repair")
        kept_rows(read, plan, "changes", cluster, 0)
        yield
        known = {id: replace(one, applied_end=None) for id, one in read.progress.items()}
        for id in known.keys() - {cluster}:
            kept_rows(read, plan, "changes", id, 0)
        commit_run(read, plan, known)
        yield
        read = read_version(store)
        for id in read.progress:
            yield from applied(read, id)
            read = read_version(store)

    return retried(steps)


def compacts(cluster: str) -> Job:
    del cluster  # it joins files of every cluster

    def steps(store: TableStore) -> Iterator[None]:
        read = read_version(store, ())
        yield
        plan = read.plan(COMPACT)
        for table, id in product(("log", "changes"), ("a", "b")):
            files = [f.path for f in read.tables.files(table) if f.path.startswith(f"{id}/")]
            if len(files) > 1:
                plan.remove(table, files)
                path = f"{id}/{file_name('0', plan.run)}"
                writer = TableWriter(store.root, table, path, store.hidden)
                for path in files:
                    writer.add_table(read_file(store.root, table, path))
                plan.add(writer.close())
        yield
        if plan.adds:
            commit_run(read, plan)
        yield
        store.sweep(keep_hours=0)

    return retried(steps)


def travels(cluster: str) -> Job:
    """A reader: what it sees is of one run."""

    def job(store: TableStore) -> Iterator[None]:
        tables = store.version()
        yield
        known = load_progress(tables).get(cluster)
        yield
        paths = [f.path for f in tables.files("changes") if f.path.startswith(f"{cluster}/")]
        rows = [read_file(store.root, "changes", path).num_rows for path in paths]
        assert sum(rows) == (0 if known is None else known.applied_end or 0)

    return retried(job)


JOBS = {
    "ingest": takes,
    "stream": streams,
    "compact": compacts,
    "repair": repairs,
    "take back": takes_back,
    "time travel": travels,
}


def check(store: TableStore, first: str = "") -> None:
    """Each record is there once, in bronze and in silver; so it is after one more ingest."""
    for round_ in range(2):
        for id, known in load_progress(store.version()).items():
            log = [row["offset"] for row in rows_of(store, "log") if row["cluster_id"] == id]
            assert sorted(log) == list(range(known.log_end)), (first, round_, id)
            done = [row["offset"] for row in rows_of(store, "changes") if row["cluster_id"] == id]
            assert sorted(done) == list(range(known.applied_end or 0)), (first, round_, id)
        for file in store.files("quarantine"):
            rows = read_file(store.root, "quarantine", file.path).column("run").to_pylist()
            assert set(rows) == {run_of(file.path)}
        for cluster in "ab":
            list(takes(cluster)(store))
    assert {id: one.applied_end for id, one in load_progress(store).items()} == dict.fromkeys(
        "ab", END
    )


@pytest.mark.parametrize("one", JOBS)
def test_another_job_may_run_at_every_point_of_a_job(tmp_path, one):
    """On the same cluster and on another, in an empty warehouse and in one with half of the log."""
    cases = list(product(JOBS, "ab", (False, True)))
    step = share(1, quick=len(cases), daily=12)
    for number, (other, cluster, begun) in enumerate(cases[TURN % step :: step]):
        point = 0
        while True:
            home = str(tmp_path / f"{number}-{point}")
            store, second = open_store(home, "parquet"), open_store(home, "parquet")
            if begun:
                for id in "ab":
                    list(takes(id, 1)(store))
            steps = JOBS[one]("a")(store)
            reached = sum(1 for _, _ in zip(range(point), steps, strict=False))
            list(JOBS[other](cluster)(second))
            list(steps)
            check(open_store(home, "parquet"), f"{one} and {other} of {cluster} at {point}")
            if reached < point:
                break
            point += 1


def test_a_run_that_gets_a_later_number_renames_its_files(tmp_path):
    """A sweep deletes unnamed files of earlier runs: this run's files must not look like those."""
    store = DeltaStore(str(tmp_path / "home"))
    steps = takes("a")(store)
    next(steps), next(steps)
    list(takes("b", 1)(DeltaStore(store.root)))
    next(steps)  # bronze is committed
    assert {run_of(f.path) for f in store.files("log") if f.path.startswith("a/")} == {3}
    DeltaStore(store.root).sweep(keep_hours=0)
    list(steps)
    check(store)


def test_a_commit_whose_answer_is_lost_counts(tmp_path, monkeypatch):
    import deltalake

    store, write = DeltaStore(str(tmp_path / "home")), deltalake.write_deltalake

    def lost(*args: Any, **words: Any) -> None:
        write(*args, **words)
        raise OSError("connection reset")

    monkeypatch.setattr(deltalake, "write_deltalake", lost)
    list(takes("a")(store))
    monkeypatch.undo()
    assert store.last_run() == 2
    list(takes("b")(store))
    check(store)


@pytest.mark.parametrize("name", ["a", "a@2023-04-05-a244fd75"])
def test_a_report_of_old_findings_is_refused(tmp_path, name):
    store = open_store(str(tmp_path / "home"), "parquet")
    read = read_version(store, [name])
    list(takes("b")(store))
    check_version(read)
    list(takes(name)(store))
    with pytest.raises(ConcurrentRunError, match=rf"changed cluster {name} \(run 3, bronze\)"):
        check_version(read)


SAME = "a-first/node1"
OTHER_JOBS = {
    "the same ingest": lambda spark, home: ingest(spark, places(SAME), home),
    "an ingest of another cluster": lambda spark, home: ingest(
        spark, places("f-static-v0/node1"), home
    ),
    "compact": lambda spark, home: compact_warehouse(spark, home, keep_hours=0, least_files=2),
    "repair": repair_warehouse,
}


@pytest.fixture(scope="module")
def quiet(spark, tmp_path_factory):
    home = str(tmp_path_factory.mktemp("quiet") / "home")
    ingest(spark, places(SAME, "f-static-v0/node1"), home)
    return rows_by_table(open_store(home))


def rows_by_table(store: TableStore, cluster: str = DYNAMIC) -> dict[str, list[str]]:
    return {
        table: sorted(str(row) for row in rows_of(store, table) if row["cluster_id"] == cluster)
        for table in ("log", "changes", *KINDS)
    }


@pytest.mark.parametrize(
    "other",
    [
        "the same ingest",
        "an ingest of another cluster",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("compact", "repair")),
    ],
)
def test_real_jobs_between_the_commits_of_an_ingest(spark, tmp_path, monkeypatch, other, quiet):
    home, commit, seen = str(tmp_path / "home"), DeltaStore.commit, []
    busy: list[str] = []

    def between(store: DeltaStore, plan: RunPlan) -> None:
        if not busy and (plan.job, other) not in seen:
            seen.append((plan.job, other))
            if plan.job != "bronze" or not other.startswith(("compact", "repair")):
                busy.append(other)  # these need a warehouse
                OTHER_JOBS[other](spark, home)
                busy.clear()
        commit(store, plan)

    monkeypatch.setattr(DeltaStore, "commit", between)
    ingest(spark, places(SAME), home)
    monkeypatch.undo()
    store = open_store(home)
    assert seen and rows_by_table(store) == quiet
    known = load_progress(store)
    assert covered(known[DYNAMIC].spans) == [(0, 144)] and known[DYNAMIC].applied_end == 144
    assert (STATIC in known) == (other == "an ingest of another cluster")
    assert state_at(spark, store, "topics", DYNAMIC).count() > 0
    assert ingest(spark, places(SAME), home).records == 0
    assert repair_warehouse(spark, home).missing == {}


GAPS = range(7)
"""Seconds between the starts: from two jobs in step to one that ends as the other begins."""


@one_day_in(3, 2)
@pytest.mark.parametrize("gap", GAPS if LONG else [TURN % len(GAPS)])
def test_two_processes_ingest_the_same_directory(spark, tmp_path, gap, quiet):
    home = str(tmp_path / "home")
    command = [sys.executable, "-m", "quorate", "pipeline", "ingest", *places(SAME), "-w", home]
    command += ["--master", "local[1]", "--quiet", "--json"]
    with ExitStack() as ended:
        jobs = []
        for _ in range(2):
            job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            ended.callback(job.wait)
            ended.callback(job.kill)
            jobs.append(job)
            if len(jobs) == 1:
                with suppress(subprocess.TimeoutExpired):
                    job.wait(gap)
        answers = [job.communicate(timeout=PATIENCE)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0]
    assert sum(json.loads(answer)["records"] for answer in answers) == 144
    store = open_store(home)
    assert rows_by_table(store) == quiet
    assert not [row for row in rows_of(store, "quarantine") if row["reason"] != "unknown"]
    known = load_progress(store)
    assert covered(known[DYNAMIC].spans) == [(0, 144)] and known[DYNAMIC].applied_end == 144
    assert ingest(spark, places(SAME), home).records == 0
    assert repair_warehouse(spark, home).missing == {}
