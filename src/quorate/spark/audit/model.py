"""The values of an audit: facts about files, findings, and verdicts.

Offsets are those of the log; an end is exclusive. Positions are bytes from the beginning of a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

from quorate.base.ids import OffsetAndEpoch, ReplicaKey, Uuid
from quorate.formats.errors import FormatError
from quorate.formats.supported_levels import NEWER_RECORD
from quorate.spark.files.naming import ClusterName
from quorate.spark.files.paths import SourceFile

WARNING: Final = "warning"
"""Kafka repairs it, or a bug of Kafka causes it, or it comes from copying a running node."""
DAMAGE: Final = "damage"
"""A file does not hold what its node wrote."""
VIOLATION: Final = "violation"
"""Replicas contradict each other in a way that the protocol rules out."""
SEVERITIES: Final = (WARNING, DAMAGE, VIOLATION)

MOST_FINDINGS: Final = 50
"""Reported of one file; the rest is only counted."""

DIVERGENT_TAIL: Final = "divergent-tail"

REPLACE_REPLICA: Final = (
    "replace the replica: an observer gets an emptied directory, a voter a new "
    "directory id ('remove-controller', 'storage format --no-initial-controllers', "
    "'add-controller'; docs/recovery.md)"
)
"""A voter must not come back empty under its old directory id: records that it acknowledged still
count towards a majority, and it might vote twice in an epoch (KIP-853)."""
RESTORE: Final = "Restore the file as it was, or " + REPLACE_REPLICA
"""The advice for a damaged file."""
NEWER: Final = (
    f"{NEWER_RECORD}. The state from that record on was not checked; audit with a newer release"
)
"""The advice about a record of a later release."""
KEEP_EVERYTHING: Final = (
    "Copy everything away before anything is started, and do not start these nodes together: an "
    "acknowledged record may be lost"
)
"""The advice where replicas contradict each other and none can be trusted more."""


class FirstDamageError(FormatError):
    """An audit with fail_fast found damage: the message names the file and the byte."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Spot:
    """A location in a replica's files; unknown parts are None."""

    file: str | None = None
    segment: int | None = None
    """Base offset in the segment's name."""
    position: int | None = None
    offset: int | None = None
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: what is wrong, where, and what to do.

    check: a name of the table in docs/spark.md; severity: one of SEVERITIES
    """

    check: str
    severity: str
    what: str
    advice: str
    spot: Spot = Spot()
    more: int = 0
    """How many findings of the same file were left out after it."""

    def __str__(self) -> str:
        return f"{self.severity} ({self.check}): {self.what}{_location(self.spot)}. {self.advice}"


def _location(spot: Spot) -> str:
    words = []
    if spot.file is not None:
        words.append(spot.file)
    if spot.position is not None:
        words.append(f"byte {spot.position}")
    if spot.offset is not None:
        words.append(f"offset {spot.offset}")
    return f" [{', '.join(words)}]" if words else ""


@dataclass(frozen=True, slots=True)
class ReplicaFiles:
    """The files of one log directory, and whose they are.

    node_id: -1 where it is unknown
    """

    cluster_id: str
    node_id: int
    path: str
    directory_id: Uuid | None = None
    segments: tuple[tuple[int, SourceFile], ...] = ()
    """(base offset, file), ascending."""
    snapshots: tuple[tuple[OffsetAndEpoch, SourceFile], ...] = ()
    quorum_state: SourceFile | None = None
    epochs: SourceFile | None = None
    """leader-epoch-checkpoint."""
    indexes: tuple[int, ...] = ()
    """Base offsets of the segments that have an index, ascending."""
    problem: Finding | None = None
    """A problem of the whole directory: its meta.properties, or the archive that holds it."""
    topic: SourceFile | None = None
    """partition.metadata."""
    bootstrap: SourceFile | None = None
    """bootstrap.checkpoint."""
    complete: bool = True
    """False for single files and unreadable archives: files beside them are not expected."""
    cluster: ClusterName | None = None
    """Its cluster and the others with the same id; None where nothing else has the id."""


@dataclass(frozen=True, slots=True)
class EpochRange:
    """A range of offsets that one epoch wrote, without a gap, in one replica."""

    epoch: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """A LeaderChange or KRaftVoters record of the log, or one that a later release may have written."""

    spot: Spot
    leader: int | None = None
    """The leader that a LeaderChange names; None for a KRaftVoters record."""
    voter_ids: tuple[int, ...] = ()
    """Of a LeaderChange."""
    granting: tuple[int, ...] = ()
    """Of a LeaderChange: the voters that granted the leader their vote."""
    voters: tuple[ReplicaKey, ...] | None = None
    """Of a KRaftVoters record."""
    newer: str = ""
    """Why the record could not be read; a later release may have written it."""
    hides_voters: bool = False
    """True when it may be a voter set, so that those in force behind it are unknown."""
    crc: int = 0
    """Of its batch."""

    @property
    def offset(self) -> int:
        return self.spot.offset or 0


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What one segment holds, and what is wrong inside it."""

    path: str
    """Of the replica."""
    base: int
    file: str
    end: int
    """End of the last batch."""
    broken_at: int | None
    """The first offset that is not sound; None when the whole segment is."""
    begins_with_leader: bool
    """True when the first batch holds a LeaderChange."""
    spans: tuple[EpochRange, ...]
    """Of the sound part."""
    controls: tuple[ControlRecord, ...]
    findings: tuple[Finding, ...]

    def first_spot(self, epoch: int | None) -> Spot:
        """The beginning of the segment."""
        return Spot(self.file, self.base, 0, self.base, epoch)


