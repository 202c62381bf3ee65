"""What a job that fills the warehouse tells when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.spark.tables.bronze import Taken
from quorate.spark.tables.control import Progress
from quorate.spark.tables.store import ConcurrentRun
from quorate.spark.tables.verdict import SUPERSEDED, Known, TakenBack

Told = Callable[[str], None]
"""Hears what is being done."""
T = TypeVar("T")
_TRIES: Final = 20
"""How often in a row another job may be quicker."""


class BadInput(QuorateError):
    """With fail_fast: a part of the input cannot be taken."""


class Overtaken(ConcurrentRun):
    """Another run was quicker when this job had taken its records, before it applied them."""

    def __init__(self, root: str, taken: Summary) -> None:
        super().__init__(root)
        self.taken = taken
        """What this job has done so far."""


@dataclass
class ClusterSummary:
    """What a job did for one cluster; offsets are ends (exclusive)."""

    records: int = 0
    events: int = 0
    log_end_offset: int = 0
    applied_end_offset: int | None = None
    committed_end_offset: int = 0
    """All of the log before it is known to be committed."""
    unproven: list[tuple[int, int]] = field(default_factory=list)
    """Ranges of the log that nothing shows to be committed; a later log may take them back."""
    left_out: list[tuple[int, int]] = field(default_factory=list)
    """Ranges that were not taken for that reason."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """New rows in quarantine by reason."""
    known_before: dict[str, int] = field(default_factory=dict)
    """Rows by reason that the input has again, and that were in quarantine before."""
    taken_back: list[TakenBack] = field(default_factory=list)
    """Parts of the log that earlier jobs took; among `quarantined` as `superseded`."""
    examples: dict[str, str] = field(default_factory=dict)
    """Of each reason a row: its file, position and problem."""
    strangers: dict[str, str] = field(default_factory=dict)
    """Replicas of which nothing was taken, for theirs is another log than the one of before."""
    problem: str | None = None
    """Why the state does not follow the log to its end."""


@dataclass
class Summary:
    """What a job did."""

    warehouse: str
    clusters: dict[str, ClusterSummary] = field(default_factory=dict)
    damaged_pieces: int = 0
    """Pieces of the input that cannot be read, known before or not."""
    seconds: float = 0.0

    @property
    def bad(self) -> bool:
        """Whether anything was put into quarantine, now or before, of what the input has, or a
        cluster's state cannot go on."""
        clusters = self.clusters.values()
        return bool(self.damaged_pieces) or any(
            c.quarantined or c.known_before or c.strangers or c.problem for c in clusters
        )

    @property
    def records(self) -> int:
        return sum(cluster.records for cluster in self.clusters.values())

    @property
    def events(self) -> int:
        return sum(cluster.events for cluster in self.clusters.values())

    def add(self, one: Summary) -> None:
        """Count what was taken by one more run, all of it or some."""
        self.damaged_pieces += one.damaged_pieces
        for id, new in one.clusters.items():
            known = self.clusters.setdefault(id, ClusterSummary())
            known.records += new.records
            known.events += new.events
            _count(known.quarantined, new.quarantined)
            _count(known.known_before, new.known_before)
            known.taken_back = [*new.taken_back, *known.taken_back]
            known.examples = {**new.examples, **known.examples}

    def to_json(self) -> dict[str, Any]:
        totals = {"records": self.records, "events": self.events, "bad": self.bad}
        told = asdict(self)
        for id, one in self.clusters.items():
            told["clusters"][id]["taken_back"] = [part._asdict() for part in one.taken_back]
        return {**told, **totals}


def of_cluster(summary: Summary, cluster_id: str) -> ClusterSummary:
    return summary.clusters.setdefault(cluster_id, ClusterSummary())


def note_taken(summary: Summary, clusters: Mapping[str, Taken]) -> None:
    for cluster_id, taken in clusters.items():
        one = of_cluster(summary, cluster_id)
        one.records = sum(span.end - span.start for span in taken.spans)
        _count(one.quarantined, taken.reasons)
        _count(one.known_before, _without_taken_back(taken.known, one))
        one.examples = {**taken.examples, **one.examples}


def _without_taken_back(known: Mapping[str, int], one: ClusterSummary) -> dict[str, int]:
    """What was taken back just now is divergent in the replica that has it: counted once."""
    back = one.quarantined.get(SUPERSEDED, 0)
    left = {**known, "divergent": known.get("divergent", 0) - back}
    return {why: count for why, count in left.items() if count > 0}


def note_known(summary: Summary, known: Iterable[Known]) -> None:
    """Bad records that the input has again."""
    for found in known:
        one = of_cluster(summary, found.cluster_id)
        _count(one.known_before, {found.reason: found.rows})
        one.examples.setdefault(found.reason, found.example)


def note_taken_back(one: ClusterSummary, part: TakenBack) -> None:
    one.taken_back.append(part)
    _count(one.quarantined, {SUPERSEDED: part.records})
    one.examples[SUPERSEDED] = part.reason


def so_far(summary: Summary) -> Summary:
    """What is done for good, when it is done again because another job was quicker."""
    done = replace(deepcopy(summary), damaged_pieces=0)
    for one in done.clusters.values():
        one.known_before = {}
    return done


def _count(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for why, count in more.items():
        counts[why] = counts.get(why, 0) + count


def counted(one: ClusterSummary) -> str:
    """The rows in quarantine by reason; empty where there are none."""
    new = [f"{count} {why}" for why, count in one.quarantined.items()]
    old = [f"{count} {why} (known before)" for why, count in one.known_before.items()]
    return ", ".join(new + old)


def note_progress(one: ClusterSummary, now: Progress) -> None:
    """How far a cluster has come, and what stands against its going on."""
    one.log_end_offset, one.applied_end_offset = now.log_end, now.applied_end
    one.committed_end_offset, one.unproven = now.committed_end, list(now.unproven)
    one.problem = now.problem


def again_while_overtaken(
    run: Callable[[], T], tell: Told, add: Callable[[Summary], None] = lambda taken: None
) -> T:
    """Do a run, anew as long as another job has changed the warehouse meanwhile.

    What it took before that is not taken twice: `add` counts it. Raises ConcurrentRun after many
    times.
    """
    for _ in range(_TRIES - 1):
        try:
            return run()
        except ConcurrentRun as error:
            if isinstance(error, Overtaken):
                add(error.taken)
            tell("another job has changed the warehouse meanwhile: looking again")
    return run()


def worst(summary: Summary) -> str:
    """What is wrong with the input, a line for each cluster and reason."""
    lines = []
    for cluster_id, one in sorted(summary.clusters.items()):
        if one.examples:
            lines.append(f"{cluster_id}: {counted(one)}")
        lines += [f"  {why}: {text}" for why, text in one.examples.items()]
        lines += [f"{cluster_id}: {path}: {why}" for path, why in one.strangers.items()]
    return "\n".join(lines)
