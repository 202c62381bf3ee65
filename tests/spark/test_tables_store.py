"""Runs change tables as a whole or not at all; no Spark needed."""

from __future__ import annotations

import math
import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from quorate.cli import main
from quorate.spark.history.timetravel import log_ends
from quorate.spark.tables import delta, delta_texts
from quorate.spark.tables.control import ClusterProgress, load_progress, plan_progress
from quorate.spark.tables.delta import DeltaStore
from quorate.spark.tables.delta_log import RUNS_PATH
from quorate.spark.tables.delta_repair import repair_commits
from quorate.spark.tables.delta_texts import table_schema
from quorate.spark.tables.files import (
    TableWriter,
    arrow_rows,
    file_name,
    named_by,
    open_root,
    read_file,
    safe_name,
)
from quorate.spark.tables.layout import RUNS, TABLES, table_path
from quorate.spark.tables.lineage import EpochSpan
from quorate.spark.tables.parquet import ParquetStore
from quorate.spark.tables.store import (
    ConcurrentRunError,
    FilesGoneError,
    RunPlan,
    WarehouseError,
    WarehouseWriteError,
    parse_plan,
)
from quorate.spark.tables.warehouse import open_store
from time_budget import one_in

FORMS = {"delta": DeltaStore, "parquet": ParquetStore}


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture
def store(form, tmp_path):
    return open_store(str(tmp_path / "home"), form)


def topic(name, since=1):
    return ("cluster-a", f"id-{name}", name, since, None, 1000 * since, None, True, False)


def write(store, run, *names):
    path = f"current/cluster-a/{file_name('00000', run)}"
    writer = TableWriter(store.root, "topics", path, store.hidden)
    for name in names:
        writer.add(topic(name))
    return writer.close()


def names(store):
    return sorted(
        row["topic_name"]
        for file in store.files("topics")
        for row in read_file(store.root, "topics", file.path).to_pylist()
    )


def run(store, number, *added, remove=()):
    plan = RunPlan(number, "test")
    plan.add(write(store, number, *added))
    plan.remove("topics", remove)
    store.commit(plan)


def test_runs_add_and_remove_files(store):
    assert (store.next_run(), store.files("topics")) == (1, [])
    run(store, 1, "a", "b")
    [first] = store.files("topics")
    run(store, 2, "c", remove=[first.path])
    assert names(store) == ["c"] and store.next_run() == 3


def test_the_record_of_runs_can_be_read(store):
    assert store.runs() == RUNS.empty_table()
    run(store, 1, "a")
    run(store, 2, "b")
    rows = store.runs().to_pylist()
    assert [(row["run"], row["job"], row["summary"]) for row in rows] == [
        (1, "test", "{}"),
        (2, "test", "{}"),
    ]
    assert rows[0]["at"] <= rows[1]["at"] <= datetime.now(UTC)
    assert all(row["plan"].startswith(f"{row['run']:08d}") for row in rows)


def test_a_run_that_another_has_overtaken_is_refused(store, form):
    other = open_store(store.root, form)
    assert store.next_run() == other.next_run() == 1
    run(store, 1, "a")
    with pytest.raises(ConcurrentRunError, match="meanwhile: start this job again") as raised:
        run(other, 1, "b")
    assert raised.value.exit_code == 70  # nobody called it wrongly
    assert names(store) == ["a"] and other.next_run() == 2


def test_of_two_runs_that_commit_at_once_one_is_refused(tmp_path, monkeypatch):
    """Both look at the runs before either has recorded its own."""
    one, two = (DeltaStore(str(tmp_path / "home")) for _ in range(2))
    run(one, 1, "a")
    opened = two._opened("control/runs")
    run(one, 2, "b")
    monkeypatch.setattr(two, "_opened", lambda path: opened)
    with pytest.raises(ConcurrentRunError, match="meanwhile: start this job again"):
        run(two, 2, "c")
    assert names(one) == ["a", "b"]


def test_a_run_killed_after_it_counts_is_finished_by_the_next(store, form, monkeypatch):
    def dies(self, table, plan):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FORMS[form], "_apply_to", dies)
        with pytest.raises(KeyboardInterrupt):
            run(store, 1, "a")
    assert names(store) == []
    again = open_store(store.root, form)
    assert again.next_run() == 2 and names(again) == ["a"]
    assert again.next_run() == 2 and names(again) == ["a"]


