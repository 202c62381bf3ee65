"""History that two jobs at once wrote twice, as earlier releases could, is found and derived again."""

from __future__ import annotations

import pytest

from quorate.spark.jobs.repair import repair_warehouse
from quorate.spark.tables import read_version
from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.store import RunPlan
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, places, rows_of, warehouses
from time_budget import one_day_in, todays

SAME = "a-first/node1"


def contents(home: str) -> dict[str, list[str]]:
    """By table, its rows."""
    store = open_store(home)
    return {
        table: sorted(str(row) for row in rows_of(store, table))
        for table in ("log", "changes", *KINDS, "epochs")
    }


@pytest.fixture(scope="module")
def quiet(spark, tmp_path_factory):
    home = str(tmp_path_factory.mktemp("quiet") / "home")
    ingest(spark, places(SAME), home)
    return home


@pytest.mark.parametrize("job", todays(2, ["bronze", "state"]))
def test_doubled_history_is_found_and_derived_again(
    spark, pipeline, tmp_path, monkeypatch, quiet, job
):
    """The checks of a run are off, and another job does the same work before this one commits."""
    home, commit = str(tmp_path / "home"), DeltaStore.commit
    begun: list[str] = []

    def twice(store: DeltaStore, plan: RunPlan) -> None:
        if plan.job == job and not begun:
            begun.append(job)
            ingest(spark, places(SAME), home)
        commit(store, plan)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaStore, "commit", twice)
        for check in ("_check", "_check_removes"):
            patch.setattr(read_version, check, lambda *_: None)
        ingest(spark, places(SAME), home)
    assert contents(home) != contents(quiet)
    code, out, _ = pipeline("repair", "-w", home)
    assert code == 0 and f"{DYNAMIC}: two jobs at once wrote its history twice" in out
    assert contents(home) == contents(quiet)
    assert repair_warehouse(spark, home).doubled == []


def test_progress_that_another_job_replaced_is_found_from_the_log(spark, tmp_path, quiet):
    home = str(tmp_path / "home")
    ingest(spark, places(SAME), home)
    store = open_store(home)
    plan = RunPlan(store.next_run(), "test")
    for table in ("clusters", "epochs"):
        plan.remove(table, [file.path for file in store.files(table)])
    store.commit(plan)
    assert repair_warehouse(spark, home).doubled == [DYNAMIC]
    # the checksums of epochs too: the logs are still there
    assert contents(home) == contents(quiet)
    assert ingest(spark, places(SAME), home).records == 0


@one_day_in(2, 1)
def test_a_history_of_many_runs_is_not_called_doubled(spark, tmp_path_factory):
    for store, _ in warehouses(spark, tmp_path_factory).values():
        form = "delta" if isinstance(store, DeltaStore) else "parquet"
        assert repair_warehouse(spark, store.root, table_format=form).doubled == []
