"""`quorate pipeline audit` and `report`: replicas held against each other, and pictures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from quorate.base.words import many
from quorate.cli.options import Tool
from quorate.cli.pipeline_job import (
    BAD_INPUT,
    absolute,
    job_on_spark,
    job_options,
    place_options,
    print_told,
)

if TYPE_CHECKING:
    from quorate.spark.audit import ClusterVerdict, Report


@click.command(cls=Tool)
@click.argument("paths", nargs=-1, required=True)
@place_options
@click.option("--fail-fast", is_flag=True, help="Stop at the first damage in a log.")
@click.option("--cluster-id", metavar="ID", help="For logs without a meta.properties beside them.")
@click.option("--out", metavar="DIR", help="Write report.json there too.")
def audit(paths: tuple[str, ...], **words: Any) -> int:
    """Hold the replicas at PATHS against each other: is all well, what diverged, at which byte?

    PATHS are copied log directories of controllers and brokers (trees or archives of them), of one
    cluster or many. Exit code 1 tells of damage or of replicas that contradict each other; an
    uncommitted tail is none of that.
    """
    with job_on_spark("audit", words) as (spark, tell):
        from quorate.spark.audit.job import audit as job

        report = job(
            spark,
            [absolute(path) for path in paths],
            cluster_id=words["cluster_id"],
            fail_fast=words["fail_fast"],
            out=words["out"],
            tell=tell,
        )
    print_told(report.to_json(), words["as_json"], lambda: _audit_lines(report))
    return 0 if report.ok else BAD_INPUT


@click.command(cls=Tool)
@job_options
@click.option("--out", metavar="FILE", required=True, help="The HTML page to write.")
@click.option("--audit", metavar="FILE", help="A report.json of `audit --out`, shown too.")
@click.option("--cluster", "clusters", metavar="ID", multiple=True, help="Only this one.")
def report(clusters: tuple[str, ...], **words: Any) -> int:
    """Write one self-contained HTML page with pictures of what the warehouse knows."""
    with job_on_spark("report", words) as (spark, tell):
        from quorate.spark.report.job import report as job

        shown = job(
            spark,
            absolute(words["warehouse"]),
            words["out"],
            audit=words["audit"],
            clusters=clusters,
            table_format=words["table_format"],
            tell=tell,
        )
    told = {"out": words["out"], "clusters": [one.cluster_id for one in shown]}
    print_told(
        told, words["as_json"], lambda: [f"{many(len(shown), 'cluster')} told in {words['out']}"]
    )
    return 0


def _audit_lines(report: Report) -> list[str]:
    found = []
    for cluster in report.clusters:
        found.append(f"cluster {cluster.cluster_id}: {_committed(cluster)}")
        for one in cluster.replicas:
            end_text = "no log" if one.end is None else f"offsets {one.start} to {one.end}"
            who = "unknown node" if one.node_id < 0 else f"node {one.node_id}"
            found.append(f"  {who}: {one.state} ({end_text}) {one.path}")
            for finding in one.findings:
                more = f" (and {finding.more} more like it)" if finding.more else ""
                found.append(f"    {finding}{more}")
    return [*found, "all is well" if not report.findings else _audit_sum(report)]


def _committed(cluster: ClusterVerdict) -> str:
    end, doubt = cluster.committed_end, cluster.contradicted_from
    known = (
        "too few voters are here to say what is committed"
        if end is None
        else f"committed up to offset {end}, epoch {cluster.committed_epoch}"
    )
    if doubt is None:
        return known
    from_there = f"from offset {doubt} on the replicas contradict each other"
    return (
        f"nothing is known to be committed: {from_there}" if end == 0 else f"{known}; {from_there}"
    )


def _audit_sum(report: Report) -> str:
    states = Counter(one.state for one in report.replicas)
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
