"""Campaigns on Spark give the table of `sim campaign`, whatever processes die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pyarrow
import pytest
from pyarrow import parquet

from interop.process import wait_for
from narrow import as_any
from quorate.campaign import job
from quorate.campaign.job import CampaignSettings, run
from quorate.campaign.processes import run_in_process
from quorate.campaign.results import part_name
from quorate.sim.run.campaign import Campaign, CampaignError, this_code
from quorate.spark.files.paths import SourceError
from spark.campaign.results import SEEDS, pretend, table
from spark.cluster import PATIENCE
from time_budget import one_day_in


@pytest.mark.slow
def test_the_rows_are_those_of_a_local_campaign(spark, local, tmp_path):
    """Also when the code was sent, and the campaign done in two parts of one share."""
    out = str(tmp_path / "out")
    settings = CampaignSettings(batch=5, shipped=True)
    first = run(spark, range(3, 8), out, settings=settings)
    whole = run(spark, SEEDS, out, resume=True, settings=settings)
    assert (first.ran, whole.ran, whole.totals.seeds) == (5, 5, 10)
    assert table(tmp_path / "out") == table(local)
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == [
        part_name(seeds) for seeds in (range(3, 5), range(5, 8), range(8, 10), range(10, 13))
    ]
    total = Campaign(tmp_path / "out", resume=True).total
    assert total.worlds == len(SEEDS), "a local campaign can continue it"
    totals = whole.totals
    assert (totals.events, totals.simulated_ms) == (total.events, total.simulated_ms)
    assert {name: met.times for name, met in totals.coverage.items()} == total.coverage
    assert totals.not_reached == total.not_reached and totals.failed == 0
    assert len(spark.sparkContext.listArchives) == 1, "sent once, and not by each job"


@pytest.mark.slow
@one_day_in(2, 1)
def test_a_killed_job_continues(spark, local, tmp_path):
    """SIGKILL to the driver as soon as the first part is there."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "quorate", "pipeline", "campaign"]
    command += ["--seeds", f"{SEEDS.start}..{SEEDS.stop}", "--out", str(out), "--batch", "1"]
    killed = subprocess.Popen(
        [*command, "--master", "local[1]", "--quiet"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def part_of_a_running_job() -> bool:
        assert killed.poll() is None
        return any(out.glob("part-*"))

    try:
        wait_for(part_of_a_running_job, "the first part", PATIENCE)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    done = len(list(out.glob("part-*")))
    assert 0 < done < len(SEEDS)
    summary = run(spark, SEEDS, str(out), resume=True, settings=CampaignSettings(batch=1))
    assert 0 < summary.ran <= len(SEEDS) - done
    assert table(out) == table(local)


@pytest.mark.slow
def test_nothing_is_run_twice(spark, tmp_path):
    pretend(tmp_path, SEEDS, this_code())
    (part,) = tmp_path.iterdir()
    summary = run(spark, SEEDS, str(tmp_path), resume=True)
    assert (summary.ran, summary.totals.seeds, summary.is_clean) == (0, len(SEEDS), True)
    assert [*tmp_path.iterdir()] == [part]


# -- a process of a task -------------------------------------------------------------------------
def work(tmp_path, **changes):
    here = this_code()
    code = [here.version, here.source, here.plan_format]
    common = {"out": str(tmp_path), "code": code, "digest": here.source, "plant": None}
    return json.dumps({**common, "seeds": [3], **changes})


@pytest.mark.slow
def test_a_task_that_runs_twice_leaves_one_part(tmp_path):
    for _ in range(2):
        assert json.loads(run_in_process(work(tmp_path), None)) == {"worlds": 1}
    assert [path.name for path in tmp_path.iterdir()] == [part_name([3])]


def test_another_code_on_a_worker_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match=r"failed on .*: the code here .* is not the driver's"):
        run_in_process(work(tmp_path, digest="0123456789abcdef"), None)
    assert not list(tmp_path.iterdir())


def test_a_process_ends_with_its_task(tmp_path):
    """However that ended: its end of the pipe is closed then."""
    with subprocess.Popen(
        [sys.executable, "-m", "quorate.campaign.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(work(tmp_path, seeds=[*range(1_000_000)]).encode() + b"\n")
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 1


def test_seeds_give_a_part_its_name():
    assert part_name([3, 4, 5]) == part_name(range(3, 6)) != part_name([3, 5])
    names = [part_name([seed]) for seed in (9, 10, 99, 1 << 62)]
    assert names == sorted(names)


# -- what is refused ---------------------------------------------------------------------------
def refused(spark, out, match, **words):
    with pytest.raises(CampaignError, match=match):
        run(spark, range(2), str(out), **words)


@pytest.mark.slow
def test_results_that_cannot_be_continued(spark, tmp_path):
    results = pretend(tmp_path / "results", range(2))
    refused(spark, results, "--resume goes on with them")
    refused(spark, results, r"was made by version 1\.0 .*begin in another", resume=True)
    planted = CampaignSettings(plant="mutants:vote-twice")
    sound = pretend(tmp_path / "sound", range(2), this_code())
    refused(spark, sound, r"vote-twice.*begin in another", resume=True, settings=planted)
    other = tmp_path / "other"
    other.mkdir()
    parquet.write_table(pyarrow.table({"seed": [1]}), other / "part-0.parquet")
    refused(spark, other, "is no campaign: a part of it has other columns", resume=True)
    (other / "part-0.parquet").write_bytes(b"no parquet")
    refused(spark, other, r"part-0\.parquet: a part cannot be read", resume=True)
    refused(spark, other / "part-0.parquet", "is a file: name a directory")
    with pytest.raises(SourceError, match="'nowhere' is no known file system"):
        run(spark, range(2), "nowhere://at/all")


@pytest.mark.slow
def test_a_seed_with_two_rows_is_refused(spark, tmp_path):
    """Two campaigns at once with different batches write parts of different names."""
    for seeds in (range(8), range(4, 8)):
        pretend(tmp_path, seeds, this_code())
    one, other = sorted(path.name for path in tmp_path.iterdir())
    refused(spark, tmp_path, f"seed 4 is there twice, in .*{one} and .*{other}", resume=True)
    (tmp_path / other).unlink()
    assert run(spark, range(8), str(tmp_path), resume=True).totals.seeds == 8


def test_the_last_line_of_a_failed_process_is_reported(tmp_path):
    worker = "import sys; print('out of ideas', file=sys.stderr); sys.exit(3)"
    package = tmp_path / "quorate" / "campaign"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "worker.py").write_text(worker)
    with pytest.raises(RuntimeError, match=r"a process of the campaign failed on .*: out of ideas"):
        run_in_process("{}", str(tmp_path))


@pytest.mark.slow
def test_a_failed_task_is_reported_in_one_line(pipeline, tmp_path, monkeypatch):
    other = replace(this_code(), source="0123456789abcdef")
    monkeypatch.setattr(job, "this_code", lambda: other)
    code, _, err = pipeline("campaign", "--seeds", "1", "--out", tmp_path, "--quiet")
    (line,) = [line for line in err.splitlines() if line.startswith("a process of the campaign")]
    assert code == 70 and "is not the driver's (source 0123456789abcdef)" in line
    code, _, err = pipeline("campaign", "--seeds", "1", "--out", "/proc/no/out", "--quiet")
    assert code == 2 and "/proc/no/out: cannot be made" in err


def test_a_batch_of_nothing_is_refused(tmp_path):
    with pytest.raises(CampaignError, match="there is nothing to run"):
        run(as_any(None), range(5, 5), str(tmp_path))


def test_hidden_files_are_no_parts(tmp_path):
    """A killed task leaves files under names that readers skip."""
    pretend(tmp_path, range(3))
    (tmp_path / f".{part_name([9])}.0123").write_bytes(b"half a p")
    (tmp_path / "_failures" / "7").mkdir(parents=True)
    (tmp_path / "_failures" / "7" / "plan.txt").write_text("format 2\n")
    assert [row["seed"] for row in table(tmp_path)] == [0, 1, 2]
