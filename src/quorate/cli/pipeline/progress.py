"""The progress bar of Spark jobs: the current step, and how many of its tasks are done."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

_EVERY_S: Final = 0.25


class ProgressBar:
    """Reports progress on stderr; without a terminal, one line for each step."""

    def __init__(self, name: str, shown: Progress | None, quiet: bool) -> None:
        self._name, self._shown, self._quiet = name, shown, quiet
        self._task: TaskID | None = None
        if shown is not None:
            self._task = shown.add_task(name, total=None)
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None

    def notify(self, text: str) -> None:
        """Report that a step begins."""
        if self._shown is not None and self._task is not None:
            self._shown.update(self._task, description=f"{self._name}: {text}", total=None)
        elif not self._quiet:
            print(f"{self._name}: {text}", file=sys.stderr, flush=True)

    __call__ = notify

    def watch(self, spark: SparkSession) -> None:
        """Count the tasks of the stages that run."""
        if self._shown is not None:
            self._watcher = threading.Thread(target=self._watch, args=(spark,), daemon=True)
            self._watcher.start()

    def stop(self) -> None:
        """Stop watching Spark: call this before its session ends."""
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()

    def clear(self) -> None:
        """Remove the bar, before the process ends or prints its answer."""
        if self._shown is not None:
            self._shown.stop()

    def _watch(self, spark: SparkSession) -> None:
        tracker = spark.sparkContext.statusTracker()
        while not self._ended.wait(_EVERY_S):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            known = [info for info in infos if info is not None]
            if known and self._shown is not None and self._task is not None:
                done = sum(info.numCompletedTasks for info in known)
                total = sum(info.numTasks for info in known)
                self._shown.update(self._task, completed=done, total=total)


@contextmanager
def progress(name: str, *, quiet: bool) -> Iterator[ProgressBar]:
    """A bar where stderr is a terminal, else plain lines; nothing when quiet."""
    if quiet or not sys.stderr.isatty():
        yield ProgressBar(name, None, quiet)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.progress import Progress as Shown

    columns = (
        *(SpinnerColumn(), TextColumn("{task.description}"), BarColumn()),
        *(MofNCompleteColumn(), TimeElapsedColumn()),
    )
    with Shown(*columns, console=Console(stderr=True), transient=True) as shown:
        yield ProgressBar(name, shown, quiet)
