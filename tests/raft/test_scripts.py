"""Every scenario in scripts/ plays as written (QUORATE_REWRITE=1 rewrites the outcomes)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorate.sim.scenario.file import read_scenario, run_scenario

SCENARIOS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    written = read_scenario(path)
    played = run_scenario(written, path.name)
    if os.environ.get("QUORATE_REWRITE"):
        path.write_text(played.text)
    assert not played.differences
    assert played.text == written


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 25
