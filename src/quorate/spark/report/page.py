"""The report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from quorate.spark.report.gather import COLUMNS, MOST_CLUSTERS, ClusterFigures, Row
from quorate.spark.report.svg import Bar, TimeSpan, bands, colour, heat, lines, moment
from quorate.spark.tables.layout import REASONS

_STYLE: Final = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}
h1,h2,h3{line-height:1.2} h2{margin-top:2.5em;border-top:1px solid #ccc;padding-top:1em}
table{border-collapse:collapse}
td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif} .tick{stroke:#ddd}
.sound{color:#186a3b}.damaged,.unsafe{color:#b03a2e;font-weight:bold}
.uncommitted-tail,.warning{color:#9a6b00} code{word-break:break-all}
.legend i{display:inline-block;width:1em;height:.8em;margin:0 .3em 0 1em}
"""


def page(clusters: Sequence[ClusterFigures], audit: Mapping[str, Any] | None = None) -> str:
    """The report; `audit` is the JSON of an audit's report, where there was one."""
    verdicts = {} if audit is None else {one["cluster_id"]: one for one in audit["clusters"]}
    title = clusters[0].cluster_id if len(clusters) == 1 else f"{len(clusters)} clusters"
    parts = [f"<h1>Metadata of {escape(title)}</h1>", _fleet(clusters, verdicts), _drawn(clusters)]
    parts += [_section(one, verdicts.get(one.cluster_id)) for one in clusters]
    known = {one.cluster_id for one in clusters}
    parts += [
        f"<h2>{escape(name)}</h2><p>Audited, but not in the warehouse.</p>{_verdict(verdict)}"
        for name, verdict in verdicts.items()
        if name not in known
    ]
    return document(f"{title}: metadata report", parts)


