"""`quorate sim run`, `replay` and `plan`: seeds in, passed or failed checks out."""

import json

import pytest

from quorate.sim.plan.draw import draw
from quorate.sim.plan.plan import FORMAT
from quorate.sim.plan.text import plan_text
from quorate.sim.run.kafka_scenarios import SCENARIOS
from quorate.sim.run.run import run_seed
from quorate.sim.world.observer import Observer, ViolationError

SMALL = 5
"""A seed whose world is soon over."""


class FailingObserver(Observer):
    """Objects to the hundredth step of a world."""

    def __init__(self):
        self.steps = 0

    def stepped(self, process, happened, effects):
        self.steps += 1
        if self.steps == 100:
            raise ViolationError("patience", "a hundred steps are enough")


@pytest.fixture
def failing_observer(monkeypatch):
    monkeypatch.setattr("quorate.sim.run.run.checked", lambda: [FailingObserver()])
    monkeypatch.setattr(
        "quorate.sim.run.pool.run_seeds.__defaults__", (lambda: [FailingObserver()], None, None)
    )


def test_seeds_that_pass_every_check(quorate):
    outcome = quorate("sim", "run", "--seeds", f"{SMALL}..{SMALL + 2}")
    assert outcome.code == 0
    first, last = outcome.out.splitlines()
    assert first.startswith("2 worlds, ") and "events/s" in first
    assert last == "all checks passed"


def test_facts_as_json(quorate):
    outcome = quorate("sim", "run", "--seeds", str(SMALL), "--json")
    facts = json.loads(outcome.out)
    assert (facts["worlds"], facts["failures"]) == (1, [])
    assert facts["events"] == run_seed(SMALL).events


def test_the_first_failure_ends_the_run(quorate, failing_observer):
    outcome = quorate("sim", "run", "--seeds", f"{SMALL}..{SMALL + 5}")
    assert outcome.code == 1
    assert outcome.out.startswith("1 worlds, ")
    assert f"seed {SMALL} failed at" in outcome.out
    assert "patience: a hundred steps are enough" in outcome.out
    assert f"quorate sim replay {SMALL}" in outcome.out


def test_keep_going_finds_them_all(quorate, failing_observer):
    outcome = quorate("sim", "run", "--seeds", f"{SMALL}..{SMALL + 3}", "--keep-going", "--json")
    assert outcome.code == 1
    failures = json.loads(outcome.out)["failures"]
    assert [failure["seed"] for failure in failures] == [SMALL, SMALL + 1, SMALL + 2]
    assert {failure["check"] for failure in failures} == {"patience"}


@pytest.mark.slow
def test_many_processes_print_the_same(quorate):
    reports = [
        json.loads(quorate("sim", "run", "--seeds", "20..40", "--json", "--jobs", jobs).out)
        for jobs in ("1", "2")
    ]
    assert (
        reports[0]["events"] == reports[1]["events"]
        and reports[0]["worlds"] == reports[1]["worlds"] == 20
    )


@pytest.mark.parametrize("seeds", ["", "x", "3..", "5..5", "-1", "4..2", "1..2..3"])
def test_seeds_that_are_none(quorate, seeds):
    outcome = quorate("sim", "run", f"--seeds={seeds}")
    assert outcome.code == 2 and "--seeds" in outcome.err and "Traceback" not in outcome.err


@pytest.mark.slow
def test_replay_ends_with_the_hash_of_the_trace(quorate):
    outcome = quorate("sim", "replay", str(SMALL))
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[-1] == f"trace {run_seed(SMALL).trace_hash}"
    assert lines[0].startswith(f"# quorate trace 2, plan format {FORMAT}, seed {SMALL}, version ")
    assert "starts incarnation 1" in lines[1] and any("leader" in line for line in lines)
    quiet = quorate("sim", "replay", str(SMALL), "--quiet").out.splitlines()
    assert quiet == lines[-2:]


def test_replay_of_what_fails_ends_where_it_fails(quorate, failing_observer):
    outcome = quorate("sim", "replay", str(SMALL))
    assert outcome.code == 1
    assert "FAILED: patience: a hundred steps are enough" in outcome.out
    assert "to heal" not in outcome.out, "it never came to that"


def test_a_plan_can_be_printed_changed_and_replayed(quorate, tmp_path):
    printed = quorate("sim", "plan", str(SMALL)).out
    assert printed == plan_text(draw(SMALL))
    path = tmp_path / "my.plan"
    path.write_text(printed)
    assert quorate("sim", "replay", str(path), "--quiet").out.endswith(
        f"trace {run_seed(SMALL).trace_hash}\n"
    )
    path.write_text(printed.replace("\nend\n", "\nat 5 explode\nend\n"))
    outcome = quorate("sim", "replay", str(path))
    line = len(printed.splitlines())
    assert outcome.code == 2
    assert f"my.plan:{line}: there is no fault event 'explode'" in outcome.err


def test_a_plan_of_another_version_is_refused(quorate, tmp_path):
    path = tmp_path / "old.plan"
    path.write_text(f"format {FORMAT + 1}\nseed 1\n")
    outcome = quorate("sim", "replay", str(path))
    assert outcome.code == 2 and "this version runs formats 1, 2, 3" in outcome.err


@pytest.mark.parametrize("what", ["no-such-file", "-3", ""])
def test_nothing_to_replay(quorate, what):
    outcome = quorate("sim", "replay", "--", what)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"'{what}' is neither a seed (0 to ")


def test_the_scenarios_of_kafka_are_listed(quorate):
    outcome = quorate("sim", "plan", "1", "--scenario", "help")
    assert outcome.code == 0 and outcome.out.splitlines() == list(SCENARIOS)


def test_a_file_that_is_no_text(quorate, tmp_path):
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    outcome = quorate("sim", "replay", str(path))
    assert outcome.code == 2 and "not a text file" in outcome.err


def test_nan_is_no_number_of_seconds(quorate):
    outcome = quorate("sim", "nemesis", "--seconds", "nan")
    assert outcome.code == 2 and "nan is not a finite number" in outcome.err
