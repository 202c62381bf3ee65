"""The process of a task: `python -m quorate.campaign.worker`, one line of JSON in, one out.

It plants a mutant first, if the work has one, so nothing of the code under test may be imported
before: functions below import what they need.
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


class CodeMismatchError(QuorateError):
    """The code of this worker is not the driver's."""


def main() -> int:
    work = json.loads(_first_line())
    threading.Thread(target=_end_with_the_task, daemon=True).start()
    try:
        prepare(work)
        result = analyse_failure(work) if "seed" in work else run_batch(work)
    except QuorateError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result))
    return 0


def prepare(work: dict[str, Any]) -> None:
    """Check that this process has the driver's code, and plant the mutant if there is one.

    Raises CodeMismatchError, and QuorateError where the mutant cannot be planted.
    """
    from quorate.sim.run.plant import plant
    from quorate.sim.run.version import source_digest

    if (here := source_digest()) != work["digest"]:
        raise CodeMismatchError(
            f"the code here (source {here}) is not the driver's (source {work['digest']}): "
            "let the job ship it (--ship), or install the same version"
        )
    if work["plant"] is not None:
        plant(work["plant"])


def run_batch(work: dict[str, Any]) -> dict[str, Any]:
    """Run some seeds, and write their part of the results."""
    from quorate.campaign.results import write_part
    from quorate.sim.run.campaign import Code, row_of, watched
    from quorate.sim.run.run import run_seed

    code = Code(*work["code"])
    rows = [row_of(run_seed(seed, watched()), code) for seed in work["seeds"]]
    write_part(work["out"], rows)
    return {"worlds": len(rows)}


def analyse_failure(work: dict[str, Any]) -> dict[str, Any]:
    """Write plan and trace of a failing seed, and shrink it."""
    from quorate.campaign.results import FAILURES, ResultsDirectory
    from quorate.sim.plan.draw import draw
    from quorate.sim.plan.text import plan_text
    from quorate.sim.render.text import TraceText, trace_end, trace_head
    from quorate.sim.run.campaign import Code
    from quorate.sim.run.run import checked, run_plan
    from quorate.sim.run.shrink import shrink
    from quorate.sim.scenario.worlds import world_text

    seed, place = work["seed"], ResultsDirectory(work["out"])
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
    comment = f"Shrunk from seed {seed} in {shrunk.tries} runs."
    if not shrunk.is_finished:
        comment += " A limit stopped the shrinking; a smaller plan may exist."
    place.write(f"{folder}/shrunk.txt", world_text(shrunk.outcome, comment).encode())
    return {
        "seed": seed,
        "again": True,
        "tries": shrunk.tries,
        "finished": shrunk.is_finished,
        "took_s": round(time.monotonic() - began, 1),
        "fault_events": len(shrunk.plan.fault_events),
    }


def _first_line() -> bytes:
    """The first line of standard input, which stays open."""
    line = b""
    while not line.endswith(b"\n"):
        more = os.read(0, 1 << 16)
        if not more:
            os._exit(1)
        line += more
    return line


def _end_with_the_task() -> None:
    """Exit when standard input closes: the task holds its other end, and closes it however it ends."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
