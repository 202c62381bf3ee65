"""The repair of a warehouse that has lost commits or files, and the refusal to read it as whole."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorate.spark.jobs.repair import RepairSummary, remove_lost, repair_warehouse
from quorate.spark.tables.control import ClusterProgress, load_progress, plan_progress
from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.delta_repair import repair_commits
from quorate.spark.tables.files import DataFile, TableWriter, file_name
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.layout import TABLES
from quorate.spark.tables.lineage import EpochSpan
from quorate.spark.tables.read import read_table
from quorate.spark.tables.read_version import read_version
from quorate.spark.tables.store import LostCommitError, RunPlan, WarehouseError
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, places, rows_of
from time_budget import one_in, todays

RUNS = 5


def filled(home: Path) -> DeltaStore:
    """A warehouse of five runs, of which all but the fourth add a topic."""
    store = DeltaStore(str(home))
    for number in range(1, RUNS + 1):
        plan = RunPlan(store.next_run(), "test")
        writer = TableWriter(store.root, "topics", f"current/a/{file_name('00000', number)}")
        writer.add(("a", f"id-{number}", f"topic-{number}", 1, None, 1000, None, True, False))
        if number != 4:
            plan.add(writer.close())
        store.commit(plan)
    return store


def commits(home: Path, table: str) -> list[Path]:
    return sorted((home / table / "_delta_log").glob("*.json"))


def lose(table: str, which: int) -> Callable[[Path], None]:
    return lambda home: commits(home, table)[which].unlink()


def tear(table: str, which: int, left: int = 60) -> Callable[[Path], None]:
    def torn(home: Path) -> None:
        path = commits(home, table)[which]
        path.write_bytes(path.read_bytes()[:left])

    return torn


def lose_all(folder: str) -> Callable[[Path], None]:
    return lambda home: shutil.rmtree(home / folder)


TOPICS, RUNS_TABLE = "gold/topics", "control/runs"
LOSSES = {
    "the first commit": (lose(TOPICS, 0), "gold/topics/_delta_log: a commit"),
    "a commit in the middle": (lose(TOPICS, 2), "gold/topics/_delta_log: a commit"),
    "half a commit": (tear(TOPICS, 2), "gold/topics/_delta_log: a commit"),
    "half of the last commit": (tear(TOPICS, -1), "gold/topics/_delta_log: a commit"),
    "the last run": (lose(RUNS_TABLE, -1), "tables have run 5, but it has only run 4"),
    "half of the last run": (tear(RUNS_TABLE, -1), "control/runs/_delta_log: a commit"),
    "all runs": (lose_all(RUNS_TABLE), "tables have run 5, but it has only run 0"),
    # these are made good by whatever comes next
    "the last commit": (lose(TOPICS, -1), None),
    "what the last commit says": (tear(TOPICS, -1, 0), None),
    "the log of a table": (lose_all("gold/topics/_delta_log"), None),
}


@pytest.mark.parametrize("loss", one_in(3, LOSSES))
def test_a_lost_commit_is_reported_and_restored(tmp_path, loss):
    home = tmp_path / "home"
    before = {file.path for file in filled(home).files("topics")}
    harm, says = LOSSES[loss]
    harm(home)
    store = DeltaStore(str(home))
    if says is not None:
        with pytest.raises(LostCommitError, match=says) as found:
            store.next_run()
        assert f"quorate pipeline repair -w {home}" in str(found.value)
        assert repair_commits(store)
    assert store.next_run() == RUNS + 1
    assert {file.path for file in store.files("topics")} == before
    assert repair_commits(DeltaStore(str(home))) == []


def test_a_commit_without_a_plan_is_refused(tmp_path):
    home = tmp_path / "home"
    store = filled(home)
    plans = sorted((home / "control/_plans").iterdir())
    plans[4].write_text('{"run')
    with pytest.raises(WarehouseError, match=r"the plan of run 5 cannot be read: .* Put it back"):
        store.next_run()
    plans[4].unlink()
    commits(home, RUNS_TABLE)[-1].unlink()
    with pytest.raises(WarehouseError, match="there are 0 plans of run 5"):
        repair_commits(store)


def week_later(home: Path) -> None:
    """As `compact` of an earlier release left a warehouse: without plans and checkpoints."""
    for plan in sorted((home / "control/_plans").iterdir())[:-1]:
        plan.unlink()


def with_rows(home: Path, table: str) -> None:
    """Five runs, each with a row more in the tables of progress and a file in another."""
    store = DeltaStore(str(home))
    for number in range(1, RUNS + 1):
        plan = RunPlan(store.next_run(), "test")
        plan_progress(store, plan, {"a": ClusterProgress("a", run=number)})
        writer = TableWriter(store.root, table, f"a/{file_name('00000', number)}")
        writer.add(("a", *(None for _ in range(len(TABLES[table]) - 1))))
        plan.add(writer.close())
        store.commit(plan)


def test_an_unrecoverable_commit_is_refused_and_the_others_stay(tmp_path):
    home = tmp_path / "home"
    with_rows(home, "snapshots")
    week_later(home)
    lost = commits(home, "bronze/snapshots")[2]
    commits(home, "control/clusters")[1].unlink()
    whole, saved = sorted(lost.parent.iterdir()), lost.read_bytes()
    lost.unlink()
    before = sorted(home.rglob("*.json"))
    with pytest.raises(WarehouseError, match=f"{lost} is lost or torn, .*no plan .*a backup"):
        repair_commits(DeltaStore(str(home)))
    assert sorted(home.rglob("*.json")) == before
    lost.write_bytes(saved)
    assert sorted(lost.parent.iterdir()) == whole
    assert repair_commits(DeltaStore(str(home)))
    assert DeltaStore(str(home)).next_run() == RUNS + 1
    assert repair_commits(DeltaStore(str(home))) == []


@pytest.mark.slow
@pytest.mark.parametrize("which", [1, 3, -1])
def test_progress_is_found_without_the_plan_of_its_commit(tmp_path, which):
    home = tmp_path / "home"
    with_rows(home, "snapshots")
    week_later(home)
    lost = commits(home, "control/clusters")[which]
    if which == -1:
        runs_later(home)
    lost.unlink()
    assert repair_commits(DeltaStore(str(home)))
    store = DeltaStore(str(home))
    assert store.next_run() > RUNS
    assert load_progress(store) == {"a": ClusterProgress("a", run=RUNS)}
    assert repair_commits(store) == []


def runs_later(home: Path) -> None:
    """A run that changes no earlier file, so that the plan of the last change may be deleted."""
    store = DeltaStore(str(home))
    store.commit(RunPlan(store.next_run(), "test"))
    week_later(home)


def log_file(store: DeltaStore, run: int, *ranges: tuple[int, int, int]) -> DataFile | None:
    """A file of a cluster's log: (epoch, first offset, end) of its records; None for no record."""
    writer = TableWriter(store.root, "log", f"a/{file_name('00000000', run)}")
    for epoch, start, end in ranges:
        for offset in range(start, end):
            writer.add(("a", offset, epoch, *(None for _ in range(len(TABLES["log"]) - 3))))
    return writer.close()


