"""What was applied: the same at equal offsets everywhere, whether replayed or loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from quorate.node.jobs import AppendBatches, Write
from quorate.raft.roles import Leader, Role
from quorate.sim.checks.history import History
from quorate.sim.checks.twin import Twin
from quorate.sim.checks.words import election_words
from quorate.sim.observe import Violation

if TYPE_CHECKING:
    from quorate.node.replica import Effects


TIMES: Final = "a batch bears the leader's time"
_TIMES_AT: Final = (27, 35)
"""Of a batch: its first record's time, and the newest one's."""


def check_led(twin: Twin, led: int | None) -> None:
    """Its replica is not in office: a machine that was, in epoch `led`, has been told so, unless it
    is this very node that leads again."""
    if led is not None and twin.election.leader_id != twin.id:
        raise Violation(
            "one leader acts",
            f"{twin} knows of {election_words(twin.election)}, and its machine goes on leading "
            f"epoch {led}",
        )


def check_times(twin: Twin, effects: Effects, wall_ms: int) -> None:
    """What a leader appends bears the time of its clock: snapshots and segments age by it."""
    for job in effects.jobs:
        if not isinstance(job, Write):
            continue
        for write in job.writes:
            if not isinstance(write, AppendBatches):
                continue
            for batch in write.batches:
                times = _times(batch.data)
                if batch.epoch == twin.election.epoch and times != [wall_ms, wall_ms]:
                    raise Violation(
                        TIMES,
                        f"{twin} leads and appends {batch.base_offset} with the times {times} at "
                        f"{wall_ms} ms of its clock",
                    )


def _times(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + 8]) for at in _TIMES_AT]


class Machines:
    """Holds the hashes that the state machines leave behind against each other."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.hashes: dict[int, tuple[int, int, int]] = {}
        """By end offset: history, digest, and which node came first."""

    def applied(self, twin: Twin, trail: Sequence[tuple[int, int, int]]) -> None:
        """A machine applied these batches, or loaded a snapshot that ends there."""
        hashes = self.hashes
        for end, history, digest in trail:
            known = hashes.get(end)
            if known is None:
                hashes[end] = (history, digest, twin.id)
                if end not in self.history.committed_at:
                    raise Violation("applied is committed", f"{twin} applied up to {end}")
            elif known[0] != history or known[1] != digest:
                what = "what was applied" if known[0] != history else "the state it makes"
                raise Violation(
                    "applied state",
                    f"{twin} and node {known[2]} differ at offset {end} in {what}",
                )
            if end > twin.high_watermark:
                raise Violation(
                    "applied is committed",
                    f"{twin} applied up to {end}, high watermark {twin.high_watermark}",
                )

    def check_time(self, twin: Twin, newest: tuple[int, int] | None) -> None:
        """(end offset, time) of the newest batch that its machine was given."""
        if newest is None:
            return
        end, given = newest
        _, of_batch = _times(self.history.committed_at[end].data)
        if given != of_batch:
            raise Violation(
                TIMES,
                f"{twin} gives its machine the batch up to {end} as of {given} ms; it is of "
                f"{of_batch} ms",
            )

    def leads(self, twin: Twin, epoch: int | None, applied: int, role: Role) -> None:
        """Its machine was told to lead (None: not to) after applying up to `applied`.

        Only once everything before its epoch is applied, one machine an epoch, and no longer than
        the replica leads (KAFKA-17333).
        """
        twin.leading = epoch
        if epoch is None:
            return
        if not isinstance(role, Leader):
            name = type(role).__name__.lower()
            raise Violation("one leader acts", f"{twin}: {name}, its machine leads epoch {epoch}")
        reign = self.history.reigns.get(epoch)
        if reign is None or (reign.node_id, reign.life) != (twin.id, twin.life):
            whose = "nobody's" if reign is None else f"node {reign.node_id}'s (life {reign.life})"
            text = f"{twin}: its machine leads epoch {epoch}, which is {whose}"
            raise Violation("one leader acts", text)
        if twin.election.leader_id != twin.id or twin.election.epoch != epoch:
            raise Violation(
                "one leader acts",
                f"{twin}: its machine leads epoch {epoch} in {election_words(twin.election)}",
            )
        known = self.history.committed_at.get(applied)
        if known is None or known.epoch != epoch:
            raise Violation(
                "one leader acts",
                f"{twin}: its machine leads epoch {epoch}, and has applied up to {applied} only, "
                f"the end of {'nothing committed' if known is None else known}",
            )
