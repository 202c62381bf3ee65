"""Mutants that the world of a seed hardly ever finds: a kept world finds each at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
PLAY = """\
import sys
from pathlib import Path
import mutants
mutants.plant(sys.argv[1])
from quorate.sim.scenario.file import read_scenario
from quorate.sim.scenario.worlds import parse_world
from quorate.sim.run.run import checked, run_plan
failure = run_plan(parse_world(read_scenario(Path(sys.argv[2])), sys.argv[2]).plan, checked()).failure
print(failure and failure.check)
"""
FOUND = [
    ("kraft-version-kept-on-truncation", "world_upgrade_cut_off", "voter set"),
    (
        "snapshot-of-a-later-kraft-version",
        "world_snapshot_where_an_upgrade_begins",
        "snapshot of what is committed",
    ),
    ("voter-set-compacted-too-far", "world_snapshot_where_a_removal_begins", "voter set"),
    ("recovered-log-not-synced", "world_power_cut_behind_a_kill", "recovery"),
    ("busy-disk-counts-as-hanging", "world_record_for_a_busy_disk", "disk stall ends leadership"),
    (
        "snapshot-unverified-on-load",
        "world_snapshot_rots_once_it_is_verified",
        "applied state",
    ),
]


@pytest.mark.parametrize(("mutant", "world", "check"), FOUND, ids=[name for name, *_ in FOUND])
def test_a_kept_world_finds_it(mutant: str, world: str, check: str) -> None:
    command = [sys.executable, "-c", PLAY, mutant, str(SCRIPTS / f"{world}.txt")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert run.stdout == f"{check}\n", run.stderr
