"""`quorate pipeline campaign` and `campaign-report`: the simulator's seeds over a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.base.words import many
from quorate.cli.columns import table_lines
from quorate.cli.options import CONTEXT, Tool
from quorate.cli.pipeline_job import absolute, job_on_spark, place_options, print_told
from quorate.cli.sim_given import seeds_option

if TYPE_CHECKING:
    from quorate.campaign.compare import Version
    from quorate.campaign.job import Summary

_NOT_CLEAN: Final = 1


class PageError(QuorateError):
    """The page cannot be written."""

    exit_code = 2


@click.command(
    cls=Tool,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate pipeline campaign --seeds 0..100000 --out results --master 'local[8]'
  quorate pipeline campaign --seeds 0..1000000 --out /shared/results --master spark://host:7077
  quorate pipeline campaign --seeds 0..2000000 --out /shared/results --resume \\
    --master spark://host:7077
  quorate pipeline campaign --seeds 0..100 --out planted --plant vote-twice""",
)
@seeds_option
@click.option("--out", metavar="DIR", required=True, help="A folder that all workers see.")
@click.option("--resume", is_flag=True, help="Go on in a folder that has results.")
@click.option(
    "--batch",
    type=click.IntRange(1, 10_000),
    default=64,
    show_default=True,
    help="Seeds of a task, and of a file.",
)
@click.option(
    "--max-failures",
    type=click.IntRange(0),
    default=20,
    show_default=True,
    help="Trace and shrink no more failing seeds than so many.",
)
@click.option(
    "--shrink-tries",
    type=click.IntRange(0),
    default=600,
    show_default=True,
    help="Run no more worlds to shrink one; 0: shrink none.",
)
@click.option(
    "--shrink-seconds",
    type=click.IntRange(1),
    default=300,
    show_default=True,
    help="Begin no world after so long to shrink one.",
)
@click.option("--plant", metavar="BUG", help="Plant a bug of 'quorate sim mutants --list'.")
@click.option(
    "--ship/--no-ship",
    default=None,
    help="Send this code to the workers, or use what is installed there.  [default: send it, "
    "unless the master is local]",
)
@place_options
def campaign(seeds: range, **words: Any) -> int:
    """Run seeds of the simulator as Spark tasks, with every check on: a row of Parquet for each.

    The folder is the table of 'sim campaign'; what failed is traced and shrunk in _failures/SEED.
    Exit codes: 0 clean and no mark cold, 1 a seed failed or a mark is cold, 2 bad input.
    """
    with job_on_spark("campaign", words) as (spark, tell):
        from quorate.campaign.job import Settings, run

        summary = run(
            spark,
            seeds,
            absolute(words["out"]),
            resume=words["resume"],
            settings=Settings(
                batch=words["batch"],
                plant=words["plant"],
                shipped=words["ship"],
                failures=words["max_failures"],
                tries=words["shrink_tries"],
                seconds=words["shrink_seconds"],
            ),
            tell=tell,
        )
    print_told(summary.to_json(), words["as_json"], lambda: _lines(summary))
    return 0 if summary.is_clean else _NOT_CLEAN


@click.command(
    cls=Tool,
    name="campaign-report",
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate pipeline campaign-report results
  quorate pipeline campaign-report results-0.1 results-0.2 --html versions.html""",
)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--html", metavar="FILE", help="Write it as a page for a browser too.")
@place_options
def campaign_report(directories: tuple[str, ...], html: str | None, **words: Any) -> int:
    """Compare versions by the results of their campaigns, of any size and from any machine.

    All are held against the first: what is slower, what fails, which traces and marks changed.
    Exit codes: 0 nothing is worse, 1 a seed fails or a mark is cold that was well with the first,
    2 bad input.
    """
    with job_on_spark("campaign-report", words) as (spark, tell):
        from quorate.campaign.compare import compare

        versions = compare(spark, [absolute(one) for one in directories], tell)
    if html is not None:
        _write_page(versions, Path(html))
    told = [one.to_json() for one in versions]
    print_told(told, words["as_json"], lambda: _report_lines(versions))
    return _NOT_CLEAN if any(one.is_worse for one in versions) else 0


def _write_page(versions: list[Version], path: Path) -> None:
    from quorate.base.whole import write_whole
    from quorate.campaign.page import page

    try:
        write_whole(path, page(versions))
    except OSError as error:
        raise PageError(f"{path}: cannot be written: {error.strerror}") from None


def _lines(summary: Summary) -> list[str]:
    from quorate.sim.marks import ALL_MARKS

    totals = summary.totals
    lines = [
        f"version {totals.code.version}: {many(totals.seeds, 'world')} ({summary.ran} of them "
        f"now), {totals.events} events, {totals.simulated_ms / 3_600_000:.1f} simulated hours in "
        f"{totals.cpu_s:.0f} s of processor time",
    ]
    lines += [f"{many(count, 'seed')} failed: {check}" for check, count in totals.checks.items()]
    for one in summary.failures:
        lines += [
            f"seed {one.seed} failed: {one.check}: {one.message}",
            f"  {one.shrunk}; see {one.folder}",
        ]
    if not totals.failed:
        lines.append("no promise was broken")
    lines.append(f"{totals.warm} of {len(ALL_MARKS)} marks are warm")
    rare = sorted(totals.marks.items(), key=lambda item: item[1].seeds)[:_RARE]
    lines += [f"rare: {name} (seeds: {met.seeds})" for name, met in rare]
    return [*lines, *(f"cold: {name}" for name in totals.cold)]


_RARE: Final = 3
"""Warm marks that are named: those next to going cold."""


def _report_lines(versions: list[Version]) -> list[str]:
    from quorate.campaign.compare import HEADS, cells, told

    lines = table_lines(HEADS, map(cells, versions))
    for one in versions:
        if one.change is not None:
            lines += ["", f"{one.directory} against {versions[0].directory}:"]
            lines += [f"  {line}" for line in told(one.change, one, versions[0])]
        for name in one.totals.cold if len(versions) == 1 else ():
            lines.append(f"cold: {name}")
    return lines
