"""`quorate sim explore`: every order of every event over a few real cores.

Exit codes: 0 every invariant holds in all states searched, 1 one is violated, 2 bad input,
130 interrupted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.atomic_write import write_atomically
from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, ToolCommand, WholeNumber, json_option
from quorate.cli.sim.files import check_place

if TYPE_CHECKING:
    from quorate.sim.explore.search import LevelProgress, SearchResult

_BUDGET: Final = {
    "leaps": "How often all timers of a replica expire.",
    "backoffs": "How often the backoff of a replica ends.",
    "crashes": "How often a replica crashes.",
    "fails": "How often a message is lost and its sender is notified.",
    "losses": "How often a follower loses the connection to its leader.",
    "proposals": "How many records are proposed.",
    "changes": "How often a client asks for a voter change.",
}


def _budget_options(command: Any) -> Any:
    for name, text in reversed(_BUDGET.items()):
        command = click.option(f"--{name}", type=WholeNumber(0, 100), help=text)(command)
    return command


@click.command(
    cls=ToolCommand,
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
    "--depth", type=WholeNumber(0, 10_000), default=9, show_default=True, help="Most events."
)
@click.option("--epochs", type=WholeNumber(1, 100), help="Leave out states in higher epochs.")
@_budget_options
@click.option(
    "--out", metavar="FILE", help="Write a scenario of the violated invariant to this file."
)
@json_option
def explore(
    setup: str,
    depth: int,
    out: str | None,
    as_json: bool,
    **given: int | None,
) -> int:
    """Search every state of a small quorum, breadth first, and check Raft's invariants in each.

    election: three voters with formatted disks; replication: a leader that has committed; stale:
    one voter has received nothing yet; split: the leader is an old one and has a record that no
    other node has; removal: a voter may be removed; joining: two voters and an observer that may be
    added.

    A violated invariant is printed as a scenario, for `quorate sim scenario`.
    """
    from dataclasses import asdict, replace

    from quorate.sim.explore.search import Search
    from quorate.sim.explore.setups import SETUPS

    check_place(out, "--out")
    chosen = SETUPS[setup]
    numbers = {name: number for name, number in given.items() if number is not None}
    epochs = numbers.pop("epochs", chosen.epochs)
    chosen = replace(chosen, epochs=epochs, budget=chosen.budget._replace(**numbers))
    levels: list[LevelProgress] = []

    def reached(level: LevelProgress) -> None:
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
        what = "all reachable states" if result.complete else f"up to {depth} events"
        click.echo(f"every invariant holds in {result.states} states: {what}")
    if result.violation is not None:
        _report_violation(result, out, as_json)
    return 0 if result.violation is None else 1


def _ended_early(levels: list[LevelProgress], depth: int) -> str:
    """The completed depth. The states are in memory only, so the search cannot be resumed."""
    if not levels:
        return f"interrupted: no depth of {depth} was done"
    done = levels[-1]
    return f"interrupted: every invariant holds in {done.states} states, to depth {done.depth} of {depth}"


def _states(levels: list[LevelProgress]) -> int:
    return levels[-1].states if levels else 0


def _show(level: LevelProgress) -> None:
    rate = level.states / max(level.seconds, 1e-9)
    click.echo(
        f"depth {level.depth:3}  {level.states:9} states  {level.frontier:8} at the frontier  "
        f"{level.transitions:10} events  {level.replicas:7} replicas  {rate:8,.0f} states/s"
    )


def _facts(result: SearchResult) -> dict[str, Any]:
    from dataclasses import asdict

    violation = result.violation
    return {
        "levels": list(map(asdict, result.levels)),
        "states": result.states,
        "complete": result.complete,
        "violation": violation and {"law": violation.invariant, "message": violation.message},
    }


def _report_violation(result: SearchResult, out: str | None, as_json: bool) -> None:
    from quorate.sim.explore.to_scenario import violation_scenario

    assert result.violation is not None
    scenario = violation_scenario(result)
    if out is not None:
        write_atomically(Path(out), scenario)
    if not as_json:
        click.echo(f"VIOLATED: {result.violation.invariant}: {result.violation.message}")
        click.echo(
            f"scenario written to {out}" if out is not None else f"\n{scenario}", nl=out is not None
        )
