"""The output of `ingest` and `stream` about each cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quorate.base.plural import pluralize

if TYPE_CHECKING:
    from quorate.spark.tables.summary import ClusterSummary, IngestSummary


def cluster_lines(summary: IngestSummary) -> list[str]:
    """Lines about what was ingested of each cluster, and what was not."""
    from quorate.spark.tables.summary import quarantine_counts

    found = []
    for cluster_id, one in sorted(summary.clusters.items()):
        found.append(f"  {cluster_id}: {_taken(one)}")
        if one.unproven:
            found.append(
                f"    not known to be committed: offsets {_ranges(one.unproven)}; a later log may "
                "replace them"
            )
        if one.left_out:
            found.append(
                f"    left out, not known to be committed: offsets {_ranges(one.left_out)}"
            )
        if one.quarantined or one.known_before:
            found.append(f"    in quarantine: {quarantine_counts(one)}")
        found += [
            f"      {why}: {text}"
            for why, text in one.examples.items()
            if not any(text.endswith(unreadable) for unreadable in summary.unreadable)
        ]
        if one.resolved:
            sound = ", ".join(f"{count} {why}" for why, count in one.resolved.items())
            found.append(f"    sound again, resolved in quarantine: {sound}")
        found += [
            f"    nothing was ingested from {path}: {why}"
            for path, why in one.foreign_replicas.items()
        ]
        if one.undecided:
            found.append(f"    {one.undecided}")
        if one.same_id:
            found.append(f"    another cluster with the same id: {', '.join(one.same_id)}")
        if one.problem:
            found.append(f"    {one.problem}")
    return found + [f"  not read: {text}" for text in summary.unreadable]


def _taken(one: ClusterSummary) -> str:
    if one.log_end_offset == 0 and one.applied_end_offset is None:
        healed = one.resolved and not (one.quarantined or one.known_before)
        return "nothing to ingest" if healed else "nothing could be ingested"
    return (
        f"{pluralize(one.records, 'record')}, {pluralize(one.events, 'event')}; "
        f"{_last(one.log_end_offset)}, {_state(one.applied_end_offset)}"
    )


def _last(log_end: int) -> str:
    return f"the log's last offset is {log_end - 1}" if log_end else "the log is empty"


def _state(applied_end: int | None) -> str:
    """The record that the state includes last; `history --at` takes the same offset."""
    if not applied_end:
        return "no state is known"
    return f"the state includes offset {applied_end - 1}"


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges whose ends are exclusive, as text with inclusive ends."""
    return ", ".join(f"{start} to {end - 1}" for start, end in ranges) + " (inclusive)"
