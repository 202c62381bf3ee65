"""The audit as a job: which task goes where, in this process or on Spark.

One task scans a segment, one replays a replica, one compares a block in which replicas differ, one
judges a cluster. What travels between them is a number for each 4096 offsets, and facts that grow
with epochs, snapshots and damage; what comes back to the driver is the verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorate.base.whole import write_whole
from quorate.base.words import many
from quorate.spark.audit.chain import Part
from quorate.spark.audit.matching import differ, first_of
from quorate.spark.audit.model import (
    ClusterVerdict,
    FirstDamage,
    Mismatch,
    ReplayFacts,
    Replica,
    Report,
    SegmentFacts,
)
from quorate.spark.audit.replicas import find_replicas
from quorate.spark.audit.steps import (
    Key,
    ReplayTask,
    SegmentTask,
    compare_block,
    judge_cluster,
    replay,
    replay_tasks,
    scan_segment,
    segment_tasks,
)
from quorate.spark.files.archives import Shelf
from quorate.spark.files.paths import File, SourceError
from quorate.spark.session import reason
from quorate.spark.source.options import PARTITION_BYTES

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

Fact = SegmentFacts | ReplayFacts | Mismatch | Replica
Tell = Callable[[str], None]


def audit(
    spark: SparkSession,
    paths: Iterable[str],
    *,
    cluster_id: str | None = None,
    fail_fast: bool = False,
    out: str | None = None,
    tell: Tell = lambda _: None,
) -> Report:
    """Audit all replicas below the paths on Spark.

    paths: directories of log directories, archives, single segments or snapshots, of one cluster
    or many; patterns too. cluster_id: for logs without a meta.properties beside them. fail_fast:
    raise FirstDamage at the first archive or meta.properties that cannot be read, or damage inside
    a segment. out: a directory that `report.json` is written to. Raises SourceError where a path
    holds no metadata log or a file cannot be read.
    """
    replicas = _replicas(paths, cluster_id, fail_fast)
    tell(f"auditing {many(len(replicas), 'replica')}")
    try:
        # of each replica a state, and at most MOST_FINDINGS for each of its files
        verdicts = _verdicts(spark, replicas, fail_fast).collect()
    except Exception as error:
        for ours in (FirstDamage, SourceError):
            if f"{ours.__module__}.{ours.__qualname__}: " in str(error):
                raise ours(reason(error)) from error
        raise
    return _finished(verdicts, out)


def audit_here(
    paths: Iterable[str],
    *,
    cluster_id: str | None = None,
    fail_fast: bool = False,
    out: str | None = None,
) -> Report:
    """The same in this process, without Spark: for a few small logs."""
    replicas = _replicas(paths, cluster_id, fail_fast)
    clusters: dict[str, list[Fact]] = {}
    blocks: dict[Key, list[Part]] = {}
    for one in replicas:
        clusters.setdefault(one.cluster_id, []).append(one)
    files = _files(replicas)
    with Shelf() as shelf:
        for task in segment_tasks(replicas):
            for found in scan_segment(task, shelf, fail_fast=fail_fast):
                if isinstance(found, Part):
                    key = (task.cluster_id, found.epoch, found.block)
                    blocks.setdefault(key, []).append(found)
                else:
                    clusters[task.cluster_id].append(found)
        for again in replay_tasks(replicas):
            clusters[again.replica.cluster_id].append(replay(again, shelf))
        for (cluster, _, _), parts in blocks.items():
            if differ(parts) and (wrong := compare_block(parts, files, shelf)):
                clusters[cluster].append(wrong)
        verdicts = [_judged(facts, shelf) for facts in clusters.values()]
    return _finished(verdicts, out)


def _replicas(paths: Iterable[str], cluster_id: str | None, fail_fast: bool) -> list[Replica]:
    replicas = find_replicas(paths, cluster_id)
    for one in replicas:
        if fail_fast and one.problem is not None:
            raise FirstDamage(one.problem.what)
    return replicas


def _files(replicas: Iterable[Replica]) -> dict[str, File]:
    return {file.name: file for one in replicas for _, file in one.segments}


def _finished(verdicts: Sequence[ClusterVerdict], out: str | None) -> Report:
    report = Report(tuple(sorted(verdicts, key=lambda one: one.cluster_id)))
    if out is not None:
        folder = Path(out)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(report.to_json(), indent=1, default=str, ensure_ascii=False)
            write_whole(folder / "report.json", text + "\n")
        except OSError as error:
            raise SourceError(f"{out}: the report cannot be written: {error}") from None
    return report


def _judged(facts: Iterable[Fact], shelf: Shelf) -> ClusterVerdict:
    """Sort out what was found of a cluster, and judge it."""
    replicas: list[Replica] = []
    segments: list[SegmentFacts] = []
    replays: list[ReplayFacts] = []
    mismatches: list[Mismatch] = []
    for fact in facts:
        match fact:
            case Replica():
                replicas.append(fact)
            case SegmentFacts():
                segments.append(fact)
            case ReplayFacts():
                replays.append(fact)
            case Mismatch():
                mismatches.append(fact)
    replicas.sort(key=lambda one: (one.node_id, one.path))
    replays.sort(key=lambda one: one.path)
    return judge_cluster(replicas, segments, replays, _first_ones(mismatches), shelf)


def _first_ones(mismatches: Iterable[Mismatch]) -> list[Mismatch]:
    """The first one of each set of replicas that contradict each other."""
    firsts: dict[Any, Mismatch] = {}
    for one in mismatches:
        key = _parties(one)
        firsts[key] = first_of(firsts[key], one) if key in firsts else one
    return sorted(firsts.values(), key=lambda one: one.offset)


def _parties(one: Mismatch) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(path for path, _ in version)) for version in one.versions)


def _verdicts(
    spark: SparkSession, replicas: Sequence[Replica], fail_fast: bool
) -> RDD[ClusterVerdict]:
    context = spark.sparkContext
    segments = segment_tasks(replicas)
    scanned = _spread(spark, segments).mapPartitions(_scanner(fail_fast)).cache()
    files = context.broadcast(_files(replicas))  # names and sizes: as many as there are segments
    parts = scanned.filter(lambda pair: isinstance(pair[1], Part)).map(_by_block)
    width = max(1, min(len(segments), context.defaultParallelism))

    def compared(found: Iterable[tuple[Key, Iterable[Part]]]) -> Iterator[tuple[Any, Mismatch]]:
        with Shelf() as shelf:
            for (cluster, _, _), some in found:
                block = list(some)
                if differ(block) and (wrong := compare_block(block, files.value, shelf)):
                    yield (cluster, _parties(wrong)), wrong

    mismatches = (
        parts.groupByKey(width)
        .mapPartitions(compared)
        .reduceByKey(first_of, width)
        .map(lambda pair: (pair[0][0], pair[1]))
    )
    replays = _spread(spark, replay_tasks(replicas)).mapPartitions(_replayer)
    known = context.parallelize([(one.cluster_id, one) for one in replicas], 1)
    facts = scanned.filter(lambda pair: not isinstance(pair[1], Part))
    return (
        context.union([known, facts, replays, mismatches]).groupByKey(width).mapPartitions(_judge)
    )


def _spread(spark: SparkSession, tasks: Sequence[SegmentTask | ReplayTask]) -> RDD[Any]:
    """Tasks over the cluster: small ones share a partition."""
    context = spark.sparkContext
    size = sum(task.size for task in tasks)
    parts = max(context.defaultParallelism, size // PARTITION_BYTES)
    return context.parallelize(tasks, max(1, min(len(tasks), parts)))


def _scanner(fail_fast: bool) -> Callable[[Iterable[SegmentTask]], Iterator[tuple[str, Any]]]:
    def scan(tasks: Iterable[SegmentTask]) -> Iterator[tuple[str, Any]]:
        with Shelf() as shelf:
            for task in tasks:
                for found in scan_segment(task, shelf, fail_fast=fail_fast):
                    yield task.cluster_id, found

    return scan


def _by_block(pair: tuple[str, Part]) -> tuple[Key, Part]:
    cluster, part = pair
    return (cluster, part.epoch, part.block), part


def _replayer(tasks: Iterable[ReplayTask]) -> Iterator[tuple[str, ReplayFacts]]:
    with Shelf() as shelf:
        for task in tasks:
            yield task.replica.cluster_id, replay(task, shelf)


def _judge(found: Iterable[tuple[str, Iterable[Fact]]]) -> Iterator[ClusterVerdict]:
    with Shelf() as shelf:
        for _, facts in found:
            yield _judged(facts, shelf)
