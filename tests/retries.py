"""A second run of a test that fails beside processes of others.

Beside a JVM, a Spark cluster or a frozen process a test can lose a race that says nothing about
Quorate. Such a test runs once more. The end of the run prints its first failure whole, so that
the race gets fixed. A lost or diverging committed write gets no second run:
`DurabilityViolationError` fails at once.
"""

import pytest

MARKS = ("interop", "e2e", "cluster")


class DurabilityViolationError(AssertionError):
    """A confirmed write is in no log, or two logs differ where both are committed."""


def grant(item: pytest.Item) -> None:
    """Let `item` run once more if it fails and runs beside such a process."""
    if any(item.get_closest_marker(name) for name in MARKS):
        item.add_marker(
            pytest.mark.flaky(reruns=1, rerun_except=[DurabilityViolationError.__name__])
        )


def report(terminal: pytest.TerminalReporter) -> None:
    """Print the first failure of every test that ran twice."""
    for report in terminal.stats.get("rerun", []):
        terminal.section(f"ran a second time: {report.nodeid}", sep="_")
        terminal.line(report.longreprtext)
