"""The output of a step: collected while events are handled, returned as one Ready."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.base.ids import LeaderAndEpoch
from quorate.raft.durable import DurabilityTracker
from quorate.raft.messages import Response
from quorate.raft.ready import Accepted, Append, Ready, Refused, Reply, Send, Write
from quorate.raft.values import Batch


class Outbox:
    """Writes in order, messages, notes; and replies held back until what they promise is durable.

    Each reply given while the present ElectionState is not durable waits for it: it may grant a
    vote, or confirm a new epoch. KIP-595 requires both to survive a crash of this replica.
    """

    __slots__ = (
        "_batches",
        "_durable",
        "_held",
        "high_watermark",
        "leader",
        "notes",
        "proposals",
        "replies",
        "sends",
        "writes",
    )

    def __init__(self, durable: DurabilityTracker) -> None:
        self._durable = durable
        self._held: list[tuple[int, Reply]] = []
        self._batches: list[Batch] = []
        self.writes: list[Write] = []
        self.sends: list[Send] = []
        self.replies: list[Reply] = []
        self.proposals: list[Accepted | Refused] = []
        self.notes: list[str] = []
        self.high_watermark: int | None = None
        self.leader: LeaderAndEpoch | None = None

    def write(self, write: Write) -> None:
        self.flush()
        self.writes.append(write)

    def append(self, batch: Batch) -> None:
        """Batches that follow each other become one Append: one write, one sync."""
        self._batches.append(batch)

    def flush(self) -> None:
        if self._batches:
            self.writes.append(Append(tuple(self._batches)))
            self._batches = []

    def reply(self, reply_to: int, response: Response) -> None:
        durable = self._durable
        if durable.election_seq > durable.seq:
            self._held.append((durable.election_seq, Reply(reply_to, response)))
        else:
            self.replies.append(Reply(reply_to, response))

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def held(self) -> Sequence[tuple[int, Reply]]:
        """The replies that wait until a seq is durable: (seq, reply)."""
        return self._held

    def release(self) -> None:
        """More is durable: release the replies that waited for it."""
        if self._held and self._held[0][0] <= self._durable.seq:
            durable = self._durable.seq
            self.replies.extend(reply for seq, reply in self._held if seq <= durable)
            self._held = [(seq, reply) for seq, reply in self._held if seq > durable]

    def take_held(self) -> list[Reply]:
        """Remove and return the held replies: the disk failed, they will never be true."""
        held, self._held = [reply for _, reply in self._held], []
        return held

    def discard(self) -> None:
        """Forget what this step has collected, but the notes."""
        self._batches = []
        if self.writes:
            self.writes = []
        if self.sends:
            self.sends = []
        if self.replies:
            self.replies = []
        if self.proposals:
            self.proposals = []
        self.high_watermark = self.leader = None

    def ready(
        self,
        *,
        epoch_start: int,
        wake_at_ms: int | None,
        stopped: bool,
        faulted: str | None,
    ) -> Ready:
        """Everything collected, and a seq where there are writes; begins the next step."""
        self.flush()
        ready = Ready(
            self._durable.issue() if self.writes else None,
            tuple(self.writes),
            tuple(self.sends),
            tuple(self.replies),
            tuple(self.proposals),
            self.high_watermark,
            self.leader,
            epoch_start,
            tuple(self.notes),
            wake_at_ms,
            stopped,
            faulted,
        )
        self.discard()
        if self.notes:
            self.notes = []
        return ready
