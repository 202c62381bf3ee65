"""Short runs over real processes: a sound quorum passes, and the checks find each bug."""

import json
import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from interop.process import wait_for
from quorate.cli.sim.nemesis import _text
from quorate.nemesis.checks import Violation
from quorate.nemesis.plan import DISK_FAULT_KINDS, FAULT_KINDS, ScheduledFault, draw_faults
from quorate.nemesis.run import NemesisOptions, NemesisResult, run_nemesis
from quorate.nemesis.store_workload import StoreWorkload
from time_budget import one_day_in

CALM: dict[str, Any] = {"on_leader": True, "pick": 0.2}


def inject(directory, seconds, *faults, mutant=None):
    return run_nemesis(StoreWorkload(mutant=mutant), NemesisOptions(7, seconds, faults, directory))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_seed_determines_the_faults():
    kinds = tuple(FAULT_KINDS)
    assert draw_faults(1, 60, kinds) == draw_faults(1, 60, kinds) != draw_faults(2, 60, kinds)
    assert {fault.kind for fault in draw_faults(1, 2000, kinds)} == set(kinds)
    assert {fault.kind for fault in draw_faults(1, 60, ("kill",))} == {"kill"}
    assert set(kinds) > DISK_FAULT_KINDS
    times = [fault.at_s for fault in draw_faults(1, 60, kinds)]
    assert times == sorted(times) and times[-1] < 60


@pytest.mark.slow
def test_a_sound_quorum_violates_nothing(tmp_path):
    result = inject(
        tmp_path / "run",
        7.0,
        ScheduledFault(0.3, "slow-disk", False, 0.5, 2.0, 0.03),
        ScheduledFault(0.5, "kill", duration_s=0.5, **CALM),
        ScheduledFault(1.5, "replace", False, 0.9, 0.3),
        ScheduledFault(2.5, "cut", duration_s=0.5, **CALM),
        ScheduledFault(3.0, "bad-disk", duration_s=1.0, **CALM),
        ScheduledFault(4.5, "power", duration_s=0.2, **CALM),
    )
    assert result.violations == []
    assert result.faults.total() >= 4
    assert result.processes >= 3 + 3
    assert result.outcomes["ok"] > 50
    assert 0 < result.outage_ms < 7000
    assert result.recovery_ms >= 0
    events = lines(tmp_path / "run/faults.jsonl")
    begun = Counter(event["kind"] for event in events if event["what"] == "begin")
    assert result.faults + result.failed == begun, "each that begins comes to an end"
    assert result.skipped.total() == 6 - begun.total()
    assert len(lines(tmp_path / "run/history.jsonl")) == sum(result.outcomes.values())
    assert json.loads((tmp_path / "run/result.json").read_text()) == result.to_json()


@pytest.mark.slow
@one_day_in(2, turn=0)
def test_a_mutant_of_the_real_code_is_found(tmp_path):
    """The leader is isolated, goes on committing, and is replaced."""
    fault = ScheduledFault(0.5, "hold", duration_s=5.0, **CALM)
    result = inject(tmp_path / "run", 5.0, fault, mutant="mutants:half-is-a-majority")
    assert "no acknowledged write is lost" in {one.invariant for one in result.violations}


@pytest.mark.slow
def test_a_replica_that_survives_its_disk_is_found(tmp_path, monkeypatch):
    """At the end of the fault it is killed: its survival is reported. It never ends: 1 s is enough."""
    monkeypatch.setattr("quorate.nemesis.faults._EXIT_TIMEOUT_S", 1.0)
    fault = ScheduledFault(0.5, "bad-disk", True, 0.2, 2.0)
    result = inject(tmp_path / "run", 3.0, fault, mutant="mutants:disk-failure-ignored")
    invariant = "a replica ends when its disk fails"
    found = [one.details for one in result.violations if one.invariant == invariant]
    assert len(found) == 1 and "still runs 1 s after a failed write" in found[0]


@pytest.mark.slow
def test_stale_reads_are_found(tmp_path):
    """An isolated follower goes on answering gets; on a busy machine, maybe none."""
    fault = ScheduledFault(0.3, "hold", False, 0.0, 5.0)
    runs = (inject(tmp_path / f"run-{n}", 5.0, fault, mutant="member_bugs:stale") for n in range(4))
    violated = next(
        filter(None, ({one.invariant for one in run.violations} for run in runs)), set()
    )
    assert violated == {"linearizability"}


