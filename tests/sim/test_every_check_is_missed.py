"""No check may be empty: each of its raises is missed by one of the checks' own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def emptied(*tests: Path) -> subprocess.CompletedProcess[str]:
    """These tests, over checks of which each raise is left out in its turn."""
    command = [sys.executable, "-m", "pytest", "-p", "sim.emptied", "-p", "no:cacheprovider"]
    more = {"QUORATE_PURE_PYTHON": "1", "PYTHONPATH": str(HERE.parent)}
    return subprocess.run(
        [*command, "-k", "not a_world", *map(str, tests)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | more,
    )


@pytest.mark.slow
def test_a_test_misses_each_raise_that_is_left_out() -> None:
    run = emptied(*sorted(HERE.glob("test_checks_*.py")))
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
def test_a_raise_that_no_test_misses_is_told() -> None:
    run = emptied(HERE / "test_checks_end.py")
    assert run.returncode == 1
    assert "no test misses elections.py:" in run.stdout
