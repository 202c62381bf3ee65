"""Campaigns: many seeds, a row of Parquet for each. An interrupted campaign can be resumed.

A directory has `part-000000.parquet`, `part-000001.parquet`, ... (a campaign over a cluster names its
parts after their seeds). Each part is written atomically, and together they have each finished seed
once. Any reader of Parquet reads the directory as one table: `spark.read.parquet(DIR)`.
"""

from __future__ import annotations

import fcntl
import re
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.sim.coverage.coverage import Coverage
from quorate.sim.coverage.coverage_of_edges import EdgeCoverage
from quorate.sim.coverage.coverage_points import not_reached
from quorate.sim.plan.plan import FORMAT
from quorate.sim.run.plant import label
from quorate.sim.run.pool import WorkerLostError, run_seeds
from quorate.sim.run.run import WorldOutcome, checked
from quorate.sim.run.version import code_version, source_digest
from quorate.sim.world.interrupt import deferred
from quorate.sim.world.observer import Observer

if TYPE_CHECKING:
    import pyarrow

ROWS: Final = 500
"""The maximum number of rows in one file."""
SECONDS: Final = 60.0
"""The time after which finished rows are written, however few they are."""
_A_DAY: Final = 1_000_000
MADE_BY: Final = ["version", "source", "plan_format"]
"""The columns that identify the code that made a row: those of Code."""
COUNTS: Final = ("events", "simulated_ms", "recovery_ms", "seconds")
"""Columns whose minimum is 0."""
EARLIER_COLUMNS: Final[Mapping[str, str]] = {"healing_ms": "recovery_ms", "marks": "coverage"}
"""By their names in results of earlier releases."""
_NUMBERED: Final = re.compile(r"part-(\d{6,})\.parquet")
_NEEDS_ARROW: Final = (
    "campaigns are written as Parquet, and pyarrow is missing: pip install 'quorate[spark]'"
)


class CampaignError(QuorateError):
    """A directory that this campaign cannot resume."""

    exit_code = 2


def seeds_of_day(day: date, count: int) -> range:
    """The seeds of a date: number n of 2026-11-21 is 20261121000000 + n. At most a million."""
    if not 0 < count <= _A_DAY:
        raise CampaignError(f"a day has seeds for 1 to {_A_DAY} worlds, not for {count}")
    first = (day.year * 10_000 + day.month * 100 + day.day) * _A_DAY
    return range(first, first + count)


def watched() -> list[Observer]:
    """New observers for one world: every check, and the coverage points."""
    return [*checked(), Coverage(), EdgeCoverage()]


@dataclass(frozen=True, slots=True)
class Code:
    """The code that made a row: its version, the digest of its sources, and its plan format."""

    version: str
    source: str
    plan_format: int

    def planted(self, bug: str | None) -> Code:
        """The code with a planted bug. Its results must not be mixed with others."""
        if bug is None:
            return self
        name = label(bug)
        return replace(self, version=f"{self.version}.{name}", source=f"{self.source}.{name}")

    def accept(self, made_by: Iterable[tuple[str, str, int]], where: object) -> None:
        """Raise CampaignError where one of these (version, source, plan format) is not this code.

        `where`: the directory or file, for the message.
        """
        for version, source, plan_format in made_by:
            if (source, plan_format) != (self.source, self.plan_format):
                raise CampaignError(
                    f"{where} was made by version {version} (source {source}), plan format "
                    f"{plan_format}, and this is {self.version} (source {self.source}), plan "
                    f"format {self.plan_format}: begin in another directory"
                )


def this_code() -> Code:
    """The code of this process."""
    return Code(code_version(), source_digest(), FORMAT)


