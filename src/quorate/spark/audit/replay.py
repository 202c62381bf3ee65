"""Replaying a replica's log, and holding its snapshots against what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from immutables import Map

from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.formats.batch import BatchView
from quorate.formats.errors import BatchError, FormatError, NewerRecord
from quorate.formats.snapshot import SnapshotReader
from quorate.metadata.diff import KeyDiff, diff
from quorate.metadata.errors import ReplayError, UnwritableMetadata
from quorate.metadata.image import TOPIC_RESOURCE, Image
from quorate.metadata.loader import Loader, Published, SnapshotBuilder, log_batch
from quorate.metadata.replay import record_values
from quorate.spark.audit.chain import RESTORE
from quorate.spark.audit.model import (
    DAMAGE,
    WARNING,
    Digest,
    Finding,
    ReplayFacts,
    Replica,
    SnapshotFacts,
    Spot,
)
from quorate.spark.audit.orphans import (
    inherited,
    judge_orphaned,
    without_inherited,
    without_orphaned,
)
from quorate.spark.files.archives import Shelf
from quorate.spark.files.paths import File
from quorate.spark.files.scan import Damage, scan

_DELETE = (
    "Delete this snapshot while an older one or the whole log is there, else let the node fetch "
    "everything anew; do not start the node with it"
)

_UPDATE: Final = (
    "The bytes are sound: a newer Kafka wrote a record that is not known here. What the record and "
    "those behind it say was not judged, all else was; audit with a newer release"
)


def _is_newer(error: Exception) -> bool:
    return isinstance(error.__cause__, NewerRecord)


def digest_of(image: Image) -> Digest | None:
    """None of an image that has no metadata.version yet."""
    image = without_orphaned(image)
    topics = {one: told for one, told in image.configs.items() if one.type == TOPIC_RESOURCE}
    others = (pair for pair in image.configs.items() if pair[0] not in topics)
    told = (
        repr((one.name, sorted(values.items()))).encode() for one, values in sorted(topics.items())
    )
    try:
        state = _hash(record_values(replace(image, configs=Map(others))))
    except UnwritableMetadata:
        return None
    return Digest(state, _hash(told))


def _hash(values: Iterable[bytes]) -> str:
    sum_ = blake2b(digest_size=16)
    for value in values:
        sum_.update(len(value).to_bytes(4, "big") + value)
    return sum_.hexdigest()


@dataclass(slots=True)
class _Loaded:
    facts: SnapshotFacts
    published: Published | None


def replay_replica(replica: Replica, ends: Iterable[int], shelf: Shelf) -> ReplayFacts:
    """Replay the log of a replica from its start, or from its oldest snapshot.

    At its own snapshots the states are compared; at all of `ends` (offsets, exclusive) they are
    told as digests. Where the log is damaged it goes on from the next snapshot.
    Memory: two images.
    """
    return _Replay(replica, sorted({*ends, *(one.offset for one, _ in replica.snapshots)})).run(
        shelf
    )


class _Replay:
    def __init__(self, replica: Replica, ends: Sequence[int]) -> None:
        self._replica = replica
        self._ends = list(ends)
        self._loader: Loader | None = None
        if replica.segments and replica.segments[0][0] == 0:
            self._loader = Loader()
        self._digests: dict[int, Digest] = {}
        self._snapshots: list[SnapshotFacts] = []
        self._findings: list[Finding] = []

    def run(self, shelf: Shelf) -> ReplayFacts:
        for base, file in self._replica.segments:
            # one file is read at a time, so a snapshot is read before the segment goes on
            position = 0
            while position < file.size:
                position = self._some(base, file, position, shelf)
        self._reach(None, shelf)
        return ReplayFacts(
            self._replica.path, tuple(self._snapshots), self._digests, tuple(self._findings)
        )

    def _some(self, base: int, file: File, position: int, shelf: Shelf) -> int:
        """Feed batches up to where a snapshot ends; the position to go on from."""
        for found in scan(shelf.reader(file), file.size, position):
            if isinstance(found, Damage):
                self._loader = None
                continue
            if self._ends and found.base_offset >= self._ends[0]:
                self._reach(found.base_offset, shelf)
                return found.position
            self._feed(found, base, file)
        return file.size

    def _feed(self, view: BatchView, base: int, file: File) -> None:
        loader = self._loader
        if loader is None or view.base_offset < loader.next_offset:
            return
        if view.base_offset > loader.next_offset:
            self._loader = None
            return
        try:
            loader.feed(log_batch(view))
        except (ReplayError, FormatError) as error:
            self._loader = None
            spot = Spot(file.name, base, view.position, view.base_offset, view.epoch)
            how = (WARNING, _UPDATE) if _is_newer(error) else (DAMAGE, RESTORE)
            self._findings.append(Finding("records", how[0], str(error), how[1], spot))

    def _reach(self, offset: int | None, shelf: Shelf) -> None:
        """Handle all ends up to the offset at which the log goes on; None at its end."""
        while self._ends and (offset is None or self._ends[0] <= offset):
            end = self._ends.pop(0)
            published = self._published(end)
            if published is not None and (digest := digest_of(published.image)) is not None:
                self._digests[end] = digest
            for snapshot_id, file in self._replica.snapshots:
                if snapshot_id.offset == end:
                    self._compare(_load(snapshot_id, file, shelf), published)

    def _published(self, end: int) -> Published | None:
        loader = self._loader
        if loader is None or loader.next_offset != end or loader.transaction is not None:
            return None
        return loader.published

    def _compare(self, loaded: _Loaded, own: Published | None) -> None:
        facts, theirs = loaded.facts, loaded.published
        if theirs is not None and own is not None:
            spot = Spot(facts.file, None, 0, facts.id.offset, facts.id.epoch)
            odd = _odd(without_orphaned(own.image), without_orphaned(theirs.image), spot)
            facts = replace(facts, checked=not odd, findings=(*facts.findings, *odd))
        self._snapshots.append(facts)
        if theirs is not None and own is None:
            self._loader = Loader()
            self._loader.install(theirs)


def _load(snapshot_id: OffsetAndEpoch, file: File, shelf: Shelf) -> _Loaded:
    """Read and check a snapshot."""
    reader, builder = SnapshotReader(), SnapshotBuilder(snapshot_id, 0)
    position = 0
    try:
        for batch in _sound(file, shelf):
            position = batch.position
            builder.feed(reader.add(batch))
        reader.finish(snapshot_id)
        published = builder.finish()
    except (BatchError, ReplayError) as error:
        where = getattr(error, "position", None)
        spot = Spot(file.name, None, position if where is None else where, *snapshot_id)
        how = (WARNING, _UPDATE) if _is_newer(error) else (DAMAGE, _DELETE)
        found = Finding("snapshot", how[0], str(error), how[1], spot)
        return _Loaded(SnapshotFacts(snapshot_id, file.name, findings=(found,)), None)
    voters = None
    if reader.control.voters is not None:
        voters = tuple(sorted(ReplicaKey(*voter.key) for voter in reader.control.voters))
    image = published.image
    told = judge_orphaned(image, Spot(file.name, None, 0, *snapshot_id))
    facts = SnapshotFacts(snapshot_id, file.name, voters, digest_of(image), findings=told)
    return _Loaded(facts, published)


def _sound(file: File, shelf: Shelf) -> Iterator[BatchView]:
    for found in scan(shelf.reader(file), file.size):
        if isinstance(found, Damage):
            raise BatchError(found.what, found.position)
        yield found


def _odd(log: Image, snapshot: Image, spot: Spot) -> list[Finding]:
    told = _difference(log, snapshot)
    if not told:
        return []
    what = f"the snapshot differs from the log before it: {told}"
    if not _difference(log, without_inherited(snapshot, log)):
        return [inherited(what, spot)]
    return [Finding("snapshot-replay", DAMAGE, what, _DELETE, spot)]


def _difference(log: Image, snapshot: Image) -> str:
    """In words, what the snapshot has other than the log; empty when they are equal."""
    if log == snapshot:
        return ""
    found = diff(log, snapshot)
    words = [
        text
        for name in found.__slots__
        if isinstance(keys := getattr(found, name), KeyDiff) and (text := _keys(name, keys))
    ]
    if found.next_producer_id:
        words.append("the next producer id differs")
    return "; ".join(words) or "the states differ"


def _keys(name: str, keys: KeyDiff[object]) -> str:
    words = [
        f"{len(some)} {how} ({next(iter(sorted(map(str, some))))})"
        for how, some in (
            ("more", keys.added),
            ("fewer", keys.removed),
            ("other", keys.changed),
        )
        if some
    ]
    return f"{name}: {', '.join(words)}" if words else ""
