"""Worlds in files: a plan, and what comes of it; and what `quorate sim` says to bad input."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.cli.main import run
from quorate.sim.plan.plan import FaultEvent, Plan
from quorate.sim.run.run import Failure, WorldOutcome, checked, run_plan
from quorate.sim.scenario.errors import ScenarioError
from quorate.sim.scenario.file import run_scenario
from quorate.sim.scenario.worlds import is_world, parse_world, world_text

SMALL = """\
# Nothing much happens here.
format 1
seed 5
voters 1

duration_ms 700
clients.count 1  # so that something is written
at 400 kill node=1 down_ms=50
----
all checks passed
"""


def test_a_world_plays_as_written() -> None:
    played = run_scenario(SMALL, "small.txt")
    assert played.differences == () and played.text == SMALL


def test_a_world_that_diverges_is_shown() -> None:
    text = SMALL.replace("all checks passed", "broken at 500 ms: liveness\nnobody leads")
    played = run_scenario(text, "small.txt")
    (difference,) = played.differences
    assert difference.line == 2
    assert difference.written == ("broken at 500 ms: liveness", "nobody leads")
    assert difference.found == ("all checks passed",)
    assert played.text == SMALL
    assert run_scenario(SMALL.partition("----")[0], "small.txt").text == SMALL


def test_a_plan_without_an_outcome_is_expected_to_pass_every_check() -> None:
    assert run_scenario(SMALL.partition("----")[0], "small.txt").differences == ()
    empty = run_scenario(SMALL.partition("----")[0] + "----\n", "small.txt")
    assert [difference.written for difference in empty.differences] == [()]


def test_counts_are_pluralized() -> None:
    (difference,) = run_scenario(
        SMALL.replace("all checks passed", "no check passed"), "small.txt"
    ).differences
    assert difference.commands == ("a world of 1 voter and 1 fault event",)


def test_a_file_of_another_editor_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.txt"
    file.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert run(["sim", "scenario", str(file)]) == 0
    assert run(["sim", "replay", "--quiet", str(file)]) == 0
    assert "trace " in capsys.readouterr().out


def test_only_a_plan_is_a_world() -> None:
    assert is_world("# so\n\n  format 1") and is_world("format 7")
    assert not is_world("static 1 2 3\nstart") and not is_world("") and not is_world("# format 1")


def test_the_file_of_an_outcome_replays_it() -> None:
    plan = Plan(seed=3, voters=2, duration_ms=300, fault_events=(FaultEvent(70, "kill", (0, 5)),))
    text = world_text(run_plan(plan, checked()), "Found at random.\nFixed.")
    assert text.startswith("# Found at random.\n# Fixed.\nformat 9\nseed 3\n")
    assert parse_world(text, "x").plan == plan
    assert run_scenario(text, "x").text == text and not run_scenario(text, "x").differences
    failure = Failure("liveness", "nobody\n  leads", 80, 9)
    broken = world_text(WorldOutcome(3, plan, 9, 80, "00", failure, 0.1))
    assert broken.endswith("----\nbroken at 80 ms: liveness\nnobody leads\n")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("format 1\ncolour 3", 2, "there is no setting 'colour'"),
        ("# old\nformat 0\ncolour 3", 2, "this plan is of format 0, and this version"),
        ("format 1\nat 5 explode", 2, "there is no fault event 'explode'"),
        ("format 1\nvoters 9", 2, "a world has 1 to 7 voters"),
        ("format 1\n----\n----", 3, "a second ----"),
        ("format 1\nseed 3\nscenario none # such", 3, "there is no scenario 'none'"),
        ("# none", 1, "a scenario needs at least one command"),
        ("format 1\n\nsettle\n----\nok", 3, "a setting is a name and a value"),
        ("dynamic 1 2 3\nexplode", 2, "there is no command 'explode'"),
    ],
)
def test_a_file_that_does_not_parse(
    text: str, line: int, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ScenarioError) as caught:
        run_scenario(text, "bad.txt")
    assert caught.value.line == line and reason in caught.value.reason
    file = tmp_path / "bad.txt"
    file.write_text(text)
    assert run(["sim", "scenario", str(file)]) == 2
    where = f"{file}:{line}: " if line else f"{file}: "
    said = capsys.readouterr().err
    assert said.startswith(where) and reason in said and said.count("\n") == 1


def test_the_outcome_of_an_earlier_version_is_still_read() -> None:
    former = SMALL.replace("all checks passed", "no promise was broken")
    assert former != SMALL
    assert parse_world(former, "x").outcome == parse_world(SMALL, "x").outcome


# -- commands ------------------------------------------------------------------------------------
def test_replay_runs_a_world_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.txt"
    file.write_text(SMALL)
    assert run(["sim", "replay", "--quiet", str(file)]) == 0
    assert f"trace {run_plan(parse_world(SMALL, 'x').plan).trace_hash}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ("replay 1:77", 2, "1:77 is a seed of plan format 1, and this version of quorate draws"),
        ("run --seeds 10:0..9:9", 2, "10:0 is a seed of plan format 10"),
        ("plan 10:1", 2, "10:1 is a seed of plan format 10"),
        ("plan 99999999999999999999", 2, "is no seed: those are numbers from 0"),
        ("plan many", 2, "'many' is no seed"),
        ("replay nowhere.txt", 2, "'nowhere.txt' is neither a seed"),
        ("shrink nowhere.txt", 2, "'nowhere.txt' is neither a seed"),
        ("run --seeds 9..3", 2, "has no seeds"),
        ("run --seeds a..b", 2, "is neither a seed nor A..B"),
        ("run --seeds \u0663", 2, "is neither a seed nor A..B"),
        ("run --seeds 1..", 2, "is neither a seed nor A..B"),
        ("run --seeds 0..99999999999999999999999", 2, "is too large: seeds are numbers from 0 to"),
    ],
)
def test_seeds_and_files_that_cannot_be(
    arguments: str, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sim", *arguments.split()]) == code
    assert says in capsys.readouterr().err


def test_a_seed_may_name_its_plan_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "plan", "9:77"]) == 0
    named = capsys.readouterr().out
    assert run(["sim", "plan", "77"]) == 0
    assert capsys.readouterr().out == named


def test_a_plan_of_another_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.txt"
    file.write_text("format 10\nvoters 3\n")
    assert run(["sim", "replay", str(file)]) == 2
    assert "plan.txt:1: this plan is of format 10" in capsys.readouterr().err
