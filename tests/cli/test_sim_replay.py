"""`quorate sim replay`: a run as a TLA+ module, and traces that are packed."""

import errno
import gzip
import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.sim.plan.plan import FaultEvent, Plan
from quorate.sim.plan.text import plan_text
from quorate.sim.render.tla import Recorder
from quorate.sim.run.run import run_plan
from quorate.sim.run.version import code_version

WHOLE = Plan(voters=3, duration_ms=3000, fault_events=(FaultEvent(1500, "power", (1, 300)),))
OLD_COPY = Plan(
    voters=3, duration_ms=3000, fault_events=(FaultEvent(2000, "old-copy", (2, 500, 100)),)
)
STATIC = Plan(voters=3, duration_ms=1000, static=True)


@pytest.fixture
def plan_file(tmp_path):
    def write(plan):
        path = tmp_path / "my.plan"
        path.write_text(plan_text(plan))
        return path

    return write


def test_a_run_becomes_a_module_and_its_configuration(quorate, plan_file, tmp_path):
    outcome = quorate("sim", "replay", plan_file(WHOLE), "--tla", tmp_path / "Run.tla")
    recorder = Recorder()
    run_plan(WHOLE, [recorder])
    assert outcome.code == 0 and recorder.left_out is None
    lines = len(recorder.tape.lines)
    assert outcome.out.endswith(
        f"{lines} lines written to {tmp_path}/Run.tla, for QuorateTrace.tla\n"
    )
    assert (tmp_path / "Run.tla").read_text() == recorder.tape.module()
    assert (tmp_path / "Run.cfg").read_text() == recorder.tape.config()


def test_the_module_ends_before_what_the_specification_leaves_out(quorate, plan_file, tmp_path):
    whole, cut = Recorder(), Recorder()
    run_plan(OLD_COPY, [cut])
    end = len(cut.tape.lines)
    run_plan(replace(OLD_COPY, fault_events=()), [whole])
    assert end > 20 and cut.tape.lines == whole.tape.lines[:end], "until then they are the same"
    outcome = quorate("sim", "replay", plan_file(OLD_COPY), "--tla", tmp_path / "Run.tla")
    assert outcome.code == 0
    said = "the run goes on, but the disk of node 2 was changed behind its back"
    assert f"{end} lines" in outcome.out and said in outcome.out


def test_a_run_outside_the_specification(quorate, plan_file, tmp_path):
    outcome = quorate("sim", "replay", plan_file(STATIC), "--tla", tmp_path / "Run.tla")
    assert outcome.code == 2 and "nothing to write" in outcome.err
    assert "kraft.version 0 is not in the specification" in outcome.err
    assert not (tmp_path / "Run.tla").exists()


def test_the_module_has_the_name_that_the_specification_asks_for(quorate, tmp_path):
    outcome = quorate("sim", "replay", "1", "--tla", tmp_path / "Mine.tla")
    assert outcome.code == 2 and "should be named Run.tla" in outcome.err


def test_a_path_that_cannot_be_written(quorate, plan_file, tmp_path):
    outcome = quorate("sim", "replay", plan_file(WHOLE), "--tla", tmp_path / "no" / "Run.tla")
    assert outcome.code == 2 and "there is no directory for" in outcome.err
    outcome = quorate("sim", "replay", plan_file(WHOLE), "--html", tmp_path / "no" / "1.html")
    assert (outcome.code, outcome.out) == (2, "") and "there is no directory for" in outcome.err
    for command in (
        ("replay", plan_file(WHOLE), "--html"),
        ("shrink", plan_file(WHOLE), "--out"),
        ("explore", "election", "--depth", "9", "--out"),
    ):
        for place in ("", tmp_path):
            outcome = quorate("sim", *command, place)
            assert (outcome.code, outcome.out) == (2, ""), command
            assert " is no file" in outcome.err or " is a directory" in outcome.err
        os.mkfifo(tmp_path / command[0])
        outcome = quorate("sim", *command, tmp_path / command[0])
        assert (outcome.code, outcome.out) == (2, "") and " is a pipe: name" in outcome.err


@pytest.mark.parametrize(
    ("command", "option"), [("replay", "--html"), ("shrink", "--out"), ("replay", "--tla")]
)
def test_what_is_read_is_not_written_over(quorate, plan_file, tmp_path, command, option):
    plan = plan_file(WHOLE)
    before = plan.read_text()
    place = tmp_path / "Run.tla"
    place.symlink_to(plan)
    outcome = quorate("sim", command, plan, option, place)
    assert (outcome.code, outcome.out) == (2, "") and "is what is read here" in outcome.err
    assert plan.read_text() == before


