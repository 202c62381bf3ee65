"""`quorate sim replay`: one world again, as text, as a picture, or held against a trace."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from quorate.base.errors import QuorateError
from quorate.cli.options import CONTEXT
from quorate.cli.sim_given import plan_of

if TYPE_CHECKING:
    from quorate.sim.observe import Observer
    from quorate.sim.plan import Plan
    from quorate.sim.run import Outcome

_DIFFERS: Final = 1
_TRACE_FORMAT: Final = 1
"""Of what this command prints; counts up when a line changes its form."""
_HEAD: Final = re.compile(r"# quorate trace (\d+), plan format (\d+), seed (\d+), version (\S+)")


class TraceError(QuorateError):
    """A file that is no trace, or one that this version cannot be held against."""

    exit_code = 2


@click.command(
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim replay 4711 > trace.txt
  quorate sim replay 4711 --against trace.txt
  quorate sim replay 4711 --html 4711.html""",
)
@click.argument("what", metavar="SEED|FILE")
@click.option("--quiet", is_flag=True, help="Leave out the trace: say only how it ends.")
@click.option("--html", type=click.Path(dir_okay=False), help="Draw it: a page for a browser.")
@click.option(
    "--against",
    type=click.Path(dir_okay=False),
    help="Compare with a trace that this command has printed, and show where they part.",
)
def replay(what: str, quiet: bool, html: str | None, against: str | None) -> int:
    """Run one world again and print what happens; FILE holds a plan, as 'sim plan' prints it.

    Exit codes: 0 fine, 1 a promise was broken, or the trace differs from the one that was given,
    2 bad input.
    """
    from quorate.sim.picture import Picture
    from quorate.sim.run import checked, run_plan
    from quorate.sim.text import TraceText

    plan = plan_of(what)
    if against is not None:
        return _compare(plan, against)
    picture = Picture() if html is not None else None
    watching: list[Observer] = [] if picture is None else [picture]
    if not quiet and picture is None:
        click.echo(_head(plan))
        watching.append(TraceText(click.echo))
    outcome = run_plan(plan, [*watching, *checked()])
    for line in _end(outcome):
        click.echo(line)
    if picture is not None and html is not None:
        Path(html).write_text(picture.page(outcome), encoding="utf-8")
        click.echo(f"written to {html}")
    return 0 if outcome.failure is None else _DIFFERS


def _head(plan: Plan) -> str:
    from quorate.sim.version import code_version

    return (
        f"# quorate trace {_TRACE_FORMAT}, plan format {plan.format}, seed {plan.seed}, "
        f"version {code_version()}"
    )


def _end(outcome: Outcome) -> list[str]:
    lines = [
        f"{outcome.events} events in {outcome.simulated_ms} ms, the last {outcome.healing_ms} "
        "of them to heal"
    ]
    failure = outcome.failure
    if failure is not None:
        lines.append(f"FAILED: {failure.check}: {failure.message}")
        lines += failure.details.splitlines()
    lines.append(f"trace {outcome.trace_hash}")
    return lines


# -- against another trace ------------------------------------------------------------------------
def _compare(plan: Plan, file: str) -> int:
    from quorate.sim.run import checked, run_plan
    from quorate.sim.text import TraceText

    version, expected = _read_trace(plan, file)
    found: list[str] = []
    outcome = run_plan(plan, [TraceText(found.append), *checked()])
    found += _end(outcome)
    for number, (one, other) in enumerate(zip_longest(expected, found), 2):
        if one != other:
            click.echo(f"{file}:{number}: the traces part here; it is of version {version}")
            click.echo(f"  - {'(its end)' if one is None else one}")
            click.echo(f"  + {'(the end)' if other is None else other}")
            return _DIFFERS
    click.echo(f"the same {len(found)} lines as in {file}")
    return 0 if outcome.failure is None else _DIFFERS


def _read_trace(plan: Plan, file: str) -> tuple[str, list[str]]:
    """The version that wrote a trace, and its lines. Raises TraceError."""
    from quorate.sim.plan import FORMAT

    try:
        head, *lines = Path(file).read_text(encoding="utf-8").splitlines() or [""]
    except UnicodeDecodeError:
        raise TraceError(f"{file} is no trace: it is not text") from None
    found = _HEAD.fullmatch(head)
    if found is None:
        raise TraceError(
            f"{file}:1: this is no trace: those begin with '# quorate trace {_TRACE_FORMAT}, ...', "
            "as 'quorate sim replay' prints them"
        )
    trace_format, plan_format, seed, version = found.groups()
    if (int(trace_format), int(plan_format)) != (_TRACE_FORMAT, FORMAT):
        raise TraceError(
            f"{file}:1: this is trace format {trace_format} of plan format {plan_format}, written "
            f"by version {version}; this version writes trace format {_TRACE_FORMAT} of plan "
            f"format {FORMAT}: use the version that wrote it"
        )
    if int(seed) != plan.seed:
        raise TraceError(f"{file}:1: this is a trace of seed {seed}, not of seed {plan.seed}")
    return version, lines
