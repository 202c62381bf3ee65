"""`quorate sim shrink`: reduce a failing world to a small one in which the same check fails."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from quorate.base.atomic_write import write_atomically
from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, ToolCommand, WholeNumber
from quorate.cli.sim.files import check_place
from quorate.cli.sim.options import plan_of, plant_option

if TYPE_CHECKING:
    from quorate.sim.run.run import WorldOutcome

_KEEPS_ALL: Final = 1
_UNFINISHED: Final = "; there may be a smaller world"


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim shrink 4711
  quorate sim shrink 4711 --out tests/sim/scripts/lost_vote.txt
  quorate sim scenario tests/sim/scripts/lost_vote.txt""",
)
@click.argument("what", metavar="SEED|FILE")
@click.option("--out", type=click.Path(dir_okay=False), help="Write it there instead of printing.")
@click.option(
    "--tries",
    type=WholeNumber(1),
    default=600,
    show_default=True,
    help="Run no more worlds than so many.",
)
@click.option(
    "--seconds",
    type=WholeNumber(1),
    default=300,
    show_default=True,
    help="Stop after so long, but finish the first world.",
)
@plant_option
def shrink(what: str, out: str | None, tries: int, seconds: int, bug: str | None) -> int:
    """Remove from a failing world all that its failure does not need.

    Prints a world in the format of 'sim scenario': a plan, and under ---- the failed check.
    Fix the code, let 'sim scenario --rewrite' write the new outcome, and keep the file as a test.
    Interrupted (Ctrl-C), it prints the smallest world so far. With --out every smaller world is
    written there as soon as it is found.
    Exit codes: 0 done, 1 nothing fails in this world, 2 bad input, 130 interrupted.
    """
    from quorate.sim.run import shrink as shrinker
    from quorate.sim.scenario.worlds import world_text

    check_place(out, "--out", what)
    plan = plan_of(what)
    origin = f"seed {plan.seed}" if what.isdecimal() else Path(what).name
    planted = "" if bug is None else f", with {bug} planted"

    def text_of(outcome: WorldOutcome, how: str = "") -> str:
        return world_text(outcome, f"Shrunk from {origin}{planted}{how}.")

    def keep(outcome: WorldOutcome) -> None:
        if out is not None:
            write_atomically(Path(out), text_of(outcome, _UNFINISHED))

    began = time.monotonic()
    try:
        shrunk = shrinker.shrink(plan, tries=tries, seconds=seconds, say=_say, keep=keep)
    except shrinker.NothingToShrinkError as error:
        print(f"{what}: {error}", file=sys.stderr)
        return _KEEPS_ALL
    took = f"{shrunk.tries} worlds in {time.monotonic() - began:.0f} s"
    _say(took if shrunk.is_finished else f"{took}, and no more; there may be a smaller world")
    text = text_of(shrunk.outcome, "" if shrunk.is_finished else _UNFINISHED)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_atomically(Path(out), text)
        _say(f"written to {out}")
    return INTERRUPTED if shrunk.is_interrupted else 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
