"""The totals of the worlds of `sim run` and `sim campaign`, and their progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from quorate.cli.sim.options import with_bug

if TYPE_CHECKING:
    from quorate.sim.run.run import Failure, WorldOutcome


class WorldTotals:
    """The sums over all worlds so far."""

    def __init__(self, scenario: str | None = None, bug: str | None = None) -> None:
        self._scenario = scenario
        self._bug = bug
        self.began = time.perf_counter()
        self.worlds = self.events = self.simulated_ms = 0
        self.cpu_s = 0.0
        self.failures: list[tuple[int, Failure]] = []

    def add(self, outcome: WorldOutcome) -> None:
        self.worlds += 1
        self.events += outcome.events
        self.simulated_ms += outcome.simulated_ms
        self.cpu_s += outcome.seconds
        if outcome.failure is not None:
            self.failures.append((outcome.seed, outcome.failure))
            self.failures.sort(key=lambda failed: failed[0])

    @property
    def rate(self) -> float:
        """Events a second, of all processes together."""
        return self.events / max(time.perf_counter() - self.began, 1e-9)

    def facts(self) -> dict[str, object]:
        return {
            "worlds": self.worlds,
            "events": self.events,
            "simulated_ms": self.simulated_ms,
            "seconds": round(time.perf_counter() - self.began, 3),
            "events_per_second_and_core": round(self.events / max(self.cpu_s, 1e-9)),
            "failures": [
                {
                    "seed": seed,
                    "check": failure.check,
                    "message": failure.message,
                    "at_ms": failure.at_ms,
                    "event": failure.event,
                }
                for seed, failure in self.failures
            ],
        }

    def text(self) -> str:
        hours = self.simulated_ms / 3_600_000
        lines = [
            f"{self.worlds} worlds, {self.events} events, {hours:.1f} simulated hours, "
            f"{self.rate:,.0f} events/s"
        ]
        lines += [failed(*one, self._scenario, self._bug) for one in self.failures]
        if self.worlds and not self.failures:
            lines.append("all checks passed")
        return "\n".join(lines)


def failed(seed: int, failure: Failure, scenario: str | None = None, bug: str | None = None) -> str:
    """What went wrong, how to see it again, and how to see it in a smaller world."""
    what, drawn = str(seed), ""
    if scenario is not None:
        what = f"{seed}.plan"
        drawn = f"quorate sim plan {seed} --scenario {scenario} > {what}; "
    again = with_bug(f"{drawn}quorate sim replay {what}", bug)
    smaller = with_bug(f"quorate sim shrink {what}", bug)
    said = f"seed {seed} failed at {failure.at_ms} ms, event {failure.event}: {failure.check}: "
    return f"{said}{failure.message}\n  {again}\n  {smaller}"


def ended_early(why: str, done: int, of: int, what: str, again: str) -> str:
    """How far a command came, and the command that does the rest."""
    return f"{why}: {done} of {of} {what} are done; go on with\n  {again}"


class Show(Protocol):
    def add(self, outcome: WorldOutcome, total: WorldTotals) -> None: ...


class _Silent:
    def add(self, outcome: WorldOutcome, total: WorldTotals) -> None:
        """No progress bar is shown."""


@contextmanager
def progress(count: int, as_json: bool) -> Iterator[Show]:
    """A progress bar on stderr where a person looks."""
    if as_json or not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    task = bar.add_task("worlds", total=count, rate="")

    class Bar:
        def add(self, outcome: WorldOutcome, total: WorldTotals) -> None:
            failed = f", {len(total.failures)} failed" if total.failures else ""
            bar.update(task, advance=1, rate=f"{total.rate:,.0f} events/s{failed}")

    with bar:
        yield Bar()
