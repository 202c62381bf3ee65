"""Which mutants do unit tests find? `python -m mutants.unit_tests [NAME...]`

Prints the first failing test of each mutant. Tests are collected once; each mutant is planted in a
fork. Tests that draw their input do not count: they may find a mutant today and miss it tomorrow.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from mutants import find
from quorate._pure import prefer_sources

_TESTS: Final = Path(__file__).resolve().parents[1]
_PACKAGES: Final = ("raft", "replica", "node", "controller", "storage", "formats")
_RANDOM: Final = ("test_random_walk", "test_reference_models")
_TIMEOUT_S: Final = 300
_FAILED: Final = 1


class UnitTestRun:
    """A pytest plugin that runs the collected tests once for each mutant."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [item for item in session.items if not _draws(item)]
        for name in self._names:
            package = find(name).module.split(".")[1]
            # The tests of the mutated package find it soonest.
            first = f"tests/{package}/"
            ordered = sorted(items, key=lambda item: not item.nodeid.startswith(first))
            print(f"{name:36} {_first_failure(name, ordered) or 'no unit test fails'}", flush=True)
        return True


class _Failures:
    """Ends the fork with the first failure, and writes its name to the pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._pipe, report.nodeid.encode())
            os._exit(_FAILED)


def _first_failure(name: str, items: list[pytest.Item]) -> str:
    """Run the tests with the mutant in a fork; the first failing test, "" where all pass."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(_TIMEOUT_S)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            # `mutants.plant` decides about compiled code: that is settled before collection.
            from mutants.mutant import plant

            plant(find(name))
            plugins = items[0].config.pluginmanager
            plugins.unregister(name="terminalreporter")
            plugins.register(_Failures(writing))
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        failure = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"timeout after {_TIMEOUT_S} s"
    return failure or ("the mutant cannot be planted" if os.WEXITSTATUS(status) else "")


def _draws(item: pytest.Item) -> bool:
    function = getattr(item, "obj", None)
    return hasattr(function, "hypothesis") or any(name in item.nodeid for name in _RANDOM)


def main(names: Sequence[str]) -> int:
    os.environ["QUORATE_PURE_PYTHON"] = "1"
    prefer_sources(kept="quorate.wire._native")
    from mutants.catalog import MUTANTS

    chosen = [find(name).name for name in names] or [mutant.name for mutant in MUTANTS]
    folders = [str(_TESTS / package) for package in _PACKAGES]
    words = ["-p", "no:cacheprovider", "-m", "not slow and not interop", *folders]
    return int(pytest.main(words, plugins=[UnitTestRun(chosen)]))


if __name__ == "__main__":
    os.chdir(_TESTS.parent)
    sys.exit(main(sys.argv[1:]))
