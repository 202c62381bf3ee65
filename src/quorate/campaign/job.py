"""The job: runs a campaign of seeds, and analyses the failing ones.

1. Refuse a directory with results of other code; find the seeds that have no row yet.
2. Ship the code to the workers, if it is not installed there.
3. Run the missing seeds, one task a batch; each task writes a part of the results.
4. Add up all rows.
5. Trace and shrink failing seeds, one task each.
"""

from __future__ import annotations

import re
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import quorate
from quorate.base.errors import QuorateError
from quorate.campaign.failures import FailedSeed, look_into, pick
from quorate.campaign.processes import FAILED, run_in_processes
from quorate.campaign.results import ResultsDirectory, made_by, read_results
from quorate.campaign.totals import CampaignTotals, add_up
from quorate.sim.run.campaign import CampaignError, Code, results_are_there, this_code
from quorate.sim.run.plant import check_mutant
from quorate.sim.run.shrink import SECONDS, TRIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PACKAGE = Path(quorate.__file__).parent


@dataclass(frozen=True, slots=True)
class CampaignSettings:
    """The settings of a campaign."""

    batch: int = 64
    """Seeds of a task, and rows of a file: a lost worker loses one batch, about half a minute."""
    plant: str | None = None
    """A mutant, as `MODULE:NAME` (`sim.run.plant`): a bug that the campaign must find."""
    shipped: bool | None = None
    """Whether to send this package to the workers, where it need not be installed then. None: send
    it unless the master is local."""
    failures: int = 20
    """The largest number of failing seeds that are traced and shrunk."""
    tries: int = TRIES
    """The largest number of runs to shrink one seed; 0: do not shrink."""
    seconds: float = SECONDS
    """After this time, shrinking a seed starts no further run."""


