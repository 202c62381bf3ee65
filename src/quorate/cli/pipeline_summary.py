"""What `ingest` and `stream` took of each cluster, and what they did not, in lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quorate.base.words import many

if TYPE_CHECKING:
    from quorate.spark.tables.summary import ClusterSummary, Summary


def cluster_lines(summary: Summary) -> list[str]:
    """What was taken of each cluster, and what was not."""
    from quorate.spark.tables.summary import counted

    found = []
    for cluster_id, one in sorted(summary.clusters.items()):
        found.append(f"  {cluster_id}: {_taken(one)}")
        if one.unproven:
            found.append(
                f"    nothing shows that these offsets are committed: {_ranges(one.unproven)}; a "
                "later log may take them back"
            )
        if one.left_out:
            found.append(f"    not taken, for nothing shows it committed: {_ranges(one.left_out)}")
        if one.quarantined or one.known_before:
            found.append(f"    in quarantine: {counted(one)}")
        found += [f"      {why}: {text}" for why, text in one.examples.items()]
        found += [f"    nothing of {path}: {why}" for path, why in one.strangers.items()]
        if one.problem:
            found.append(f"    {one.problem}")
    return found


def _taken(one: ClusterSummary) -> str:
    if one.log_end_offset == 0 and one.applied_end_offset is None:
        return "nothing could be taken"
    return (
        f"{many(one.records, 'record')}, {many(one.events, 'event')}; the log ends at offset "
        f"{one.log_end_offset}, the state at {one.applied_end_offset}"
    )


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"{start} to {end - 1}" for start, end in ranges)
