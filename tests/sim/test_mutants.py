"""Planted bugs: the catalogue fits the code, and the simulator finds what is in it."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interop.process import wait_for
from quorate.base.errors import QuorateError
from quorate.sim.mutants.catalog import MUTANTS
from quorate.sim.mutants.hunt import find, hunt, hunt_here
from quorate.sim.mutants.mutant import Mutant, StaleMutant
from quorate.sim.mutants.plant import mutated, path_of, plant

FOUND_SOON = (
    "vote-for-a-shorter-log",
    "vote-not-stored",
    "answer-before-durable",
    "no-pre-vote",
    "commits-an-older-epoch",
    "half-is-a-majority",
    "fetch-before-sync",
    "voters-rule-when-committed",
    "log-not-synced",
    "tail-trimmed-askew",
    "rename-not-synced",
)
"""Each within ten seeds: enough to see in minutes that the net holds. `quorate sim mutants` hunts
all of them."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_text_is_there_once_and_the_mutated_module_compiles(mutant: Mutant) -> None:
    source = path_of(mutant).read_text(encoding="utf-8")
    changed = mutated(mutant, source)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


def test_names_are_unique_and_there_are_at_least_thirty() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30


def test_a_mutant_of_code_that_has_changed_says_so() -> None:
    stale = Mutant("stale", "nothing", "raft.election", "no such line", "")
    with pytest.raises(StaleMutant, match="the text to replace is 0 times"):
        mutated(stale, "def grants(): ...")


def test_no_mutant_is_planted_into_code_that_runs_already() -> None:
    assert "quorate.raft.election" in sys.modules or __import__("quorate.raft.election")
    with pytest.raises(StaleMutant, match="imported already"):
        plant(find("vote-twice"))


def test_an_unknown_name_is_refused_with_those_that_come_near() -> None:
    with pytest.raises(QuorateError, match="no mutant 'vote-twize'; did you mean vote-twice"):
        find("vote-twize")
    with pytest.raises(QuorateError, match="no mutant 'x'; 'quorate sim mutants --list' says"):
        find("x")


def test_a_hunt_that_was_killed_has_found_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killed))
    with pytest.raises(QuorateError, match=r"the hunt of vote-not-stored ended .*signal 9"):
        hunt(find("vote-not-stored"), range(1))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_hunt_ends_with_who_began_it(how: signal.Signals) -> None:
    """Both are for the parent alone, and the second leaves it no time to say anything."""
    command = [sys.executable, "-m", "quorate", "sim", "mutants", "caught-up-long-ago"]
    with subprocess.Popen([*command, "--seeds", "100000"], stdout=subprocess.DEVNULL) as parent:
        hunter = wait_for(lambda: children(parent.pid), "a hunt")[0]
        parent.send_signal(how)
    wait_for(lambda: not Path(f"/proc/{hunter}").exists(), "the end of the hunt")


def children(parent: int) -> list[str]:
    """The processes that it began, by number."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True)
    return listed.stdout.decode().split()


def test_a_mutant_that_cannot_be_imported_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant(mutant: Mutant) -> None:
        raise NameError("no such name")

    monkeypatch.setattr("quorate.sim.mutants.hunt.plant", plant)
    catch = hunt_here(find("vote-not-stored"), range(1))
    assert (catch.check, catch.message) == ("exception", "NameError: no such name")


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND_SOON)
def test_the_simulator_finds_it(name: str) -> None:
    mutant = find(name)
    before = path_of(mutant).read_bytes()
    catch = hunt(mutant, range(10))
    assert catch.check is not None
    assert path_of(mutant).read_bytes() == before


@pytest.mark.slow
def test_the_command_tells_who_was_found_and_who_lives() -> None:
    command = [sys.executable, "-m", "quorate", "sim", "mutants", "--seeds", "1", "--json"]
    done = subprocess.run(
        [*command, "vote-not-stored", "removed-voter-runs"], capture_output=True, text=True
    )
    found = {row["mutant"]: row["check"] for row in json.loads(done.stdout)}
    assert found == {"vote-not-stored": "durable before audible", "removed-voter-runs": None}
    assert done.returncode == 1
