"""The tests that run twice, shown by a small suite of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
import retries

def pytest_collection_modifyitems(items):
    for item in items:
        retries.grant(item)

def pytest_terminal_summary(terminalreporter):
    retries.report(terminalreporter)
"""
SUITE = """
import pytest
from retries import DurabilityViolationError

seen = []

def fail_once(name, error):
    seen.append(name)
    if seen.count(name) == 1:
        raise error

@pytest.mark.interop
def test_race():
    fail_once("race", AssertionError("the other was quicker"))

@pytest.mark.e2e
def test_promise():
    fail_once("promise", DurabilityViolationError("a write is gone"))

def test_ours():
    fail_once("ours", AssertionError("wrong"))

@pytest.mark.cluster
def test_always_wrong():
    raise AssertionError("wrong each time")
"""


@pytest.mark.slow
def test_a_race_runs_again_and_is_reported_and_a_broken_promise_is_not_excused(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n interop\n e2e\n cluster\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        env={"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    failed = set(re.findall(r"^FAILED .*::(\w+)", run.stdout, re.MULTILINE))
    assert failed == {"test_promise", "test_ours", "test_always_wrong"}
    assert "ran a second time: test_suite.py::test_race" in run.stdout
    assert "the other was quicker" in run.stdout
    assert "ran a second time: test_suite.py::test_promise" not in run.stdout
