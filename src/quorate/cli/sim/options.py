"""Options of several commands of `quorate sim`: seeds, plans, scenarios, and mutants.

A mutant is planted before the code of a world is imported: it needs interpreted code.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError

if TYPE_CHECKING:
    from quorate.sim.plan.plan import Plan

_SEED: Final = re.compile(r"(?:([0-9]{1,9}):)?([0-9]{1,19})")
"""Of one plan format: the same seed draws another plan in another one."""


_TODAY: Final = "today"
_A_DAYS_SHARE: Final = 1000


class SeedError(QuorateError):
    """Neither a seed nor a file, or a seed of a plan format that this version does not know."""

    exit_code = 2


def one_seed(word: str) -> int | None:
    """Parse `7`, or `1:7` with the plan format that it is a seed of; None where it is no seed.

    Raises SeedError where the format is another one.
    """
    from quorate.sim.plan.bounds import MOST
    from quorate.sim.plan.plan import FORMAT

    found = _SEED.fullmatch(word)
    if found is None or int(found[2]) > MOST:
        return None
    if found[1] is not None and int(found[1]) != FORMAT:
        raise SeedError(
            f"{word} is a seed of plan format {found[1]}, and this version of quorate draws plans "
            f"of format {FORMAT}: use the version that it was found with"
        )
    return int(found[2])


def _scenario(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from quorate.sim.plan.draw_controllers import CONTROLLERS
    from quorate.sim.run.kafka_scenarios import SCENARIOS

    if value == "help":
        for name in SCENARIOS:
            click.echo(name)
        ctx.exit(0)
    if value is not None and value not in (*SCENARIOS, CONTROLLERS):
        raise click.BadParameter(f"there is no '{value}'; there are: {', '.join(SCENARIOS)}")
    return value


def scenario_option(command: Any) -> Any:
    """Add `--scenario NAME`."""
    return click.option(
        "--scenario",
        callback=_scenario,
        metavar="NAME",
        help="Let the seeds draw worlds of this simulation scenario of Kafka's; `help` lists them.",
    )(command)


def _planted(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from quorate.sim.run.plant import plant

    if value is not None:
        plant(value)
    return value


def plant_option(command: Any) -> Any:
    """Add `--plant MODULE:NAME`: the mutant is in this process before the command runs.

    The option is hidden, as the mutants are no part of the package: docs/testing.md.
    """
    return click.option(
        "--plant",
        "bug",
        callback=_planted,
        is_eager=True,
        metavar="MODULE:NAME",
        hidden=True,
        help="Plant a mutant first, in memory.",
    )(command)


def with_bug(command: str, bug: str | None) -> str:
    """The command line, with the bug that it needs to do the same again."""
    return command if bug is None else f"{command} --plant {bug}"


def seed(ctx: click.Context, param: click.Parameter, value: str) -> int:
    from quorate.sim.plan.bounds import MOST

    found = one_seed(value)
    if found is None:
        raise click.BadParameter(f"'{value}' is no seed: those are numbers from 0 to {MOST}")
    return found


def _seeds(ctx: click.Context, param: click.Parameter, value: str) -> range:
    """Parse `7`, or `0..1000`, the second not included."""
    from quorate.sim.plan.bounds import MOST

    words = value.split("..", 1)
    found = [number for number in map(one_seed, words) if number is not None]
    if len(found) < len(words):
        if all(word.isascii() and word.isdecimal() for word in words):
            raise click.BadParameter(f"'{value}' is too large: seeds are numbers from 0 to {MOST}")
        raise click.BadParameter(f"'{value}' is neither a seed nor A..B")
    start, end = found[0], found[1] if len(found) == 2 else found[0] + 1
    if not start < end:
        raise click.BadParameter(f"'{value}' has no seeds: none is negative, B is not included")
    return range(start, end)


def _seeds_or_today(ctx: click.Context, param: click.Parameter, value: str) -> range:
    """Parse `A..B`, or `today`, `today:N`: the first N of the date in UTC."""
    from quorate.sim.run.campaign import seeds_of_day

    word, colon, count = value.partition(":")
    if word != _TODAY:
        return _seeds(ctx, param, value)
    if colon and not (count.isascii() and count.isdecimal()):
        raise click.BadParameter(f"'{value}' should be {_TODAY}:N, N how many")
    seeds = seeds_of_day(datetime.now(UTC).date(), int(count) if colon else _A_DAYS_SHARE)
    click.echo(f"today's seeds are {seeds.start}..{seeds.stop}", err=True)
    return seeds


def seeds_option(command: Any) -> Any:
    """Add `--seeds`."""
    return click.option(
        "--seeds",
        callback=_seeds_or_today,
        metavar="A..B",
        required=True,
        help="Which ones, B not included; or 'today', 'today:N': N seeds of the date in UTC.",
    )(command)


def plan_of(what: str) -> Plan:
    """Return the plan of a seed or of a file (`-`: the standard input), which may be a world with outcome.

    Raises SeedError, and ScenarioError where the file does not parse.
    """
    from quorate.sim.plan.bounds import MOST
    from quorate.sim.plan.draw import draw
    from quorate.sim.scenario.errors import ScenarioError
    from quorate.sim.scenario.file import STDIN, read_scenario
    from quorate.sim.scenario.worlds import is_world, parse_world

    number = one_seed(what)
    if number is not None:
        return draw(number)
    if what != STDIN and (not what or not Path(what).exists()):
        raise SeedError(f"'{what}' is neither a seed (0 to {MOST}) nor a file")
    text = read_scenario(what)
    if not is_world(text):
        said = "this is no plan: those begin with 'format', as 'quorate sim plan' prints them"
        raise ScenarioError(what, 1, said)
    return parse_world(text, what).plan