def test_two_that_finish_the_same_run_do_not_get_in_each_others_way(store, form, monkeypatch):
    """A question begins by finishing what was recorded, and so meets the job that is at it."""
    plan = RunPlan(store.next_run(), "bronze")
    plan.add(write(store, plan.run, "orders"))
    opened, other, finished = DeltaStore._opened, open_store(store.root, form), []

    def meanwhile(self, path):
        found = opened(self, path)
        if self is store and path.endswith("topics") and self.last_run():
            finished.append(other.recover())
        return found

    moved = ParquetStore._move

    def moved_meanwhile(self, source, target):
        if self is store and target.endswith(".parquet"):
            finished.append(other.recover())
        moved(self, source, target)

    monkeypatch.setattr(DeltaStore, "_opened", meanwhile)
    monkeypatch.setattr(ParquetStore, "_move", moved_meanwhile)
    store.commit(plan)
    assert finished == [True]
    assert names(open_store(store.root, form)) == ["orders"]


def test_a_run_recorded_while_another_job_recovers_is_no_lost_commit(tmp_path, monkeypatch):
    store = DeltaStore(str(tmp_path / "home"))
    run(store, 1, "first")
    look, quicker = store._tables, [True]

    def tables():
        found = look()
        if quicker:
            quicker.pop()
            run(DeltaStore(store.root), 2, "second")
        return found

    monkeypatch.setattr(store, "_tables", tables)
    assert not store.recover()
    assert store.version().run == 2


@pytest.mark.parametrize("room", [0, 100, 1500])
def test_a_full_disk_is_reported_as_one(tmp_path, room):
    store = open_store(str(tmp_path / "home"), "delta")
    for run in (1, 2):
        plan = RunPlan(store.next_run(), "bronze")
        plan.add(write(store, run, f"orders-{run}"))
        if run == 1:
            store.commit(plan)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))  # no file may be larger
    try:
        with pytest.raises(WarehouseWriteError) as raised:
            store.commit(plan)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    text = str(raised.value)
    assert text.startswith(f"{store.root}/control/") and ": cannot be written: " in text
    assert "File too large: raise the limit on file sizes (ulimit -f), then start the job" in text
    assert "\n" not in text and "\x1b" not in text
    again = open_store(store.root, "delta")
    again.recover()
    assert names(again) in (["orders-1"], ["orders-1", "orders-2"])


def texts(store, path):
    """The name and description of a Delta table, and the comment of each column."""
    table = DeltaTable(f"{store.root}/{path}")
    about = table.metadata()
    comments = {field.name: field.metadata.get("comment") for field in table.schema().fields}
    return about.name, about.description, comments


def test_every_table_exists_after_the_first_run_and_says_what_it_holds(tmp_path):
    store = open_store(str(tmp_path), "delta")
    run(store, 1, "a")
    for path in (RUNS_PATH, *map(table_path, TABLES)):
        name, about, comments = texts(store, path)
        assert path.endswith(f"/{name}") and about.startswith("A row is ") and "`" not in about
        assert all(comments.values()) and set(comments) == set(table_schema(path).names)
    assert texts(store, "bronze/quarantine")[2]["resolved_run"] == (
        "the run that found its place sound; null while it is open"
    )


def test_tables_of_an_earlier_release_get_new_columns_and_texts_without_new_files(tmp_path):
    old = pa.schema([field for field in TABLES["topics"] if field.name != "from_snapshot"])
    DeltaTable.create(f"{tmp_path}/gold/topics", old)
    rows = pa.table({field.name: pa.nulls(1, field.type) for field in old}, old)
    write_deltalake(f"{tmp_path}/gold/topics", rows, mode="append")
    before = DeltaTable(f"{tmp_path}/gold/topics").file_uris()
    store = open_store(str(tmp_path), "delta")
    plan = RunPlan(1, "bronze")
    store.commit(plan)  # it does not change this table
    table = DeltaTable(f"{tmp_path}/gold/topics")
    assert table.file_uris() == before and table.to_pyarrow_table().num_rows == 1
    assert texts(store, "gold/topics")[2]["from_snapshot"]
    version = table.version()
    again = open_store(str(tmp_path), "delta")
    again.commit(RunPlan(2, "bronze"))
    assert DeltaTable(f"{tmp_path}/gold/topics").version() == version


def test_two_jobs_may_give_the_texts_at_once(tmp_path, monkeypatch):
    DeltaTable.create(f"{tmp_path}/gold/topics", TABLES["topics"])
    quicker = [True]
    real = delta_texts.describe

    def meanwhile(table, path):
        if quicker:
            quicker.pop()
            DeltaStore(str(tmp_path))._opened(path)
        real(table, path)

    monkeypatch.setattr(delta, "describe", meanwhile)
    run(open_store(str(tmp_path), "delta"), 1, "a")
    assert texts(open_store(str(tmp_path), "delta"), "gold/topics")[0] == "topics" and not quicker