def row_of(outcome: WorldOutcome, code: Code) -> dict[str, Any]:
    """The row of a seed, in the columns of `schema`."""
    failure = outcome.failure
    return {
        "seed": outcome.seed,
        "version": code.version,
        "source": code.source,
        "plan_format": outcome.plan.format,
        "events": outcome.events,
        "simulated_ms": outcome.simulated_ms,
        "recovery_ms": outcome.liveness_ms,
        "trace_hash": outcome.trace_hash,
        "failure_check": None if failure is None else failure.check,
        "failure_message": None if failure is None else failure.message,
        "failure_at_ms": None if failure is None else failure.at_ms,
        "failure_event": None if failure is None else failure.event,
        "seconds": outcome.seconds,
        "coverage": sorted(outcome.coverage.items()),
    }


def results_are_there(where: object) -> CampaignError:
    """The error of a new campaign in a directory that has results."""
    return CampaignError(
        f"{where} holds results already: --resume goes on with them, or name another"
    )


@dataclass(slots=True)
class CampaignSums:
    """The sums over all worlds of a campaign. `failures`: (seed, check, message)."""

    worlds: int = 0
    events: int = 0
    simulated_ms: int = 0
    cpu_s: float = 0.0
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    coverage: Counter[str] = field(default_factory=Counter)

    @property
    def not_reached(self) -> list[str]:
        """The coverage points that no seed reached."""
        return not_reached(self.coverage)

    def add(self, row: dict[str, Any]) -> None:
        self.worlds += 1
        self.events += row["events"]
        self.simulated_ms += row["simulated_ms"]
        self.cpu_s += row["seconds"]
        self.coverage.update(dict(row["coverage"]))
        if row["failure_check"] is not None:
            self.failures.append((row["seed"], row["failure_check"], row["failure_message"]))

    def add_table(self, table: pyarrow.Table) -> None:
        """Add all rows of a table."""
        for row in table.drop_columns("coverage").to_pylist():
            self.add({**row, "coverage": ()})
        for chunk in table["coverage"].chunks:
            counts = zip(chunk.keys.to_pylist(), chunk.items.to_pylist(), strict=True)
            for name, count in counts:
                self.coverage[name] += count


