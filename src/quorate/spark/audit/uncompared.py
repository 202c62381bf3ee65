"""A log of an older epoch that ends before the log of the newest epoch begins.

The two have no offset in common, so nothing shows whether they diverge: the quorum may have
replaced the tail of the first before the second begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from quorate.spark.audit.committed import ReplicaLog
from quorate.spark.audit.model import DIVERGENT_TAIL, WARNING, Finding, Spot

CUT_OFF: Final = (
    "No action is needed: the node truncates this tail when it fetches from the leader. Do not start "
    "a quorum from this replica alone"
)
_GIVE_MORE: Final = (
    "Audit it together with a log that has these offsets and later ones. Until then do not treat "
    "them as committed, and do not start a quorum from this replica alone"
)

Epochs = Sequence[tuple[int, int]]
"""(epoch, first offset) of a leader-epoch-checkpoint."""


def check_uncompared(
    log: ReplicaLog, main: ReplicaLog, logs: Sequence[ReplicaLog], checkpoints: Sequence[Epochs]
) -> list[Finding]:
    """Findings for a log that agrees with `main` wherever both can be compared.

    1. Where another log or a leader-epoch-checkpoint shows the end of its last epoch, the rest is
       a divergent tail.
    2. Otherwise snapshots of that epoch prove a part; nothing shows whether the rest is committed.
    """
    last = log.last_epoch
    if last is None or last >= (main.last_epoch or 0):
        return []
    span = log.spans[-1]
    ends = _ends(last, logs, checkpoints)
    if ends and log.end <= min(ends):
        return []
    if ends:  # 1
        part = min(ends)
        what = (
            f"divergent uncommitted tail: the offsets {part} to {log.end - 1} of epoch {last} "
            f"were never committed; from {part} on the quorum holds a later epoch"
        )
        return [Finding(DIVERGENT_TAIL, WARNING, what, CUT_OFF, Spot(offset=part, epoch=last))]
    # 2
    snapshots = (one for other in logs for one in other.snapshots if one.epoch == last)
    start = max([span.start, *(min(one.offset, log.end) for one in snapshots)])
    if start >= log.end:
        return []
    what = (
        f"no other given log or snapshot shows whether the offsets {start} to {log.end - 1} of "
        f"epoch {last} were committed: {main.replica.path}, of epoch {main.last_epoch}, begins "
        f"at offset {main.start}"
    )
    return [Finding("not-compared", WARNING, what, _GIVE_MORE, Spot(offset=start, epoch=last))]


def _ends(epoch: int, logs: Sequence[ReplicaLog], checkpoints: Sequence[Epochs]) -> list[int]:
    """The ends of an epoch according to logs with a later epoch, and to leader-epoch-checkpoints."""
    found = [one.end for log in logs for one, _ in pairwise(log.spans) if one.epoch == epoch]
    found += [
        start
        for entries in checkpoints
        for (one, _), (_, start) in pairwise(entries)
        if one == epoch
    ]
    return found