@pytest.mark.parametrize("path", [RUNS_PATH, "gold/topics"])
def test_a_commit_survives_that_another_job_gives_the_texts_meanwhile(tmp_path, monkeypatch, path):
    store = open_store(str(tmp_path), "delta")
    run(store, 1, "a")
    real, quicker = DeltaStore._opened, [True]

    def meanwhile(self, wanted):
        found = real(self, wanted)
        if wanted == path and quicker:
            quicker.pop()
            DeltaTable(f"{tmp_path}/{path}").alter.set_table_description("of another release")
        return found

    monkeypatch.setattr(DeltaStore, "_opened", meanwhile)
    run(store, 2, "b")
    assert names(store) == ["a", "b"] and not quicker


def on_disk(store):
    return sorted(path.name for path in Path(store.root, "gold/topics").rglob("*-*.parquet"))


def test_a_run_killed_before_it_counts_leaves_files_that_a_sweep_deletes(store, form):
    run(store, 1, "a")
    left = write(store, 2, "b")
    assert len(on_disk(store)) == 2 and names(store) == ["a"]
    again = open_store(store.root, form)
    run(again, again.next_run(), "c")
    assert again.sweep(keep_hours=1) == 0
    assert again.sweep(keep_hours=0) >= 1
    assert len(on_disk(store)) == 2 and not any(left.path.endswith(n) for n in on_disk(store))
    assert names(again) == ["a", "c"]


def test_a_sweep_leaves_the_files_of_a_job_that_is_at_work(store, form):
    run(store, 1, "a")
    plan = RunPlan(store.next_run(), "bronze")
    plan.add(write(store, plan.run, "b"))
    open_store(store.root, form).sweep(keep_hours=0)
    store.commit(plan)
    assert store.version().missing() == {} and names(store) == ["a", "b"]


def test_a_sweep_leaves_what_is_recorded_while_it_looks(store, form, monkeypatch):
    """A run that another job has recorded, but not applied to the tables yet."""
    run(store, 1, "a")
    other, plan = open_store(store.root, form), RunPlan(2, "bronze")
    plan.add(write(other, 2, "b"))

    def recorded(found):
        with monkeypatch.context() as patch:
            patch.setattr(DeltaStore, "_apply_to", lambda *_: None)
            patch.setattr(ParquetStore, "_apply", lambda *_: None)
            other.commit(plan)
        return found

    recover = store.recover
    monkeypatch.setattr(store, "recover", lambda: recorded(recover()))
    store.sweep(keep_hours=0)
    again = open_store(store.root, form)
    assert again.next_run() == 3
    assert again.version().missing() == {} and names(again) == ["a", "b"]


@pytest.mark.parametrize(("option", "odd"), [("--keep-hours", "-5"), ("--least-files", "1")])
def test_a_bound_of_compact_must_make_sense(option, odd, capsys):
    assert main.run(["pipeline", "compact", "-w", "w", option, odd]) == 2
    assert f"{odd} is not in the range" in capsys.readouterr().err


def test_a_run_whose_files_are_gone_is_refused(store, form):
    plan = RunPlan(store.next_run(), "bronze")
    plan.add(write(store, 1, "a"))
    for path in Path(store.root, "gold/topics").rglob("*.parquet"):
        path.unlink()
    with pytest.raises(
        FilesGoneError, match=r"00000-00000001-.* is gone, which this job wrote"
    ) as raised:
        store.commit(plan)
    assert raised.value.exit_code == 70
    assert open_store(store.root, form).next_run() == 1


def test_a_warehouse_has_one_format(store, form):
    run(store, 1, "a")
    other = next(name for name in FORMS if name != form)
    with pytest.raises(WarehouseError, match=f"the warehouse is {form}, not {other}"):
        open_store(store.root, other)
    with pytest.raises(WarehouseError, match="'iceberg' is no table format"):
        open_store(store.root + "-other", "iceberg")


def test_an_incomplete_copy_of_a_warehouse_is_reported(tmp_path, monkeypatch):
    store = DeltaStore(str(tmp_path / "home"))
    run(store, 1, "a")
    [plan] = (tmp_path / "home/control/_plans").iterdir()
    plan.unlink()
    with pytest.raises(WarehouseError, match="the plan of run 1 is missing"):
        store.next_run()


