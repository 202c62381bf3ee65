"""A second look at a test that fails where processes that are not ours run against the clock.

Beside a JVM, a Spark cluster or a frozen process a test can lose a race that says nothing of
Quorate. Such a test runs once more, and what its first run said is printed whole at the end, so
that the race gets fixed. A broken promise has no second look: `PromiseBrokenError` fails at once.
"""

import pytest

MARKS = ("interop", "e2e", "cluster")


class PromiseBrokenError(AssertionError):
    """A confirmed write is in no log, or two logs differ where both are committed."""


def grant(item: pytest.Item) -> None:
    """Let `item` run once more if it fails and is one of those."""
    if any(item.get_closest_marker(name) for name in MARKS):
        item.add_marker(pytest.mark.flaky(reruns=1, rerun_except=[PromiseBrokenError.__name__]))


def report(terminal: pytest.TerminalReporter) -> None:
    """Print every first failure that a second look was taken at."""
    for report in terminal.stats.get("rerun", []):
        terminal.section(f"ran a second time: {report.nodeid}", sep="_")
        terminal.line(report.longreprtext)