class Digest(NamedTuple):
    """Hashes of an image without configs of topics that do not exist.

    Topic configs have a hash of their own, since Kafka 4.3.1 may keep those of a removed topic
    (`orphans`).
    """

    state: str
    """Of everything but topic configs."""
    topic_configs: str


@dataclass(frozen=True, slots=True)
class SnapshotFacts:
    """What one snapshot holds, and how it compares with its own replica's log."""

    id: OffsetAndEpoch
    file: str
    voters: tuple[ReplicaKey, ...] | None = None
    digest: Digest | None = None
    """Of its state; None when it is damaged or has no metadata.version."""
    checked: bool = False
    """True when a replay of its own log gave the same state."""
    findings: tuple[Finding, ...] = ()

    @property
    def sound(self) -> bool:
        return not any(found.severity == DAMAGE for found in self.findings)


@dataclass(frozen=True, slots=True)
class ReplayFacts:
    """The result of replaying one replica."""

    path: str
    snapshots: tuple[SnapshotFacts, ...] = ()
    digests: Mapping[int, Digest] = field(default_factory=dict)
    """By end offset of the cluster's snapshots: the state there, as far as this log reaches."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Different batches with the same offset and epoch."""

    offset: int
    epoch: int
    versions: tuple[tuple[tuple[str, Spot], ...], ...]
    """For each content: (replica's path, location). The most frequent content comes first."""
    count: int = 1
    """How many offsets differ between these replicas, this one included."""


@dataclass(frozen=True, slots=True)
class ReplicaVerdict:
    """The result for one replica."""

    cluster_id: str
    node_id: int
    path: str
    state: str
    """sound, uncommitted-tail, warning, damaged or unsafe."""
    start: int | None
    """First offset of its log; None when it has no segment."""
    end: int | None
    last_epoch: int | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterVerdict:
    """The result for one cluster."""

    cluster_id: str
    voters: tuple[str, ...]
    """The voters in force at `committed_end`: `<id>` or `<id>-<directory id>`."""
    committed_end: int | None
    """Every offset below it is known to be committed; None when too few voters were given.

    Never above `contradicted_from`.
    """
    committed_epoch: int | None
    replicas: tuple[ReplicaVerdict, ...]
    contradicted_from: int | None = None
    """The first offset at which replicas contradict each other and none can be trusted more."""
    findings: tuple[Finding, ...] = ()
    """About the cluster as a whole; those about a replica are with the replica."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an audit."""

    clusters: tuple[ClusterVerdict, ...]

    @property
    def replicas(self) -> tuple[ReplicaVerdict, ...]:
        return tuple(replica for cluster in self.clusters for replica in cluster.replicas)

    @property
    def findings(self) -> tuple[Finding, ...]:
        about = [one.findings for one in self.clusters]
        about += [one.findings for one in self.replicas]
        return tuple(found for some in about for found in some)

    @property
    def ok(self) -> bool:
        """True when there is neither damage nor a violation; warnings do not count."""
        return all(found.severity == WARNING for found in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "clusters": [asdict(cluster) for cluster in self.clusters]}


def state_of(findings: tuple[Finding, ...]) -> str:
    """The state of a replica with these findings: the most severe one decides."""
    severities = {found.severity for found in findings}
    if VIOLATION in severities:
        return "unsafe"
    if DAMAGE in severities:
        return "damaged"
    if any(found.check == DIVERGENT_TAIL for found in findings):
        return "uncommitted-tail"
    return "warning" if findings else "sound"
