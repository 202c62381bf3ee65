"""The failing seeds of a campaign: which of them are looked into, and by whom.

Each is a task: it runs the world again and writes its plan and trace, then shrinks it. Their files
are in the folder `_failures/SEED` of the campaign: `plan.txt` (as `sim plan` prints it),
`trace.txt.gz` (as `sim replay` prints it) and `shrunk.txt` (for `sim scenario`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from quorate.campaign.results import FAILURES, Place
from quorate.campaign.spread import spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NOT: Final = "not shrunk"


@dataclass(frozen=True, slots=True)
class Failed:
    """A failing seed, and what was found out about it."""

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


def pick(rows: DataFrame, out: str, most: int) -> list[Failed]:
    """At most so many failing seeds: the first of every broken promise, then the second, ..."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy("failure_check").orderBy("seed")
    failing = rows.where("failure_check is not null").withColumn("nth", F.row_number().over(order))
    return [
        Failed(
            row["seed"],
            row["failure_check"],
            row["failure_message"],
            row["trace_hash"],
            f"{out}/{FAILURES}/{row['seed']}",
        )
        for row in failing.orderBy("nth", "seed").limit(most).collect()
    ]


def look_into(
    spark: SparkSession, chosen: list[Failed], common: dict[str, Any], archive: str | None
) -> list[Failed]:
    """Trace and shrink those that were not shrunk before; all of them, with what is known now.

    `common` holds `out`, and `tries` and `seconds`, the limits of each shrink; `tries` 0: none.
    """
    place = Place(common["out"])
    last = "shrunk.txt" if common["tries"] else "trace.txt.gz"
    fresh = [one for one in chosen if not place.has(f"{FAILURES}/{one.seed}/{last}")]
    told: dict[int, str] = {}
    if fresh:
        rows = [(number, one.seed, one.trace_hash) for number, one in enumerate(fresh)]
        pieces = spark.createDataFrame(rows, "number int, seed long, trace_hash string")
        pieces = pieces.repartitionById(len(fresh), "number").select("seed", "trace_hash")
        for row in spread(pieces, common, archive).collect():
            found = json.loads(row["told"])
            told[found["seed"]] = _in_words(found)
    before = "shrunk before" if common["tries"] else _NOT
    return [replace(one, shrunk=told.get(one.seed, before)) for one in chosen]


def _in_words(found: dict[str, Any]) -> str:
    if not found["again"]:
        return "NOT shrunk: it went another way when it was run again"
    if "tries" not in found:
        return _NOT
    size = f"{found['deeds']} deeds left after {found['tries']} worlds"
    if found["finished"]:
        return f"shrunk: {size}"
    return f"shrunk until its limit was hit after {found['took_s']} s: {size}"
