"""`quorate sim replay`: one world again, as text, as a picture, or held against a trace."""

from __future__ import annotations

import gzip
import re
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from quorate.base.atomic_write import write_atomically
from quorate.base.errors import QuorateError
from quorate.cli.options import CONTEXT, ToolCommand
from quorate.cli.sim.files import check_place
from quorate.cli.sim.options import plan_of, plant_option

if TYPE_CHECKING:
    from quorate.sim.plan.plan import Plan
    from quorate.sim.render.tla import Recorder
    from quorate.sim.world.observer import Observer

_DIFFERS: Final = 1
_MODULE: Final = "Run.tla"
"""TLA+ names a file after its module, and QuorateTrace.tla extends Run."""
_HEAD: Final = re.compile(r"# quorate trace (\d+), plan format (\d+), seed (\d+), version (\S+)")


class TraceError(QuorateError):
    """A file that is no trace, or one that this version cannot be held against."""

    exit_code = 2


def _module(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    if value is None or value.name == _MODULE:
        return value
    raise click.BadParameter(
        f"'{value}' should be named {_MODULE}: QuorateTrace.tla extends the module Run"
    )


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim replay 4711 > trace.txt
  quorate sim replay 4711 --against trace.txt
  quorate sim replay 4711 --html 4711.html
  quorate sim replay docs/spec/small.plan --tla docs/spec/Run.tla   (docs/spec/README.md)""",
)
@click.argument("what", metavar="SEED|FILE")
@click.option("--quiet", is_flag=True, help="Leave out the trace: say only how it ends.")
@click.option("--html", type=click.Path(dir_okay=False), help="Draw it: a page for a browser.")
@click.option(
    "--tla",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_module,
    help=f"Write it as the TLA+ module {_MODULE}, with {_MODULE[:-4]}.cfg beside it.",
)
@click.option(
    "--against",
    type=click.Path(dir_okay=False),
    help="Compare with a trace that this command has printed, and show where they part.",
)
@plant_option
def replay(
    what: str,
    quiet: bool,
    html: str | None,
    tla: Path | None,
    against: str | None,
    bug: str | None,
) -> int:
    """Run one world again and print what happens; FILE holds a plan, as 'sim plan' prints it.

    FILE '-' is the standard input.

    Exit codes: 0 fine, 1 a check failed, or the trace differs from the one that was given,
    2 bad input.
    """
    from quorate.sim.render.html import Picture
    from quorate.sim.render.text import TraceText, trace_end, trace_head
    from quorate.sim.render.tla import Recorder
    from quorate.sim.run.plant import label
    from quorate.sim.run.run import checked, run_plan
    from quorate.sim.run.version import code_version

    if against is not None and (html is not None or tla is not None):
        raise click.UsageError("--against only compares: draw and write in a call of its own")
    plan = plan_of(what)
    check_place(html, "--html", what)
    check_place(tla, "--tla", what)
    if against is not None:
        return _compare(plan, against)
    picture = Picture() if html is not None else None
    recorder = Recorder() if tla is not None else None
    watching: list[Observer] = [one for one in (picture, recorder) if one is not None]
    if not quiet and not watching:
        click.echo(trace_head(plan, code_version() + ("" if bug is None else f".{label(bug)}")))
        watching.append(TraceText(click.echo))
    outcome = run_plan(plan, [*watching, *checked()])
    for line in trace_end(outcome):
        click.echo(line)
    if picture is not None and html is not None:
        write_atomically(Path(html), picture.page(outcome))
        click.echo(f"written to {html}")
    if recorder is not None and tla is not None:
        click.echo(_write_module(recorder, tla))
    return 0 if outcome.failure is None else _DIFFERS


def _write_module(recorder: Recorder, path: Path) -> str:
    """Write what is on the tape, and say how much of the run that is."""
    tape, left_out = recorder.tape, recorder.left_out
    if not tape.lines:
        raise TraceError(f"there is nothing to write to {path}: {left_out}")
    write_atomically(path, tape.module())
    write_atomically(path.with_suffix(".cfg"), tape.config())
    written = f"{len(tape.lines)} lines written to {path}, for QuorateTrace.tla"
    return written if left_out is None else f"{written}; the run goes on, but {left_out}"


# -- against another trace ------------------------------------------------------------------------
def _compare(plan: Plan, file: str) -> int:
    from quorate.sim.render.text import TraceText, trace_end
    from quorate.sim.run.run import checked, run_plan

    version, expected = _read_trace(plan, file)
    found: list[str] = []
    outcome = run_plan(plan, [TraceText(found.append), *checked()])
    found += trace_end(outcome)
    for number, (one, other) in enumerate(zip_longest(expected, found), 2):
        if one != other:
            click.echo(f"{file}:{number}: the traces part here; it is of version {version}")
            click.echo(f"  - {'(its end)' if one is None else one}")
            click.echo(f"  + {'(the end)' if other is None else other}")
            return _DIFFERS
    click.echo(f"the same {len(found)} lines as in {file}, of version {version}")
    return 0 if outcome.failure is None else _DIFFERS


def _read_trace(plan: Plan, file: str) -> tuple[str, list[str]]:
    """The version that wrote a trace, and its lines. Raises TraceError."""
    from quorate.sim.plan.plan import FORMAT
    from quorate.sim.render.text import TRACE_FORMAT

    opened = gzip.open if file.endswith(".gz") else open
    try:
        with opened(file, "rt", encoding="utf-8") as source:
            head, *lines = source.read().splitlines() or [""]
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile):
        raise TraceError(f"{file} is no trace: it is not text") from None
    except OSError as error:
        raise TraceError(f"{file}: {error.strerror or error}") from None
    found = _HEAD.fullmatch(head)
    if found is None:
        raise TraceError(
            f"{file}:1: this is no trace: those begin with '# quorate trace {TRACE_FORMAT}, ...', "
            "as 'quorate sim replay' prints them"
        )
    trace_format, plan_format, seed, version = found.groups()
    if (int(trace_format), int(plan_format)) != (TRACE_FORMAT, FORMAT):
        raise TraceError(
            f"{file}:1: this is trace format {trace_format} of plan format {plan_format}, written "
            f"by version {version}; this version writes trace format {TRACE_FORMAT} of plan "
            f"format {FORMAT}: use the version that wrote it"
        )
    if int(seed) != plan.seed:
        raise TraceError(f"{file}:1: this is a trace of seed {seed}, not of seed {plan.seed}")
    return version, lines
