"""What a log tells who would go on behind it: asked of its own index, at places and in epochs that
the replicas of few worlds ever ask for."""

from __future__ import annotations

from quorate.raft.log_index import Diverging, LogIndex
from quorate.sim.checks.history import Entry
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

CHECK = "who fetches goes on behind the same log"
BORDERS = "a log knows where its batches end"


def check_places(twin: Twin, log: LogIndex) -> None:
    """Where an epoch ends in it, who has that epoch may go on, and who has an older one may not."""
    places = _places(twin, log.start_offset)
    epochs = {place.epoch for place in places}
    older = sorted(epochs | {epoch - 1 for epoch in epochs if epoch > 0})
    for place in places:
        if isinstance(log.validate(place.end, place.epoch), Diverging):
            raise Violation(
                CHECK, f"{twin} has {place}, and sends who has the same there back from its end"
            )
        for epoch in older:
            if epoch < place.epoch and log.validate(place.end, epoch) is None:
                raise Violation(
                    CHECK,
                    f"{twin} has {place}, and lets who has a record of epoch {epoch} before "
                    f"{place.end} go on there; its log starts at {log.start_offset}, its snapshots "
                    f"are {', '.join(str(tuple(known)) for known in log.snapshots)}",
                )


def check_borders(twin: Twin, log: LogIndex) -> None:
    """A batch that was appended begins and ends at a border, and has none inside: a truncation
    goes to one (`RaftLog.truncateToEndOffset`). Those further back may be forgotten."""
    appended, twin.appended = twin.appended, []
    for entry in appended:
        if entry is not twin.tip and entry.base < log._known_from:
            continue
        last = entry.end - 1
        if log.border_at_or_before(entry.base) != entry.base:
            raise Violation(BORDERS, f"{twin} has {entry}, and no border where it begins")
        if log.border_at_or_before(last) != entry.base:
            raise Violation(BORDERS, f"{twin} has {entry}, and a border inside at {last}")


def _places(twin: Twin, start: int) -> list[Entry]:
    """The last entry of each epoch from the log's start on, and the one that ends there."""
    entry = twin.tip
    places = [entry] if entry.end > 0 else []
    while entry.parent is not None and entry.parent.end >= max(start, 1):
        before = entry.parent
        if before.epoch != entry.epoch or before.end == start:
            places.append(before)
        entry = before
    return places
