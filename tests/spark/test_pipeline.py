"""`quorate pipeline`: exit codes, JSON, clear messages, and a real job that is killed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interop.process import HOST, free_port, wait_for
from quorate.cli import main
from quorate.cli.pipeline.job import exit_on_signals
from quorate.spark.tables.ingest import ingest
from quorate.spark.tables.kinds import KINDS
from quorate.spark.tables.warehouse import open_store
from spark.cluster import PATIENCE
from spark.fleet import DYNAMIC, places, rows_of
from spark.shared import SESSIONS
from time_budget import one_day_in


@pytest.mark.smoke
def test_from_files_to_an_answer(pipeline, tmp_path):
    home = tmp_path / "home"
    code, out, err = pipeline("ingest", *places("a-first/node1"), "-w", home)
    assert code == 0, err
    assert out.startswith("144 records and ") and f"{DYNAMIC}: 144 records" in out
    assert "ingest: taking records (bronze)" in err
    code, out, _ = pipeline("ingest", *places("a-first/node1"), "-w", home, "--json", "--quiet")
    summary = json.loads(out)
    assert (code, summary["records"], summary["bad"]) == (0, 0, False)
    assert summary["clusters"][DYNAMIC]["applied_end_offset"] == 144
    sql = "SELECT topic_name, count(*) AS n FROM partitions_now GROUP BY topic_name"
    code, out, _ = pipeline("history", sql, "-w", home, "--json", "--order-by", "topic_name")
    rows = json.loads(out)
    assert code == 0 and {"topic_name": "orders.eu.2", "n": 5} in rows
    code, out, _ = pipeline(
        *("history", "topics", "-w", home, "--at", "60", "--cluster", DYNAMIC, "--limit", "1")
    )
    assert code == 0 and out.splitlines()[0].split()[:2] == ["cluster_id", "topic_id"]
    code, out, err = pipeline(
        *("history", "topics", "-w", home, "--at", "2100-01-01T00:00:00Z", "--cluster", DYNAMIC),
        *("--order-by", "topic_name DESC", "--json"),
    )
    names = [row["topic_name"] for row in json.loads(out)]
    assert code == 0 and len(names) > 1 and names == sorted(names, reverse=True)
    assert "the ingested log ends at 2026-" in err


def test_bad_input_is_exit_code_1_and_takes_the_good_part(pipeline, tmp_path):
    home = tmp_path / "home"
    code, out, err = pipeline("ingest", *places("d-divergent"), "-w", home, "--fail-fast")
    assert code == 1 and not out
    assert f"nothing was taken; bad input in cluster {DYNAMIC}: 10 divergent" in err
    code, out, _ = pipeline("ingest", *places("d-divergent"), "-w", home)
    assert code == 1 and "in quarantine: 10 divergent" in out and "338 records" in out


def test_the_hint_of_an_answer_is_a_command_that_runs(pipeline, tmp_path):
    log = tmp_path / "a log/__cluster_metadata-0"
    shutil.copytree(places("a-first/node1")[0], log.parent)
    segment = next(log.glob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-9])
    home = tmp_path / "the warehouse"
    code, out, _ = pipeline("ingest", log.parent, "-w", home, "--format", "parquet")
    hint = out.splitlines()[-1].partition("quorate pipeline ")[2]
    assert code == 1
    code, out, err = pipeline(*shlex.split(hint))
    assert code == 0 and "damaged" in out, err


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ingest", "nowhere", "-w", "w"], "nowhere: there is no such file or directory"),
        (["ingest", "-w", "w"], "Missing argument 'PATHS...'"),
        (["history", "leader_timeline", "-w", "w"], "there is no warehouse here"),
        (["history", "topics", "-w", "w", "--at", "5"], "--at needs --cluster"),
        (["history", "topics", "-w", "w", "--limit", "-3"], "-3 is not in the range x>=0"),
        (["compact", "-w", "w"], "there is no warehouse here"),
        (["history", "topics", "-w", "w", "--at", "noon"], "--at noon: it must be an offset or"),
        (
            ["history", "t", "-w", "w", "--at", "2026-11-17T09:00:00"],
            "add the time zone, for example",
        ),
        (["history", "t", "-w", "w", "--at", "2026-11-17"], "for example 2026-11-17T00:00:00Z\n"),
        (["compact", "-w", "w", "--conf", "x"], "--conf x: it must be NAME=VALUE"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(pipeline, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    if "--at" in arguments:
        arguments += ["--cluster", "c"] * ("needs" not in message)
    code, out, err = pipeline(*arguments)
    assert (code, out) == (2, ""), err
    assert message in err and "Traceback" not in err


@pytest.mark.parametrize(
    "words", [("history", "t"), ("compact",), ("repair",), ("report", "--out", "x")], ids=str
)
def test_a_missing_warehouse_is_named_before_spark_starts(monkeypatch, capsys, tmp_path, words):
    monkeypatch.setattr(SESSIONS, "session", lambda *_, **__: pytest.fail("Spark is started"))
    assert main.run(["pipeline", *words, "-w", str(tmp_path / "none")]) == 2
    assert f"{tmp_path}/none: there is no warehouse here" in capsys.readouterr().err


def test_the_questions_are_listed_without_spark(monkeypatch, capsys):
    monkeypatch.setattr(SESSIONS, "session", None)
    assert main.run(["pipeline", "history", "-w", "w"]) == 0
    assert "controller_failovers" in capsys.readouterr().out


def test_without_the_extra_it_says_what_to_install(tmp_path):
    words = ["pipeline", "ingest", str(tmp_path), "-w", "w"]
    program = (
        "import sys; sys.modules['pyspark'] = None; "
        f"from quorate.cli.main import run; sys.exit(run({words}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode not in (0, 70) and "pip install 'quorate[spark]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_files_are_joined_and_the_rows_stay(pipeline, tmp_path):
    home = tmp_path / "home"
    for part in ("a-first/node2", "b-failover/node2", "e-truncated/node2"):
        assert pipeline("ingest", *places(part), "-w", home)[0] == 0
    store = open_store(str(home))
    tables = ("log", "changes", *KINDS)
    before = {table: sorted(map(str, rows_of(store, table))) for table in tables}
    files = {table: len(store.files(table)) for table in tables}
    code, out, _ = pipeline(
        *("compact", "-w", home, "--least-files", "2", "--keep-hours", "0", "--json")
    )
    summary = json.loads(out)
    assert (
        code == 0
        and summary["joined"] > summary["written"] > 0
        and summary["deleted"] >= summary["joined"]
    )
    store = open_store(str(home))
    assert {table: sorted(map(str, rows_of(store, table))) for table in tables} == before
    assert len(store.files("log")) == 1 < files["log"]
    on_disk = list(Path(store.place("log")).rglob("*-*.parquet"))
    assert len(on_disk) == 1


@pytest.mark.slow
@one_day_in(2, 0)
def test_a_job_killed_without_warning_is_started_again(spark, tmp_path):
    """SIGKILL to a whole job as soon as it has written a file that counts for nothing yet."""
    home = tmp_path / "home"
    command = [sys.executable, "-m", "quorate", "pipeline", "ingest"]
    command += [*places("d-divergent"), "-w", str(home), "--master", "local[1]", "--quiet"]
    job = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def file_of_a_running_job() -> bool:
        assert job.poll() is None
        return any(home.rglob("*.parquet"))

    try:
        wait_for(file_of_a_running_job, "the first file", PATIENCE)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    ingest(spark, places("d-divergent"), str(home))
    whole = str(tmp_path / "whole")
    ingest(spark, places("d-divergent"), whole)
    for table in ("log", "changes", "quarantine", *KINDS, "epochs"):
        rows = [rows_of(open_store(str(place)), table) for place in (home, whole)]
        summary = [sorted(str({**row, "run": 0}) for row in some) for some in rows]
        assert summary[0] == summary[1], table


@pytest.mark.parametrize(
    ("number", "says"), [(signal.SIGINT, "interrupted: "), (signal.SIGTERM, "stopped: ")]
)
def test_a_signal_ends_a_job_although_a_library_has_replaced_the_handler(number, says):
    """PySpark takes that of Ctrl-C for its own when it starts."""
    program = (
        "import signal; from quorate.cli.pipeline.job import exit_on_signals\n"
        "with exit_on_signals(lambda: print('tidied', flush=True)) as arm:\n"
        f"    signal.signal({number:d}, signal.SIG_IGN)\n"
        "    arm()\n"
        f"    signal.raise_signal({number:d})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (128 + number, "tidied\n")
    assert done.stderr.startswith(says) and len(done.stderr.splitlines()) == 1


def test_the_signals_are_given_back():
    before = signal.getsignal(signal.SIGTERM)
    with exit_on_signals(lambda: None):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "number"),
    [("starting Spark", signal.SIGTERM), ("taking records", signal.SIGINT)],
)
def test_a_signal_ends_a_job_quietly(tmp_path, moment, number):
    command = [sys.executable, "-m", "quorate", "pipeline", "ingest", *places("d-divergent")]
    command += ["-w", str(tmp_path / "home"), "--master", "local[1]"]
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert job.stderr is not None
    said = job.stderr.readline()
    while moment not in said:
        assert job.poll() is None, said
        said = job.stderr.readline()
    os.killpg(job.pid, number)
    rest = job.stderr.read()  # to the end of the JVM, too
    assert job.wait(30) == 128 + number
    assert "unfinished work was not committed" in rest
    assert "Traceback" not in rest and "py4j" not in rest.lower(), rest
    assert "Exception" not in rest and "ERROR" not in rest, rest


@pytest.mark.slow
def test_a_stream_without_a_response_ends_with_one_line(tmp_path):
    command = [sys.executable, "-m", "quorate", "pipeline", "stream", "-b", f"{HOST}:{free_port()}"]
    command += ["-w", str(tmp_path / "home"), "--master", "local[1]", "--once", "--timeout", "1"]
    done = subprocess.run([*command, "--quiet"], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (70, "")  # nobody called it wrongly
    said = [line for line in done.stderr.splitlines() if "incubator modules" not in line]  # Java's
    assert len(said) == 1 and "no leader answered within 1000 ms" in said[0], done.stderr
