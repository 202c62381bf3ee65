"""The end of a log of an older epoch, where the log of the newest epoch begins behind it.

The two have no offset in common, so that they do not differ tells nothing: the quorum may have
replaced the tail of the one before the other begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from quorate.spark.audit.commit import Chain
from quorate.spark.audit.model import DIVERGENT_TAIL, WARNING, Finding, Spot

CUT_OFF: Final = (
    "Nothing is to be done: the node cuts this tail off when it meets the leader. Do not start a "
    "quorum from this replica alone"
)
_GIVE_MORE: Final = (
    "Audit it together with a log that has these offsets and goes on behind them; until then do "
    "not take them as history, and do not start a quorum from this replica alone"
)

Epochs = Sequence[tuple[int, int]]
"""(epoch, first offset) of a leader-epoch-checkpoint."""


def judge_uncompared(
    chain: Chain, main: Chain, chains: Sequence[Chain], checkpoints: Sequence[Epochs]
) -> list[Finding]:
    """Of a log that agrees with `main` wherever both can be compared."""
    last = chain.last_epoch
    if last is None or last >= (main.last_epoch or 0):
        return []
    span = chain.spans[-1]
    ends = _ends(last, chains, checkpoints)
    if ends and chain.end <= min(ends):
        return []
    if ends:
        part = min(ends)
        what = (
            f"divergent uncommitted tail: the offsets {part} to {chain.end - 1} of epoch {last} "
            f"were never committed; from {part} on the quorum holds a later epoch"
        )
        return [Finding(DIVERGENT_TAIL, WARNING, what, CUT_OFF, Spot(offset=part, epoch=last))]
    snapshots = (one for other in chains for one in other.snapshots if one.epoch == last)
    start = max([span.start, *(min(one.offset, chain.end) for one in snapshots)])
    if start >= chain.end:
        return []
    what = (
        f"no other log or snapshot here shows whether the offsets {start} to {chain.end - 1} of "
        f"epoch {last} were committed: {main.replica.path}, of epoch {main.last_epoch}, begins "
        f"at offset {main.start}"
    )
    return [Finding("not-compared", WARNING, what, _GIVE_MORE, Spot(offset=start, epoch=last))]


def _ends(epoch: int, chains: Sequence[Chain], checkpoints: Sequence[Epochs]) -> list[int]:
    """Where an epoch ended, by logs that go on behind it and by what nodes wrote down."""
    found = [one.end for chain in chains for one, _ in pairwise(chain.spans) if one.epoch == epoch]
    found += [
        start
        for entries in checkpoints
        for (one, _), (_, start) in pairwise(entries)
        if one == epoch
    ]
    return found
