"""Each raise of the checks is tested: without it, one of the checks' own tests fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def run_with_raises_removed(*tests: Path) -> subprocess.CompletedProcess[str]:
    """Run these tests with each raise of the checks removed in turn."""
    command = [sys.executable, "-m", "pytest", "-p", "sim.raise_mutation", "-p", "no:cacheprovider"]
    more = {"QUORATE_PURE_PYTHON": "1", "PYTHONPATH": str(HERE.parent)}
    return subprocess.run(
        [*command, "-k", "not a_world", *map(str, tests)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | more,
    )


@pytest.mark.slow
def test_each_raise_is_tested() -> None:
    run = run_with_raises_removed(*sorted(HERE.glob("test_checks_*.py")))
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.slow
def test_a_raise_without_a_test_is_reported() -> None:
    run = run_with_raises_removed(HERE / "test_checks_whole_worlds.py")
    assert run.returncode == 1
    assert "no test fails without elections.py:" in run.stdout
