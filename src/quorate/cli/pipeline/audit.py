"""`quorate pipeline audit` and `report`: a comparison of replicas, and a page with pictures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from quorate.base.plural import pluralize
from quorate.cli.options import ToolCommand
from quorate.cli.pipeline.job import (
    absolute,
    clusters_option,
    common_options,
    every_path,
    findings_code,
    findings_option,
    job_on_spark,
    job_options,
    named_clusters,
    print_result,
)

if TYPE_CHECKING:
    from quorate.spark.audit import ClusterVerdict, Report


@click.command(cls=ToolCommand)
@click.argument("paths", nargs=-1)
@common_options
@clusters_option
@findings_option
@click.option("--fail-fast", is_flag=True, help="Stop at the first damage in a log.")
@click.option("--cluster-id", metavar="ID", help="For logs without a meta.properties beside them.")
@click.option("--out", metavar="DIR", help="Also write report.json there.")
def audit(paths: tuple[str, ...], **words: Any) -> int:
    """Compare the replicas at PATHS: are they sound, what diverged, and at which byte?

    PATHS are copied log directories of controllers and brokers (trees or archives of them), of one
    cluster or many. Exit code 1: some file is damaged, or replicas contradict each other; an
    uncommitted tail is neither. Several clusters may have one cluster id: they are audited apart.
    """
    clusters = named_clusters(words)
    if not (paths or clusters):
        raise click.UsageError("Missing argument 'PATHS...'.")
    every = every_path(paths, clusters)
    with job_on_spark("audit", words) as (spark, notify):
        from quorate.spark.audit.job import audit as job

        report = job(
            spark,
            every,
            cluster_id=words["cluster_id"],
            clusters=tuple((name, tuple(some)) for name, some in clusters.items()),
            fail_fast=words["fail_fast"],
            out=words["out"],
            notify=notify,
        )
    print_result(report.to_json(), words["as_json"], lambda: _audit_lines(report))
    return findings_code(not report.ok, words)


@click.command(cls=ToolCommand)
@job_options
@click.option("--out", metavar="FILE", required=True, help="The HTML page to write.")
@click.option("--audit", metavar="FILE", help="Also show a report.json of `audit --out`.")
@click.option(
    "--cluster",
    "clusters",
    metavar="ID",
    multiple=True,
    help="Only this cluster; may be given several times.",
)
def report(clusters: tuple[str, ...], **words: Any) -> int:
    """Write one self-contained HTML page with pictures of the clusters in the warehouse."""
    with job_on_spark("report", words) as (spark, notify):
        from quorate.spark.report.job import report as job

        shown = job(
            spark,
            absolute(words["warehouse"]),
            words["out"],
            audit=words["audit"],
            clusters=clusters,
            table_format=words["table_format"],
            notify=notify,
        )
    result = {"out": words["out"], "clusters": [one.cluster_id for one in shown]}
    print_result(
        result,
        words["as_json"],
        lambda: [f"{pluralize(len(shown), 'cluster')} in {words['out']}"],
    )
    return 0


def _audit_lines(report: Report) -> list[str]:
    found = []
    for cluster in report.clusters:
        found.append(f"cluster {cluster.cluster_id}: {_committed(cluster)}")
        found += [f"  {finding}" for finding in cluster.findings]
        for one in cluster.replicas:
            held = _offsets(one.start, one.end)
            who = "unknown node" if one.node_id < 0 else f"node {one.node_id}"
            found.append(f"  {who}: {one.state} ({held}) {one.path}")
            for finding in one.findings:
                more = f" (and {finding.more} more like it)" if finding.more else ""
                found.append(f"    {finding}{more}")
    return [*found, "all replicas are sound" if not report.findings else _audit_sum(report)]


def _offsets(start: int | None, end: int | None) -> str:
    if start is None or end is None:
        return "no log"
    return f"offsets {start} to {end - 1}, inclusive" if end > start else "no record"


def _committed(cluster: ClusterVerdict) -> str:
    end, contradicted = cluster.committed_end, cluster.contradicted_from
    if end is None:
        known = "too few voters were given to determine what is committed"
    elif end == 0:
        known = "nothing is known to be committed"
    else:
        known = f"committed up to offset {end - 1} (inclusive), epoch {cluster.committed_epoch}"
    if contradicted is not None:
        known += f"; from offset {contradicted} on the replicas contradict each other"
    return known


def _audit_sum(report: Report) -> str:
    states = Counter(one.state for one in report.replicas)
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
