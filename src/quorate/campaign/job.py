"""The job: seeds in; results, coverage, and traces of what failed out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from quorate.base.errors import QuorateError
from quorate.campaign.failures import Failed, look_into, pick
from quorate.campaign.results import Place, made_by, read_results
from quorate.campaign.ship import is_remote, ship
from quorate.campaign.spread import FAILED, spread
from quorate.campaign.totals import Totals, add_up
from quorate.sim.campaign import CampaignError, Code, results_are_there, this_code
from quorate.sim.mutants.hunt import find
from quorate.sim.shrink import SECONDS, TRIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Settings:
    """How a campaign is run."""

    batch: int = 64
    """Seeds of a task: what a lost worker costs, and the rows of a file. About half a minute."""
    plant: str | None = None
    """A bug of `quorate.sim.mutants` in the code under test, to see that it is found."""
    shipped: bool | None = None
    """Does this package travel to the workers, or is it installed there? None: it travels when
    the master is not local."""
    failures: int = 20
    """So many failing seeds are traced and shrunk."""
    tries: int = TRIES
    """The most worlds that are run to shrink one; 0: none is shrunk."""
    seconds: float = SECONDS
    """After these no world is begun to shrink one."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What is in the directory now; `ran` seeds of it are from this job, which took `seconds`."""

    out: str
    ran: int
    totals: Totals
    failures: list[Failed]
    seconds: float

    @property
    def is_clean(self) -> bool:
        """No seed failed, and no mark stayed cold."""
        return not self.totals.failed and not self.totals.cold

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
    settings: Settings = Settings(),
    tell: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Run the seeds that `out` does not have yet, and look into those that failed.

    `out` is a folder that the driver and all workers see, or a URI. A task runs a batch of seeds,
    with every check and mark, and writes their rows. `resume` goes on in a folder that has results
    of the same code. Raises CampaignError where `out` cannot be gone on with, or there are no seeds
    or no such bug to plant; TaskFailed where a task fails again and again.
    """
    batch = settings.batch
    if seeds.step != 1 or not seeds or batch < 1:
        raise CampaignError(f"{seeds} in batches of {batch}: there is nothing to run")
    began = time.monotonic()
    here = this_code()
    code = here.planted(_known(settings.plant))
    place = Place(out)
    missing, before = _shares(spark, seeds, batch), 0
    if place.has_parts():
        if not resume:
            raise results_are_there(out)
        tell("looking for what is done")
        rows = read_results(spark, out)
        code.accept((_triple(one) for one in made_by(rows)), out)
        before = rows.count()
        missing = _without(missing, rows, seeds, batch)
    shipped = is_remote(spark) if settings.shipped is None else settings.shipped
    archive = ship(spark) if shipped else None
    place.make()
    common: dict[str, Any] = {
        "out": out,
        "code": _triple(code),
        "digest": here.source,
        "plant": settings.plant,
    }
    tell(f"running seeds {seeds.start}..{seeds.stop}")
    # No rows come back and no stage follows: a lost worker loses what it was doing, and no more.
    with _in_one_line():
        spread(missing, common, archive).write.format("noop").mode("overwrite").save()
    tell("adding up")
    rows = read_results(spark, out)
    totals = add_up(rows, code, out)
    failures: list[Failed] = []
    if totals.failed and settings.failures:
        tell(f"tracing and shrinking {min(totals.failed, settings.failures)} failures")
        common |= {"tries": settings.tries, "seconds": settings.seconds}
        with _in_one_line():
            failures = look_into(spark, pick(rows, out, settings.failures), common, archive)
    return Summary(out, totals.seeds - before, totals, failures, time.monotonic() - began)


class TaskFailed(QuorateError):
    """A task failed as often as Spark lets it: what its process said at its end."""

    exit_code = 70


@contextmanager
def _in_one_line() -> Iterator[None]:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _SAID.search(str(error))
        if found is None:
            raise
        raise TaskFailed(f"{found[0]}; what is done stays: go on with --resume") from error


_SAID: Final = re.compile(f"{FAILED} .*")


def results_of(spark: SparkSession, directory: str) -> tuple[DataFrame, Code]:
    """The rows in a directory and the one code that made them.

    Raises CampaignError where there are no results, or of more than one code.
    """
    if not Place(directory).has_parts():
        raise CampaignError(
            f"{directory}: there are no results of a campaign here: `quorate pipeline campaign`"
        )
    rows = read_results(spark, directory)
    first, *others = made_by(rows)
    first.accept(map(_triple, others), f"{directory}: a part of it")
    return rows, first


def _known(bug: str | None) -> str | None:
    """Raises CampaignError where there is no such bug."""
    try:
        return None if bug is None else find(bug).name
    except QuorateError as error:
        raise CampaignError(str(error)) from None


def _triple(code: Code) -> tuple[str, str, int]:
    version, source, plan_format = asdict(code).values()
    return version, source, plan_format


def _shares(spark: SparkSession, seeds: range, batch: int) -> DataFrame:
    """A partition for each share: the seeds of the same multiple of `batch`, as an array."""
    first, last = seeds.start // batch, (seeds.stop - 1) // batch
    shares = spark.range(first, last + 1, 1, last + 1 - first)
    return shares.selectExpr(
        f"sequence(greatest(id * {batch}, {seeds.start}L), "
        f"least((id + 1) * {batch}, {seeds.stop}L) - 1) AS seeds"
    )


def _without(shares: DataFrame, rows: DataFrame, seeds: range, batch: int) -> DataFrame:
    """The shares without the seeds that have a row, in partitions as before."""
    first, last = seeds.start // batch, (seeds.stop - 1) // batch
    place = f"CAST(seeds[0] DIV {batch} - {first} AS INT) AS place"
    done = (
        rows.where(f"seed >= {seeds.start}L AND seed < {seeds.stop}L")
        .selectExpr(f"CAST(seed DIV {batch} - {first} AS INT) AS place", "seed")
        .groupBy("place")
        .agg({"seed": "collect_set"})
        .withColumnsRenamed({"collect_set(seed)": "done"})
    )
    left = shares.selectExpr("*", place).join(done, "place", "left")
    return (
        left.selectExpr("place", "array_except(seeds, coalesce(done, array())) AS seeds")
        .where("size(seeds) > 0")
        .repartitionById(last + 1 - first, "place")
        .select("seeds")
    )
