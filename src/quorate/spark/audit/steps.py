"""What the tasks of an audit do, each over a few files; nothing here knows Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from quorate.spark.audit.chain import ChainReader, Part
from quorate.spark.audit.judge import Evidence, judge
from quorate.spark.audit.matching import compare
from quorate.spark.audit.model import (
    ClusterVerdict,
    Finding,
    FirstDamage,
    Mismatch,
    ReplayFacts,
    Replica,
    ReplicaVerdict,
    SegmentFacts,
    Spot,
)
from quorate.spark.audit.replay import replay_replica
from quorate.spark.files.archives import GarbledMember, Shelf
from quorate.spark.files.paths import File
from quorate.spark.files.scan import Damage, Garbled, Read, runs

Key = tuple[str, int, int]
"""Cluster, epoch, block: where parts are compared."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """One segment of one replica."""

    cluster_id: str
    path: str
    base: int
    file: File
    next_base: int | None
    is_first: bool

    @property
    def size(self) -> int:
        return self.file.size


@dataclass(frozen=True, slots=True)
class ReplayTask:
    """One replica, and the ends of all snapshots of its cluster."""

    replica: Replica
    ends: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(file.size for _, file in (*self.replica.segments, *self.replica.snapshots))


def segment_tasks(replicas: Iterable[Replica]) -> list[SegmentTask]:
    """Each segment of each replica."""
    return [
        SegmentTask(
            *(one.cluster_id, one.path, base, file),
            one.segments[place + 1][0] if place + 1 < len(one.segments) else None,
            place == 0 and one.complete,
        )
        for one in replicas
        for place, (base, file) in enumerate(one.segments)
    ]


def replay_tasks(replicas: Sequence[Replica]) -> list[ReplayTask]:
    """Each replica."""
    ends: dict[str, set[int]] = {}
    for one in replicas:
        ends.setdefault(one.cluster_id, set()).update(found.offset for found, _ in one.snapshots)
    return [ReplayTask(one, tuple(sorted(ends[one.cluster_id]))) for one in replicas]


def scan_segment(
    task: SegmentTask, shelf: Shelf, *, fail_fast: bool = False
) -> Iterator[Part | SegmentFacts]:
    """The blocks of a segment, at last its facts.

    Raises SourceError for what cannot be opened, FirstDamage with fail_fast.
    """
    reader = ChainReader(
        task.path, task.file.name, task.base, task.next_base, is_first=task.is_first
    )
    for item in runs(shelf.reader(task.file), task.file.size):
        if fail_fast and isinstance(item, Damage):
            raise FirstDamage(f"{task.file.name}: at byte {item.position}: {item.what}")
        yield from reader.feed(item)
    facts, rest = reader.finish(task.file.size)
    if fail_fast and facts.findings:
        first = facts.findings[0]
        raise FirstDamage(f"{task.file.name}: at byte {first.spot.position}: {first.what}")
    yield from rest
    yield facts


def replay(task: ReplayTask, shelf: Shelf) -> ReplayFacts:
    return replay_replica(task.replica, task.ends, shelf)


def compare_block(parts: Sequence[Part], files: dict[str, File], shelf: Shelf) -> Mismatch | None:
    """Read the batches of a block in which replicas differ; `files` by their names."""

    def reader(part: Part) -> Read:
        return shelf.reader(files[part.file])

    return compare(parts, reader)


def judge_cluster(
    replicas: Sequence[Replica],
    segments: Sequence[SegmentFacts],
    replays: Sequence[ReplayFacts],
    mismatches: Sequence[Mismatch],
    shelf: Shelf,
) -> ClusterVerdict:
    """The verdict, with the byte position of everything that is said."""
    small = [
        file
        for one in replicas
        for file in (one.quorum_state, one.epochs, one.topic, one.bootstrap)
        if file
    ]
    contents = {file.name: _content(file, shelf) for file in small}
    verdict = judge(Evidence(replicas, segments, replays, mismatches, contents))
    by_path = {one.path: one for one in replicas}
    return replace(
        verdict,
        replicas=tuple(_located(one, by_path[one.path], shelf) for one in verdict.replicas),
    )


def _content(file: File, shelf: Shelf) -> bytes | Garbled:
    """Of a small file; what is wrong with it where an archive does not give it."""
    try:
        return shelf.read_small(file)
    except GarbledMember as error:
        return error


def _located(verdict: ReplicaVerdict, replica: Replica, shelf: Shelf) -> ReplicaVerdict:
    findings = tuple(
        replace(found, spot=_place(found, replica, shelf))
        if found.spot.file is None and found.spot.offset is not None
        else found
        for found in verdict.findings
    )
    return replace(verdict, findings=findings)


def _place(found: Finding, replica: Replica, shelf: Shelf) -> Spot:
    """Where the batch with the offset stands."""
    offset = found.spot.offset or 0
    for base, file in reversed(replica.segments):
        if base > offset:
            continue
        for run in runs(shelf.reader(file), file.size):
            if isinstance(run, Damage):
                continue
            bases = run.heads["base_offset"]
            place = int(((bases + run.heads["count"]) > offset).argmax())
            if bases[place] <= offset < bases[place] + run.heads["count"][place]:
                position = run.origin + int(run.starts[place])
                return replace(found.spot, file=file.name, segment=base, position=position)
        break
    return found.spot