@dataclass(frozen=True, slots=True)
class CampaignSummary:
    """The content of the directory; this job ran `ran` of the seeds, and took `seconds`."""

    out: str
    ran: int
    totals: CampaignTotals
    failures: list[FailedSeed]
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether no seed failed and every coverage point was reached."""
        return not self.totals.failed and not self.totals.not_reached

    def to_json(self) -> dict[str, Any]:
        return {
            "out": self.out,
            "ran": self.ran,
            "seconds": round(self.seconds, 1),
            **self.totals.to_json(),
            "failures": [one.to_json() for one in self.failures],
        }


def run(
    spark: SparkSession,
    seeds: range,
    out: str,
    *,
    resume: bool = False,
    settings: CampaignSettings = CampaignSettings(),
    notify: Callable[[str], None] = lambda _: None,
) -> CampaignSummary:
    """Run the seeds that `out` does not have yet, and analyse those that failed.

    out: a folder that the driver and all workers can access, or a URI
    resume: continue in a folder that has results of the same code

    A task runs a batch of seeds with every check and coverage point. Raises CampaignError where
    `out` cannot be continued, or there are no seeds or no such mutant; TaskFailedError where a task
    fails as often as Spark retries it.
    """
    batch = settings.batch
    if seeds.step != 1 or not seeds or batch < 1:
        raise CampaignError(f"{seeds} in batches of {batch}: there is nothing to run")
    began = time.monotonic()
    # 1
    here = this_code()
    code = here.planted(_known(settings.plant))
    place = ResultsDirectory(out)
    missing, before = _batches(spark, seeds, batch), 0
    if place.has_parts():
        if not resume:
            raise results_are_there(out)
        notify("reading earlier results")
        rows = read_results(spark, out)
        code.accept((_code_fields(one) for one in made_by(rows)), out)
        before = rows.count()
        missing = _missing_of(missing, rows, seeds, batch)
    # 2
    shipped = is_remote(spark) if settings.shipped is None else settings.shipped
    archive = ship(spark) if shipped else None
    place.make()
    common: dict[str, Any] = {
        "out": out,
        "code": _code_fields(code),
        "digest": here.source,
        "plant": settings.plant,
    }
    notify(f"running seeds {seeds.start}..{seeds.stop}")
    # 3; no rows come back and no stage follows, so a lost worker loses only its current batch
    with _short_errors():
        run_in_processes(missing, common, archive).write.format("noop").mode("overwrite").save()
    # 4
    notify("adding up the results")
    rows = read_results(spark, out)
    totals = add_up(rows, code, out)
    failures: list[FailedSeed] = []
    if totals.failed and settings.failures:  # 5
        notify(f"tracing and shrinking {min(totals.failed, settings.failures)} failures")
        common |= {"tries": settings.tries, "seconds": settings.seconds}
        with _short_errors():
            failures = look_into(spark, pick(rows, out, settings.failures), common, archive)
    return CampaignSummary(out, totals.seeds - before, totals, failures, time.monotonic() - began)


class TaskFailedError(QuorateError):
    """A task failed as often as Spark retries it; the message is the last line of its process."""

    exit_code = 70


@contextmanager
def _short_errors() -> Iterator[None]:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _SAID.search(str(error))
        if found is None:
            raise
        raise TaskFailedError(
            f"{found[0]}; finished batches are kept: continue with --resume"
        ) from error


_SAID: Final = re.compile(f"{FAILED} .*")


def results_of(spark: SparkSession, directory: str) -> tuple[DataFrame, Code]:
    """The rows in a directory, and the one version of the code that made them.

    Raises CampaignError where there are no results, or results of several versions.
    """
    if not ResultsDirectory(directory).has_parts():
        raise CampaignError(
            f"{directory}: there are no results of a campaign here: `quorate pipeline campaign`"
        )
    rows = read_results(spark, directory)
    first, *others = made_by(rows)
    first.accept(map(_code_fields, others), f"{directory}: a part of it")
    return rows, first


def _known(bug: str | None) -> str | None:
    """Return the name of the bug if it exists. Raises CampaignError if not."""
    try:
        if bug is not None:
            check_mutant(bug)
        return bug
    except QuorateError as error:
        raise CampaignError(str(error)) from None


def _code_fields(code: Code) -> tuple[str, str, int]:
    version, source, plan_format = asdict(code).values()
    return version, source, plan_format


def _batches(spark: SparkSession, seeds: range, batch: int) -> DataFrame:
    """A partition for each batch: the seeds of the same multiple of `batch`, as an array.

    The limits do not depend on the first seed, so a resumed campaign has the same batches.
    """
    first, last = seeds.start // batch, (seeds.stop - 1) // batch
    batches = spark.range(first, last + 1, 1, last + 1 - first)
    return batches.selectExpr(
        f"sequence(greatest(id * {batch}, {seeds.start}L), "
        f"least((id + 1) * {batch}, {seeds.stop}L) - 1) AS seeds"
    )


def _missing_of(batches: DataFrame, rows: DataFrame, seeds: range, batch: int) -> DataFrame:
    """The batches without the seeds that have a row, in the same partitions."""
    first, last = seeds.start // batch, (seeds.stop - 1) // batch
    place = f"CAST(seeds[0] DIV {batch} - {first} AS INT) AS place"
    done = (
        rows.where(f"seed >= {seeds.start}L AND seed < {seeds.stop}L")
        .selectExpr(f"CAST(seed DIV {batch} - {first} AS INT) AS place", "seed")
        .groupBy("place")
        .agg({"seed": "collect_set"})
        .withColumnsRenamed({"collect_set(seed)": "done"})
    )
    left = batches.selectExpr("*", place).join(done, "place", "left")
    return (
        left.selectExpr("place", "array_except(seeds, coalesce(done, array())) AS seeds")
        .where("size(seeds) > 0")
        .repartitionById(last + 1 - first, "place")
        .select("seeds")
    )


# -- the code for the workers ---------------------------------------------------------------------
def is_remote(spark: SparkSession) -> bool:
    """Whether tasks may run on other machines than the driver, so that they need the code."""
    return not str(spark.sparkContext.master).startswith("local")


def ship(spark: SparkSession) -> str:
    """Send this package to all executors of the session, once; returns its folder name there.

    It is an archive, not `--py-files`, because Spark unpacks archives and the code reads files
    beside it.
    """
    path, name = _archive()
    context = spark.sparkContext
    if not any(uri.endswith(f"#{name}") for uri in context.listArchives):
        context.addArchive(f"{path}#{name}")
    return name


@cache
def _archive() -> tuple[Path, str]:
    """A zip file of the package, and a name made of a digest of its content.

    The file exists until this process ends, since executors that start later fetch it then.
    """
    digest = blake2b(digest_size=8)
    path = Path(_home().name) / "quorate.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_PACKAGE.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                inside, data = str(file.relative_to(_PACKAGE.parent)), file.read_bytes()
                digest.update(f"{inside}\0{len(data)}\0".encode() + data)
                archive.writestr(inside, data)
    return path, f"quorate-{digest.hexdigest()}"


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="quorate-")
