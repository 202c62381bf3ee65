"""Which writes are durable: the sequence numbers in flight, and the log end of each.

The disk works asynchronously. Votes, acknowledgements and the leader's own log end count only once
`Persisted` has come for the Ready that wrote them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class DurabilityTracker:
    """Sequence numbers (seq) of issued writes, and what each makes durable.

    Writes are done in order. An append is durable with the seq of its Ready. A truncation lowers
    the ends of all earlier seqs at once: their cut records will become durable, but are no longer
    part of this log, and must not be acknowledged.
    """

    __slots__ = (
        "_ends",
        "_issued",
        "_last_persisted_ms",
        "_log_pending_since_ms",
        "election_seq",
        "end_offset",
        "log_seq",
        "seq",
    )

    seq: int
    """Everything up to and with this seq is durable."""
    end_offset: int
    """The part of the present log that would survive a crash now (exclusive)."""

    def __init__(self, end_offset: int) -> None:
        self.seq = 0
        self._last_persisted_ms = 0
        self._log_pending_since_ms = 0
        self.end_offset = end_offset
        self.election_seq = 0
        self.log_seq = 0
        self._issued = 0
        self._ends: deque[tuple[int, int]] = deque()

    @property
    def next_seq(self) -> int:
        """The seq of the Ready in the making, should it have writes."""
        return self._issued + 1

    @property
    def pending_ends(self) -> Sequence[tuple[int, int]]:
        """The appends that are not durable, in order: (seq, log end once it is durable)."""
        return self._ends

    @property
    def election_is_durable(self) -> bool:
        """Is the present ElectionState durable?"""
        return self.election_seq <= self.seq

    @property
    def log_is_durable(self) -> bool:
        """Is the present log durable, to its end?"""
        return self.log_seq <= self.seq

    def log_stalled_since_ms(self, now_ms: int) -> int:
        """The time since which the disk makes nothing durable while the log waits for it (ms);
        `now_ms` where nothing waits."""
        return (
            now_ms
            if self.log_is_durable
            else max(self._log_pending_since_ms, self._last_persisted_ms)
        )

    def issue(self) -> int:
        """The Ready has writes: its seq."""
        self._issued += 1
        return self._issued

    def saved_election(self) -> None:
        self.election_seq = self.next_seq

    def appended(self, end_offset: int, now_ms: int) -> None:
        self._changed(now_ms)
        ends = self._ends
        if ends and ends[-1][0] == self.log_seq:
            ends[-1] = (self.log_seq, end_offset)
        else:
            ends.append((self.log_seq, end_offset))

    def truncated(self, end_offset: int, now_ms: int) -> None:
        self._changed(now_ms)
        self.end_offset = min(self.end_offset, end_offset)
        self._ends = deque((seq, min(end, end_offset)) for seq, end in self._ends)

    def _changed(self, now_ms: int) -> None:
        if self.log_is_durable:
            self._log_pending_since_ms = now_ms
        self.log_seq = self.next_seq

    def installed(self, end_offset: int) -> None:
        """The log was replaced by a durable snapshot that ends there."""
        self.end_offset = end_offset
        self._ends.clear()

    def persisted(self, seq: int, now_ms: int) -> None:
        """Writes up to `seq` are durable."""
        if seq <= self.seq:
            return
        self.seq = min(seq, self._issued)
        self._last_persisted_ms = now_ms
        ends = self._ends
        while ends and ends[0][0] <= self.seq:
            self.end_offset = ends.popleft()[1]