def log_of_six_runs(store: DeltaStore) -> None:
    """Records, a tail that is replaced, more records, and some joined files."""
    taken = [((1, 0, 10),), ((1, 10, 20), (2, 20, 25)), ((2, 20, 22),), ((3, 22, 30),), (), ()]
    spans = [EpochSpan(1, 0, 20), EpochSpan(2, 20, 22), EpochSpan(3, 22, 30)]
    files: list[Any] = []
    for number, ranges in enumerate(taken, 1):
        plan = RunPlan(store.next_run(), "test")
        if number == 3:  # the tail of epoch 2 goes
            ranges = ((1, 10, 20), (2, 20, 22))
            plan.remove("log", [files[1].path])
        if number == 5:
            ranges = ((1, 0, 20), (2, 20, 22))
            plan.remove("log", [files[0].path, files[2].path])
        files.append(log_file(store, number, *ranges))
        plan.add(files[-1])
        plan_progress(store, plan, {"a": ClusterProgress("a", tuple(spans), run=number)})
        store.commit(plan)


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("which", one_in(4, [1, 2, 3, 4, 5]))
def test_the_log_is_rebuilt_from_its_files(tmp_path, which, swept):
    home = tmp_path / "home"
    store = DeltaStore(str(home))
    log_of_six_runs(store)
    week_later(home)
    if swept:
        live = {file.path for file in store.files("log")}
        for path in (home / "bronze/log/a").glob("*.parquet"):
            if f"a/{path.name}" not in live:
                path.unlink()
    lost = commits(home, "bronze/log")[which]
    lost.unlink()
    store = DeltaStore(str(home))
    assert repair_commits(store) and store.tables_to_rebuild() == {"log"}
    summary = RepairSummary(str(home))
    read = read_version(store)
    remove_lost(read, read.tables.missing(), summary, store.tables_to_rebuild())
    store.mark_rebuilt()
    again = DeltaStore(str(home))
    rows = sorted((row["offset"], row["epoch"]) for row in rows_of(again, "log"))
    assert rows == [(n, 1 if n < 20 else 2 if n < 22 else 3) for n in range(30)]
    assert not summary.forgotten and again.version().missing() == {} and repair_commits(again) == []


