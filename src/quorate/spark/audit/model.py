"""What the audit finds out, and what it says in the end: plain values.

Offsets are those of the log; an end is exclusive. Positions are bytes from the beginning of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from quorate.base.ids import OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.errors import FormatError
from quorate.spark.files.paths import File

WARNING: Final = "warning"
"""Kafka mends it, or has a fault that makes it, or it comes from copying a running node."""
DAMAGE: Final = "damage"
"""A file does not hold what its node wrote."""
VIOLATION: Final = "violation"
"""Replicas contradict each other in a way that the protocol rules out."""
SEVERITIES: Final = (WARNING, DAMAGE, VIOLATION)

MOST_FINDINGS: Final = 50
"""Told of one file; the rest is counted."""

DIVERGENT_TAIL: Final = "divergent-tail"


class FirstDamage(FormatError):
    """What an audit with fail_fast ends with: the first damage, its file and byte."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a replica's files; what is not known is None."""

    file: str | None = None
    segment: int | None = None
    """Base offset in the segment's name."""
    position: int | None = None
    offset: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, where, and what to do."""

    check: str
    severity: str
    what: str
    advice: str
    spot: Spot = Spot()
    more: int = 0
    """How many like it were found behind it and left out."""

    def __str__(self) -> str:
        return f"{self.severity} ({self.check}): {self.what}{_told(self.spot)}. {self.advice}"


def _told(spot: Spot) -> str:
    words = []
    if spot.file is not None:
        words.append(spot.file)
    if spot.position is not None:
        words.append(f"byte {spot.position}")
    if spot.offset is not None:
        words.append(f"offset {spot.offset}")
    return f" [{', '.join(words)}]" if words else ""


@dataclass(frozen=True, slots=True)
class Replica:
    """The files of one log directory."""

    cluster_id: str
    node_id: int
    path: str
    directory_id: Uuid | None = None
    segments: tuple[tuple[int, File], ...] = ()
    """(base offset, file), ascending."""
    snapshots: tuple[tuple[OffsetAndEpoch, File], ...] = ()
    quorum_state: File | None = None
    epochs: File | None = None
    """leader-epoch-checkpoint."""
    indexes: tuple[int, ...] = ()
    """Base offsets of the segments that have an index, ascending."""
    problem: Finding | None = None
    """What is wrong with it as a whole: its meta.properties, or the archive that it is in."""
    topic: File | None = None
    """partition.metadata."""
    bootstrap: File | None = None
    """bootstrap.checkpoint."""
    complete: bool = True
    """False of single files and of archives that cannot be read: nothing is missed beside them."""


@dataclass(frozen=True, slots=True)
class Span:
    """The batches of one epoch, one after the other, in one replica."""

    epoch: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Control:
    """A control record of the log that matters to the audit."""

    spot: Spot
    leader: int | None = None
    """The leader that a LeaderChange names; None of other records."""
    voter_ids: tuple[int, ...] = ()
    """Of a LeaderChange."""
    granting: tuple[int, ...] = ()
    """Of a LeaderChange: who voted for the leader."""
    voters: tuple[ReplicaKey, ...] | None = None
    """Of a KRaftVoters record."""
    crc: int = 0
    """Of its batch."""

    @property
    def offset(self) -> int:
        return self.spot.offset or 0


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What one segment says, and what is wrong inside it."""

    path: str
    """Of the replica."""
    base: int
    file: str
    end: int
    """Behind the last batch."""
    broken_at: int | None
    """The offset up to which all is sound; None when all of it is."""
    begins_with_leader: bool
    """True when the first batch holds a LeaderChange."""
    spans: tuple[Span, ...]
    """Of the sound part."""
    controls: tuple[Control, ...]
    findings: tuple[Finding, ...]


class Digest(NamedTuple):
    """Hashes of all that an image says, but for configs of topics that do not exist."""

    state: str
    """Of all but configs of topics."""
    topic_configs: str


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """What one snapshot says, and how it compares with its own replica's log."""

    id: OffsetAndEpoch
    file: str
    voters: tuple[ReplicaKey, ...] | None = None
    digest: Digest | None = None
    """Of the state that it holds; None when it is damaged or holds none."""
    checked: bool = False
    """True when its own log was replayed up to it and gave the same."""
    findings: tuple[Finding, ...] = ()

    @property
    def sound(self) -> bool:
        return not any(found.severity == DAMAGE for found in self.findings)


@dataclass(frozen=True, slots=True)
class ReplayFacts:
    """What replaying one replica gave."""

    path: str
    snapshots: tuple[SnapshotFacts, ...] = ()
    digests: Mapping[int, Digest] = field(default_factory=dict)
    """Of the state at the ends of the cluster's snapshots, as far as this log reaches."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Different batches with the same offset and epoch."""

    offset: int
    epoch: int
    versions: tuple[tuple[tuple[str, Spot], ...], ...]
    """For each content that was found: (replica's path, where). The most frequent one is first."""
    count: int = 1
    """How many such offsets there are, this one included."""


@dataclass(frozen=True, slots=True)
class ReplicaVerdict:
    """What is to be said of one replica."""

    cluster_id: str
    node_id: int
    path: str
    state: str
    """sound, uncommitted-tail, warning, damaged or unsafe."""
    start: int | None
    """First offset of its log; None when there is no segment."""
    end: int | None
    last_epoch: int | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterVerdict:
    """What is to be said of one cluster."""

    cluster_id: str
    voters: tuple[str, ...]
    """As of the end of what is committed: id, or id and directory id."""
    committed_end: int | None
    """Everything before is known to be committed; None when too few voters were given.

    Never behind `contradicted_from`.
    """
    committed_epoch: int | None
    replicas: tuple[ReplicaVerdict, ...]
    contradicted_from: int | None = None
    """The first offset at which replicas contradict each other and nobody can say who is right."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer of an audit."""

    clusters: tuple[ClusterVerdict, ...]

    @property
    def replicas(self) -> tuple[ReplicaVerdict, ...]:
        return tuple(replica for cluster in self.clusters for replica in cluster.replicas)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(found for replica in self.replicas for found in replica.findings)

    @property
    def ok(self) -> bool:
        """True when there is neither damage nor a violation; warnings are no such thing."""
        return all(found.severity == WARNING for found in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "clusters": [asdict(cluster) for cluster in self.clusters]}


def state_of(findings: tuple[Finding, ...]) -> str:
    """One word for the worst of it."""
    severities = {found.severity for found in findings}
    if VIOLATION in severities:
        return "unsafe"
    if DAMAGE in severities:
        return "damaged"
    if any(found.check == DIVERGENT_TAIL for found in findings):
        return "uncommitted-tail"
    return "warning" if findings else "sound"