def document(title: str, parts: Iterable[str]) -> str:
    """A whole page; `parts` are HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        + "\n".join(parts)
        + "</body></html>\n"
    )


def _fleet(clusters: Sequence[ClusterFigures], verdicts: Mapping[str, Any]) -> str:
    rows = []
    for one in clusters:
        states = {
            replica["state"] for replica in verdicts.get(one.cluster_id, {}).get("replicas", ())
        }
        rows.append(
            (
                one.cluster_id,
                str(one.records),
                "unknown" if one.span is None else " to ".join(map(moment, one.span)),
                ", ".join(sorted(states)) or "not audited",
                "; ".join(_remarks(one)),
            )
        )
    return table(("cluster", "records", "time (UTC)", "audit", "remarks"), rows)


def _remarks(one: ClusterFigures) -> Iterator[str]:
    if one.problem:
        yield one.problem
    if one.quarantined:
        reasons = ", ".join(
            f"{row['rows']} {row['reason']}" for row in one.quarantine if row["rows"]
        )
        resolved = f"; {one.resolved} resolved" if one.resolved else ""
        yield f"{one.quarantined} in quarantine" + (f": {reasons}" if reasons else "") + resolved
    elif one.resolved:
        yield f"{one.resolved} in quarantine, all resolved"


def _drawn(clusters: Sequence[ClusterFigures]) -> str:
    """A note that some clusters have no pictures; empty where all have."""
    count = sum(bool(one.churn) for one in clusters)
    if count == len(clusters) or len(clusters) == 1:
        return ""
    return (
        f"<p>{count} of the {len(clusters)} clusters have pictures: of those with changes, at most "
        f"the {MOST_CLUSTERS} with the most records. <code>--cluster ID</code> draws others.</p>"
    )


def _section(one: ClusterFigures, verdict: Mapping[str, Any] | None) -> str:
    """The section of a cluster: problems of every cluster, pictures of some."""
    span = one.span if one.churn else None
    found = verdict is not None and any(
        about.get("findings") for about in (verdict, *verdict["replicas"])
    )
    parts = [_verdict(verdict)] if verdict is not None and (span or found) else []
    if one.quarantine:
        parts.append(_quarantine(one.quarantine))
    if span is not None:
        parts += _pictures(one, span)
    return "\n".join([f"<h2>{escape(one.cluster_id)}</h2>", *parts]) if parts else ""


def _quarantine(found: Sequence[Row]) -> str:
    rows = [
        (
            *(row["reason"], str(row["rows"]), str(row["resolved"])),
            *(REASONS.get(row["reason"], ""), _first(row["first"])),
        )
        for row in found
    ]
    heads = ("reason", "open rows", "resolved", "meaning", "first row")
    return "<h3>In quarantine</h3>" + table(heads, rows)


def _first(row: Mapping[str, Any]) -> str:
    where = row["file"] or "?"
    where += "" if row["position"] is None else f", byte {row['position']}"
    return f"{where}: {row['problem']}" if row["problem"] else where


def _pictures(one: ClusterFigures, span: TimeSpan) -> list[str]:
    leaders = bands(_leaders(one, span), span) + _legend(one) if one.leaders else ""
    sections = [
        ("Active controllers", bands(_controllers(one, span), span)),
        ("Voters", bands(_voters(one, span), span)),
        ("Changes by kind", heat(one.churn, COLUMNS, span)),
        ("ISR changes", heat(one.isr, COLUMNS, span) if one.isr else ""),
        ("Leaders of the partitions with the most leader changes", leaders),
        ("Topics and partitions", lines(one.growth, span) if one.growth else ""),
    ]
    return [f"<h3>{title}</h3>{picture or '<p>None.</p>'}" for title, picture in sections]


def _legend(one: ClusterFigures) -> str:
    """The colours of the brokers that led a partition in the picture."""
    words = (
        f'<i style="background:{colour(leader)}"></i>'
        + ("no leader" if leader < 0 else f"broker {leader}")
        for leader in sorted({row["leader"] for row in one.leaders})
    )
    return f'<p class="legend">{" ".join(words)}</p>'


def _controllers(one: ClusterFigures, span: TimeSpan) -> list[Bar]:
    return [
        Bar(
            f"controller {row['leader_id']}",
            row["start"],
            _end(row, span),
            f"controller {row['leader_id']}, epoch {row['leader_epoch']}, "
            f"since {moment(row['start'])}",
            colour(row["leader_id"]),
        )
        for row in one.controllers
    ]


def _voters(one: ClusterFigures, span: TimeSpan) -> list[Bar]:
    return [
        Bar(
            f"voter {row['voter_id']}",
            row["start"],
            _end(row, span),
            f"voter {row['voter_id']}, directory {row['directory_id']}, "
            f"since {moment(row['start'])}",
            colour(row["voter_id"]),
        )
        for row in sorted(one.voters, key=lambda row: (row["voter_id"], row["start"]))
    ]


def _leaders(one: ClusterFigures, span: TimeSpan) -> list[Bar]:
    return [
        Bar(
            f"{row['turns']} × {row['topic_name']}-{row['partition']}",
            row["start"],
            _end(row, span),
            f"leader {'none' if row['leader'] < 0 else row['leader']}, "
            f"epoch {row['leader_epoch']}, since {moment(row['start'])}"
            + (f": {row['cause']}" if row["cause"] else ""),
            colour(row["leader"]),
        )
        for row in one.leaders
    ]


def _end(row: Mapping[str, Any], span: TimeSpan) -> int:
    return span[1] if row["end"] is None else int(row["end"])


def _known_end(end: int | None) -> str:
    if end is None:
        return "unknown: too few voters were given"
    return f"up to offset {end - 1} (inclusive)" if end else "nothing"


def _verdict(verdict: Mapping[str, Any]) -> str:
    known = _known_end(verdict["committed_end"])
    contradicted = verdict.get("contradicted_from")  # absent from a report.json of older releases
    if contradicted is not None:
        known += f"; from offset {contradicted} on the replicas contradict each other"
    rows = []
    for replica in verdict["replicas"]:
        findings = [
            f"{found['what']} [{place(found['spot'])}]. {found['advice']}"
            for found in replica["findings"]
        ]
        rows.append((str(replica["node_id"]), replica["state"], " ".join(findings)))
    about = "".join(
        f"<p>{escape(found['what'])}. {escape(found['advice'])}.</p>"
        for found in verdict.get("findings", ())  # absent from a report.json of older releases
    )
    return f"<h3>Audit</h3><p>Committed: {known}.</p>{about}" + table(
        ("node", "state", "findings"), rows
    )


def place(spot: Mapping[str, Any]) -> str:
    """The location of a finding as text."""
    words = [spot["file"]] if spot["file"] else []
    words += [f"{name} {spot[key]}" for name, key in _PLACES if spot[key] is not None]
    return ", ".join(words)


_PLACES: Final = (("byte", "position"), ("offset", "offset"), ("epoch", "epoch"))


_STATES: Final = {
    state: f' class="{state}"'
    for state in ("sound", "uncommitted-tail", "warning", "damaged", "unsafe")
}


def table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table; a cell with a replica's state gets its colour."""
    lines_ = ["".join(f"<th>{escape(head)}</th>" for head in heads)]
    for row in rows:
        cells = (f"<td{_STATES.get(cell, '')}>{escape(cell)}</td>" for cell in row)
        lines_.append("".join(cells))
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines_) + "</table>"
