"""The replay of a replica's log, and the comparison of its snapshots with the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from immutables import Map

from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.formats.batch import BatchView
from quorate.formats.errors import BatchError, FormatError, NewerBatchError, NewerRecordError
from quorate.formats.snapshot import BOOTSTRAP_SNAPSHOT_ID, SnapshotReader
from quorate.formats.supported_levels import OTHER_LEVEL
from quorate.metadata.diff import KeyDiff, diff
from quorate.metadata.errors import ReplayError, UnknownLevelError, UnwritableMetadataError
from quorate.metadata.image import Image
from quorate.metadata.loader import Loader, Published, SnapshotBuilder, log_batch
from quorate.metadata.replay import record_values
from quorate.metadata.resource_types import TOPIC_RESOURCE
from quorate.spark.audit.model import (
    DAMAGE,
    NEWER,
    RESTORE,
    WARNING,
    Digest,
    Finding,
    ReplayFacts,
    ReplicaFiles,
    SnapshotFacts,
    Spot,
)
from quorate.spark.audit.orphans import (
    check_orphaned_configs,
    inherited,
    without_inherited,
    without_orphaned,
)
from quorate.spark.files.archives import FileReaders
from quorate.spark.files.paths import SourceFile
from quorate.spark.files.scan import Damage, scan

_BAD_SNAPSHOT = (
    "Do not start the node with this snapshot. Delete it if an older one or the whole log is there; "
    "otherwise let the node fetch everything from the leader"
)

_OTHER_LEVEL: Final = (
    f"{OTHER_LEVEL}. The state from that record on was not checked; audit with a release that has "
    "the level"
)


def _rated(error: Exception, advice: str) -> tuple[str, str]:
    """Severity and advice. What another release may have written is no damage."""
    if isinstance(error, NewerBatchError) or isinstance(error.__cause__, NewerRecordError):
        return WARNING, NEWER
    if isinstance(error.__cause__, UnknownLevelError):
        return WARNING, _OTHER_LEVEL
    return DAMAGE, advice


def digest_of(image: Image) -> Digest | None:
    """The digest of a state; None for an image without a metadata.version."""
    image = without_orphaned(image)
    topics = {one: has for one, has in image.configs.items() if one.type == TOPIC_RESOURCE}
    others = (pair for pair in image.configs.items() if pair[0] not in topics)
    configs = (
        repr((one.name, sorted(values.items()))).encode() for one, values in sorted(topics.items())
    )
    try:
        state = _hash(record_values(replace(image, configs=Map(others))))
    except UnwritableMetadataError:
        return None
    return Digest(state, _hash(configs))


def _hash(values: Iterable[bytes]) -> str:
    sum_ = blake2b(digest_size=16)
    for value in values:
        sum_.update(len(value).to_bytes(4, "big") + value)
    return sum_.hexdigest()


@dataclass(slots=True)
class _Loaded:
    facts: SnapshotFacts
    published: Published | None


def replay_replica(replica: ReplicaFiles, ends: Iterable[int], readers: FileReaders) -> ReplayFacts:
    """Replay the log of a replica from offset 0, or from its oldest snapshot.

    1. Batches are applied in order up to the end of each snapshot of the cluster.
    2. At the end of one of its own snapshots, the states are compared.
    3. At all of `ends` (offsets, exclusive) a digest of the state is kept, for comparison with the
       snapshots of other replicas.
    4. After damage or a gap, the replay continues at the next sound snapshot.

    It holds two images in memory at most.
    """
    return _Replay(replica, sorted({*ends, *(one.offset for one, _ in replica.snapshots)})).run(
        readers
    )


class _Replay:
    def __init__(self, replica: ReplicaFiles, ends: Sequence[int]) -> None:
        self._replica = replica
        self._ends = list(ends)
        self._loader: Loader | None = None
        if replica.segments and replica.segments[0][0] == 0:
            self._loader = Loader()
        self._digests: dict[int, Digest] = {}
        self._snapshots: list[SnapshotFacts] = []
        self._findings: list[Finding] = []

    def run(self, readers: FileReaders) -> ReplayFacts:
        for base, file in self._replica.segments:
            # the readers has one file open at a time: a snapshot is read before the segment continues
            position = 0
            while position < file.size:
                position = self._feed_up_to_end(base, file, position, readers)
        self._handle_ends(None, readers)
        return ReplayFacts(
            self._replica.path, tuple(self._snapshots), self._digests, tuple(self._findings)
        )

    def _feed_up_to_end(
        self, base: int, file: SourceFile, position: int, readers: FileReaders
    ) -> int:
        """Apply batches up to the next end; gives the position to continue from."""
        for found in scan(readers.reader(file), file.size, position):
            if isinstance(found, Damage):
                self._loader = None
                continue
            if self._ends and found.base_offset >= self._ends[0]:
                self._handle_ends(found.base_offset, readers)
                return found.position
            self._feed(found, base, file)
        return file.size

    def _feed(self, view: BatchView, base: int, file: SourceFile) -> None:
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
            how = _rated(error, RESTORE)
            self._findings.append(Finding("records", how[0], str(error), how[1], spot))

    def _handle_ends(self, offset: int | None, readers: FileReaders) -> None:
        """Handle all ends up to the offset of the next batch; None at the end of the log."""
        while self._ends and (offset is None or self._ends[0] <= offset):
            end = self._ends.pop(0)
            published = self._published(end)
            if published is not None and (digest := digest_of(published.image)) is not None:
                self._digests[end] = digest
            for snapshot_id, file in self._replica.snapshots:
                if snapshot_id.offset == end:
                    self._compare(_load(snapshot_id, file, readers), published)

    def _published(self, end: int) -> Published | None:
        loader = self._loader
        if loader is None or loader.next_offset != end or loader.transaction is not None:
            return None
        return loader.published

    def _compare(self, loaded: _Loaded, own: Published | None) -> None:
        facts, theirs = loaded.facts, loaded.published
        if theirs is not None and own is not None:
            spot = Spot(facts.file, None, 0, facts.id.offset, facts.id.epoch)
            differences = _differences(
                without_orphaned(own.image), without_orphaned(theirs.image), spot
            )
            facts = replace(
                facts, checked=not differences, findings=(*facts.findings, *differences)
            )
        self._snapshots.append(facts)
        if theirs is not None and own is None:
            self._loader = Loader()
            self._loader.install(theirs)


def _load(snapshot_id: OffsetAndEpoch, file: SourceFile, readers: FileReaders) -> _Loaded:
    """Read a snapshot, and check it by itself."""
    reader, builder = SnapshotReader(), SnapshotBuilder(snapshot_id, 0)
    position = 0
    try:
        for batch in _sound(file, readers):
            position = batch.position
            builder.feed(reader.add(batch))
        reader.finish(snapshot_id)
        published = builder.finish()
        if snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
            # What the format of Kafka 4.4 puts there is not committed: the first leader writes it
            # to the log (`KafkaRaftClient.handleLoadBootstrap`).
            published = replace(published, image=Image())
    except (BatchError, ReplayError) as error:
        where = getattr(error, "position", None)
        spot = Spot(file.name, None, position if where is None else where, *snapshot_id)
        how = _rated(error, _BAD_SNAPSHOT)
        found = Finding("snapshot", how[0], str(error), how[1], spot)
        return _Loaded(SnapshotFacts(snapshot_id, file.name, findings=(found,)), None)
    voters = None
    if reader.control.voters is not None:
        voters = tuple(sorted(ReplicaKey(*voter.key) for voter in reader.control.voters))
    image = published.image
    orphans = check_orphaned_configs(image, Spot(file.name, None, 0, *snapshot_id))
    facts = SnapshotFacts(snapshot_id, file.name, voters, digest_of(image), findings=orphans)
    return _Loaded(facts, published)


def _sound(file: SourceFile, readers: FileReaders) -> Iterator[BatchView]:
    for found in scan(readers.reader(file), file.size):
        if isinstance(found, Damage):
            raise BatchError(found.what, found.position)
        yield found


def _differences(log: Image, snapshot: Image, spot: Spot) -> list[Finding]:
    """Findings for a snapshot whose state differs from that of the log."""
    difference = _difference(log, snapshot)
    if not difference:
        return []
    what = f"the snapshot differs from a replay of the log: {difference}"
    if not _difference(log, without_inherited(snapshot, log)):
        return [inherited(what, spot)]
    return [Finding("snapshot-replay", DAMAGE, what, _BAD_SNAPSHOT, spot)]


def _difference(log: Image, snapshot: Image) -> str:
    """How the snapshot differs from the log, as text; empty when they are equal."""
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
