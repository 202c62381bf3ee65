"""The comparison of versions as one HTML page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from quorate.campaign.compare import HEADS, Version, cells, told
from quorate.campaign.totals import PERCENTILES
from quorate.sim.marks import ALL_MARKS
from quorate.spark.report.page import document, table
from quorate.spark.report.svg import amounts


def page(versions: Sequence[Version]) -> str:
    """All versions beside each other."""
    first = versions[0]
    title = " and ".join(one.totals.code.version for one in versions)
    parts = [f"<h1>Campaigns of {escape(title)}</h1>", table(HEADS, map(cells, versions))]
    for one in versions:
        if one.change is not None:
            parts.append(f"<h2>{_name(one)} against {_name(first)}</h2>")
            parts += [f"<p>{escape(line)}</p>" for line in told(one.change, one, first)]
    parts.append("<h2>Processor time of an event, microseconds</h2>")
    parts.append(amounts([(_plain(one), one.totals.cpu_us_per_event) for one in versions]))
    parts.append("<h2>Time to heal, ms of the world</h2>")
    for place, share in enumerate(PERCENTILES):
        parts.append(f"<h3>{_share(share)}</h3>")
        parts.append(amounts([(_plain(one), one.totals.healing_ms[place]) for one in versions]))
    parts += ["<h2>Broken promises</h2>", _checks(versions)]
    parts += ["<h2>Marks: seeds that have met each</h2>", _met(versions)]
    return document(f"Campaigns of {title}", parts)


def _share(share: float) -> str:
    return "All worlds within" if share == 1 else f"{share * 100:g} of 100 worlds within"


def _plain(one: Version) -> str:
    return one.totals.code.version


def _name(one: Version) -> str:
    return escape(_plain(one))


def _checks(versions: Sequence[Version]) -> str:
    names = sorted({name for one in versions for name in one.totals.checks})
    if not names:
        return "<p>There were none.</p>"
    rows = [(name, *(f"{one.totals.checks.get(name, 0):,}" for one in versions)) for name in names]
    return table(("promise", *map(_plain, versions)), rows)


def _met(versions: Sequence[Version]) -> str:
    rows = []
    for name in sorted(ALL_MARKS):
        found = [one.totals.marks.get(name) for one in versions]
        rows.append((name, *("cold" if met is None else f"{met.seeds:,}" for met in found)))
    return table(("mark", *map(_plain, versions)), rows)
