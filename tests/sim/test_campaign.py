"""Campaigns: a row for each seed, in files that any reader of Parquet takes, resumable."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from interop.process import wait_for
from quorate.cli.main import run
from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS
from quorate.sim.plan.draw import draw
from quorate.sim.plan.plan import FORMAT
from quorate.sim.run import campaign as module
from quorate.sim.run.campaign import (
    COUNTS,
    EARLIER_COLUMNS,
    Campaign,
    CampaignError,
    schema,
    seeds_of_day,
    watched,
)
from quorate.sim.run.pool import WorkerLostError
from quorate.sim.run.run import Failure, WorldOutcome, run_seed
from quorate.sim.run.version import code_version, source_digest

SEED = 3
"""A small world."""


def pretend(seed: int, failure: Failure | None = None, **coverage: int) -> WorldOutcome:
    return WorldOutcome(seed, draw(seed), 100, 9000, "ab" * 16, failure, 0.5, 70, coverage)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Worlds are only pretended: seed 13 fails, and every seed meets two coverage points."""
    seeds: list[int] = []

    def worlds(wanted: range, jobs: int, watch: object, bug: str | None) -> Iterator[WorldOutcome]:
        for seed in wanted:
            seeds.append(seed)
            failure = Failure("liveness", "nobody leads", 9000, 100) if seed == 13 else None
            yield pretend(seed, failure, **{"a log was cleaned": seed, "everything healed": 1})

    monkeypatch.setattr(module, "run_seeds", worlds)
    return seeds


def rows(directory: Path) -> list[dict[str, object]]:
    """As any reader sees the directory."""
    found: list[dict[str, object]] = parquet.read_table(directory).to_pylist()
    return sorted(found, key=lambda row: str(row["seed"]).zfill(20))


def test_a_real_seed_is_a_row(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "out")
    (outcome,) = campaign.run([SEED], 1)
    again = run_seed(SEED, watched())
    assert outcome.trace_hash == again.trace_hash
    (row,) = rows(tmp_path / "out")
    assert row.pop("seconds") == outcome.seconds
    assert dict(row.pop("coverage")) == again.coverage and again.coverage["everything healed"] == 1  # type: ignore[call-overload]
    assert row == {
        "seed": SEED,
        "version": code_version(),
        "source": source_digest(),
        "plan_format": FORMAT,
        "events": again.events,
        "simulated_ms": again.simulated_ms,
        "recovery_ms": again.liveness_ms,
        "trace_hash": again.trace_hash,
        "failure_check": None,
        "failure_message": None,
        "failure_at_ms": None,
        "failure_event": None,
    }


def test_a_campaign_resumes_where_it_ended(asked: list[int], tmp_path: Path) -> None:
    first = Campaign(tmp_path)
    outcomes = first.run(range(10, 20), 1)
    for _ in range(5):
        next(outcomes)
    outcomes.close()
    assert [row["seed"] for row in rows(tmp_path)] == [10, 11, 12, 13, 14]

    second = Campaign(tmp_path, resume=True)
    assert second.done == {10, 11, 12, 13, 14}
    asked.clear()
    assert len(list(second.run(range(8, 20), 1))) == 7
    assert asked == [8, 9, 15, 16, 17, 18, 19]
    found = rows(tmp_path)
    assert [row["seed"] for row in found] == list(range(8, 20))
    total = second.total
    assert (total.worlds, total.events, total.simulated_ms) == (12, 1200, 108_000)
    assert total.coverage == {"a log was cleaned": sum(range(8, 20)), "everything healed": 12}
    assert total.failures == [(13, "liveness", "nobody leads")]
    assert len(total.not_reached) == len(ALL_COVERAGE_POINTS) - 2
    assert Campaign(tmp_path, resume=True).total == total