@pytest.mark.parametrize("option", ["--html", "--tla"])
def test_a_full_disk_is_reported_with_the_name_of_the_file(
    quorate, plan_file, tmp_path, monkeypatch, option
):
    """What was there before stays."""

    def full(self, *_: object, **__: object) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    plan, place = plan_file(WHOLE), tmp_path / "out" / "Run.tla"
    place.parent.mkdir()
    place.write_text("old")
    monkeypatch.setattr(Path, "write_text", full)
    outcome = quorate("sim", "replay", plan, option, place)
    assert (outcome.code, outcome.err) == (70, f"{place}: No space left on device\n")
    assert [path.name for path in place.parent.iterdir()] == ["Run.tla"]
    assert place.read_text() == "old"


def test_a_scenario_without_a_path_is_not_searched(quorate, tmp_path):
    """Its search may take long."""
    place = tmp_path / "no" / "scenario.txt"
    outcome = quorate("sim", "explore", "removal", "--depth", "40", "--out", place)
    assert (outcome.code, outcome.out) == (2, "") and "there is no directory for" in outcome.err


def test_a_campaign_in_no_directory(quorate):
    outcome = quorate("sim", "campaign", "--seeds", "0..2", "--out", "")
    assert (outcome.code, outcome.out) == (2, "") and "'' is no directory" in outcome.err


def test_a_compressed_trace_can_be_compared(quorate, plan_file, tmp_path):
    plan = plan_file(WHOLE)
    packed = tmp_path / "trace.txt.gz"
    packed.write_bytes(gzip.compress(quorate("sim", "replay", plan).out.encode()))
    outcome = quorate("sim", "replay", plan, "--against", packed)
    assert outcome.code == 0
    assert outcome.out.endswith(f"{packed}, of version {code_version()}\n")
    packed.write_bytes(b"no gzip")
    outcome = quorate("sim", "replay", plan, "--against", packed)
    assert outcome.code == 2 and "is no trace" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("replay", "abc"), "'abc' is neither a seed"),
        (("replay", "3", "--against", "nowhere"), "nowhere: No such file"),
        (("replay", "3.trace"), "3.trace:1: this is a trace: 'quorate sim replay SEED --against"),
        (("scenario", "3.trace"), "3.trace:1: this is a trace: 'quorate sim replay SEED --against"),
        (("replay", "empty"), "empty:1: this is no plan: those begin with 'format'"),
        (("scenario", "headless"), "headless:2: a world begins with the format of its plan"),
        (("scenario", "long"), "'xxxx"),
        (("replay", "odd"), "odd:2: a setting is a name and a value: 'voters'"),
        (("campaign", "--seeds", "0..2", "--out", "odd/x"), "odd/x: cannot be made: Not a dir"),
        (("scenario", "-", "--rewrite"), "--rewrite writes into files"),
    ],
)
def test_bad_input_and_a_failed_check_have_different_codes(
    quorate, tmp_path, monkeypatch, arguments, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    (tmp_path / "headless").write_text("# so\nseed 3\nvoters 2\n")
    (tmp_path / "long").write_text("x" * 200_000)
    (tmp_path / "odd").write_text("format 2\nvoters\n")
    (tmp_path / "3.trace").write_text("# quorate trace 2, plan format 2, seed 3, version 1\n")
    outcome = quorate("sim", *arguments)
    assert outcome.code == 2 and said in outcome.err
    assert len(outcome.err) < 1000


@pytest.mark.parametrize("command", ["replay", "scenario"])
def test_a_world_from_the_standard_input(quorate, plan_file, monkeypatch, command):
    """As it comes out of a pipe; the same as from a file."""
    plan = plan_file(WHOLE)
    expected = quorate("sim", command, plan)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(plan.read_bytes())))
    outcome = quorate("sim", command, "-")
    assert outcome.out == expected.out.replace(str(plan), "-")
    assert (outcome.code, outcome.err) == (expected.code, "")


def test_a_comparison_draws_nothing(quorate, tmp_path):
    outcome = quorate("sim", "replay", "7", "--against", tmp_path / "t", "--html", tmp_path / "h")
    assert outcome.code == 2 and "--against only compares" in outcome.err
