"""Damage that has healed is marked as resolved in the quarantine, and counts no more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from metadata.samples import DATA
from quorate.formats.batch import encode_batch
from quorate.formats.records import RegisterBrokerRecord, encode_record
from quorate.spark.jobs.compact import compact_warehouse
from quorate.spark.jobs.repair import repair_warehouse
from quorate.spark.report.job import report
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.layout import QUARANTINE
from quorate.spark.tables.lineage import EpochGroup, EpochSpan
from quorate.spark.tables.resolved import (
    BadPlace,
    FileReading,
    Findings,
    missing_offsets,
    of_run,
)
from quorate.spark.tables.warehouse import open_store
from spark.fleet import DYNAMIC, places, rows_of
from spark.logs import START_MS, fence, log_directory, snapshot
from spark.test_refusals import AT_THREE, AT_TWO, LEADER, ONE, SOUND, THREE, TWO, flipped
from spark.test_tables_findings import TAIL, flipped_record
from time_budget import one_day_in, todays

FILE = f"/n1/__cluster_metadata-0/{0:020}.log"


def place(reason="damaged", position=100, length=50, offset=None, epoch=None, file=FILE):
    return BadPlace("c", reason, file, position, length, offset, epoch, "")


@pytest.mark.parametrize(
    ("read", "whole", "sound"),
    [
        (FileReading(0, 400), True, True),
        (FileReading(0, 400, ((100, 50),)), True, False),
        (FileReading(0, 400, ((90, 11),)), True, False),
        (FileReading(0, 400, ((90, 10), (150, 7))), True, True),
        (FileReading(0, 100), True, True),  # the file was cut there
        (FileReading(0, 100), False, False),  # a stream has not come so far
        (FileReading(120, 400), True, False),
        (FileReading(80, 150), False, True),
    ],
)
def test_damage_is_resolved_where_its_file_was_read_and_is_sound(read, whole, sound):
    found = Findings({}, {}, {FILE: read}, whole=whole)
    assert found.resolves(place()) is sound


def test_a_note_about_a_whole_log_is_damage_at_its_first_byte():
    note = place(position=0, length=0)
    assert not Findings({}, {}, {FILE: FileReading(0, 9, ((0, 0),))}).resolves(note)
    assert Findings({}, {}, {FILE: FileReading(0, 9)}).resolves(note)


@pytest.mark.parametrize("reason", ["divergent", "superseded", "disagrees"])
def test_a_record_is_resolved_where_its_replica_no_longer_has_it(reason):
    bad = place(reason, offset=7, epoch=2)
    here = "/n1/__cluster_metadata-0"

    def after(*groups, whole=True):
        return Findings({"c": groups}, {}, whole=whole).resolves(bad)

    assert not after()  # its replica is not in the input
    assert not after(EpochGroup("/n2/__cluster_metadata-0", 3, 0, 0, 9, 0))
    assert not after(EpochGroup(here, 2, 0, 0, 9, 0))
    assert not after(EpochGroup(here, 3, 0, 8, 9, 0))  # its log begins later
    assert after(EpochGroup(here, 1, 0, 0, 5, 0), EpochGroup(here, 3, 0, 6, 9, 0))
    assert after(EpochGroup(here, 1, 0, 0, 5, 0))  # it was truncated
    assert not after(EpochGroup(here, 1, 0, 0, 5, 0), whole=False)
    assert Findings({}, {}, agreeing=(bad,)).resolves(bad)


@pytest.mark.parametrize("reason", ["unknown", "misfit"])
def test_a_record_of_the_log_is_open_as_long_as_the_log_has_it(reason):
    bad = place(reason, offset=7, epoch=2)
    for epoch, resolved in ((2, False), (3, True)):
        log = {"c": ClusterProgress("c", (EpochSpan(epoch, 0, 9),))}
        assert Findings({}, log).resolves(bad) is resolved


def test_offsets_of_damage_that_the_log_lacks():
    log = ClusterProgress("c", (EpochSpan(1, 0, 5), EpochSpan(1, 8, 10)))
    assert missing_offsets(log, 3, 5) == []
    assert missing_offsets(log, 3, 8) == [(5, 8)]
    assert missing_offsets(log, 10, None) == [(10, 11)]
    assert missing_offsets(log, None, 2) == []


def test_a_run_with_another_number_keeps_the_numbers_of_earlier_runs():
    rows = pa.Table.from_pylist(
        [{"run": 2, "resolved_run": 5}, {"run": 5, "resolved_run": None}], QUARANTINE
    )
    again = of_run(rows, 5, 6)
    assert again.select(["run", "resolved_run"]).to_pylist() == [
        {"run": 2, "resolved_run": 6},
        {"run": 6, "resolved_run": None},
    ]


# -- the job ---------------------------------------------------------------------------------------
def write(home: Path, name: str, data: bytes, node: int = 1, base: int = 0) -> Path:
    folder = home / name / f"node{node}"
    shutil.rmtree(folder, ignore_errors=True)
    log_directory(folder, {base: data}, cluster=name, node=node)
    return folder


REGISTERED = encode_record(RegisterBrokerRecord(broker_id=7, broker_epoch=7, fenced=False), 0)
AT_ONE = len(LEADER)
STRAY = encode_batch(6, 1, START_MS + 6, [fence(7)])
"""It fits a state in which a record at 3 to 5 has registered broker 7."""


def break_all(home: Path) -> None:
    write(home, "flipped", flipped(SOUND, AT_TWO + 70))
    write(home, "length", flipped(SOUND, AT_TWO + 9))
    write(home, "torn", SOUND[:-9])
    write(home, "headless", THREE, base=6)
    write(home, "elsewhere", flipped(SOUND, AT_TWO + 70))
    write(home, "differs", SOUND, 1)
    write(home, "differs", flipped_record(), 2)
    write(home, "half-healed", flipped(flipped(SOUND, AT_ONE + 70), AT_THREE + 70))
    write(home, "zeros", bytes(999))


def heal_all(home: Path) -> list[str]:
    """Heals every cluster, each in another way; returns what to ingest."""
    write(home, "flipped", SOUND)
    write(home, "length", SOUND)
    write(home, "torn", SOUND[:AT_THREE])  # as Kafka's recovery cuts it
    write(home, "headless", SOUND)
    shutil.rmtree(home / "elsewhere/node1")
    write(home, "elsewhere", SOUND, 2)
    write(home, "differs", SOUND, 2)
    write(home, "half-healed", flipped(SOUND, AT_THREE + 70))
    write(home, "zeros", SOUND, 2)  # node 1 is in the input and still damaged
    return [str(home)]


LEFT = [("half-healed", "damaged"), ("zeros", "damaged")]


def open_rows(home) -> list[tuple[str, str]]:
    rows = rows_of(open_store(str(home)), "quarantine")
    return sorted((r["cluster_id"], r["reason"]) for r in rows if r["resolved_run"] is None)


@one_day_in(2, 0)
def test_what_has_healed_is_resolved_by_the_run_that_found_it_sound(
    spark, pipeline, tmp_path: Path
):
    logs, home = tmp_path / "logs", tmp_path / "home"
    break_all(logs)
    code, _, _ = pipeline("ingest", logs, "-w", home, "--quiet")
    before = rows_of(open_store(str(home)), "quarantine")
    assert code == 1 and all(row["resolved_run"] is None for row in before)
    assert len({row["cluster_id"] for row in before}) == 8
    code, out, _ = pipeline("ingest", *heal_all(logs), "-w", home, "--json", "--quiet")
    clusters = json.loads(out)["clusters"]
    assert code == 1  # what is LEFT
    healed = {name: one["resolved"] for name, one in clusters.items()}
    count = len([r for r in before if r["cluster_id"] == "differs"])
    damaged = {
        name: {"damaged": 1} for name in ("flipped", "length", "torn", "headless", "elsewhere")
    }
    assert healed == {
        **damaged,
        "differs": {"disagrees": count},
        "half-healed": {"damaged": 1},
        "zeros": {},
    }
    assert open_rows(home) == LEFT
    after = rows_of(open_store(str(home)), "quarantine")
    key = ("cluster_id", "reason", "file", "position", "problem", "run")
    assert sorted(str([r[k] for k in key]) for r in after) == sorted(
        str([r[k] for k in key]) for r in before
    )
    runs = {row["resolved_run"] for row in after} - {None}
    assert len(runs) == 1 and max(runs) > max(row["run"] for row in after)
    # the next job has nothing to mark, and no finding but the one that is left
    last = open_store(str(home)).last_run()
    code, out, _ = pipeline("ingest", logs / "flipped", logs / "differs", "-w", home, "--quiet")
    assert code == 0 and "quarantine" not in out and open_store(str(home)).last_run() == last
    code, out, _ = pipeline(
        *("history", "SELECT cluster_id FROM quarantine WHERE resolved_run IS NULL ORDER BY 1"),
        *("-w", home, "--json", "--quiet"),
    )
    assert json.loads(out) == [{"cluster_id": name} for name, _ in LEFT]
    page = tmp_path / "page.html"
    report(spark, str(home), str(page))
    assert "1 in quarantine: 1 damaged; 1 resolved" in page.read_text()
    # damage that comes back is a new row, and two incidents of one place make one resolved row
    for _ in range(2):
        write(logs, "flipped", flipped(SOUND, AT_TWO + 70))
        summary = ingest(spark, [str(logs / "flipped")], str(home))
        assert summary.bad and summary.clusters["flipped"].quarantined == {"damaged": 1}
        write(logs, "flipped", SOUND)
        code, out, _ = pipeline("ingest", logs / "flipped", "-w", home, "--quiet")
        assert code == 0 and "sound again, resolved in quarantine: 1 damaged" in out
    mine = [r for r in rows_of(open_store(str(home)), "quarantine") if r["cluster_id"] == "flipped"]
    newest = open_store(str(home)).last_run()
    assert [(r["run"], r["resolved_run"]) for r in mine] == [(before[0]["run"], newest)]
    compact_warehouse(spark, str(home), least_files=2)
    assert open_rows(home) == LEFT


@one_day_in(2, 1)
def test_a_replica_that_was_truncated_resolves_its_uncommitted_end(spark, tmp_path: Path):
    home = str(tmp_path / "home")
    node4 = tmp_path / "node4"
    shutil.copytree(DATA / "d-divergent/node4", node4)
    ingest(spark, [str(node4), *places(TAIL[1])], home)
    ingest(spark, places("d-divergent/node3"), home)
    assert ingest(spark, [str(node4)], home).bad
    assert {reason for _, reason in open_rows(home)} == {"superseded"}
    shutil.rmtree(node4)
    shutil.copytree(DATA / "d-divergent/node3", node4)
    summary = ingest(spark, [str(node4)], home)
    assert not summary.bad
    assert summary.clusters[DYNAMIC].resolved == {"superseded": 10}
    assert open_rows(home) == []
    assert not ingest(spark, places("d-divergent/node3"), home).bad


@pytest.mark.parametrize("killed", todays(2, [False, True]))
def test_a_record_that_fits_a_state_that_was_filled_is_resolved(
    spark, tmp_path: Path, monkeypatch, killed: bool
):
    """Offsets 3 to 5 come later; they register the broker that offset 6 fences."""
    home, filling = str(tmp_path / "home"), encode_batch(3, 1, START_MS + 3, [REGISTERED] * 3)
    early = write(tmp_path, "c", LEADER + ONE)
    ingest(spark, [str(early)], home)
    store = open_store(home)
    write(tmp_path, "c", LEADER + ONE + flipped(filling, 70) + STRAY)
    (early / f"__cluster_metadata-0/{6:020}-{1:010}.checkpoint").write_bytes(snapshot(6, 1))
    assert ingest(spark, [str(early)], home).bad
    assert open_rows(home) == [("c", "damaged"), ("c", "misfit")]
    write(tmp_path, "c", LEADER + ONE + filling + STRAY)
    if killed:
        commit = type(store).commit

        def once(store, plan):
            commit(store, plan)
            if plan.job == "rewind":
                raise KeyboardInterrupt

        with monkeypatch.context() as there:
            there.setattr(type(store), "commit", once)
            with pytest.raises(KeyboardInterrupt):
                ingest(spark, [str(early)], home)
    summary = ingest(spark, [str(early)], home)
    assert not summary.bad, summary
    assert summary.clusters["c"].resolved["misfit"] == 1
    assert open_rows(home) == []


def test_repair_checks_misfits_again(spark, tmp_path: Path):
    home = tmp_path / "home"
    write(tmp_path, "c", LEADER + ONE + TWO + STRAY)
    ingest(spark, [str(tmp_path / "c")], str(home))
    [lost] = open_store(str(home)).files("changes")
    (home / "silver/changes" / lost.path).unlink()
    repair_warehouse(spark, str(home))
    assert open_rows(home) == [("c", "misfit")]
    assert len(rows_of(open_store(str(home)), "quarantine")) == 1
