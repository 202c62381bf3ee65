"""The analysis of a campaign's failing seeds: one task each.

1. Run the seed again, and write its plan and trace.
2. Shrink the plan to a smaller one that still fails.

The files are in the folder `_failures/SEED` of the campaign: `plan.txt` (as `sim plan` prints it),
`trace.txt.gz` (as `sim replay` prints it) and `shrunk.txt` (for `sim scenario`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from quorate.campaign.processes import run_in_processes
from quorate.campaign.results import FAILURES, ResultsDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT: Final = "not shrunk"


@dataclass(frozen=True, slots=True)
class FailedSeed:
    """A failing seed, and the result of its analysis.

    check: the failed check; shrunk: the result of shrinking as text
    """

    seed: int
    check: str
    message: str
    trace_hash: str
    folder: str
    shrunk: str = _NOT

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "check": self.check,
            "message": self.message,
            "folder": self.folder,
            "shrunk": self.shrunk,
        }


def pick(rows: DataFrame, out: str, most: int) -> list[FailedSeed]:
    """Return at most `most` failing seeds: the first of each failed check, then the second of each, ..."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy("failure_check").orderBy("seed")
    failing = rows.where("failure_check is not null").withColumn("nth", F.row_number().over(order))
    return [
        FailedSeed(
            row["seed"],
            row["failure_check"],
            row["failure_message"],
            row["trace_hash"],
            f"{out}/{FAILURES}/{row['seed']}",
        )
        for row in failing.orderBy("nth", "seed").limit(most).collect()
    ]


def look_into(
    spark: SparkSession, chosen: list[FailedSeed], common: dict[str, Any], archive: str | None
) -> list[FailedSeed]:
    """Trace and shrink the seeds that have no result yet; returns all of them, with the results.

    common: `out`, and the limits of each shrink: `tries` (0: do not shrink) and `seconds`
    """
    place = ResultsDirectory(common["out"])
    last = "shrunk.txt" if common["tries"] else "trace.txt.gz"
    fresh = [one for one in chosen if not place.has(f"{FAILURES}/{one.seed}/{last}")]
    results: dict[int, str] = {}
    if fresh:
        rows = [(number, one.seed, one.trace_hash) for number, one in enumerate(fresh)]
        pieces = spark.createDataFrame(rows, "number int, seed long, trace_hash string")
        pieces = pieces.repartitionById(len(fresh), "number").select("seed", "trace_hash")
        for row in run_in_processes(pieces, common, archive).collect():
            found = json.loads(row["result"])
            results[found["seed"]] = _description(found)
    before = "shrunk before" if common["tries"] else _NOT
    return [replace(one, shrunk=results.get(one.seed, before)) for one in chosen]


def _description(found: dict[str, Any]) -> str:
    if not found["again"]:
        return "NOT shrunk: another run of the seed had another trace"
    if "tries" not in found:
        return _NOT
    size = f"{found['fault_events']} fault events left after {found['tries']} runs"
    if found["finished"]:
        return f"shrunk: {size}"
    return f"shrunk until a limit was reached after {found['took_s']} s: {size}"
