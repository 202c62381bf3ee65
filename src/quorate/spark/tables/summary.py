"""The result of a job that ingests into the warehouse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.spark.tables.bronze import BronzeResult
from quorate.spark.tables.control import ClusterProgress
from quorate.spark.tables.findings import SUPERSEDED, KnownFinding, TakenBackRange
from quorate.spark.tables.resolved import BadPlace
from quorate.spark.tables.store import ConcurrentRunError

Notify = Callable[[str], None]
"""Gets a text when a job begins a new stage."""
T = TypeVar("T")
_TRIES: Final = 20
"""How often in a row a job may lose against another."""


class InvalidInputError(QuorateError):
    """With fail_fast: a part of the input cannot be ingested."""


class OvertakenError(ConcurrentRunError):
    """Another job recorded a run before this job could finish."""

    def __init__(self, error: ConcurrentRunError, taken: IngestSummary) -> None:
        super().__init__(error.root, error.what)
        self.taken = taken
        """What this job has committed so far."""


@dataclass
class ClusterSummary:
    """The result of a job for one cluster; end offsets are exclusive."""

    records: int = 0
    events: int = 0
    log_end_offset: int = 0
    applied_end_offset: int | None = None
    committed_end_offset: int = 0
    """Everything before this offset is known to be committed."""
    unproven: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of the log that are not known to be committed; a later log may take them back."""
    left_out: list[tuple[int, int]] = field(default_factory=list)
    """Ranges that were left out for that reason."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """By reason, the new rows in quarantine."""
    known_before: dict[str, int] = field(default_factory=dict)
    """By reason, the rows of the input that were in quarantine before."""
    resolved: dict[str, int] = field(default_factory=dict)
    """By reason, the rows in quarantine whose place this job found sound."""
    taken_back: list[TakenBackRange] = field(default_factory=list)
    """Ranges that earlier jobs took and this one took back; in `quarantined` as `superseded`."""
    examples: dict[str, str] = field(default_factory=dict)
    """By reason, a row: file, position and problem."""
    foreign_replicas: dict[str, str] = field(default_factory=dict)
    """Replicas that were left out because their log is not the one in the warehouse, and why."""
    problem: str | None = None
    """Why the state cannot follow the log to its end."""
    undecided: str | None = None
    """Why the logs may be of another cluster with the same id."""
    same_id: list[str] = field(default_factory=list)
    """The other clusters of the warehouse with the same id."""


@dataclass
class IngestSummary:
    """The result of a job."""

    warehouse: str
    clusters: dict[str, ClusterSummary] = field(default_factory=dict)
    damaged_pieces: int = 0
    """Pieces of the input that cannot be read, also those that were known before."""
    seconds: float = 0.0
    unreadable: list[str] = field(default_factory=list)
    """Why directories of the input are not read at all, each text with the path."""

    @property
    def bad(self) -> bool:
        """Whether the input has rows in quarantine, or a state cannot follow its log."""
        clusters = self.clusters.values()
        return bool(self.damaged_pieces) or any(
            c.quarantined or c.known_before or c.foreign_replicas or c.problem or c.undecided
            for c in clusters
        )

    @property
    def records(self) -> int:
        return sum(cluster.records for cluster in self.clusters.values())

    @property
    def events(self) -> int:
        return sum(cluster.events for cluster in self.clusters.values())

    def add(self, one: IngestSummary) -> None:
        """Add the result of another attempt of this job."""
        self.damaged_pieces += one.damaged_pieces
        for id, new in one.clusters.items():
            known = self.clusters.setdefault(id, ClusterSummary())
            known.records += new.records
            known.events += new.events
            _count(known.quarantined, new.quarantined)
            _count(known.known_before, new.known_before)
            _count(known.resolved, new.resolved)
            known.taken_back = [*new.taken_back, *known.taken_back]
            known.examples = {**new.examples, **known.examples}

    def to_json(self) -> dict[str, Any]:
        totals = {"records": self.records, "events": self.events, "bad": self.bad}
        fields = asdict(self)
        for id, one in self.clusters.items():
            fields["clusters"][id]["taken_back"] = [part._asdict() for part in one.taken_back]
        return {**fields, **totals}


def of_cluster(summary: IngestSummary, cluster_id: str) -> ClusterSummary:
    return summary.clusters.setdefault(cluster_id, ClusterSummary())


def note_taken(summary: IngestSummary, clusters: Mapping[str, BronzeResult]) -> None:
    for cluster_id, taken in clusters.items():
        one = of_cluster(summary, cluster_id)
        one.records = sum(span.end - span.start for span in taken.spans)
        _count(one.quarantined, taken.reasons)
        _count(one.known_before, _without_taken_back(taken.known, one))
        one.examples = {**taken.examples, **one.examples}


def _without_taken_back(known: Mapping[str, int], one: ClusterSummary) -> dict[str, int]:
    """The counts without rows that this job took back: the replica has them as divergent too."""
    back = one.quarantined.get(SUPERSEDED, 0)
    left = {**known, "divergent": known.get("divergent", 0) - back}
    return {why: count for why, count in left.items() if count > 0}


def note_known(summary: IngestSummary, known: Iterable[KnownFinding]) -> None:
    """Note bad records that the input has again."""
    for found in known:
        one = of_cluster(summary, found.cluster_id)
        _count(one.known_before, {found.reason: found.rows})
        one.examples.setdefault(found.reason, found.example)


def note_resolved(summary: IngestSummary, places: Iterable[BadPlace]) -> None:
    """Note the rows in quarantine whose place is sound now."""
    for place in places:
        _count(of_cluster(summary, place.cluster_id).resolved, {place.reason: 1})


def note_checked_again(one: ClusterSummary, misfits: int) -> None:
    """Note that the state is rewound: only so many misfits are known, the others are checked again."""
    known = min(one.known_before.pop("misfit", 0), misfits)
    if known:
        one.known_before["misfit"] = known
    else:
        one.examples.pop("misfit", None)


def note_taken_back(one: ClusterSummary, part: TakenBackRange) -> None:
    one.taken_back.append(part)
    _count(one.quarantined, {SUPERSEDED: part.records})
    one.examples[SUPERSEDED] = part.reason


def committed_part(summary: IngestSummary) -> IngestSummary:
    """The part of a result that stays when the job is repeated after it lost against another."""
    done = replace(deepcopy(summary), damaged_pieces=0)
    for one in done.clusters.values():
        one.known_before = {}
    return done


def _count(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for why, count in more.items():
        counts[why] = counts.get(why, 0) + count


def quarantine_counts(one: ClusterSummary) -> str:
    """The number of rows in quarantine by reason, as text; empty when there are none."""
    new = [f"{count} {why}" for why, count in one.quarantined.items()]
    old = [f"{count} {why} (known before)" for why, count in one.known_before.items()]
    return ", ".join(new + old)


def note_progress(one: ClusterSummary, now: ClusterProgress) -> None:
    """Note how far a cluster has come, and why it cannot go on."""
    one.log_end_offset, one.applied_end_offset = now.log_end, now.applied_end
    one.committed_end_offset, one.unproven = now.committed_end, list(now.unproven)
    one.problem = now.problem


def at_commit(summary: IngestSummary, progress: Mapping[str, ClusterProgress]) -> dict[str, Any]:
    """Return what a run records of its job: the result so far, and the ends that the commit sets.

    What only the end of the job knows is left out.
    """
    so_far = deepcopy(summary)
    for cluster_id, one in so_far.clusters.items():
        if (now := progress.get(cluster_id)) is not None:
            note_progress(one, now)
    fields = so_far.to_json()
    del fields["seconds"]
    for one_fields in fields["clusters"].values():
        del one_fields["left_out"], one_fields["same_id"]
    return fields


def retry_while_overtaken(
    run: Callable[[], T], notify: Notify, add: Callable[[IngestSummary], None] = lambda taken: None
) -> T:
    """Call `run` until no other job has recorded a run meanwhile.

    `add` gets what each attempt has committed: the next attempt does not take it again. Raises
    ConcurrentRunError after _TRIES attempts.
    """
    for _ in range(_TRIES - 1):
        try:
            return run()
        except ConcurrentRunError as error:
            if isinstance(error, OvertakenError):
                add(error.taken)
            notify(f"another job has changed {error.what} meanwhile: looking again")
    return run()


def describe_findings(summary: IngestSummary) -> str:
    """The findings about the input, a line for each cluster and reason."""
    lines = []
    for cluster_id, one in sorted(summary.clusters.items()):
        if one.examples:
            lines.append(f"{cluster_id}: {quarantine_counts(one)}")
        lines += [f"  {why}: {text}" for why, text in one.examples.items()]
        lines += [f"{cluster_id}: {one.undecided}"] if one.undecided else []
        lines += [f"{cluster_id}: {path}: {why}" for path, why in one.foreign_replicas.items()]
    return "\n".join(lines)
