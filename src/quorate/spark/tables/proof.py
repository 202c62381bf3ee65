"""What of a log is known to be committed: files do not say so, but some of it follows from them.

- What a majority of the voters has of the newest epoch is committed (Raft, 5.4.2); so is what is
  below the end of a snapshot of its epoch, and all that a live quorum gave.
- A log that holds a committed record holds only committed ones before it. So an epoch is committed
  to its end where one replica has that and, right behind it, a later epoch of which this is known.

The rest was in somebody's log. A later leader may have replaced it, or may yet do so.

What logs alone cannot tell: a leader that hands on an older epoch's records counts them only with
the first of its own (Raft, figure 8). Copies that were all made in the moment between the two look
as if the older epoch's leader had reached that majority.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from quorate.spark.tables.lineage import Group, Lineage, Span, overlap, replica_logs, union

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ranges = tuple[tuple[int, int], ...]
"""Offsets; ends are exclusive."""

VOTER_COLUMNS: Final = (
    *("cluster_id", "kind", "snapshot_offset", "snapshot_epoch", "offset", "epoch"),
    "record",
)
NAMES_VOTERS: Final = "is_control = true AND type IN ('LeaderChange', 'KRaftVoters')"


@dataclass(frozen=True)
class Evidence:
    """What tells that records of one cluster are committed."""

    voters: frozenset[int] = frozenset()
    """Those in force at the end of the log; empty: not known."""
    snapshots: frozenset[tuple[int, int]] = frozenset()
    """End offset and epoch."""
    known: tuple[Span, ...] = ()
    """Committed by what was known before."""
    given: bool = False
    """A quorum gave all the records of the input as committed."""


@dataclass
class Named:
    """The voter sets that control records of the input name, by cluster."""

    in_logs: dict[str, list[tuple[int, int, frozenset[int]]]] = field(default_factory=dict)
    """(offset, epoch, ids)."""
    in_snapshots: dict[str, list[tuple[int, int, frozenset[int]]]] = field(default_factory=dict)

    def at_end(self, cluster_id: str, ruling: Lineage) -> frozenset[int]:
        """The voters in force at the end of a log; empty: nothing tells."""
        logs = self.in_logs.get(cluster_id, [])
        here = [one for one in logs if ruling.has(one[1], one[0])]
        here += [(at - 1, epoch, ids) for at, epoch, ids in self.in_snapshots.get(cluster_id, [])]
        return max(here, key=lambda one: one[:2], default=(0, 0, frozenset[int]()))[2]


def named_voters(rows: DataFrame) -> Named:
    """A row for each election and change of voters comes to the driver.

    rows: VOTER_COLUMNS of those that are NAMES_VOTERS
    """
    found = rows.selectExpr(
        "cluster_id",
        "coalesce(snapshot_offset, offset) AS at",
        "coalesce(snapshot_epoch, epoch) AS epoch",
        "kind",
        "record",
    ).distinct()
    named = Named()
    for row in found.collect():
        told = named.in_logs if row.kind == "log" else named.in_snapshots
        ids = frozenset(int(one["voterId"]) for one in json.loads(row.record)["voters"])
        told.setdefault(row.cluster_id, []).append((row.at, row.epoch, ids))
    return named


def unproven(ruling: Lineage, groups: Sequence[Group], evidence: Evidence) -> Ranges:
    """The offsets of the ruling log that nothing shows to be committed."""
    ends = _proven_ends(ruling, groups, evidence)
    left = ((max(span.start, ends[span.epoch]), span.end) for span in ruling.spans)
    return tuple(union((start, end) for start, end in left if start < end))


def _proven_ends(ruling: Lineage, groups: Sequence[Group], evidence: Evidence) -> dict[int, int]:
    """By epoch: up to where it is committed."""
    spans = {span.epoch: span for span in ruling.spans}
    ends = {span.epoch: span.start for span in ruling.spans}
    logs = replica_logs(groups).values()
    told = [(epoch, offset) for offset, epoch in evidence.snapshots]
    told += [(span.epoch, span.end) for span in evidence.known]
    if evidence.given:
        told += [(span.epoch, span.end) for log in logs for span in log.values()]
    if ruling.spans:
        newest = ruling.spans[-1].epoch
        told.append((newest, _majority_end(newest, groups, evidence.voters)))
    for epoch, end in told:
        if epoch in spans:
            ends[epoch] = max(ends[epoch], min(end, spans[epoch].end))
    pairs = ((log[one], log[two]) for log in logs for one, two in pairwise(sorted(log)))
    for one, two in sorted(pairs, key=lambda pair: -pair[1].epoch):
        if one.epoch in spans and one.end == two.start < ends.get(two.epoch, 0):
            ends[one.epoch] = max(ends[one.epoch], min(one.end, spans[one.epoch].end))
    return ends


def _majority_end(epoch: int, groups: Iterable[Group], voters: frozenset[int]) -> int:
    """Up to where a majority of the voters has this epoch; 0: nowhere.

    Voters are told by their ids alone.
    """
    ends: dict[int, int] = {}
    for group in groups:
        if group.epoch == epoch and group.node in voters:
            ends[group.node] = max(ends.get(group.node, 0), group.last + 1)
    needed = len(voters) // 2 + 1
    return sorted(ends.values(), reverse=True)[needed - 1] if len(ends) >= needed else 0


def proven_spans(spans: Iterable[Span], open_: Ranges) -> tuple[Span, ...]:
    """The parts of the spans that lie before what is not proven of them."""
    found = []
    for span in spans:
        end = next((start for start, _ in overlap(open_, span.start, span.end)), span.end)
        if span.start < end:
            found.append(span._replace(end=end))
    return tuple(found)
