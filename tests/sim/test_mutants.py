"""Mutants: each applies to the code as it is, and the simulator finds some of them soon."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

import mutants
from interop.process import wait_for
from mutants import __main__ as command
from mutants.catalog import MUTANTS, find
from mutants.edit import StaleMutantError, begin_with
from mutants.hunt import Catch, hunt, hunt_here
from mutants.mutant import Mutant, mutated, plant, planted
from quorate.base.errors import QuorateError
from quorate.raft import election, voters

FOUND_SOON = (
    "vote-for-a-shorter-log",
    "vote-not-stored",
    "answer-before-durable",
    "no-pre-vote",
    "commits-an-older-epoch",
    "half-is-a-majority",
    "fetch-before-sync",
    "voter-set-not-in-force-on-append",
    "log-not-synced",
    "tail-trim-off-by-one",
    "rename-not-synced",
)
"""Each within ten seeds. `python -m mutants` hunts all of them."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_applies(mutant: Mutant) -> None:
    assert mutated(mutant).co_qualname


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.interpreted
def test_planting_changes_every_reference_to_the_function() -> None:
    """An earlier importer of the function runs the mutated code; afterwards the original code."""
    strict = Mutant("strict", "no voter matches", voters.matches, begin_with("return False"))
    before = voters.matches
    key = election.ReplicaKey(1)  # type: ignore[attr-defined]
    assert before(key, key)
    with planted(strict):
        assert not before(key, key)
    assert before(key, key)


def test_a_compiled_target_is_refused() -> None:
    with pytest.raises(StaleMutantError, match="is compiled: mutants need QUORATE_PURE_PYTHON=1"):
        plant(Mutant("length", "every list is empty", list.append, begin_with("return")))


def test_an_unknown_name_is_refused_with_similar_names() -> None:
    with pytest.raises(QuorateError, match="no mutant 'vote-twize'; did you mean vote-twice"):
        find("vote-twize")
    with pytest.raises(QuorateError, match="no mutant 'x'; 'python -m mutants --list' lists"):
        mutants.find("x")


# -- hunts -------------------------------------------------------------------------------------
def test_a_killed_hunt_has_found_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = tmp_path / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(killed))
    with pytest.raises(QuorateError, match=r"the hunt of vote-not-stored ended .*signal 9"):
        hunt("vote-not-stored", range(1))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_hunt_ends_with_its_parent(how: signal.Signals) -> None:
    """Both signals go only to the parent, and the second leaves it no time to react."""
    words = [
        sys.executable,
        "-m",
        "mutants",
        "kraft-version-kept-on-truncation",
        "--seeds",
        "100000",
    ]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as parent:
        hunter = wait_for(lambda: children(parent.pid), "a hunt")[0]
        parent.send_signal(how)
    wait_for(lambda: not Path(f"/proc/{hunter}").exists(), "the end of the hunt")


def children(parent: int) -> list[str]:
    """The process ids of its children."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True)
    return listed.stdout.decode().split()


def test_a_mutant_that_cannot_be_imported_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant(name: str) -> None:
        raise NameError("no such name")

    monkeypatch.setattr("mutants.hunt.plant", plant)
    catch = hunt_here("vote-not-stored", range(1))
    assert (catch.check, catch.message) == ("exception", "NameError: no such name")


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND_SOON)
def test_the_simulator_finds_it(name: str) -> None:
    assert hunt(name, range(10)).check is not None


# -- the command -------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_command_reports_found_and_surviving_mutants() -> None:
    words = [sys.executable, "-m", "mutants", "--seeds", "1", "--json"]
    done = subprocess.run(
        [*words, "vote-not-stored", "kraft-version-kept-on-truncation"],
        capture_output=True,
        text=True,
    )
    found = {row["mutant"]: row["check"] for row in json.loads(done.stdout)}
    assert found == {
        "vote-not-stored": "durable before sent",
        "kraft-version-kept-on-truncation": None,
    }
    assert done.returncode == 1


def caught(name: str) -> Catch:
    return Catch(name, "election safety", "", 3, 4, 100, 0.5)


def interrupted(names: list[str], *_: object) -> Iterator[Catch]:
    for name in islice(names, 1):
        yield caught(name)
    raise KeyboardInterrupt


def test_an_interrupted_hunt_names_the_mutants_that_are_left(monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "hunt_all", interrupted)
    assert command.main([]) == 130
    assert capsys.readouterr().out.endswith(f"--first 0 --jobs 1 --but {MUTANTS[0].name}\n")
    assert command.main(["vote-twice", "no-pre-vote", "tail-trim-off-by-one"]) == 130
    *_, said, again = capsys.readouterr().out.splitlines()
    assert said == "interrupted: 1 of 3 mutants are done; go on with"
    assert (
        again
        == "  python -m mutants --seeds 1000 --first 0 --jobs 1 no-pre-vote tail-trim-off-by-one"
    )


def test_an_interrupted_hunt_that_has_found_nothing_counts_nothing(monkeypatch, capsys) -> None:
    def hunted(*_: object) -> Iterator[Catch]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(command, "hunt_all", hunted)
    assert command.main(["vote-twice"]) == 130
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "interrupted: 0 of 1 mutants are done; go on with"


def test_an_interrupted_hunt_reports_in_json_what_was_found(monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "hunt_all", interrupted)
    assert command.main(["vote-twice", "no-pre-vote", "--json"]) == 130
    out, err = capsys.readouterr()
    assert [row["mutant"] for row in json.loads(out)] == ["vote-twice"]
    assert err.startswith("interrupted: 1 of 2 mutants are done")
    command.main(["vote-twice", "--list", "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert [(row["name"], sorted(row)) for row in listed] == [
        ("vote-twice", ["module", "name", "what"])
    ]


def test_a_hunt_whose_process_was_killed_reports_what_was_found_before(monkeypatch, capsys) -> None:
    def hunted(names: list[str], *_: object) -> Iterator[Catch]:
        yield caught(names[0])
        raise QuorateError(f"the hunt of {names[1]} ended by signal 9")

    monkeypatch.setattr(command, "hunt_all", hunted)
    assert command.main(["vote-twice", "no-pre-vote", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "the hunt of no-pre-vote ended by signal 9" in err
    assert [row["mutant"] for row in json.loads(out)] == ["vote-twice"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("vote-twice", "--but", "vote-twice"), "--but leaves none to hunt"),
        (("--but", "nope"), "there is no mutant 'nope'"),
        (("nope",), "there is no mutant 'nope'"),
    ],
)
def test_bad_input(words: tuple[str, ...], said: str, capsys) -> None:
    assert command.main(words) == 2
    assert said in capsys.readouterr().err
