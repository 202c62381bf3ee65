"""A Spark standalone cluster on this machine: a master and workers, each a process of its own.

The driver is a process too (`Driver`), so that a session on the cluster can live beside the
`local[2]` one of the other tests: a JVM has one at most.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from interop.process import HOST, wait_for
from narrow import not_none
from quorate.spark.java import find_java_home
from spark.jvm import QUICK_JVM

PATIENCE: Final = 300.0
"""Seconds: a JVM on a machine that is busy with ten other things."""
_SPARK: Final = Path(str(not_none(find_spec("pyspark")).origin)).parent
_SCALA: Final = next((_SPARK / "jars").glob("spark-core_*")).name.split("_")[1].split("-")[0]
_PAGE: Final = re.compile(r"WebUI to \S+, and started at http://\S+:(\d+)")
_MASTER: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_SMALL: Final = (
    *("-Xmx256m", *QUICK_JVM),
    "-Dspark.master.rest.enabled=false",
)
_CONF: Final = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "600m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": " ".join(QUICK_JVM),
    "spark.sql.shuffle.partitions": "2",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.liveUpdate.period": "0",
}
"""The page of the driver shows which executor has tasks; a lost one is given up quickly."""


class _Daemon:
    """A JVM of Spark's with a page, in a process group of its own with all that it starts."""

    def __init__(self, home: Path, kind: str, *arguments: str) -> None:
        home.mkdir(parents=True)
        self._log = home / "log"
        java = find_java_home() / "bin" / "java"
        command = [str(java), *_SMALL, "-cp", f"{_SPARK}/jars/*"]
        command += [f"org.apache.spark.deploy.{kind}", "--host", HOST, *arguments]
        environment = os.environ | {
            "JAVA_HOME": str(java.parent.parent),
            "SPARK_HOME": str(_SPARK),
            "SPARK_SCALA_VERSION": _SCALA,
            "SPARK_LOCAL_DIRS": str(home / "local"),
            "SPARK_LOCAL_IP": HOST,
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, cwd=home, start_new_session=True
            )

    def logged(self, pattern: re.Pattern[str]) -> str:
        """What the log says in the group of this pattern, as soon as it does."""

        def look() -> re.Match[str] | None:
            assert self.process.poll() is None, self._log.read_text()
            return pattern.search(self._log.read_text(errors="replace"))

        return wait_for(look, f"{pattern.pattern} in {self._log}", PATIENCE)[1]

    def page(self) -> Any:
        """What its page says, as JSON."""
        return _get(f"http://{HOST}:{self.logged(_PAGE)}/json/")

    def signal(self, number: int) -> None:
        """To it and all that it started, executors among them."""
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """As kill -9; it is gone when this returns."""
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
        self.process.wait()


