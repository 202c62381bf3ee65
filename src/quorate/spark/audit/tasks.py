"""The tasks of an audit, each over a few files; nothing here uses Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from quorate.spark.audit.log_matching import BlockDigest, find_mismatch
from quorate.spark.audit.model import (
    ClusterVerdict,
    Finding,
    FirstDamageError,
    Mismatch,
    ReplayFacts,
    ReplicaFiles,
    ReplicaVerdict,
    SegmentFacts,
    Spot,
)
from quorate.spark.audit.replay import replay_replica
from quorate.spark.audit.segment_scan import SegmentScanner
from quorate.spark.audit.verdict import ClusterFacts, verdict_on
from quorate.spark.files.archives import FileReaders, GarbledMemberError
from quorate.spark.files.paths import SourceFile
from quorate.spark.files.scan import Damage, GarbledFileError, Read, runs

BlockKey = tuple[str, int, int]
"""(cluster id, epoch, block): digests with the same key are compared."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """Scan one segment of one replica."""

    cluster_id: str
    path: str
    base: int
    file: SourceFile
    next_base: int | None

    @property
    def size(self) -> int:
        return self.file.size


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """Replay one replica; `ends`: end offsets of all snapshots of its cluster."""

    replica: ReplicaFiles
    ends: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(file.size for _, file in (*self.replica.segments, *self.replica.snapshots))


def segment_tasks(replicas: Iterable[ReplicaFiles]) -> list[SegmentTask]:
    """A task for each segment of each replica."""
    return [
        SegmentTask(
            *(one.cluster_id, one.path, base, file),
            one.segments[place + 1][0] if place + 1 < len(one.segments) else None,
        )
        for one in replicas
        for place, (base, file) in enumerate(one.segments)
    ]


def replay_tasks(replicas: Sequence[ReplicaFiles]) -> list[ReplayTask]:
    """A task for each replica."""
    ends: dict[str, set[int]] = {}
    for one in replicas:
        ends.setdefault(one.cluster_id, set()).update(found.offset for found, _ in one.snapshots)
    return [ReplayTask(one, tuple(sorted(ends[one.cluster_id]))) for one in replicas]


def scan_segment(
    task: SegmentTask, readers: FileReaders, *, fail_fast: bool = False
) -> Iterator[BlockDigest | SegmentFacts]:
    """The block digests of a segment, then its facts.

    Raises SourceError for what cannot be opened, FirstDamageError with fail_fast.
    """
    reader = SegmentScanner(task.path, task.file.name, task.base, task.next_base)
    for item in runs(readers.reader(task.file), task.file.size):
        if fail_fast and isinstance(item, Damage):
            raise FirstDamageError(f"{task.file.name}: at byte {item.position}: {item.what}")
        yield from reader.feed(item)
    facts, rest = reader.finish(task.file.size)
    if fail_fast and facts.findings:
        first = facts.findings[0]
        raise FirstDamageError(f"{task.file.name}: at byte {first.spot.position}: {first.what}")
    yield from rest
    yield facts


def replay(task: ReplayTask, readers: FileReaders) -> ReplayFacts:
    return replay_replica(task.replica, task.ends, readers)


def compare_block(
    parts: Sequence[BlockDigest], files: dict[str, SourceFile], readers: FileReaders
) -> Mismatch | None:
    """Read and compare the batches of a block whose digests differ; `files` by their names."""

    def reader(part: BlockDigest) -> Read:
        return readers.reader(files[part.file])

    return find_mismatch(parts, reader)


def verdict_on_cluster(
    replicas: Sequence[ReplicaFiles],
    segments: Sequence[SegmentFacts],
    replays: Sequence[ReplayFacts],
    mismatches: Sequence[Mismatch],
    readers: FileReaders,
) -> ClusterVerdict:
    """The verdict on a cluster, with the byte position of every finding."""
    small = [
        file
        for one in replicas
        for file in (one.quorum_state, one.epochs, one.topic, one.bootstrap)
        if file
    ]
    contents = {file.name: _content(file, readers) for file in small}
    verdict = verdict_on(ClusterFacts(replicas, segments, replays, mismatches, contents))
    by_path = {one.path: one for one in replicas}
    return replace(
        verdict,
        replicas=tuple(_located(one, by_path[one.path], readers) for one in verdict.replicas),
    )


def _content(file: SourceFile, readers: FileReaders) -> bytes | GarbledFileError:
    """The bytes of a file; the error where an archive does not give them."""
    try:
        return readers.read_small(file)
    except GarbledMemberError as error:
        return error


def _located(
    verdict: ReplicaVerdict, replica: ReplicaFiles, readers: FileReaders
) -> ReplicaVerdict:
    findings = tuple(
        replace(found, spot=_place(found, replica, readers))
        if found.spot.file is None and found.spot.offset is not None
        else found
        for found in verdict.findings
    )
    return replace(verdict, findings=findings)


def _place(found: Finding, replica: ReplicaFiles, readers: FileReaders) -> Spot:
    """The finding's spot with the file and the position of the batch at its offset."""
    offset = found.spot.offset or 0
    for base, file in reversed(replica.segments):
        if base > offset:
            continue
        for run in runs(readers.reader(file), file.size):
            if isinstance(run, Damage):
                continue
            bases = run.heads["base_offset"]
            place = int(((bases + run.heads["count"]) > offset).argmax())
            if bases[place] <= offset < bases[place] + run.heads["count"][place]:
                position = run.origin + int(run.starts[place])
                return replace(found.spot, file=file.name, segment=base, position=position)
        break
    return found.spot
