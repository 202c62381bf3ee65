"""Planted bugs that a drawn world hardly ever meets: a kept world does, at once."""

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
from quorate.sim.mutants.hunt import find
from quorate.sim.mutants.plant import plant
plant(find(sys.argv[1]))
from quorate.sim.story.file import read_story
from quorate.sim.story.worlds import parse_world
from quorate.sim.run import checked, run_plan
failure = run_plan(parse_world(read_story(Path(sys.argv[2])), sys.argv[2]).plan, checked()).failure
print(failure and failure.check)
"""
FOUND = [
    ("version-kept-on-truncation", "world_upgrade_cut_off", "voter set"),
    (
        "snapshot-of-a-later-version",
        "world_snapshot_where_an_upgrade_begins",
        "snapshot of what is committed",
    ),
    ("voters-forgotten-one-too-far", "world_snapshot_where_a_removal_begins", "voter set"),
    ("cache-counts-as-medium", "world_power_cut_behind_a_kill", "durable means durable"),
    ("busy-disk-hangs", "world_record_for_a_busy_disk", "a leader needs its disk"),
    (
        "snapshot-unverified-as-it-is-loaded",
        "world_snapshot_rots_once_it_is_verified",
        "applied state",
    ),
    (
        "place-unchecked-as-it-is-read",
        "world_base_offset_rots_once_it_is_verified",
        "applied state",
    ),
]


@pytest.mark.parametrize(("mutant", "world", "check"), FOUND, ids=[name for name, *_ in FOUND])
def test_a_kept_world_finds_it(mutant: str, world: str, check: str) -> None:
    command = [sys.executable, "-c", PLAY, mutant, str(SCRIPTS / f"{world}.txt")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
    assert run.stdout == f"{check}\n", run.stderr
