"""`quorate sim explore`: every order of every event over a few real cores.

Exit codes: 0 every law holds as deep as was looked, 1 one is broken, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.whole import write_whole
from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, json_option
from quorate.cli.sim_files import check_place

if TYPE_CHECKING:
    from quorate.sim.explore.search import Progress, Result

_BUDGET: Final = {
    "leaps": "How often all timers of a replica ring.",
    "rests": "How often the backoff of a replica ends.",
    "crashes": "How often a replica crashes.",
    "fails": "How often a message is lost and the asker told.",
    "losses": "How often a follower hears that its leader's connection broke.",
    "proposals": "How many records are proposed.",
    "changes": "How often a client asks for a voter change.",
}


def _budget_options(command: Any) -> Any:
    for name, text in reversed(_BUDGET.items()):
        command = click.option(f"--{name}", type=click.IntRange(0, 100), help=text)(command)
    return command


@click.command(
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim explore election --depth 12
  quorate sim explore removal --depth 10 --crashes 1 --out broken.txt""",
)
@click.argument(
    "setup",
    type=click.Choice(["election", "replication", "stale", "split", "removal", "joining"]),
    default="removal",
)
@click.option(
    "--depth", type=click.IntRange(0, 10_000), default=9, show_default=True, help="Most events."
)
@click.option("--epochs", type=click.IntRange(1, 100), help="Leave out states in higher epochs.")
@_budget_options
@click.option("--out", metavar="FILE", help="Write the story of a broken law there.")
@json_option
def explore(
    setup: str,
    depth: int,
    out: str | None,
    as_json: bool,
    **given: int | None,
) -> int:
    """Look at every state of a small quorum, breadth first, and hold each to Raft's laws.

    election: three cold voters; replication: a leader that has committed; stale: one voter has
    heard nothing of that; split: the leader is an old one and has a record that nobody knows;
    removal: a voter may be removed; joining: two voters and an observer that may be added.

    A broken law is told as a story, for `quorate sim scenario`.
    """
    from quorate.sim.explore.search import Search
    from quorate.sim.explore.setups import SETUPS

    check_place(out, "--out")
    chosen = SETUPS[setup]
    numbers = {name: number for name, number in given.items() if number is not None}
    epochs = numbers.pop("epochs", chosen.epochs)
    chosen = replace(chosen, epochs=epochs, budget=chosen.budget._replace(**numbers))
    levels: list[Progress] = []

    def reached(level: Progress) -> None:
        levels.append(level)
        if not as_json:
            _show(level)

    try:
        result = Search(chosen).run(depth, reached)
    except KeyboardInterrupt:
        if as_json:
            done = {"levels": [asdict(level) for level in levels], "states": _states(levels)}
            click.echo(json.dumps({**done, "complete": False, "violation": None}))
        click.echo(_ended_early(levels, depth), err=as_json)
        return INTERRUPTED
    if as_json:
        click.echo(json.dumps(_facts(result)))
    elif result.violation is None:
        what = "that is all there is" if result.complete else f"as deep as {depth} events"
        click.echo(f"every law holds in {result.states} states: {what}")
    if result.violation is not None:
        _tell(result, out, as_json)
    return 0 if result.violation is None else 1


def _ended_early(levels: list[Progress], depth: int) -> str:
    """How far it came; what it has seen is in memory only, so that it cannot go on."""
    if not levels:
        return f"interrupted: no depth of {depth} was done"
    done = levels[-1]
    return f"interrupted: every law holds in {done.states} states, to depth {done.depth} of {depth}"


def _states(levels: list[Progress]) -> int:
    return levels[-1].states if levels else 0


def _show(level: Progress) -> None:
    rate = level.states / max(level.seconds, 1e-9)
    click.echo(
        f"depth {level.depth:3}  {level.states:9} states  {level.frontier:8} at the frontier  "
        f"{level.transitions:10} events  {level.replicas:7} replicas  {rate:8,.0f} states/s"
    )


def _facts(result: Result) -> dict[str, Any]:
    violation = result.violation
    return {
        "levels": [asdict(level) for level in result.levels],
        "states": result.states,
        "complete": result.complete,
        "violation": violation and {"law": violation.law, "message": violation.message},
    }


def _tell(result: Result, out: str | None, as_json: bool) -> None:
    from quorate.sim.explore.retell import retell

    assert result.violation is not None
    story = retell(result)
    if out is not None:
        write_whole(Path(out), story)
    if not as_json:
        click.echo(f"BROKEN: {result.violation.law}: {result.violation.message}")
        click.echo(f"told in {out}" if out is not None else f"\n{story}", nl=out is not None)
