"""`quorate sim shrink`: a small world that breaks the same promise as a large one."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import click

from quorate.cli.options import CONTEXT
from quorate.cli.sim_given import plan_of, plant_option

_KEEPS_ALL: Final = 1


@click.command(
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim shrink 4711
  quorate sim shrink 4711 --out tests/sim/scripts/lost_vote.txt
  quorate sim scenario tests/sim/scripts/lost_vote.txt
  quorate sim shrink 0 --plant vote-twice""",
)
@click.argument("what", metavar="SEED|FILE")
@click.option("--out", type=click.Path(dir_okay=False), help="Write it there instead of printing.")
@click.option(
    "--tries",
    type=click.IntRange(1),
    default=600,
    show_default=True,
    help="Run no more worlds than so many.",
)
@click.option(
    "--seconds",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Begin no world after so long.",
)
@plant_option
def shrink(what: str, out: str | None, tries: int, seconds: int, bug: str | None) -> int:
    """Leave out of a failing world all that its failure does not need.

    Prints a world in the format of 'sim scenario': a plan, and under ---- the broken promise.
    Mend the code, let 'sim scenario --rewrite' write the new outcome, and keep the file as a test.
    Interrupted (Ctrl-C), it prints the smallest world so far.
    Exit codes: 0 done, 1 nothing fails in this world, 2 bad input.
    """
    from quorate.sim import shrink as shrinker
    from quorate.sim.story.worlds import world_text

    if out is not None and not Path(out).absolute().parent.is_dir():
        raise click.BadParameter(f"there is no directory for '{out}'", param_hint="--out")
    plan = plan_of(what)
    began = time.monotonic()
    try:
        shrunk = shrinker.shrink(plan, tries=tries, seconds=seconds, say=_say)
    except shrinker.NothingToShrink as error:
        print(f"{what}: {error}", file=sys.stderr)
        return _KEEPS_ALL
    took = f"{shrunk.tries} worlds in {time.monotonic() - began:.0f} s"
    _say(took if shrunk.is_finished else f"{took}, and no more; there may be a smaller world")
    origin = f"seed {plan.seed}" if what.isdecimal() else Path(what).name
    planted = "" if bug is None else f", with {bug} planted"
    text = world_text(shrunk.outcome, f"Shrunk from {origin}{planted}.")
    if out is None:
        click.echo(text, nl=False)
    else:
        Path(out).write_text(text, encoding="utf-8")
        _say(f"written to {out}")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
