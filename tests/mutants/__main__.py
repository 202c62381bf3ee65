"""`python -m mutants`: does the simulator find bugs that are planted into the real code?"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from mutants.catalog import MUTANTS, find
from mutants.hunt import Catch, hunt_all
from mutants.mutant import Mutant
from quorate.base.errors import QuorateError
from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, json_option
from quorate.cli.sim.progress import ended_early
from quorate.sim.plan.bounds import MOST

_SURVIVES = 1


@click.command(
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  python -m mutants --jobs 4
  python -m mutants vote-twice half-is-a-majority --seeds 20000
  python -m mutants --list""",
)
@click.argument("names", nargs=-1)
@click.option(
    "--seeds", type=click.IntRange(1), default=1000, help="At most so many each.  [default: 1000]"
)
@click.option(
    "--first", type=click.IntRange(0, MOST), default=0, help="The first seed.  [default: 0]"
)
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, help="Processes.  [default: 1]")
@click.option("--but", metavar="NAME,...", default="", help="Leave these out.")
@click.option("--list", "only_list", is_flag=True, help="List the mutants and hunt none.")
@json_option
def mutants(
    names: tuple[str, ...],
    seeds: int,
    first: int,
    jobs: int,
    but: str,
    only_list: bool,
    as_json: bool,
) -> int:
    """Plant bugs into the real code, one at a time, and run seeds until a check finds each.

    The bugs are in memory alone. Exit code 1 when a mutant survives.
    """
    chosen = _without([find(name) for name in names] or list(MUTANTS), but)
    if not chosen:
        raise click.UsageError("--but leaves none to hunt")
    if only_list:
        click.echo(_listed(chosen, as_json))
        return 0
    catches: list[Catch] = []
    again, failure = None, None
    try:
        for catch in hunt_all(
            [mutant.name for mutant in chosen], range(first, first + seeds), jobs
        ):
            catches.append(catch)
            if not as_json:
                click.echo(_line(catch))
    except QuorateError as error:
        failure = error  # after what was found until then
    except KeyboardInterrupt:
        again = f"python -m mutants --seeds {seeds} --first {first} --jobs {jobs} "
        again += _rest(chosen, catches, whole=not names and not but)
    if as_json:
        click.echo(json.dumps([asdict(catch) for catch in catches]))
    elif catches:
        click.echo(_sum(catches))
    if again is not None:
        said = ended_early("interrupted", len(catches), len(chosen), "mutants", again)
        click.echo(said, err=as_json)
    if failure is not None:
        raise failure
    if again is not None:
        return INTERRUPTED
    return _SURVIVES if any(catch.check is None for catch in catches) else 0


def _without(mutants: Sequence[Mutant], but: str) -> list[Mutant]:
    left_out = {find(name.strip()).name for name in but.split(",") if name.strip()}
    return [mutant for mutant in mutants if mutant.name not in left_out]


def _rest(chosen: Sequence[Mutant], catches: Sequence[Catch], whole: bool) -> str:
    """The arguments that name the mutants not hunted yet; of the `whole` list the shorter way."""
    done = [catch.mutant for catch in catches]
    left = [mutant.name for mutant in chosen if mutant.name not in done]
    if whole and len(done) < len(left):
        return f"--but {','.join(done)}" if done else ""
    return " ".join(left)


def _listed(chosen: Sequence[Mutant], as_json: bool) -> str:
    if as_json:
        return json.dumps([{"name": m.name, "what": m.what, "module": m.module} for m in chosen])
    return "\n".join(f"{m.name:34} {m.what} ({m.module})" for m in chosen)


def _line(catch: Catch) -> str:
    if catch.check is None:
        return f"{catch.mutant:34} SURVIVES {catch.tried} seeds, {catch.seconds:.1f} s"
    found = f"seed {catch.seed}, {catch.tried} seeds, {catch.seconds:.1f} s"
    return f"{catch.mutant:34} {catch.check} ({found})"


def _sum(catches: list[Catch]) -> str:
    found = [catch.tried for catch in catches if catch.check is not None]
    text = f"{len(found)} of {len(catches)} mutants found"
    if found:
        middle = statistics.median(found)
        text += f"; seeds to the find: median {middle:g}, at most {max(found)}"
    seen = next((catch for catch in catches if catch.seed is not None), None)
    if seen is not None:
        again = f"quorate sim replay {seen.seed} --plant mutants:{seen.mutant}"
        text += f"\nto see one of them: {again}"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    try:
        code = mutants.main(arguments, "python -m mutants", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except QuorateError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(main())
