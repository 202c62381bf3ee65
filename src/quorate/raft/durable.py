"""What of the issued writes is durable: the seqs in flight, and where the log ends in each."""

from __future__ import annotations

from collections import deque


class Durable:
    """Sequence numbers of writes, the election's and the log's among them.

    Writes are done in order. An append is durable with the seq of its Ready; a truncation takes
    effect on what earlier seqs will make durable at once, for what it cuts is not this log.
    """

    __slots__ = (
        "_ends",
        "_issued",
        "_log_waits_ms",
        "_moved_ms",
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
        self._moved_ms = 0
        self._log_waits_ms = 0
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
    def election(self) -> bool:
        """Is the present ElectionState durable?"""
        return self.election_seq <= self.seq

    @property
    def log(self) -> bool:
        """Is the present log durable, to its end?"""
        return self.log_seq <= self.seq

    def log_stands_ms(self, now_ms: int) -> int:
        """Since when the log waits for a disk that makes nothing durable; now, where it is not
        kept waiting."""
        return now_ms if self.log else max(self._log_waits_ms, self._moved_ms)

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
        if self.log:
            self._log_waits_ms = now_ms
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
        self._moved_ms = now_ms
        ends = self._ends
        while ends and ends[0][0] <= self.seq:
            self.end_offset = ends.popleft()[1]