class Campaign:
    """A directory of results of one version of the code.

    Raises CampaignError where the directory is of other code or another plan format, has results
    without `resume`, or has other files; QuorateError where pyarrow is missing. `bug`: a mutant
    that is planted in this process already. Every worker process plants it too.
    """

    def __init__(self, directory: Path, *, resume: bool = False, bug: str | None = None) -> None:
        self.directory = directory
        self.code = this_code().planted(bug)
        self._bug = bug
        self.total = CampaignSums()
        self.done: set[int] = set()
        self._parts = 0
        self._arrow = _arrow()
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CampaignError(f"{directory}: cannot be made: {error.strerror}") from None
        self._taken_up = _parts_in(directory)
        if self._taken_up and not resume:
            raise results_are_there(directory)
        for part in self._taken_up:
            self._take_up(part)

    def run(self, seeds: Sequence[int], jobs: int) -> Generator[WorldOutcome, None, None]:
        """Run the seeds that are not done yet and write their rows; yields each outcome.

        Finished rows are written even if the caller stops early. Raises CampaignError where another
        campaign writes to this directory, and WorkerLostError where a process was killed.
        """
        with _alone(self.directory):
            if _parts_in(self.directory) != self._taken_up:
                raise CampaignError(
                    f"another campaign has written to {self.directory} meanwhile: say it again"
                )
            yield from self._run(seeds, jobs)

    def _run(self, seeds: Sequence[int], jobs: int) -> Generator[WorldOutcome, None, None]:
        missing = seeds if not self.done else [seed for seed in seeds if seed not in self.done]
        rows: list[dict[str, Any]] = []
        written = time.monotonic()
        try:
            with closing(run_seeds(missing, jobs, watched, bug=self._bug)) as outcomes:
                for outcome in outcomes:
                    rows.append(row_of(outcome, self.code))
                    self.total.add(rows[-1])
                    if len(rows) >= ROWS or time.monotonic() - written > SECONDS:
                        with deferred():
                            self._write(rows)
                            rows, written = [], time.monotonic()
                    yield outcome
        except WorkerLostError as lost:
            said = f"{lost}; what was done until then is written: go on with --resume"
            raise WorkerLostError(said) from None
        finally:
            if rows:
                with deferred():
                    self._write(rows)

    # -- files --------------------------------------------------------------------------------
    def _write(self, rows: Iterable[dict[str, Any]]) -> None:
        """Write a part atomically: it is renamed after it is complete.

        The caller defers signals. An interrupted writer stays open in the traceback, and its last
        bytes would reach the file after a second write to the same name. Raises OSError with the
        name of the part.
        """
        from pyarrow import parquet

        table = self._arrow.Table.from_pylist(list(rows), schema=schema())
        path = self.directory / f"part-{self._parts:06}.parquet"
        unfinished = path.with_name(f".{path.name}.unfinished")
        try:
            parquet.write_table(table, unfinished, compression="zstd")
            unfinished.replace(path)
        except OSError as error:
            unfinished.unlink(missing_ok=True)
            said = f"{error}; what was written before stays: make room and go on with --resume"
            raise OSError(error.errno, said, str(path)) from None
        self._parts += 1
        self._taken_up.append(path)

    def _take_up(self, path: Path) -> None:
        """Add the rows of a part that an earlier run wrote."""
        from pyarrow import parquet

        try:
            table = parquet.read_table(path)
        except (OSError, self._arrow.ArrowException) as error:
            raise CampaignError(f"{path} cannot be read: {error}") from None
        names = [EARLIER_COLUMNS.get(name, name) for name in table.column_names]
        table = table.rename_columns(names)
        if not table.schema.equals(schema()):
            raise CampaignError(f"{path} is no part of a campaign: it has other columns")
        columns = table.select(MADE_BY).to_pydict().values()
        self.code.accept(set(zip(*columns, strict=True)), path)
        seeds = table["seed"].to_pylist()
        twice = [seed for seed, times in Counter(seeds).items() if times > 1 or seed in self.done]
        if twice:
            raise CampaignError(
                f"{path} has seed {twice[0]}, which is there already ({len(twice)} such seeds): "
                "move one of the files away"
            )
        for name in COUNTS:
            if any(number < 0 for number in table[name].to_pylist()):
                raise CampaignError(f"{path} is no part of a campaign: its {name} fall below 0")
        self.done.update(seeds)
        self.total.add_table(table)
        if number := _NUMBERED.fullmatch(path.name):
            self._parts = int(number[1]) + 1


def schema() -> pyarrow.Schema:
    """The columns of a campaign's table, which has one row for each seed."""
    arrow = _arrow()
    return arrow.schema(
        [
            arrow.field("seed", arrow.int64(), nullable=False),
            arrow.field("version", arrow.string(), nullable=False),
            arrow.field("source", arrow.string(), nullable=False),
            arrow.field("plan_format", arrow.int32(), nullable=False),
            arrow.field("events", arrow.int64(), nullable=False),
            arrow.field("simulated_ms", arrow.int64(), nullable=False),
            arrow.field("recovery_ms", arrow.int64(), nullable=False),
            arrow.field("trace_hash", arrow.string(), nullable=False),
            arrow.field("failure_check", arrow.string()),
            arrow.field("failure_message", arrow.string()),
            arrow.field("failure_at_ms", arrow.int64()),
            arrow.field("failure_event", arrow.int64()),
            arrow.field("seconds", arrow.float64(), nullable=False),
            arrow.field("coverage", arrow.map_(arrow.string(), arrow.int64()), nullable=False),
        ]
    )


def _parts_in(directory: Path) -> list[Path]:
    return sorted(directory.glob("part-*.parquet"))


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Lock the directory: two campaigns would overwrite each other's parts."""
    with (directory / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = f"another campaign is at work in {directory}: name another directory"
            raise CampaignError(said) from None
        except OSError as error:
            said = f"{directory} cannot be locked: {error.strerror}; name another directory"
            raise CampaignError(said) from None
        yield


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise QuorateError(_NEEDS_ARROW) from None
    return pyarrow