def test_plans_and_progress_survive_their_text(store):
    plan = RunPlan(1, "test", summary={"a": 1})
    plan.add(write(store, 1, "a"))
    plan.remove("topics", ["old"])
    assert parse_plan(plan.to_json()) == plan
    spans = (EpochSpan(1, 0, 10, 5_000_000, 6_000_000), EpochSpan(3, 10, 12, 7_000_000, 7_000_000))
    progress = {
        "a": ClusterProgress("a", spans, 12, 7_000_000, None, 4, ((0, 3),), None, 1),
        "b": ClusterProgress("b", (), None, 0, 5, 1, (), "offsets 0 to 4 are missing", 1),
    }
    plan = RunPlan(1, "test")
    plan_progress(store, plan, progress)
    store.commit(plan)
    assert load_progress(store) == progress


def test_the_time_of_the_end_of_a_log_is_exact_to_the_microsecond(store):
    last = datetime(9999, 12, 29, 23, 59, 59, 999000, tzinfo=UTC)
    span = EpochSpan(
        1, 0, 10, 0, (last - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    )
    plan = RunPlan(1, "test")
    plan_progress(store, plan, {"a": ClusterProgress("a", (span,), 10, 0, None, 1, (), None, 1)})
    store.commit(plan)
    assert log_ends(store, "a") == last


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_quotas_that_json_has_no_word_for_are_kept(store, odd):
    """Kafka takes request_percentage=Infinity; its commit must be one that can be read."""
    values = [odd, 0.5]
    plan = RunPlan(1, "test")
    path = f"current/cluster-a/{file_name('00000', 1)}"
    writer = TableWriter(store.root, "quotas", path, store.hidden)
    for number, value in enumerate(values):
        row = ("cluster-a", f"entity-{number}", "request_percentage", value)
        writer.add((*row, 1, None, 1000, None, True, False))
    plan.add(writer.close())
    store.commit(plan)
    [file] = store.files("quotas")
    assert file.low.get("value") is file.high.get("value") is None
    kept = read_file(store.root, "quotas", file.path).column("value").to_pylist()
    assert list(map(repr, kept)) == list(map(repr, values))
    assert store.next_run() == 2


def test_bounds_hold_in_every_part_of_a_file(tmp_path):
    """A text too long for the statistics, or for Parquet to bound, is in one of two row groups."""
    store = DeltaStore(str(tmp_path / "home"))
    for number, name in enumerate(("m", "z" * 65, "a" * 65, "z" * 5000), 1):
        plan = RunPlan(number, "test")
        writer = TableWriter(store.root, "topics", f"current/a/{file_name('00000', number)}")
        writer.add_table(arrow_rows([topic("m")], TABLES["topics"]))
        writer.add_table(arrow_rows([topic(name)], TABLES["topics"]))
        plan.add(writer.close())
        store.commit(plan)
    bounds = [(file.low["topic_name"], file.high["topic_name"]) for file in store.files("topics")]
    assert sorted(bounds, key=str) == [("m", "m"), (None, None), (None, None), (None, None)]


def test_names_of_folders_are_safe_and_unlike():
    odd = ["GE6zr551RxiE7UFxeHzOVQ", "a/b", "a.b", "..", "", "a b", "ü", "~2f~"]
    assert safe_name(odd[0]) == odd[0]
    assert len({safe_name(name) for name in odd}) == len(odd)
    assert [named_by(safe_name(name)) for name in odd] == odd
    assert all(
        "/" not in safe_name(name) and safe_name(name) not in ("", ".", "..") for name in odd
    )


def test_a_root_may_be_a_uri(tmp_path):
    _, base = open_root(tmp_path.as_uri())
    assert base == str(tmp_path)


ODD_NAMES = ["with blanks", "{a,b}", "a*?", "é 日本", "100%", "#1", "a:b", "~20~"]
NOT_IN_DELTA = ["%41", "100%25", "[1]", "a\\b", "a|b", "a^"]


@pytest.mark.parametrize("name", one_in(4, [*ODD_NAMES, *NOT_IN_DELTA]))
def test_a_warehouse_stays_in_its_folder_however_that_is_named(form, tmp_path, name):
    if form == "delta" and name in NOT_IN_DELTA:
        with pytest.raises(WarehouseError, match=r"Delta Lake misreads .* rename the folder"):
            open_store(str(tmp_path / name), form)
        return
    store = open_store(str(tmp_path / name), form)
    run(store, 1, "a")
    [first] = store.files("topics")
    run(store, 2, "b", remove=[first.path])
    again = open_store((tmp_path / name).as_uri(), form)
    assert again.next_run() == 3 and names(again) == ["b"]
    again.sweep(keep_hours=0)
    assert (
        repair_commits(again) == []
        and again.version().missing() == {}
        and again.root == str(tmp_path / name)
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]
