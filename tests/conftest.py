"""For all tests: values are really frozen, and property tests take what a loaded machine takes."""

import os
from pathlib import Path

# Processes that tests start find the development packages beside the tests, too (`mutants`).
_HERE = str(Path(__file__).parent)
_PATHS = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
if _HERE not in _PATHS:
    os.environ["PYTHONPATH"] = os.pathsep.join([*_PATHS, _HERE])

from quorate.base import frozen  # noqa: E402

frozen.held_at_run_time = True  # before any module that has such values is imported

import gc  # noqa: E402
import signal  # noqa: E402
from collections.abc import Iterator  # noqa: E402

import hypothesis.core  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

import retries  # noqa: E402
from time_budget import DAY, examples  # noqa: E402

settings.register_profile(
    "quorate",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("quorate")


def pytest_configure(config: pytest.Config) -> None:
    """Seed the property tests by the date, unless --hypothesis-seed gives another seed."""
    if config.getoption("hypothesis_seed", None) is None:
        hypothesis.core.global_force_seed = DAY  # type: ignore[assignment]  # Hypothesis declares None only


# What nohup, or a shell that runs a job in the background, ignores would be ignored by the programs
# that the tests start and stop, too.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


@pytest.fixture(autouse=True)
def restored_handlers() -> Iterator[None]:
    """A command that runs in the process of the tests leaves its handlers: one ends the process."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture
def default_interrupt() -> Iterator[None]:
    """Python's own handler of SIGINT. Spark, in the process of other tests, leaves another."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


LONGEST = ("spark", "spark-cluster")
"""The groups of tests that take minutes: begun later, one of them would run to the end alone."""


def turn(item: pytest.Item) -> tuple[int, bool]:
    """Before which others a worker of several takes it."""
    group = item.get_closest_marker("xdist_group")
    name = group.args[0] if group else None
    first = LONGEST.index(name) if name in LONGEST else len(LONGEST)
    return first, item.get_closest_marker("slow") is None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to `make interpreted` what a compiled core cannot take.

    A worker of several takes what is long before what is short, so that all of them end together.
    """
    for item in items:
        retries.grant(item)
    if hasattr(config, "workerinput"):
        items.sort(key=turn)
    from quorate.raft import core

    if core.__file__.endswith(".py"):
        return
    left = {item for item in items if item.get_closest_marker("interpreted")}
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Leave the collected tests out of every full garbage collection: they live as long as the process."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    retries.report(terminalreporter)