def test_files_are_whole_and_of_bounded_size(
    asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS", 4)
    list(Campaign(tmp_path).run(range(10), 1))
    parts = sorted(path.name for path in tmp_path.glob("part-*"))
    assert parts == ["part-000000.parquet", "part-000001.parquet", "part-000002.parquet"]
    assert [parquet.read_metadata(tmp_path / part).num_rows for part in parts] == [4, 4, 2]


@pytest.mark.usefixtures("default_interrupt")
def test_a_signal_within_a_write_is_taken_after_it(
    asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write was begun again, and the end of the first one corrupted the file."""
    writers = []

    def write(table: pyarrow.Table, path: Path, **options: str) -> None:
        writer = parquet.ParquetWriter(path, table.schema, **options)
        writers.append(writer)
        if len(writers) == 1:
            signal.raise_signal(signal.SIGINT)
        writer.write_table(table)
        writer.close()

    monkeypatch.setattr(module, "ROWS", 4)
    monkeypatch.setattr(parquet, "write_table", write)
    with pytest.raises(KeyboardInterrupt):
        list(Campaign(tmp_path).run(range(10), 1))
    for writer in writers:
        writer.close()
    assert [row["seed"] for row in rows(tmp_path)] == [0, 1, 2, 3]
    assert len(writers) == 1
    assert Campaign(tmp_path, resume=True).done == {0, 1, 2, 3}


@pytest.mark.slow
def test_many_processes_do_as_one(tmp_path: Path) -> None:
    outcomes = list(Campaign(tmp_path).run(range(SEED, SEED + 2), 2))
    hashes = {outcome.seed: outcome.trace_hash for outcome in outcomes}
    assert hashes == {seed: run_seed(seed).trace_hash for seed in range(SEED, SEED + 2)}
    assert all(dict(row["coverage"])["everything healed"] for row in rows(tmp_path))  # type: ignore[call-overload]


LONG = """
import os
import sys
from quorate.cli.main import run
from quorate.sim.run import campaign
if __name__ == "__main__":
    campaign.ROWS = 8
    os._exit(run(["sim", "campaign", "--seeds", "0..100000", "--jobs", "2", "--out", sys.argv[1]]))
"""


@pytest.fixture
def long_campaign(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """One on two processes that has written its first rows, and where it writes them."""
    script, out = tmp_path / "campaign.py", tmp_path / "out"
    script.write_text(LONG)
    command = [sys.executable, str(script), str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as campaign:
        try:

            def has_rows() -> bool:
                assert campaign.poll() is None
                return any(out.glob("*.parquet"))

            wait_for(has_rows, "the campaign to write its first rows", 60)
            yield campaign, out
        finally:
            campaign.kill()


@pytest.mark.slow
def test_a_campaign_that_is_stopped_writes_what_is_done(
    long_campaign: tuple[subprocess.Popen[str], Path],
) -> None:
    campaign, out = long_campaign
    campaign.terminate()
    assert campaign.stderr is not None
    said = campaign.stderr.read()  # ends when the last process that holds it is gone
    assert (campaign.wait(), said) == (130, "")
    assert len(rows(out)) >= 8


@pytest.mark.slow
def test_no_process_is_left_when_a_campaign_is_killed(
    long_campaign: tuple[subprocess.Popen[str], Path],
) -> None:
    campaign, _ = long_campaign
    campaign.kill()
    assert campaign.stderr is not None
    campaign.stderr.read()  # ends when the last process that holds it is gone
    assert campaign.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_only_the_killed_process_is_reported(
    long_campaign: tuple[subprocess.Popen[str], Path],
) -> None:
    """There was a warning of Python's, too, of what the pool had left behind."""
    campaign, out = long_campaign
    children = subprocess.run(
        ["pgrep", "-P", str(campaign.pid), "-f", "spawn_main"], capture_output=True, text=True
    )
    os.kill(int(children.stdout.split()[0]), signal.SIGKILL)
    assert campaign.stderr is not None
    said = campaign.stderr.read()
    assert said == (
        "a process that ran worlds was ended from outside (out of memory?); what was done until "
        "then is written: go on with --resume\n"
    )
    assert campaign.wait() == 70
    assert len(rows(out)) >= 8


def test_a_process_that_is_ended_from_outside_loses_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(wanted: range, jobs: int, watch: object, bug: str | None) -> Iterator[WorldOutcome]:
        yield pretend(3)
        raise WorkerLostError("a process that ran worlds was ended from outside")

    monkeypatch.setattr(module, "run_seeds", ends)
    with pytest.raises(WorkerLostError, match=r"ended from outside; .* go on with --resume"):
        list(Campaign(tmp_path).run(range(3, 9), 1))
    assert [row["seed"] for row in rows(tmp_path)] == [3]


def test_a_failure_in_the_middle_loses_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(wanted: range, jobs: int, watch: object, bug: str | None) -> Iterator[WorldOutcome]:
        yield pretend(3)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_seeds", breaks)
    with pytest.raises(KeyboardInterrupt):
        list(Campaign(tmp_path).run(range(3, 9), 1))
    assert [row["seed"] for row in rows(tmp_path)] == [3]


# -- what cannot be ------------------------------------------------------------------------------
def test_results_are_not_mixed_by_accident(asked: list[int], tmp_path: Path) -> None:
    list(Campaign(tmp_path).run(range(2), 1))
    with pytest.raises(CampaignError, match="--resume goes on with them"):
        Campaign(tmp_path)


def test_results_of_other_code_are_not_resumed(
    asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(Campaign(tmp_path).run(range(2), 1))
    monkeypatch.setattr(module, "source_digest", lambda: "0123456789abcdef")
    with pytest.raises(CampaignError, match=r"was made by version .*begin in another directory"):
        Campaign(tmp_path, resume=True)


@pytest.mark.slow
def test_a_campaign_with_a_planted_bug_finds_it_and_mixes_with_no_sound_one(tmp_path: Path) -> None:
    words = ["sim", "campaign", "--seeds", "0..2", "--jobs", "2", "--out", str(tmp_path)]
    ran = subprocess.run(
        [sys.executable, "-m", "quorate", *words, "--plant", "mutants:half-is-a-majority"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "  quorate sim shrink 0 --plant mutants:half-is-a-majority" in ran.stdout.splitlines()
    assert {row["failure_check"] for row in rows(tmp_path)} == {"durable majority"}
    assert {row["version"] for row in rows(tmp_path)} == {f"{code_version()}.half-is-a-majority"}
    with pytest.raises(CampaignError, match=r"was made by version .*begin in another directory"):
        Campaign(tmp_path, resume=True)


def test_results_of_another_plan_format_are_not_resumed(
    asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list(Campaign(tmp_path).run(range(2), 1))
    monkeypatch.setattr(module, "FORMAT", FORMAT + 1)
    with pytest.raises(CampaignError, match=r"plan format 9, and this is .* plan format 10"):
        Campaign(tmp_path, resume=True)


def test_files_of_something_else_are_refused(tmp_path: Path) -> None:
    part = tmp_path / "part-000000.parquet"
    part.write_bytes(b"no parquet")
    with pytest.raises(CampaignError, match="cannot be read"):
        Campaign(tmp_path, resume=True)
    parquet.write_table(pyarrow.table({"seed": [1]}), part)
    with pytest.raises(CampaignError, match="no part of a campaign"):
        Campaign(tmp_path, resume=True)


def test_two_at_once_in_one_directory(asked: list[int], tmp_path: Path) -> None:
    """The second wrote over the parts of the first."""
    first, second = Campaign(tmp_path), Campaign(tmp_path)
    outcomes = first.run(range(3), 1)
    next(outcomes)
    with pytest.raises(CampaignError, match="another campaign is at work in"):
        next(second.run(range(10, 13), 1))
    assert len(list(outcomes)) == 2
    assert [row["seed"] for row in rows(tmp_path)] == [0, 1, 2]


def test_parts_written_after_the_directory_was_read(asked: list[int], tmp_path: Path) -> None:
    """They were written over."""
    first, second = Campaign(tmp_path), Campaign(tmp_path, resume=True)
    assert len(list(first.run(range(3), 1))) == 3
    with pytest.raises(CampaignError, match=r"has written to .* meanwhile: say it again"):
        next(second.run(range(10, 13), 1))
    assert len(list(first.run(range(3, 5), 1))) == 2, "its own it knows"
    assert [row["seed"] for row in rows(tmp_path)] == [0, 1, 2, 3, 4]


def test_the_last_part_is_written_before_another_may_begin(
    asked: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(self: Campaign, rows: object) -> None:
        with pytest.raises(CampaignError, match="another campaign is at work"):
            next(other.run(range(9), 1))
        written.append(rows)

    campaign, other = Campaign(tmp_path), Campaign(tmp_path)
    written: list[object] = []
    monkeypatch.setattr(Campaign, "_write", write)
    outcomes = campaign.run(range(3), 1)
    next(outcomes)
    outcomes.close()
    assert len(written) == 1


def test_a_seed_that_is_there_twice_is_refused(asked: list[int], tmp_path: Path) -> None:
    """Its events were added up twice."""
    list(Campaign(tmp_path).run(range(4), 1))
    part = tmp_path / "part-000000.parquet"
    (tmp_path / "part-000001.parquet").write_bytes(part.read_bytes())
    with pytest.raises(CampaignError, match=r"000001.parquet has seed 0, which is there already"):
        Campaign(tmp_path, resume=True)


@pytest.mark.parametrize("name", COUNTS)
def test_a_row_that_no_world_writes_is_refused(asked: list[int], tmp_path: Path, name: str) -> None:
    list(Campaign(tmp_path).run(range(4), 1))
    part = tmp_path / "part-000000.parquet"
    table = parquet.read_table(part)
    column = pyarrow.array([-1] * 4, table.schema.field(name).type)
    at = table.schema.get_field_index(name)
    parquet.write_table(table.set_column(at, table.schema.field(name), column), part)
    with pytest.raises(CampaignError, match=f"its {name} fall below 0"):
        Campaign(tmp_path, resume=True)


# -- the command ---------------------------------------------------------------------------------
def test_the_command_names_failures_and_missed_coverage_points(
    asked: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    assert run(["sim", "campaign", "--seeds", "12..15", "--out", out]) == 1
    said = capsys.readouterr().out
    assert "3 worlds, 300 events" in said and "not reached: fault: kill" in said
    assert "seed 13 failed: liveness: nobody leads\n  quorate sim shrink 13" in said
    assert (
        f"2 of {len(ALL_COVERAGE_POINTS)} coverage points were reached" in said
        and "everything healed" not in said
    )

    assert run(["sim", "campaign", "--seeds", "12..15", "--out", out]) == 2
    assert "--resume goes on with them" in capsys.readouterr().err
    assert run(["sim", "campaign", "--seeds", "12..16", "--out", out, "--resume", "--json"]) == 1
    ended = capsys.readouterr()
    assert "3 seeds are done already, 1 are left" in ended.err
    facts = json.loads(ended.out)
    assert facts["worlds"] == 4 and facts["failures"][0]["seed"] == 13
    assert facts["coverage"]["everything healed"] == 4 and "fault: kill" in facts["cold"]


def test_a_campaign_that_reaches_all_coverage_points_is_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def worlds(wanted: range, jobs: int, watch: object, bug: str | None) -> Iterator[WorldOutcome]:
        yield pretend(1, None, **dict.fromkeys(ALL_COVERAGE_POINTS, 1))

    monkeypatch.setattr(module, "run_seeds", worlds)
    assert run(["sim", "campaign", "--seeds", "1", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "all checks passed" in said and "not reached" not in said


def test_many_failures_end_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def worlds(wanted: range, jobs: int, watch: object, bug: str | None) -> Iterator[WorldOutcome]:
        for seed in wanted:
            yield pretend(seed, Failure("liveness", "nobody leads", 9000, 100))

    monkeypatch.setattr(module, "run_seeds", worlds)
    command = ["sim", "campaign", "--seeds", "0..1000", "--failures", "3", "--out", str(tmp_path)]
    assert run(command) == 1
    assert "3 worlds" in capsys.readouterr().out


def test_the_date_picks_the_seeds(
    asked: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert seeds_of_day(date(2026, 11, 21), 3) == range(20261121000000, 20261121000003)
    days = {datetime.now(UTC).date()}
    assert run(["sim", "campaign", "--seeds", "today:2", "--out", str(tmp_path)]) == 1
    days.add(datetime.now(UTC).date())
    assert asked in [list(seeds_of_day(day, 2)) for day in days]
    assert f"today's seeds are {asked[0]}..{asked[0] + 2}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seeds", "code", "says"),
    [
        ("today:many", 2, "should be today:N"),
        ("today:", 2, "should be today:N"),
        ("today:0", 2, "a day has seeds for 1 to 1000000 worlds, not for 0"),
        ("today:1000001", 2, "a day has seeds for 1 to 1000000 worlds"),
        ("tomorrow", 2, "is neither a seed nor A..B"),
        ("10:1..9", 2, "is a seed of plan format 10"),
    ],
)
def test_seeds_that_cannot_be(
    seeds: str, code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sim", "campaign", "--seeds", seeds, "--out", str(tmp_path)]) == code
    assert says in capsys.readouterr().err


def test_without_pyarrow_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(["sim", "campaign", "--seeds", "1", "--out", str(tmp_path)]) == 1
    assert "pip install 'quorate[spark]'" in capsys.readouterr().err


def test_a_campaign_of_an_earlier_release_has_other_names_of_columns(
    asked: list[int], tmp_path: Path
) -> None:
    first = Campaign(tmp_path)
    assert len(list(first.run(range(10, 14), 1))) == 4
    for part in tmp_path.glob("part-*.parquet"):
        table = parquet.read_table(part)
        earlier = {new: old for old, new in EARLIER_COLUMNS.items()}
        names = [earlier.get(name, name) for name in table.column_names]
        parquet.write_table(table.rename_columns(names), part)
    assert set(EARLIER_COLUMNS) <= set(rows(tmp_path)[0])
    again = Campaign(tmp_path, resume=True)
    assert (again.done, again.total) == ({10, 11, 12, 13}, first.total)


def test_the_columns_are_those_of_the_manual() -> None:
    manual = Path(__file__).parents[2].joinpath("docs/campaigns.md").read_text()
    for name in schema().names:
        assert f"| `{name}` |" in manual


def test_a_full_disk_is_reported_with_the_part_that_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: object, where: Path, **_: object) -> None:
        where.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(OSError, match="go on with --resume") as caught:
        list(Campaign(tmp_path).run(range(1), 1))
    assert caught.value.filename == str(tmp_path / "part-000000.parquet")
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