def test_what_an_earlier_repair_removed_counts_again_when_the_commit_is_restored(tmp_path):
    home = tmp_path / "home"
    before = {file.path for file in filled(home).files("topics")}
    week_later(home)
    for path in commits(home, TOPICS)[3:]:
        path.rename(f"{path}.lost")
    with pytest.raises(WarehouseError):
        DeltaStore(str(home)).next_run()
    assert repair_commits(DeltaStore(str(home)))
    store = DeltaStore(str(home))
    assert store.next_run() == RUNS + 1
    assert {file.path for file in store.files("topics")} == before
    assert repair_commits(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("which", [1, 3])
def test_a_commit_is_found_without_the_plans_that_compact_deleted(tmp_path, which):
    """The checkpoints of compact replace all earlier commits; later ones have plans."""
    home = tmp_path / "home"
    store = filled(home)
    assert store.sweep(0) == RUNS - 1
    for number in (RUNS + 1, RUNS + 2):
        plan = RunPlan(store.next_run(), "test")
        writer = TableWriter(store.root, "topics", f"current/a/{file_name('00000', number)}")
        writer.add(("a", f"id-{number}", f"topic-{number}", 1, None, 1000, None, True, False))
        plan.add(writer.close())
        store.commit(plan)
    before = {file.path for file in store.files("topics")}
    commits(home, TOPICS)[-which].unlink()
    commits(home, RUNS_TABLE)[-2].unlink()
    again = DeltaStore(str(home))
    assert repair_commits(again)
    assert again.next_run() == RUNS + 3
    assert {file.path for file in DeltaStore(str(home)).files("topics")} == before
    assert repair_commits(DeltaStore(str(home))) == []


def test_bounds_that_are_no_json_are_removed_from_a_commit(tmp_path):
    """Earlier releases wrote them for quotas without a limit; delta-rs reads no such table."""
    store = DeltaStore(str(tmp_path / "home"))
    plan = RunPlan(store.next_run(), "test")
    writer = TableWriter(store.root, "quotas", f"current/a/{file_name('00000', 1)}")
    writer.add(("a", "{}", "request_percentage", math.inf, 1, None, 1000, None, True, False))
    file = writer.close()
    assert file is not None
    bounds = {"value": math.inf}
    stats = {"numRecords": 1, "minValues": bounds, "maxValues": bounds, "nullCount": {}}
    plan.add(replace(file, stats=json.dumps(stats)))
    with pytest.raises(LostCommitError, match="Json error"):
        store.commit(plan)
    with pytest.raises(LostCommitError, match="gold/quotas/_delta_log: a commit"):
        store.next_run()
    assert repair_commits(store)
    assert store.next_run() == 2
    assert [(stored.path, stored.rows) for stored in store.files("quotas")] == [(file.path, 1)]
    assert repair_commits(store) == []


def state(spark, home: Path) -> dict[str, list[str]]:
    """The rows of some tables, as text."""
    store = open_store(str(home))
    return {
        table: sorted(map(str, read_table(spark, store, table).collect()))
        for table in ("partitions", "brokers", "changes")
    }


@pytest.fixture(scope="module")
def whole(spark, tmp_path_factory):
    """A warehouse of several runs, and the state in it."""
    home = tmp_path_factory.mktemp("whole") / "home"
    for part in ("a-first/node1", "b-failover/node2", "e-truncated/node2"):
        ingest(spark, places(part), str(home))
    return home, state(spark, home)


@pytest.mark.parametrize("which", todays(3, [0, 2, -1]))
def test_state_without_recoverable_commits_is_derived_again(
    spark, tmp_path, monkeypatch, which, whole
):
    home, before = Path(shutil.copytree(whole[0], tmp_path / "home")), whole[1]
    week_later(home)
    commits(home, "gold/partitions")[which].unlink()
    commits(home, "silver/changes")[2].unlink()
    with monkeypatch.context() as patch:
        patch.setattr("quorate.spark.jobs.repair.remove_lost", dies)
        with pytest.raises(KeyboardInterrupt):
            repair_warehouse(spark, str(home))
    with pytest.raises(LostCommitError, match="a repair was not finished: quorate pipeline repair"):
        DeltaStore(str(home)).next_run()
    assert repair_warehouse(spark, str(home)).rebuilt == [DYNAMIC]
    assert state(spark, home) == before
    assert repair_warehouse(spark, str(home)).rebuilt == []


def dies(*_: object) -> None:
    raise KeyboardInterrupt


def test_lost_data_files_are_derived_again_or_removed(spark, pipeline, tmp_path):
    home = tmp_path / "home"
    paths = places("a-first/node1")
    ingest(spark, paths, str(home))
    before = state(spark, home)
    assert repair_warehouse(spark, str(home)).missing == {}
    # gold is made of bronze
    next((home / "gold/partitions/current").rglob("*.parquet")).unlink()
    next((home / "silver/changes").rglob("*.parquet")).unlink()
    code, out, err = pipeline("history", "partitions", "-w", home)
    assert code == 2 and not out and f"a file is lost: quorate pipeline repair -w {home}" in err
    found = repair_warehouse(spark, str(home))
    assert sorted(found.missing) == ["changes", "partitions"] and found.rebuilt == [DYNAMIC]
    assert not found.forgotten and state(spark, home) == before
    # bronze is made of what the controllers have
    next((home / "bronze/log").rglob("*.parquet")).unlink()
    code, out, _ = pipeline("repair", "-w", home)
    assert code == 1 and f"{DYNAMIC}: the records at the offsets 0 to 143 are lost" in out
    assert state(spark, home) == before
    code, out, _ = pipeline("repair", "-w", home)
    assert code == 0 and "nothing is missing" in out
    summary = ingest(spark, paths, str(home))
    assert summary.records == 144 and not summary.bad
    rows = read_table(spark, open_store(str(home)), "log")
    assert rows.count() == rows.select("offset").distinct().count() == 144
    assert state(spark, home) == before
