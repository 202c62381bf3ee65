"""`tools/check_trace.py`: TLC's answer about a run of the real code, read the right way round."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quorate.raft.messages import VoteRequest
from quorate.sim.plan.plan import Plan
from quorate.sim.plan.text import parse_plan
from quorate.sim.render.tla import Recorder
from quorate.sim.run.run import run_plan
from quorate.sim.world.observer import Observer
from spec.tlc import ROOT, SPEC

sys.path.insert(0, str(ROOT / "tools"))
from check_trace import Answer, answer  # type: ignore[import-not-found]

SMALL = SPEC / "small.plan"
TOOL = ROOT / "tools" / "check_trace.py"
REACHED = '<<"reached line", 1>>\n<<"reached line", 18>>\n<<"reached line", 7>>\n'


def test_what_tlc_says_and_what_it_means() -> None:
    assert answer(f"{REACHED}Error: Invariant Unfinished is violated.\n") == Answer(0, 18)
    assert answer(f"{REACHED}Model checking completed. No error has been found.") == Answer(1, 18)
    assert answer(REACHED) == Answer(3, 18)
    assert answer("Error: Parsing or semantic analysis failed.") is None
    assert answer("") is None


def test_the_words_of_an_answer() -> None:
    lines = [f"line {number}" for number in range(1, 91)]
    assert Answer(0, 91).words(lines) == "accepted: the specification can do all 90 lines"
    assert Answer(1, 18).words(lines).startswith("refused at line 18 of 90: ")
    assert Answer(1, 18).words(lines).endswith("\n  line 18")
    assert "the first 17 of 90 lines are accepted" in Answer(3, 18).words(lines)


def test_the_example_is_a_world_that_the_specification_has_all_of() -> None:
    recorder = Recorder()
    outcome = run_plan(parse_plan(SMALL.read_text(encoding="utf-8")), [recorder])
    assert outcome.failure is None and recorder.left_out is None
    tape = recorder.tape
    assert max(line.epoch for line in tape.lines) > 1
    assert len({line.voters for line in tape.lines}) > 2
    assert sum(line.start for line in tape.lines) > len(tape.servers)


class PreVotes(Observer):
    """Counts the requests that peers read as pre-votes."""

    def __init__(self) -> None:
        self.asked = 0

    def sent(self, process: object, send: object) -> None:
        request = getattr(send, "request", None)
        self.asked += isinstance(request, VoteRequest) and request.pre_vote


def test_a_run_with_peers_that_know_no_pre_votes_is_checked_up_to_there() -> None:
    """It was refused at the candidate that they make."""
    for seed in range(40):
        recorder, votes = Recorder(), PreVotes()
        run_plan(Plan(seed=seed, duration_ms=100, wire=True), [recorder, votes])
        if recorder.left_out is not None and "pre-vote" in recorder.left_out:
            assert votes.asked
            assert not [line for line in recorder.tape.lines if line.role == "candidate"]
            return
    pytest.fail("no world of these has such peers")


@pytest.mark.interop
@pytest.mark.slow
def test_the_example_is_accepted_and_with_a_bug_it_is_refused() -> None:
    command: list[str | Path] = [sys.executable, TOOL, SMALL]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("accepted: ")
    command += ["--plant", "mutants:half-is-a-majority"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "refused at line " in ran.stdout


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "said"),
    [
        ("log-not-synced", "refused at line 40 "),
        ("written-before-sync", "refused at line 40 "),
        (
            "quorum-state-not-synced",
            "but the simulator found a violation: recovery, at 1600 ms: node 2",
        ),
    ],
)
def test_a_disk_that_lost_what_was_durable_is_refused(bug: str, said: str) -> None:
    """Its restart was left out, and the rest accepted."""
    command: list[str | Path] = [
        sys.executable,
        TOOL,
        SMALL,
        "--plant",
        f"mutants:{bug}",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and said in ran.stdout, ran


def test_a_module_is_checked_whole(tmp_path: Path) -> None:
    command: list[str | Path] = [
        sys.executable,
        TOOL,
        tmp_path / "Run.tla",
        "--lines",
        "5",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "not for a module" in ran.stderr


def test_nothing_to_check(tmp_path: Path) -> None:
    plan = tmp_path / "static.plan"
    plan.write_text("format 3\nseed 1\nstatic yes\nduration_ms 10\n")
    command: list[str | Path] = [sys.executable, TOOL, plan]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