class Cluster:
    """A master and its workers, each with one core and 1 GiB for executors."""

    def __init__(self, home: Path, workers: int = 2) -> None:
        self._home = home
        self._started = 0
        self.workers: list[_Daemon] = []
        self._master = _Daemon(
            home / "master", "master.Master", *("--port", "0", "--webui-port", "0")
        )
        try:
            self.url = self._master.logged(_MASTER)
            for _ in range(workers):
                self.start_worker()
            self.wait_until_whole()
        except BaseException:
            self.stop()
            raise

    def start_worker(self) -> None:
        """One more; see wait_until_whole."""
        home = self._home / f"worker-{self._started}"
        self._started += 1
        words = ("--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "1g")
        where = ("--work-dir", str(home / "work"))
        self.workers.append(_Daemon(home, "worker.Worker", *words, *where, self.url))

    def wait_until_whole(self) -> None:
        """Until the master knows every worker."""

        def registered() -> bool:
            alive = [one for one in self._master.page()["workers"] if one["state"] == "ALIVE"]
            return len(alive) == len(self.workers)

        wait_for(registered, f"{len(self.workers)} workers at the master", PATIENCE)

    def hosts(self) -> dict[str, _Daemon]:
        """The worker that runs an executor, by the executor's id."""
        return {str(one["id"]): w for w in self.workers for one in w.page()["executors"]}

    def stop(self) -> None:
        for one in (*self.workers, self._master):
            one.kill()


class Driver:
    """A process with a session on the cluster; jobs are functions of the session, one at a time.

    They and their arguments go there as pickles; so a function must be one of a module.
    """

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self._cluster = cluster
        self._pool = ProcessPoolExecutor(
            1,
            multiprocessing.get_context("spawn"),
            initializer=_open,
            initargs=(cluster.url, {**_CONF, "spark.local.dir": str(home)}),
        )
        self._hosts: dict[str, _Daemon] = {}
        page, application = self._pool.submit(_where).result(timeout=PATIENCE)
        self._api = f"{page}/api/v1/applications/{application}"

    def submit(self, job: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Begin `job(spark, *arguments)`."""
        return self._pool.submit(_run, job, arguments)

    def run_and_lose_a_worker(
        self,
        job: Callable[..., Any],
        *arguments: Any,
        when: Callable[[], object] = lambda: True,
        tries: int = 1,
    ) -> Any:
        """What a job gives, although a worker is killed while tasks run on it and `when` is true.

        Another worker comes in its place at once. AssertionError when there was no such moment;
        a job that changes nothing may be tried more often: its last task may just have reported that
        it was done.
        """
        failed = self._failed_tasks()
        for _ in range(tries):
            running = self.submit(job, *arguments)
            wait_for(
                *(lambda now=running: self._lose_one(now, when), f"a task of {job.__name__}"),
                timeout=PATIENCE,
                every=0.005,
            )
            found = running.result(timeout=PATIENCE)
            if self._failed_tasks() > failed:
                return found
            self._cluster.wait_until_whole()
        raise AssertionError("no task failed: nothing was lost")

    def _failed_tasks(self) -> int:
        return sum(stage["numFailedTasks"] for stage in _get(f"{self._api}/stages"))

    def _lose_one(self, running: Future[Any], when: Callable[[], object]) -> bool:
        """Kill a worker that is at work; false when none is.

        All stand still meanwhile: a small job is over before the driver's page is read.
        """
        assert not running.done(), f"the job was over too early: {running.result()}"
        if any(executor not in self._hosts for executor in self._executors()):
            self._hosts = self._cluster.hosts()
        if not when():
            return False
        for worker in self._cluster.workers:
            worker.signal(signal.SIGSTOP)
        at_work = [executor for executor, tasks in self._executors().items() if tasks]
        busy = [self._hosts[executor] for executor in at_work if executor in self._hosts]
        for lost in busy[:1]:
            lost.kill()
            self._cluster.workers.remove(lost)
        for worker in self._cluster.workers:
            worker.signal(signal.SIGCONT)
        if busy:
            self._cluster.start_worker()
        return bool(busy)

    def _executors(self) -> dict[str, int]:
        """How many tasks each executor has now."""
        found = _get(f"{self._api}/executors")
        return {one["id"]: one["activeTasks"] for one in found if one["id"] != "driver"}

    def stop(self) -> None:
        self._pool.submit(_close).result(timeout=PATIENCE)
        self._pool.shutdown()


@contextmanager
def started(home: Path, workers: int = 2) -> Iterator[Driver]:
    """A driver on a cluster of its own."""
    cluster = Cluster(home / "cluster", workers)
    try:
        driver = Driver(cluster, home / "driver")
        yield driver
        driver.stop()
    finally:
        cluster.stop()


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return json.load(answer)


# What runs in the driver's process

_SESSION: list[Any] = []


def _open(master: str, conf: dict[str, str]) -> None:
    from quorate.spark import session

    spark = session("quorate-cluster-tests", master, storage=None, **conf)
    spark.sparkContext.setLogLevel("ERROR")
    _SESSION.append(spark)


def _where() -> tuple[str, str]:
    context = _SESSION[0].sparkContext
    return context.uiWebUrl, context.applicationId


def _run(job: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return job(_SESSION[0], *arguments)
    except Exception as error:  # one of py4j does not go through a pipe
        raise RuntimeError(f"{type(error).__name__}: {error}") from None


def _close() -> None:
    _SESSION.pop().stop()
