"""Which offsets of a log are known to be committed. No file says so, but it follows from them:

- What a majority of the voters has in the newest epoch is committed (Raft, 5.4.2). So is what is
  below the end of a snapshot of its epoch, and everything that a running quorum returned.
- A log with a committed record has only committed records before it. So an epoch is committed to
  its end where a replica has that end and, directly behind it, a committed record of a later epoch.

The rest was in the log of some replica. A later leader may have truncated it, or may still do so.

One case cannot be seen from logs: a leader that replicates records of an older epoch counts them
only together with the first record of its own (Raft, figure 8). Copies that were all made between
the two look as if the leader of the older epoch had reached that majority.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from quorate.spark.tables.lineage import (
    EpochGroup,
    EpochSpan,
    Lineage,
    overlap,
    replica_logs,
    union,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ranges = tuple[tuple[int, int], ...]
"""Offsets; ends are exclusive."""

VOTER_COLUMNS: Final = (
    *("cluster_id", "kind", "snapshot_offset", "snapshot_epoch", "offset", "epoch"),
    *("type", "record"),
)
MAY_NAME_VOTERS: Final = (
    "is_control = true AND type NOT IN ('KRaftVersion', 'SnapshotHeader', 'SnapshotFooter')"
)


@dataclass(frozen=True)
class CommitEvidence:
    """The evidence that records of one cluster are committed."""

    voters: frozenset[int] = frozenset()
    """The voters at the end of the log; empty: not known."""
    snapshots: frozenset[tuple[int, int]] = frozenset()
    """(end offset, epoch) of snapshots."""
    known: tuple[EpochSpan, ...] = ()
    """The spans that were known to be committed before."""
    given: bool = False
    """Whether a running quorum returned all records of the input as committed."""


@dataclass
class NamedVoters:
    """By cluster, the voter sets in control records of the input."""

    in_logs: dict[str, list[tuple[int, int, frozenset[int]]]] = field(default_factory=dict)
    """(offset, epoch, ids); no ids: a later release wrote the record, and they are not known."""
    in_snapshots: dict[str, list[tuple[int, int, frozenset[int]]]] = field(default_factory=dict)

    def at_end(self, cluster_id: str, lineage: Lineage) -> frozenset[int]:
        """The voters at the end of a log; empty: not known."""
        logs = self.in_logs.get(cluster_id, [])
        here = [one for one in logs if lineage.has(one[1], one[0])]
        here += [(at - 1, epoch, ids) for at, epoch, ids in self.in_snapshots.get(cluster_id, [])]
        return max(here, key=lambda one: one[:2], default=(0, 0, frozenset[int]()))[2]


def named_voters(rows: DataFrame) -> NamedVoters:
    """The voter sets of the input; the driver gets a row for each election and change of voters.

    rows: of the source, with VOTER_COLUMNS, where MAY_NAME_VOTERS holds
    """
    found = rows.selectExpr(
        "cluster_id",
        "coalesce(snapshot_offset, offset) AS at",
        "coalesce(snapshot_epoch, epoch) AS epoch",
        "kind",
        "type",
        "record",
    ).distinct()
    named = NamedVoters()
    for row in found.collect():
        sets = named.in_logs if row.kind == "log" else named.in_snapshots
        ids = voters_in(row.type, row.record)
        if ids is not None:
            sets.setdefault(row.cluster_id, []).append((row.at, row.epoch, ids))
    return named


def voters_in(type_name: str, record: str | None) -> frozenset[int] | None:
    """The voters that a control record names.

    None: it names none. Empty: they are not known, since it cannot be read and may be a voter set.
    """
    if record is not None:
        return frozenset(int(one["voterId"]) for one in json.loads(record)["voters"])
    return None if type_name == "LeaderChange" else frozenset()


def unproven(lineage: Lineage, groups: Sequence[EpochGroup], evidence: CommitEvidence) -> Ranges:
    """The offsets of the lineage that are not known to be committed."""
    ends = _proven_ends(lineage, groups, evidence)
    left = ((max(span.start, ends[span.epoch]), span.end) for span in lineage.spans)
    return tuple(union((start, end) for start, end in left if start < end))


def _proven_ends(
    lineage: Lineage, groups: Sequence[EpochGroup], evidence: CommitEvidence
) -> dict[int, int]:
    """Return, by epoch, the end of what is known to be committed of it (exclusive).

    1. Each snapshot, each span known before, a running quorum, and the majority in the newest epoch
       give an end in one epoch.
    2. From the newest epoch to the oldest: the epoch directly before a committed one is committed
       to its end, in the log of a replica that has both.
    """
    spans = {span.epoch: span for span in lineage.spans}
    ends = {span.epoch: span.start for span in lineage.spans}
    logs = replica_logs(groups).values()
    known_ends = [(epoch, offset) for offset, epoch in evidence.snapshots]
    known_ends += [(span.epoch, span.end) for span in evidence.known]
    if evidence.given:
        known_ends += [(span.epoch, span.end) for log in logs for span in log.values()]
    if lineage.spans:
        newest = lineage.spans[-1].epoch
        known_ends.append((newest, _majority_end(newest, groups, evidence.voters)))
    for epoch, end in known_ends:
        if epoch in spans:
            ends[epoch] = max(ends[epoch], min(end, spans[epoch].end))
    pairs = ((log[one], log[two]) for log in logs for one, two in pairwise(sorted(log)))
    for one, two in sorted(pairs, key=lambda pair: -pair[1].epoch):
        if one.epoch in spans and one.end == two.start < ends.get(two.epoch, 0):
            ends[one.epoch] = max(ends[one.epoch], min(one.end, spans[one.epoch].end))
    return ends


def _majority_end(epoch: int, groups: Iterable[EpochGroup], voters: frozenset[int]) -> int:
    """The end offset (exclusive) that a majority of the voters has in this epoch; 0: none.

    Voters count by id alone: rows of the source have no directory id.
    """
    ends: dict[int, int] = {}
    for group in groups:
        if group.epoch == epoch and group.node in voters:
            ends[group.node] = max(ends.get(group.node, 0), group.last + 1)
    needed = len(voters) // 2 + 1
    return sorted(ends.values(), reverse=True)[needed - 1] if len(ends) >= needed else 0


def proven_spans(spans: Iterable[EpochSpan], open_: Ranges) -> tuple[EpochSpan, ...]:
    """The part of each span before its first offset that is not known to be committed."""
    found = []
    for span in spans:
        end = next((start for start, _ in overlap(open_, span.start, span.end)), span.end)
        if span.start < end:
            found.append(span._replace(end=end))
    return tuple(found)
