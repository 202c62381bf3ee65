"""What a log tells who would go on behind it: asked of its own index, at places and in epochs that
the replicas of few worlds ever ask for."""

from __future__ import annotations

from quorate.raft.log_index import Diverging, LogIndex
from quorate.sim.checks.history import Entry
from quorate.sim.checks.twin import Twin
from quorate.sim.observe import Violation

CHECK = "who fetches goes on behind the same log"


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
