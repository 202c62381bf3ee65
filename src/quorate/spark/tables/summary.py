"""What a job that fills the warehouse tells when it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeVar

from quorate.base.errors import QuorateError
from quorate.spark.tables.bronze import Taken
from quorate.spark.tables.control import Progress
from quorate.spark.tables.store import ConcurrentRun

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
        """Whether anything was put into quarantine, or a cluster's state cannot go on."""
        clusters = self.clusters.values()
        return bool(self.damaged_pieces) or any(
            c.quarantined or c.strangers or c.problem for c in clusters
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
            for why, count in new.quarantined.items():
                known.quarantined[why] = known.quarantined.get(why, 0) + count
            known.examples = {**new.examples, **known.examples}

    def to_json(self) -> dict[str, Any]:
        totals = {"records": self.records, "events": self.events, "bad": self.bad}
        return {**asdict(self), **totals}


def of_cluster(summary: Summary, cluster_id: str) -> ClusterSummary:
    return summary.clusters.setdefault(cluster_id, ClusterSummary())


def note_taken(summary: Summary, clusters: Mapping[str, Taken]) -> None:
    for cluster_id, taken in clusters.items():
        one = of_cluster(summary, cluster_id)
        one.records = sum(span.end - span.start for span in taken.spans)
        one.quarantined, one.examples = dict(taken.reasons), dict(taken.examples)


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
        counts = (f"{count} {why}" for why, count in one.quarantined.items())
        if one.examples:
            lines.append(f"{cluster_id}: {', '.join(counts) or 'known before'}")
        lines += [f"  {why}: {text}" for why, text in one.examples.items()]
        lines += [f"{cluster_id}: {path}: {why}" for path, why in one.strangers.items()]
    return "\n".join(lines)
