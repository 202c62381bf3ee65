"""A slice of Kafka's own tests with our controllers: a class of the core, and others that the date chooses.

`make kafka-suite` runs all of them.
"""

import pytest

from kafka_suite.manifest import load
from kafka_suite.suite import read, run
from time_budget import LONG, TURN

pytestmark = [pytest.mark.interop, pytest.mark.slow]

CORE = (
    "ClusterToolTest",
    "MetadataQuorumCommandTest",
)
"""They take turns by the date."""
MORE = 12
"""How many of the other invocations run on a day."""
TIMEOUT_S = 900
ENDS_THE_JVM = ("testPrintHelp", "testPrintVersion", "CauseExit")
"""Parts of names of tests that end the JVM by the tool's exit, unless a test of the class that ran
before them has replaced it."""


def chosen():
    """(class, invocation, JUnit's unique id)."""
    passing = load().passing()
    core = [one for one in passing if one[0].rsplit(".", 1)[-1] in CORE]
    others = [
        one
        for one in passing
        if one not in core and not any(part in one[1] for part in ENDS_THE_JVM)
    ]
    if LONG:
        return core + others
    core = [one for one in core if one[0].endswith(f".{CORE[TURN % len(CORE)]}")]
    step = max(1, len(others) // MORE)
    return core + others[TURN % step :: step]


def test_kafkas_own_tests_pass_on_our_controllers(tmp_path):
    wanted = chosen()
    assert len(wanted) >= MORE
    selectors = [word for _, _, unique_id in wanted for word in ("--uid", unique_id)]
    report = run(selectors, "quorate", tmp_path / "reports", TIMEOUT_S * (20 if LONG else 1))
    found = {(one.test_class, one.name): one for one in read(report)}
    failed = [f"{name}: {one.reason}" for name, one in found.items() if one.outcome == "failed"]
    assert failed == []
    passed = {name for name, one in found.items() if one.outcome == "passed"}
    assert {(name, invocation) for name, invocation, _ in wanted} <= passed
