"""The comparison of versions as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from quorate.campaign.compare import HEADS, CampaignVersion, cells, change_lines
from quorate.campaign.totals import PERCENTILES
from quorate.sim.coverage.coverage_points import ALL_COVERAGE_POINTS
from quorate.spark.report.page import document, table
from quorate.spark.report.svg import amounts


def page(versions: Sequence[CampaignVersion]) -> str:
    """A page with all versions side by side."""
    first = versions[0]
    title = " and ".join(one.totals.code.version for one in versions)
    parts = [f"<h1>Campaigns of {escape(title)}</h1>", table(HEADS, map(cells, versions))]
    for one in versions:
        if one.change is not None:
            parts.append(f"<h2>{_name(one)} against {_name(first)}</h2>")
            parts += [f"<p>{escape(line)}</p>" for line in change_lines(one.change, one, first)]
    parts.append("<h2>Processor time of an event, microseconds</h2>")
    parts.append(amounts([(_plain(one), one.totals.cpu_us_per_event) for one in versions]))
    parts.append("<h2>Recovery time, ms of simulated time</h2>")
    for place, share in enumerate(PERCENTILES):
        parts.append(f"<h3>{_share(share)}</h3>")
        parts.append(amounts([(_plain(one), one.totals.recovery_ms[place]) for one in versions]))
    parts += ["<h2>Failed checks</h2>", _checks(versions)]
    parts += ["<h2>Coverage: seeds that reached each point</h2>", _met(versions)]
    return document(f"Campaigns of {title}", parts)


def _share(share: float) -> str:
    return "All seeds within" if share == 1 else f"{share * 100:g} of 100 seeds within"


def _plain(one: CampaignVersion) -> str:
    return one.totals.code.version


def _name(one: CampaignVersion) -> str:
    return escape(_plain(one))


def _checks(versions: Sequence[CampaignVersion]) -> str:
    names = sorted({name for one in versions for name in one.totals.checks})
    if not names:
        return "<p>None.</p>"
    rows = [(name, *(f"{one.totals.checks.get(name, 0):,}" for one in versions)) for name in names]
    return table(("check", *map(_plain, versions)), rows)


def _met(versions: Sequence[CampaignVersion]) -> str:
    rows = []
    for name in sorted(ALL_COVERAGE_POINTS):
        found = [one.totals.coverage.get(name) for one in versions]
        rows.append((name, *("not reached" if met is None else f"{met.seeds:,}" for met in found)))
    return table(("coverage point", *map(_plain, versions)), rows)
