"""A process on a worker: `python -m quorate.campaign.worker`, one line of JSON in, one out.

It plants a bug first where it is told to: nothing of the code under test may be in memory before.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
from typing import Any

from quorate.base.errors import QuorateError


class OtherCode(QuorateError):
    """This worker does not have the driver's code."""


def main() -> int:
    work = json.loads(_first_line())
    threading.Thread(target=_end_with_the_task, daemon=True).start()
    try:
        prepare(work)
        told = look_into(work) if "seed" in work else run_share(work)
    except QuorateError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(told))
    return 0


def prepare(work: dict[str, Any]) -> None:
    """Have the very code that is asked for in this process.

    Raises OtherCode where it is not here; StaleMutant where the bug cannot be planted any more.
    """
    from quorate.sim.mutants.hunt import find
    from quorate.sim.mutants.plant import plant
    from quorate.sim.version import source_digest

    if (here := source_digest()) != work["digest"]:
        raise OtherCode(
            f"the code here (source {here}) is not the driver's (source {work['digest']}): "
            "let it be shipped, or install the same version"
        )
    if work["plant"] is not None:
        plant(find(work["plant"]))


def run_share(work: dict[str, Any]) -> dict[str, Any]:
    """Run the worlds of some seeds and write their part."""
    from quorate.campaign.results import write_part
    from quorate.sim.campaign import Code, row_of, watched
    from quorate.sim.run import run_seed

    code = Code(*work["code"])
    rows = [row_of(run_seed(seed, watched()), code) for seed in work["seeds"]]
    write_part(work["out"], rows)
    return {"worlds": len(rows)}


def look_into(work: dict[str, Any]) -> dict[str, Any]:
    """Write down what happens in the world of a failing seed, and make it small."""
    from quorate.campaign.results import FAILURES, Place
    from quorate.sim.campaign import Code
    from quorate.sim.draw import draw
    from quorate.sim.plan_text import plan_text
    from quorate.sim.run import checked, run_plan
    from quorate.sim.shrink import shrink
    from quorate.sim.story.worlds import world_text
    from quorate.sim.text import TraceText, trace_end, trace_head

    seed, place = work["seed"], Place(work["out"])
    folder, plan = f"{FAILURES}/{seed}", draw(seed)
    lines = [trace_head(plan, Code(*work["code"]).version)]
    outcome = run_plan(plan, [TraceText(lines.append), *checked()])
    lines += trace_end(outcome)
    place.write(f"{folder}/plan.txt", plan_text(plan).encode())
    trace = gzip.compress("\n".join([*lines, ""]).encode(), mtime=0)
    place.write(f"{folder}/trace.txt.gz", trace)
    if outcome.trace_hash != work["trace_hash"]:
        return {"seed": seed, "again": False}
    if not work["tries"]:
        return {"seed": seed, "again": True}
    began = time.monotonic()
    shrunk = shrink(plan, tries=work["tries"], seconds=work["seconds"])
    comment = f"Shrunk from seed {seed}, {shrunk.tries} worlds tried."
    if not shrunk.is_finished:
        comment += " It was stopped by its limit; there may be a smaller world."
    place.write(f"{folder}/shrunk.txt", world_text(shrunk.outcome, comment).encode())
    return {
        "seed": seed,
        "again": True,
        "tries": shrunk.tries,
        "finished": shrunk.is_finished,
        "took_s": round(time.monotonic() - began, 1),
        "deeds": len(shrunk.plan.deeds),
    }


def _first_line() -> bytes:
    """Of the standard input, which stays open."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(0, 1 << 16)
        if not more:
            os._exit(1)
        line += more
    return line


def _end_with_the_task() -> None:
    """The standard input ends with the task that holds its other end, however that ends."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
