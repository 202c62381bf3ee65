"""One small Spark session for all tests of a worker; they run on two workers of pytest-xdist."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.json_schema import misfits
from quorate.cli import main
from spark.jvm import QUICK_JVM
from spark.shared import SESSIONS, Shared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark.cluster import Driver

# For spark-class and spark-submit, of this process and of the jobs that tests start.
os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(QUICK_JVM))
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(QUICK_JVM))

BESIDE_THE_CLUSTER = re.compile(
    r"campaign/|test_(resolved|settings|stream_\w+|tables_findings)\.py"
)
"""Files whose tests take the session of the worker that has the cluster, which would end long before
the worker with all others. Each has about half of the time."""


def group_of(item: pytest.Item) -> str:
    """The worker's group of a test of the local session. A file has one group."""
    path = item.path.relative_to(Path(__file__).parent).as_posix()
    return "spark-cluster" if BESIDE_THE_CLUSTER.match(path) else "spark"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the session are slow, but for a few: enough to see each kind of job work."""
    here = Path(__file__).parent
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and here in item.path.parents:
            if not item.get_closest_marker("xdist_group"):  # two names would make a third group
                item.add_marker(pytest.mark.xdist_group(group_of(item)))
            if not item.get_closest_marker("smoke"):
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from quorate.spark import session

    home = tmp_path_factory.mktemp("spark")
    found = session(
        "quorate-tests",
        "local[2]",
        storage=None,
        **{
            "spark.driver.memory": "1536m",  # with half of it, a sixth of the time went into GC
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.local.dir": str(home / "local"),
            "spark.ui.showConsoleProgress": "false",
        },
    )
    found.sparkContext.setLogLevel("ERROR")
    yield found
    found.stop()


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """On the cluster of which tests kill workers, one after the other; they are of one group."""
    from spark.cluster import started

    with started(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock is on Berlin's time."""
    with monkeypatch.context() as there:
        there.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


CommandResult = tuple[int, str, str]


@pytest.fixture
def pipeline(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    """Runs `quorate pipeline ...` on the shared session: (exit code, stdout, stderr)."""
    monkeypatch.setattr(SESSIONS, "session", lambda *_, **__: Shared(spark))

    def run(*arguments: object) -> CommandResult:
        capfd.readouterr()
        words = ["pipeline", *map(str, arguments)]
        code = main.run(words)
        out, err = capfd.readouterr()
        if out and "--json" in words:
            assert misfits(words, out) == []
        return code, out, err

    return run
