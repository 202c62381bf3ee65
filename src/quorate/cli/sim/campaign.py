"""`quorate sim campaign`: many seeds, and a table of their outcomes."""

from __future__ import annotations

import json
import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from quorate.cli.main import INTERRUPTED
from quorate.cli.options import CONTEXT, ToolCommand, WholeNumber, json_option
from quorate.cli.sim.options import plant_option, seeds_option, with_bug
from quorate.cli.sim.progress import WorldTotals, ended_early, progress

if TYPE_CHECKING:
    from quorate.sim.run import campaign as campaigns

_NOT_CLEAN: Final = 1
_FAILURES: Final = 20


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate sim campaign --seeds 0..100000 --jobs 8 --out results
  quorate sim campaign --seeds 0..200000 --jobs 8 --out results --resume
  quorate sim campaign --seeds today:5000 --out results""",
)
@seeds_option
@click.option("--jobs", type=WholeNumber(1, 1024), default=1, help="Processes.  [default: 1]")
@click.option("--out", type=click.Path(file_okay=False), required=True, help="A directory.")
@click.option("--resume", is_flag=True, help="Go on in a directory that has results.")
@click.option(
    "--failures",
    type=WholeNumber(1),
    default=_FAILURES,
    show_default=True,
    help="Stop when so many seeds have failed, those of before --resume included.",
)
@plant_option
@json_option
def campaign(
    seeds: range,
    jobs: int,
    out: str,
    resume: bool,
    failures: int,
    bug: str | None,
    as_json: bool,
) -> int:
    """Run seeds with every check on and write a row of Parquet for each.

    Lists the coverage points that no seed has reached. Exit codes: 0 no seed failed and every
    coverage point was reached; 1 a seed failed or a coverage point was missed; 2 bad input;
    70 the machine refused (a full disk, a killed process); 130 interrupted.
    """
    from quorate.sim.run.campaign import Campaign

    if not out:
        raise click.BadParameter("'' is no directory", param_hint="--out")
    run = Campaign(Path(out), resume=resume, bug=bug)
    left = len(seeds) - sum(seed in run.done for seed in seeds) if run.done else len(seeds)
    if run.done:
        click.echo(f"{len(run.done)} seeds are done already, {left} are left", err=True)
    elif resume:
        click.echo(f"there are no results in {out} yet: all seeds are left", err=True)
    shown, again, is_over = WorldTotals(), None, True
    try:
        with (
            progress(left, as_json) as show,
            closing(run.run(seeds, jobs)) as outcomes,
        ):
            for outcome in outcomes:
                shown.add(outcome)
                show.add(outcome, shown)
                if len(run.total.failures) >= failures and shown.worlds < left:
                    again = _command_to_continue(
                        seeds, jobs, out, bug, len(run.total.failures) + failures
                    )
                    break
    except KeyboardInterrupt:
        again, is_over = _command_to_continue(seeds, jobs, out, bug, failures), False
    if as_json:
        click.echo(json.dumps({**_facts(run), "go_on": again}))
    else:
        click.echo(_text(run, bug, is_over=again is None))
        if again is not None:
            done = len(seeds) - left + shown.worlds
            why = f"{len(run.total.failures)} seeds have failed" if is_over else "interrupted"
            click.echo(ended_early(why, done, len(seeds), f"seeds ({out} has them)", again))
    if not is_over:
        return INTERRUPTED
    return _NOT_CLEAN if run.total.failures or run.total.not_reached else 0


def _command_to_continue(seeds: range, jobs: int, out: str, bug: str | None, failures: int) -> str:
    """The command that resumes the campaign."""
    words = ["quorate sim campaign --seeds", f"{seeds.start}..{seeds.stop}"]
    words += ["--jobs", str(jobs), "--out", shlex.quote(out), "--resume"]
    words += [] if failures == _FAILURES else ["--failures", str(failures)]
    return with_bug(" ".join(words), bug)


def _facts(run: campaigns.Campaign) -> dict[str, object]:
    total = run.total
    return {
        "version": run.code.version,
        "source": run.code.source,
        "worlds": total.worlds,
        "events": total.events,
        "simulated_ms": total.simulated_ms,
        "cpu_seconds": round(total.cpu_s, 3),
        "failures": [
            {"seed": seed, "check": check, "message": message}
            for seed, check, message in sorted(total.failures)
        ],
        "cold": total.not_reached,
        "coverage": dict(sorted(total.coverage.items())),
    }


def _text(run: campaigns.Campaign, bug: str | None, *, is_over: bool) -> str:
    """The totals, and the coverage points that were not reached once all seeds have run."""
    from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS

    total, missed = run.total, run.total.not_reached
    lines = [
        f"version {run.code.version}: {total.worlds} worlds, {total.events} events, "
        f"{total.simulated_ms / 3_600_000:.1f} simulated hours in {total.cpu_s:.0f} s of "
        "processor time",
    ]
    for seed, check, message in sorted(total.failures):
        shrink = with_bug(f"quorate sim shrink {seed}", bug)
        lines += [f"seed {seed} failed: {check}: {message}", f"  {shrink}"]
    if total.worlds and not total.failures:
        lines.append("all checks passed")
    points = len(ALL_COVERAGE_POINTS)
    lines.append(f"{points - len(missed)} of {points} coverage points were reached")
    lines += [f"not reached: {name}" for name in missed if is_over]
    return "\n".join(lines)