@pytest.mark.slow
@one_day_in(2, turn=1)
def test_a_disk_without_syncs_is_found_and_all_files_are_kept(quorate, tmp_path):
    directory = tmp_path / "run"
    words = ("--plant", "member_bugs:forget", "--only", "power", "--seconds", "3", "--seed", "1")
    outcome = quorate("sim", "nemesis", *words, "--keep", str(directory))
    assert outcome.code == 1
    assert "VIOLATED: no node ends unexpectedly: " in outcome.out
    assert "the log ends at offset 0, but leader-epoch-checkpoint knows epoch " in outcome.out
    assert f"All files are in {directory}:" in outcome.out
    assert {line["what"] for line in lines(directory / "faults.jsonl")} >= {"begin", "end"}
    assert lines(directory / "history.jsonl")
    found = json.loads((directory / "result.json").read_text())["violations"]
    assert "no write can be acknowledged: no node runs" in {one["details"] for one in found}
    assert (directory / "member-1/data/__cluster_metadata-0").is_dir()
    assert (directory / "member-1/node.log").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seconds", "0"), "0.0 is not in the range"),
        (("--seconds", "1"), "no fault begins in the first 1 s: give more --seconds"),
        (("--only", "kill,flood"), "no such kind of fault: 'flood'; there are kill, power, "),
        (("--plant", "weeds"), "'weeds' names no mutant: give MODULE:NAME"),
        (("--mixed", "--only", "bad-disk"), "no such kind of fault: 'bad-disk'"),
        (("--plant", "member_bugs:weeds"), "no such bug: 'weeds'; there are forget, hasty, stale"),
        (("--mixed", "--plant", "member_bugs:hasty"), "leave out --mixed"),
        (("--mixed", "--kafka-libs", "nowhere"), "Kafka's jars are not in nowhere: run 'make "),
        (("--members", "4"), "'4' is not one of '3', '5'"),
    ],
)
def test_bad_input(quorate, words, said):
    outcome = quorate("sim", "nemesis", *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_terminated_run_leaves_no_files(tmp_path, is_kept):
    """Except those of --keep."""
    keep = tmp_path / "kept"
    command = [sys.executable, "-m", "quorate", "sim", "nemesis", "--seconds", "60", "--seed", "7"]
    command += ["--keep", keep] if is_kept else []
    with subprocess.Popen(
        command, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    ) as process:
        where = "kept" if is_kept else "quorate-nemesis-*"
        wait_for(lambda: list(tmp_path.glob(f"{where}/*/node.log")), "a node")
        process.terminate()
        said, _ = process.communicate()
    assert process.returncode == 130
    assert said.startswith("interrupted: ") and "the same faults again:" in said
    assert list(tmp_path.glob("quorate-nemesis-*")) == []
    assert (f"the files until now are in {keep}" in said) is is_kept
    assert (keep / "history.jsonl").exists() is (keep / "faults.jsonl").exists() is is_kept


def test_a_directory_in_use_is_left_alone(quorate, tmp_path):
    (tmp_path / "letter").write_text("dear")
    outcome = quorate("sim", "nemesis", "--seconds", "2", "--keep", str(tmp_path))
    assert outcome.code == 2
    assert outcome.err == f"{tmp_path} is not empty: give another directory\n"
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_the_list_of_faults(quorate):
    outcome = quorate("sim", "nemesis", "--only", "help")
    assert outcome.code == 0 and outcome.out.startswith("kill ")


def test_an_invariant_with_many_violations_is_reported_once(tmp_path):
    """A node that ends at each of its starts violates the same invariant each time."""
    result = NemesisResult(NemesisOptions(1, 1.0, (), tmp_path))
    result.violations = [Violation("it runs", f"node 1 ended: {n}") for n in range(5)]
    result.violations.append(Violation("it is sound", "a log has a hole"))
    shown = _text(result, kept=True).splitlines()
    assert [line for line in shown if line.startswith("VIOLATED")] == [
        "VIOLATED: it runs: node 1 ended: 0 (and 4 more of this in result.json)",
        "VIOLATED: it is sound: a log has a hole",
    ]
