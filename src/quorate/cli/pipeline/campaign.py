"""`quorate pipeline campaign` and `campaign-report`: seeds of the simulator on a Spark cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from quorate.base.errors import QuorateError
from quorate.base.plural import pluralize
from quorate.cli.columns import table_lines
from quorate.cli.options import CONTEXT, ToolCommand, WholeNumber
from quorate.cli.pipeline.job import absolute, common_options, job_on_spark, print_result
from quorate.cli.sim.options import seeds_option

if TYPE_CHECKING:
    from quorate.campaign.compare import CampaignVersion
    from quorate.campaign.job import CampaignSummary

_NOT_CLEAN: Final = 1


class PageError(QuorateError):
    """The page cannot be written."""

    exit_code = 2


@click.command(
    cls=ToolCommand,
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate pipeline campaign --seeds 0..100000 --out results --master 'local[8]'
  quorate pipeline campaign --seeds 0..1000000 --out /shared/results --master spark://host:7077
  quorate pipeline campaign --seeds 0..2000000 --out /shared/results --resume \\
    --master spark://host:7077""",
)
@seeds_option
@click.option("--out", metavar="DIR", required=True, help="A folder that all workers can access.")
@click.option("--resume", is_flag=True, help="Continue in a folder that has results.")
@click.option(
    "--batch",
    type=WholeNumber(1, 10_000),
    default=64,
    show_default=True,
    help="Seeds of a task, and of a file.",
)
@click.option(
    "--max-failures",
    type=WholeNumber(0),
    default=20,
    show_default=True,
    help="The largest number of failing seeds to trace and shrink.",
)
@click.option(
    "--shrink-tries",
    type=WholeNumber(0),
    default=600,
    show_default=True,
    help="The largest number of runs to shrink one; 0: do not shrink.",
)
@click.option(
    "--shrink-seconds",
    type=WholeNumber(1),
    default=300,
    show_default=True,
    help="After this time, shrinking one starts no further run.",
)
@click.option("--plant", metavar="MODULE:NAME", hidden=True, help="Plant a mutant first.")
@click.option(
    "--ship/--no-ship",
    default=None,
    help="Send this code to the workers, or use the installed one.  [default: send it, "
    "unless the master is local]",
)
@common_options
def campaign(seeds: range, **words: Any) -> int:
    """Run seeds of the simulator as Spark tasks, with every check: a row of Parquet for each.

    The folder is the table of 'sim campaign'. Failing seeds are traced and shrunk in
    _failures/SEED. Exit codes: 0 no seed failed and every coverage point was reached, 1 a seed
    failed or a coverage point was missed, 2 bad input.
    """
    with job_on_spark("campaign", words) as (spark, notify):
        from quorate.campaign.job import CampaignSettings, run

        summary = run(
            spark,
            seeds,
            absolute(words["out"]),
            resume=words["resume"],
            settings=CampaignSettings(
                batch=words["batch"],
                plant=words["plant"],
                shipped=words["ship"],
                failures=words["max_failures"],
                tries=words["shrink_tries"],
                seconds=words["shrink_seconds"],
            ),
            notify=notify,
        )
    print_result(summary.to_json(), words["as_json"], lambda: _lines(summary))
    return 0 if summary.is_clean else _NOT_CLEAN


@click.command(
    cls=ToolCommand,
    name="campaign-report",
    context_settings=CONTEXT,
    epilog="""\b
Examples:
  quorate pipeline campaign-report results
  quorate pipeline campaign-report results-0.1 results-0.2 --html versions.html""",
)
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--html", metavar="FILE", help="Also write an HTML page.")
@common_options
def campaign_report(directories: tuple[str, ...], html: str | None, **words: Any) -> int:
    """Compare versions by the results of their campaigns, of any size and from any machine.

    All are compared with the first: speed, failing seeds, changed traces and coverage. Exit codes:
    0 nothing is worse, 1 a seed fails or a coverage point is missed that was fine with the first,
    2 bad input.
    """
    with job_on_spark("campaign-report", words) as (spark, notify):
        from quorate.campaign.compare import compare_versions

        versions = compare_versions(spark, [absolute(one) for one in directories], notify)
    if html is not None:
        _write_page(versions, Path(html))
    result = [one.to_json() for one in versions]
    print_result(result, words["as_json"], lambda: _report_lines(versions))
    return _NOT_CLEAN if any(one.is_worse for one in versions) else 0


def _write_page(versions: list[CampaignVersion], path: Path) -> None:
    from quorate.base.atomic_write import write_atomically
    from quorate.campaign.page import page

    try:
        write_atomically(path, page(versions))
    except OSError as error:
        raise PageError(f"{path}: cannot be written: {error.strerror}") from None


def _lines(summary: CampaignSummary) -> list[str]:
    from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS

    totals = summary.totals
    lines = [
        f"version {totals.code.version}: {pluralize(totals.seeds, 'world')} ({summary.ran} of them "
        f"now), {totals.events} events, {totals.simulated_ms / 3_600_000:.1f} simulated hours in "
        f"{totals.cpu_s:.0f} s of processor time",
    ]
    lines += [
        f"{pluralize(count, 'seed')} failed: {check}" for check, count in totals.checks.items()
    ]
    for one in summary.failures:
        lines += [
            f"seed {one.seed} failed: {one.check}: {one.message}",
            f"  {one.shrunk}; see {one.folder}",
        ]
    if not totals.failed:
        lines.append("no check failed")
    lines.append(f"{totals.reached} of {len(ALL_COVERAGE_POINTS)} coverage points were reached")
    rare = sorted(totals.coverage.items(), key=lambda item: item[1].seeds)[:_RARE]
    lines += [f"rarely reached: {name} (seeds: {met.seeds})" for name, met in rare]
    return [*lines, *(f"not reached: {name}" for name in totals.not_reached)]


_RARE: Final = 3
"""The number of coverage points that are named because few seeds reached them."""


def _report_lines(versions: list[CampaignVersion]) -> list[str]:
    from quorate.campaign.compare import HEADS, cells, change_lines

    lines = table_lines(HEADS, map(cells, versions))
    for one in versions:
        if one.change is not None:
            lines += ["", f"{one.directory} against {versions[0].directory}:"]
            lines += [f"  {line}" for line in change_lines(one.change, one, versions[0])]
        for name in one.totals.not_reached if len(versions) == 1 else ():
            lines.append(f"not reached: {name}")
    return lines
