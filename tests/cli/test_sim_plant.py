"""`--plant MODULE:NAME`: a mutant can be run, replayed and shrunk; without it the world is sound."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mutants.catalog import MUTANTS

NAME = "half-is-a-majority"
BUG = f"mutants:{NAME}"
"""Found in the first world, and soon."""


def elsewhere(*arguments: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a planted bug stays."""
    command = [sys.executable, "-m", "quorate", "sim", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_planted_bug_is_found_and_the_line_to_see_it_again_plants_it_too() -> None:
    ran = elsewhere("run", "--seeds", "0..3", "--plant", BUG)
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.splitlines()[-2:] == [
        f"  quorate sim replay 0 --plant {BUG}",
        f"  quorate sim shrink 0 --plant {BUG}",
    ]


@pytest.mark.slow
def test_it_is_planted_into_every_process_of_a_pool() -> None:
    options = ("run", "--seeds", "0..12", "--plant", BUG, "--keep-going", "--json")
    alone, pool = (json.loads(elsewhere(*options, "--jobs", jobs).stdout) for jobs in (1, 2))
    assert alone["failures"] == pool["failures"] and len(alone["failures"]) > 6


@pytest.mark.slow
def test_from_the_failure_to_a_small_world_that_is_fixed(tmp_path: Path) -> None:
    """The walk of docs/campaigns.md."""
    small = tmp_path / "small.txt"
    replayed = elsewhere("replay", 0, "--plant", BUG)
    assert replayed.returncode == 1 and "FAILED: " in replayed.stdout
    assert replayed.stdout.splitlines()[0].endswith(f".{NAME}")
    assert elsewhere("replay", 0, "--quiet").returncode == 0

    shrunk = elsewhere("shrink", 0, "--plant", BUG, "--tries", 20, "--out", small)
    assert shrunk.returncode == 0, shrunk.stderr
    said = f"# Shrunk from seed 0, with {BUG} planted; there may be a smaller world."
    assert small.read_text().startswith(said)

    assert elsewhere("scenario", "--plant", BUG, small).stdout == f"{small}: as written\n"
    repaired = elsewhere("scenario", small)
    assert repaired.returncode == 1 and "  - " in repaired.stdout


@pytest.mark.parametrize(
    ("mutant", "said"),
    [
        ("mutants:nope", "there is no mutant 'nope'"),
        ("nope", "'nope' names no mutant: give MODULE:NAME"),
        (":nope", "':nope' names no mutant: give MODULE:NAME"),
        ("no_such_module:nope", "there is no module 'no_such_module': name its directory in"),
    ],
)
def test_no_such_mutant(mutant: str, said: str) -> None:
    ran = elsewhere("run", "--seeds", "0", "--plant", mutant)
    assert ran.returncode == 2 and said in ran.stderr


def test_the_command_line_itself_imports_nothing_that_a_bug_may_be_planted_into() -> None:
    look = "import json, sys, quorate.cli.sim.main; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    loaded = set(json.loads(ran.stdout))
    assert not loaded & {one.module for one in MUTANTS}
