"""Short runs over real processes: a sound quorum passes, and each planted bug is caught."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from interop.process import wait_for
from quorate.cli.sim_nemesis import _text
from quorate.nemesis.checks import Broken
from quorate.nemesis.plan import DISK_KINDS, KINDS, Deed, draw
from quorate.nemesis.run import Options, Result, run
from quorate.nemesis.stores import StoreWorkload

CALM = {"on_leader": True, "pick": 0.2}


def torment(directory, seconds, *deeds, plant="none"):
    return run(StoreWorkload(plant=plant), Options(7, seconds, deeds, directory))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_seed_is_a_plan():
    kinds = tuple(KINDS)
    assert draw(1, 60, kinds) == draw(1, 60, kinds) != draw(2, 60, kinds)
    assert {deed.kind for deed in draw(1, 2000, kinds)} == set(kinds)
    assert {deed.kind for deed in draw(1, 60, ("kill",))} == {"kill"}
    assert set(kinds) > DISK_KINDS
    times = [deed.at_s for deed in draw(1, 60, kinds)]
    assert times == sorted(times) and times[-1] < 60


@pytest.mark.slow
def test_a_sound_quorum_keeps_its_promises(tmp_path):
    result = torment(
        tmp_path / "run",
        7.0,
        Deed(0.3, "slow-disk", False, 0.5, 2.0, 0.03),
        Deed(0.5, "kill", lasts_s=0.5, **CALM),
        Deed(1.5, "replace", False, 0.9, 0.3),
        Deed(2.5, "cut", lasts_s=0.5, **CALM),
        Deed(3.0, "bad-disk", lasts_s=1.0, **CALM),
        Deed(4.5, "power", lasts_s=0.2, **CALM),
    )
    assert result.broken == []
    assert result.deeds.total() >= 4
    assert result.lives >= 3 + 3
    assert result.outcomes["ok"] > 50
    assert 0 < result.outage_ms < 7000
    assert result.healed_ms >= 0
    told = lines(tmp_path / "run/deeds.jsonl")
    begun = Counter(line["kind"] for line in told if line["what"] == "begin")
    assert result.deeds + result.failed == begun, "each that begins comes to an end"
    assert result.left_out.total() == 6 - begun.total()
    assert len(lines(tmp_path / "run/history.jsonl")) == sum(result.outcomes.values())
    assert json.loads((tmp_path / "run/result.json").read_text()) == result.facts()


@pytest.mark.slow
def test_a_bug_of_the_real_code_is_caught(tmp_path):
    """The leader hears nobody any more, goes on committing, and is replaced."""
    deed = Deed(0.5, "hold", lasts_s=5.0, **CALM)
    result = torment(tmp_path / "run", 5.0, deed, plant="half-is-a-majority")
    assert "no acknowledged write is lost" in {broken.promise for broken in result.broken}


@pytest.mark.slow
def test_a_replica_that_outlives_its_disk_is_caught(tmp_path):
    """It was killed at the end of the deed without a word."""
    deed = Deed(0.5, "bad-disk", True, 0.2, 5.0)
    result = torment(tmp_path / "run", 5.0, deed, plant="disk-failure-ignored")
    told = [broken.how for broken in result.broken if "failed disk ends" in broken.promise]
    assert len(told) == 1 and "still runs 10 s after a failed write" in told[0]


@pytest.mark.slow
def test_stale_reads_are_caught(tmp_path):
    """A follower that hears nothing goes on answering gets; on a busy machine, maybe none."""
    deed = Deed(0.3, "hold", False, 0.0, 5.0)
    runs = (torment(tmp_path / f"run-{n}", 5.0, deed, plant="stale") for n in range(4))
    broken = next(filter(None, ({one.promise for one in run.broken} for run in runs)), set())
    assert broken == {"linearizability"}


@pytest.mark.slow
def test_a_disk_that_lies_is_caught_and_everything_is_kept(quorate, tmp_path):
    directory = tmp_path / "run"
    words = ("--plant", "forget", "--only", "power", "--seconds", "3", "--seed", "1")
    outcome = quorate("sim", "nemesis", *words, "--keep", str(directory))
    assert outcome.code == 1
    assert "BROKEN: a node runs until it is made to end: " in outcome.out
    assert "the log ends at offset 0, but leader-epoch-checkpoint knows epoch " in outcome.out
    assert f"Everything is kept in {directory}:" in outcome.out
    assert {line["what"] for line in lines(directory / "deeds.jsonl")} >= {"begin", "end"}
    assert lines(directory / "history.jsonl")
    assert (directory / "member-1/data/__cluster_metadata-0").is_dir()
    assert (directory / "member-1/node.log").stat().st_size > 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seconds", "0"), "0.0 is not in the range"),
        (("--seconds", "1"), "there is no deed in the first 1 s: give more --seconds"),
        (("--only", "kill,flood"), "no such deed: 'flood'; there are kill, power, "),
        (("--plant", "weeds"), "no such bug: 'weeds'; `--plant help` lists them"),
        (("--mixed", "--only", "bad-disk"), "no such deed: 'bad-disk'"),
        (("--mixed", "--plant", "hasty"), "leave out --mixed"),
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
def test_who_is_told_to_end_leaves_nothing_behind(tmp_path, is_kept):
    """But what was to be kept."""
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
    assert said.startswith("interrupted: ") and "the same deeds again:" in said
    assert list(tmp_path.glob("quorate-nemesis-*")) == []
    assert (f"what happened until now is in {keep}" in said) is is_kept
    assert (keep / "history.jsonl").exists() is (keep / "deeds.jsonl").exists() is is_kept


def test_a_directory_in_use_is_left_alone(quorate, tmp_path):
    (tmp_path / "letter").write_text("dear")
    outcome = quorate("sim", "nemesis", "--seconds", "2", "--keep", str(tmp_path))
    assert outcome.code == 2
    assert outcome.err == f"{tmp_path} is not empty: give another directory\n"
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


@pytest.mark.parametrize(("option", "first"), [("--only", "kill "), ("--plant", "none ")])
def test_what_there_is_to_choose(quorate, option, first):
    outcome = quorate("sim", "nemesis", option, "help")
    assert outcome.code == 0 and outcome.out.startswith(first)


def test_a_promise_that_is_broken_again_and_again_is_told_once(tmp_path):
    """A node had died at each of its five starts, and each time the same long sentence came."""
    result = Result(Options(1, 1.0, (), tmp_path))
    result.broken = [Broken("it runs", f"node 1 ended: {n}") for n in range(5)]
    result.broken.append(Broken("it is sound", "a log has a hole"))
    told = [line for line in _text(result, kept=True).splitlines() if line.startswith("BROKEN")]
    assert told == [
        "BROKEN: it runs: node 1 ended: 0 (and 4 more of this in result.json)",
        "BROKEN: it is sound: a log has a hole",
    ]
