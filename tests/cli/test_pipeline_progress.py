"""The progress of a job: plain lines without a terminal, a bar with one."""

from __future__ import annotations

import io
import os
import time
from collections import namedtuple

from narrow import as_any
from quorate.cli.pipeline import progress as pipeline_progress

Info = namedtuple("Info", "numCompletedTasks numTasks")


class Tracker:
    """A job of nine tasks, three of them done; one stage is gone when it is asked about."""

    def __init__(self):
        self.asked = 0

    def getActiveStageIds(self):
        return [1, 2]

    def getStageInfo(self, stage):
        self.asked += 1
        return Info(3, 9) if stage == 1 else None


class Session:
    def __init__(self):
        self.tracker = Tracker()

    @property
    def sparkContext(self):
        return self

    def statusTracker(self):
        return self.tracker


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_without_a_terminal_each_step_is_a_line(capsys):
    with pipeline_progress.progress("ingest", quiet=False) as bar:
        bar.notify("looking over the input")
        bar.watch(as_any(Session()))
        bar.stop()
    assert capsys.readouterr().err == "ingest: looking over the input\n"


def test_quiet_prints_nothing(capsys):
    with pipeline_progress.progress("ingest", quiet=True) as bar:
        bar.notify("looking over the input")
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_tasks_are_counted(monkeypatch):
    screen, session = Terminal(), Session()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(pipeline_progress, "_EVERY_S", 0.001)
    with pipeline_progress.progress("ingest", quiet=False) as bar:
        bar.notify("taking records")
        bar.watch(as_any(session))
        deadline = time.monotonic() + 60
        while session.tracker.asked < 4 and time.monotonic() < deadline:
            os.sched_yield()
        bar.stop()
    assert "ingest: taking records" in screen.getvalue() and "3/9" in screen.getvalue()
