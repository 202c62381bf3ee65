"""A failing seed gives a trace, and a smaller plan that fails again."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

from quorate.campaign.failures import pick
from quorate.campaign.job import CampaignSettings, run
from quorate.campaign.results import read_results
from quorate.sim.plan.draw import draw
from quorate.sim.plan.text import plan_text
from spark.campaign.results import pretend, table

NAME = "minority-elects"
BUG = f"mutants:{NAME}"

PLANTED = f"""
import sys
import mutants
mutants.plant({NAME!r})
from quorate.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def quorate(*arguments, planted):
    """Run `quorate ...` in a process of its own, with the bug or without."""
    start = ["-c", PLANTED] if planted else ["-m", "quorate"]
    command = [sys.executable, *start, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def planted(spark, tmp_path_factory):
    """A campaign with a bug in the code: (its folder, its summary)."""
    out = tmp_path_factory.mktemp("planted")
    settings = CampaignSettings(batch=2, plant=BUG, failures=2, tries=60)
    return out, run(spark, range(4), str(out), settings=settings)


@pytest.mark.slow
def test_a_planted_bug_is_found(planted):
    out, summary = planted
    failing = {row["seed"]: row for row in table(out) if row["failure_check"]}
    assert summary.totals.failed == len(failing) > 2 and not summary.is_clean
    assert len(summary.failures) == 2 == len(list((out / "_failures").iterdir()))
    assert summary.totals.code.version.endswith(f".{NAME}"), "the version names the mutant"
    for one in summary.failures:
        assert (one.check, one.message) == tuple(
            failing[one.seed][name] for name in ("failure_check", "failure_message")
        )
        assert one.shrunk.startswith("shrunk")


@pytest.mark.slow
def test_a_trace_is_what_a_replay_prints(planted):
    out, summary = planted
    seed = summary.failures[0].seed
    folder = out / "_failures" / str(seed)
    assert (folder / "plan.txt").read_text() == plan_text(draw(seed))
    with gzip.open(folder / "trace.txt.gz", "rt") as source:
        trace = source.read().splitlines()
    replayed = quorate("sim", "replay", folder / "plan.txt", planted=True).stdout.splitlines()
    assert trace[1:] == replayed[1:] and trace[0].startswith(replayed[0])
    assert any(line.startswith("FAILED: ") for line in trace)


@pytest.mark.slow
def test_a_shrunk_world_fails_again(planted):
    out, summary = planted
    for one in summary.failures:
        shrunk = out / "_failures" / str(one.seed) / "shrunk.txt"
        assert one.check in shrunk.read_text()
        again = quorate("sim", "scenario", shrunk, planted=True)
        assert again.returncode == 0 and "as written" in again.stdout
    sound = quorate("sim", "scenario", shrunk, planted=False)
    assert sound.returncode == 1 and "+ all checks passed" in sound.stdout


@pytest.mark.slow
def test_failures_are_analysed_once(planted, spark):
    """A resumed campaign analyses further failures only."""
    out, summary = planted
    files = sorted(out.glob("_failures/*/*"))
    before = [(path, path.stat().st_mtime_ns) for path in files]
    settings = CampaignSettings(batch=2, plant=BUG, failures=3, tries=60, seconds=0.0)
    again = run(spark, range(4), str(out), resume=True, settings=settings)
    assert again.ran == 0
    assert [(path, path.stat().st_mtime_ns) for path in files] == before
    shrunk = {one.seed: one.shrunk for one in again.failures}
    assert [shrunk[one.seed] for one in summary.failures] == ["shrunk before"] * 2
    (late,) = shrunk.keys() - {one.seed for one in summary.failures}
    assert shrunk[late].startswith("shrunk until a limit was reached after ")
    assert (
        "A limit stopped the shrinking"
        in (out / "_failures" / str(late) / "shrunk.txt").read_text()
    )


@pytest.mark.slow
def test_each_failed_check_is_analysed_first(spark, tmp_path):
    pretend(tmp_path, range(20), failing=tuple(range(5, 15)))
    rows = read_results(spark, str(tmp_path))
    rare = rows.selectExpr(
        *(name for name in rows.columns if name != "failure_check"),
        "IF(seed = 14, 'linearizable', failure_check) AS failure_check",
    )
    assert [one.seed for one in pick(rare, "out", 3)] == [5, 14, 6]


@pytest.mark.slow
def test_the_command_reports_failures(pipeline, tmp_path):
    out = tmp_path / "out"
    words = ["--plant", BUG, "--max-failures", "1", "--shrink-tries", "0", "--json"]
    code, out_text, _ = pipeline("campaign", "--seeds", "0..2", "--out", out, *words)
    facts = json.loads(out_text)
    assert code == 1 and facts["seeds"] == facts["ran"] == 2 and facts["failed"] == 2
    (failure,) = facts["failures"]
    assert failure["shrunk"] == "not shrunk"
    names = sorted(path.name for path in (out / "_failures" / str(failure["seed"])).iterdir())
    assert names == ["plan.txt", "trace.txt.gz"]
    code, _, err = pipeline("campaign", "--seeds", "0..2", "--out", out)
    assert code == 2 and "--resume goes on with them" in err
    code, _, err = pipeline(
        "campaign", "--seeds", "1", "--out", out, "--plant", "mutants:no-such-bug"
    )
    assert code == 2 and "there is no mutant 'no-such-bug'" in err
