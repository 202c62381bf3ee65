"""The error of a scenario that cannot be played says in which file and line, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.sim.scenario import scenario
from quorate.sim.scenario.errors import ScenarioError
from quorate.sim.scenario.file import read_scenario, run_scenario

SCENARIO = "# One voter.\ndynamic 1\n----\nok\n\nstart 1\nelect\n----\n"

BAD = {
    "no such command": ("start 1\n\nelekt\n----\nok\n", 3, "did you mean 'elect'?"),
    "unlike any command": ("xyzzy\n", 1, "there are dynamic, static, "),
    "too few arguments": ("dynamic 1\n\ncrash\n", 3, "usage: crash 1 [kept=1] [torn=1]"),
    "too many arguments": ("heal 1\n", 1, "usage: heal"),
    "unknown option": (
        "dynamic 1\ncrash 1 keep=1\n",
        2,
        "'keep'; usage: crash 1 [kept=1] [torn=1]",
    ),
    "not a number": ("dynamic 1 two\n", 1, "'two' is not a number"),
    "less than none": ("static -1\n", 1, "ids: -1 is not from 0 to 2147483647"),
    "more than an id": ("static 99999999999\n", 1, "ids: 99999999999 is not from 0"),
    "no voters": ("static\n", 1, "name the voters, each once"),
    "a voter twice": ("dynamic 1 1\n", 1, "name the voters, each once"),
    "no time": ("dynamic 1\nrun -5\n", 2, "duration_ms: -5 is not from 0 to 86400000"),
    "more than a day": ("dynamic 1\nrun 99999999999\n", 2, "duration_ms: 99999999999 is not"),
    "no disk": ("observer 4 knows=1 disk=-1\n", 1, "disk: -1 is not from 0 to 255"),
    "neither": ("dynamic 1 auto_join=maybe\n", 1, "auto_join=maybe is neither yes nor no"),
    "negative node id": (
        "dynamic 1\nstart\nelect\nask 1 Vote candidate=-2 epoch=1\n",
        4,
        "candidate=-2 is not from -1",
    ),
    "not a number in an option": ("dynamic 1\ncrash 1 kept=x\n", 2, "kept: 'x' is not a number"),
    "no such node": ("dynamic 1\n\n\n# unknown\ncrash 2\n", 5, "there is no node 2"),
    "no such node to cut off": ("dynamic 1\ncut 1 | 2\n", 2, "there is no node 2"),
    "not a node": ("dynamic 1\ncut 1 : 2\n", 2, "':' is not a node's id"),
    "no digit of ASCII": ("dynamic 1\ncut 1 ²\n", 2, "'²' is not a node's id"),
    "a node that is down": ("dynamic 1\npropose 1 a\n", 2, "node 1 is down"),
    "no snapshot": ("static 1\nstart\nclean 1\n", 3, "node 1 has no snapshot"),
    "no batch ends there": ("dynamic 1\nstart\nelect\nsnapshot 1 99\n", 4, "ends at 99"),
    "not committed": (
        "dynamic 1 2 3\nstart\nelect\npropose 1 a\nsnapshot 1 4\n",
        5,
        "cannot create a snapshot there",
    ),
    "does not lead": ("dynamic 1\nstart\ndescribe 1\nshutdown 1\ndescribe 1\n", 3, "not lead"),
    "unknown request": ("dynamic 1\nstart 1\nask 1 Dance\n", 3, "there is no request 'Dance'"),
    "request without a number": (
        "dynamic 1\nstart\nask 1 Vote candidate=1\n",
        3,
        "needs epoch=<number>",
    ),
    "request with an unknown word": (
        "dynamic 1\nstart\nask 1 Remove voter=1 disc=2\n",
        3,
        "ask Remove has no option disc=",
    ),
    "no stable state": ("dynamic 1 2 3\nstart 1\nelect\n", 3, "not within 60000 ms"),
    "two rules": ("dynamic 1\n----\nok\n----\n", 4, "a second ----"),
    "no command": ("dynamic 1\n\n# Only words.\n----\nok\n", 4, "---- without a command"),
    "empty": ("\n# Nothing.\n\n", 1, "at least one command"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_scenario(name: str) -> None:
    text, line, reason = BAD[name]
    with pytest.raises(ScenarioError) as caught:
        run_scenario(text, "bad.txt")
    assert (caught.value.file, caught.value.line) == ("bad.txt", line)
    assert reason in caught.value.reason
    assert str(caught.value).startswith("bad.txt:" if line else "bad.txt: ")
    assert caught.value.exit_code == 2


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name, reason in (("none", "No such file"), ("bytes", "not a text file"), ("", "directory")):
        with pytest.raises(ScenarioError, match=reason):
            read_scenario(tmp_path / name)


def test_command_shows_the_differences_and_rewrites_the_file(tmp_path: Path) -> None:
    file = tmp_path / "scenario.txt"
    file.write_text(SCENARIO + "2 leads epoch 1\n")
    run = CliRunner().invoke
    shown = run(scenario, [str(file)])
    assert shown.exit_code == 1
    assert shown.output.splitlines() == [
        f"{file}:6: start 1; elect",
        "  - 2 leads epoch 1",
        "  + 1: epoch 0: starts as unattached, voters {1}",
        "  + 1: epoch 0: prospective (only voter)",
        "  + 1: epoch 1: candidate",
        "  + 1 leads epoch 1",
    ]

    assert run(scenario, ["--rewrite", str(file)]).exit_code == 0
    again = run(scenario, [str(file)])
    assert (again.exit_code, again.output) == (0, f"{file}: as written\n")
    assert file.read_text().startswith(SCENARIO) and "1 leads epoch 1" in file.read_text()


def test_a_renamed_command_keeps_its_former_name() -> None:
    text = "dynamic 1\n\nstart 1\n\nelect\n\n{} 1\n"
    former = run_scenario(text.format("told"), "former")
    present = run_scenario(text.format("reported-leader"), "present")
    assert former.differences[-1].found == present.differences[-1].found
    assert present.differences[-1].found == ("1 reported leader 1 of epoch 1",)
