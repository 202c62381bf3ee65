"""The audit as a job, in this process or on Spark.

1. Find the replicas (driver).
2. Scan each segment: a digest of each block of 4096 offsets, and facts.
3. Replay each replica: digests of its state at the ends of snapshots.
4. Group the digests by block; read the batches only of blocks whose digests differ.
5. Group all facts by cluster; one task gives the verdict on a cluster.

Between tasks travel digests, and facts that grow with epochs, snapshots and damage, not with
records. The driver receives the verdicts only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quorate.base.atomic_write import write_atomically
from quorate.base.plural import pluralize
from quorate.spark.audit.log_matching import BlockDigest, blocks_differ, first_of
from quorate.spark.audit.model import (
    DAMAGE,
    ClusterVerdict,
    FirstDamageError,
    Mismatch,
    ReplayFacts,
    ReplicaFiles,
    Report,
    SegmentFacts,
)
from quorate.spark.audit.replicas import find_replicas
from quorate.spark.audit.tasks import (
    BlockKey,
    ReplayTask,
    SegmentTask,
    compare_block,
    replay,
    replay_tasks,
    scan_segment,
    segment_tasks,
    verdict_on_cluster,
)
from quorate.spark.files.archives import FileReaders
from quorate.spark.files.naming import ClusterPaths
from quorate.spark.files.paths import SourceError, SourceFile, as_local
from quorate.spark.objects import Group, Keyed, collect, map_groups, map_objects, spread
from quorate.spark.session import parallelism, reason
from quorate.spark.source.options import PARTITION_BYTES
from quorate.spark.write_errors import DiskWriteError, error_number

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Fact = SegmentFacts | ReplayFacts | Mismatch | ReplicaFiles
Notify = Callable[[str], None]
_BLOCK: Final = "block "
"""How the keys of digests begin: they are compared by epoch and block."""
_CLUSTER: Final = "cluster "
"""How the keys of all other facts begin."""


def audit(
    spark: SparkSession,
    paths: Iterable[str],
    *,
    cluster_id: str | None = None,
    clusters: ClusterPaths = (),
    fail_fast: bool = False,
    out: str | None = None,
    notify: Notify = lambda _: None,
) -> Report:
    """Audit all replicas below the paths on Spark.

    paths: directories of log directories, archives, single segments or snapshots, of one cluster
    or many; patterns too. cluster_id: for logs without a meta.properties beside them. clusters:
    (name, paths) of clusters whose logs are at and below these paths. fail_fast: raise
    FirstDamageError at the first unreadable archive or meta.properties, or the first damage inside
    a segment. out: a directory for `report.json`. notify: receives progress messages.
    Raises SourceError where a path holds no metadata log or a file cannot be read.
    """
    replicas = _replicas(paths, cluster_id, clusters, fail_fast)
    notify(f"auditing {pluralize(len(replicas), 'replica')}")
    try:
        # small: a state for each replica, and at most MOST_FINDINGS for each of its files
        verdicts = _verdicts(spark, replicas, fail_fast)
    except Exception as error:
        for ours in (FirstDamageError, SourceError):
            if f"{ours.__module__}.{ours.__qualname__}: " in str(error):
                raise ours(reason(error)) from error
        raise
    return _finished(verdicts, out)


def audit_here(
    paths: Iterable[str],
    *,
    cluster_id: str | None = None,
    clusters: ClusterPaths = (),
    fail_fast: bool = False,
    out: str | None = None,
) -> Report:
    """The same as `audit` in this process, without Spark: faster for a few small logs."""
    replicas = _replicas(paths, cluster_id, clusters, fail_fast)
    facts_of: dict[str, list[Fact]] = {}
    blocks: dict[BlockKey, list[BlockDigest]] = {}
    for one in replicas:
        facts_of.setdefault(one.cluster_id, []).append(one)
    files = _files(replicas)
    with FileReaders() as readers:
        for task in segment_tasks(replicas):
            for found in scan_segment(task, readers, fail_fast=fail_fast):
                if isinstance(found, BlockDigest):
                    key = (task.cluster_id, found.epoch, found.block)
                    blocks.setdefault(key, []).append(found)
                else:
                    facts_of[task.cluster_id].append(found)
        for again in replay_tasks(replicas):
            facts_of[again.replica.cluster_id].append(replay(again, readers))
        for (cluster, _, _), parts in blocks.items():
            if blocks_differ(parts) and (wrong := compare_block(parts, files, readers)):
                facts_of[cluster].append(wrong)
        verdicts = [_verdict(facts, readers) for facts in facts_of.values()]
    return _finished(verdicts, out)


def _replicas(
    paths: Iterable[str], cluster_id: str | None, clusters: ClusterPaths, fail_fast: bool
) -> list[ReplicaFiles]:
    replicas = find_replicas(paths, cluster_id, clusters)
    for one in replicas:
        if fail_fast and one.problem is not None and one.problem.severity == DAMAGE:
            raise FirstDamageError(one.problem.what)
    return replicas


def _files(replicas: Iterable[ReplicaFiles]) -> dict[str, SourceFile]:
    return {file.name: file for one in replicas for _, file in one.segments}


def _finished(verdicts: Sequence[ClusterVerdict], out: str | None) -> Report:
    report = Report(tuple(sorted(verdicts, key=lambda one: one.cluster_id)))
    if out is not None:
        folder = Path(as_local(out))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps(report.to_json(), indent=1, default=str, ensure_ascii=False)
            write_atomically(folder / "report.json", text + "\n")
        except OSError as error:
            if error_number(error) is not None:
                raise DiskWriteError(out, error) from None
            raise SourceError(f"{out}: the report cannot be written: {error}") from None
    return report


def _verdict(facts: Iterable[Fact], readers: FileReaders) -> ClusterVerdict:
    """The verdict from all facts about one cluster, in any order."""
    replicas: list[ReplicaFiles] = []
    segments: list[SegmentFacts] = []
    replays: list[ReplayFacts] = []
    mismatches: list[Mismatch] = []
    for fact in facts:
        match fact:
            case ReplicaFiles():
                replicas.append(fact)
            case SegmentFacts():
                segments.append(fact)
            case ReplayFacts():
                replays.append(fact)
            case Mismatch():
                mismatches.append(fact)
    replicas.sort(key=lambda one: (one.node_id, one.path))
    replays.sort(key=lambda one: one.path)
    return verdict_on_cluster(replicas, segments, replays, _first_ones(mismatches), readers)


def _first_ones(mismatches: Iterable[Mismatch]) -> list[Mismatch]:
    """The first mismatch of each set of replicas that contradict each other."""
    firsts: dict[Any, Mismatch] = {}
    for one in mismatches:
        key = _parties(one)
        firsts[key] = first_of(firsts[key], one) if key in firsts else one
    return sorted(firsts.values(), key=lambda one: one.offset)


def _parties(one: Mismatch) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(path for path, _ in version)) for version in one.versions)


def _verdicts(
    spark: SparkSession, replicas: Sequence[ReplicaFiles], fail_fast: bool
) -> list[ClusterVerdict]:
    from pyspark.sql import functions as F

    # 2; cached, since both 4 and 5 read it
    segments = segment_tasks(replicas)
    scanned = map_objects(_spread(spark, segments), _scanner(fail_fast)).cache()
    is_block = F.col("key").startswith(_BLOCK)
    width = max(1, min(len(segments), parallelism(spark)))
    # 4
    mismatches = map_groups(scanned.where(is_block), width, _comparer(_files(replicas)))
    # 3
    replays = map_objects(_spread(spark, replay_tasks(replicas)), _replayer)
    # 5
    known = spread(spark, [(_CLUSTER + one.cluster_id, one) for one in replicas], 1)
    facts = known.union(scanned.where(~is_block)).union(replays).union(mismatches)
    try:
        found: list[ClusterVerdict] = collect(map_groups(facts, width, _verdict_by_cluster))
    finally:
        scanned.unpersist()
    return found


def _spread(spark: SparkSession, tasks: Sequence[SegmentTask | ReplayTask]) -> DataFrame:
    """Distribute tasks by their size: small ones share a partition."""
    size = sum(task.size for task in tasks)
    parts = max(parallelism(spark), size // PARTITION_BYTES)
    return spread(spark, [("", task) for task in tasks], parts)


def _scanner(fail_fast: bool) -> Callable[[Iterable[SegmentTask]], Iterator[Keyed]]:
    def scan(tasks: Iterable[SegmentTask]) -> Iterator[Keyed]:
        with FileReaders() as readers:
            for task in tasks:
                for found in scan_segment(task, readers, fail_fast=fail_fast):
                    if isinstance(found, BlockDigest):
                        yield f"{_BLOCK}{found.epoch} {found.block} {task.cluster_id}", found
                    else:
                        yield _CLUSTER + task.cluster_id, found

    return scan


def _comparer(files: dict[str, SourceFile]) -> Callable[[Iterable[Group]], Iterator[Keyed]]:
    """Compares the digests of blocks; of replicas that contradict each other, a task gives the
    first mismatch that it finds.

    files: by name, all segments
    """

    def compare(blocks: Iterable[Group]) -> Iterator[Keyed]:
        found: dict[str, list[Mismatch]] = {}
        with FileReaders() as readers:
            for key, some in blocks:
                block = list(some)
                if blocks_differ(block) and (wrong := compare_block(block, files, readers)):
                    cluster = key.removeprefix(_BLOCK).split(" ", 2)[2]
                    found[cluster] = _first_ones([*found.get(cluster, ()), wrong])
        for cluster, firsts in found.items():
            for wrong in firsts:
                yield _CLUSTER + cluster, wrong

    return compare


def _replayer(tasks: Iterable[ReplayTask]) -> Iterator[Keyed]:
    with FileReaders() as readers:
        for task in tasks:
            yield _CLUSTER + task.replica.cluster_id, replay(task, readers)


def _verdict_by_cluster(clusters: Iterable[Group]) -> Iterator[Keyed]:
    with FileReaders() as readers:
        for cluster, facts in clusters:
            yield cluster, _verdict(facts, readers)
