"""What others ask of the log and of snapshots: given to the disk a few reads at a time.

The disk performs in order, and what it read stays in memory until its answers have left. Whoever
sends many Fetches at once must neither keep the writes waiting nor fill the memory.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.node.jobs import Job, LogRead, ReadLog, ReadSnapshot, SnapshotRead
from quorate.node.tail import Tail
from quorate.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    ReadChunk,
    ReadRange,
    Response,
)
from quorate.raft.ready import Reply

READ_BYTES: Final = 16 * 1024 * 1024


@frozen
class Answer:
    """A core response with the bytes that it names: records of a Fetch, or a snapshot's chunk."""

    reply_to: int
    response: Response
    data: bytes = b""


@frozen
class Wanted:
    """A reply that lacks its bytes, and where they are. `cost`: how many they may be."""

    reply: Reply
    job: ReadLog | ReadSnapshot
    cost: int


class Reads:
    """What the disk reads for others: up to `budget` bytes at a time, one read at the least.

    The rest waits, in order. A batch is read whole however little was asked for, so a read of the
    log may bring `batch_bytes`. The budget is also what the tail answers in one step; what is more
    is read from the disk, in its turn: that has everything in the tail, written before.
    """

    def __init__(self, budget: int, batch_bytes: int) -> None:
        self._budget = budget
        self._batch = batch_bytes
        self._left = 0
        """Bytes that the tail may still answer in this step."""
        self._bytes = 0
        """Of what the disk was given."""
        self.given: dict[int, Wanted] = {}
        """What the disk was given, by token."""
        self.waiting: deque[Wanted] = deque()

    @property
    def replies(self) -> list[Reply]:
        """All that lack their bytes."""
        return [wanted.reply for wanted in (*self.given.values(), *self.waiting)]

    def begin(self) -> None:
        """A step begins."""
        self._left = self._budget

    def answer(self, reply: Reply, tail: Tail, token: int) -> Answer | None:
        """None: the disk must be asked, with this token, and its result comes to `took`."""
        response = reply.response
        if isinstance(response, FetchResponse) and response.records is not None:
            return self._records(reply, response.records, tail, token)
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.chunk, ReadChunk):
            chunk = response.chunk
            job = ReadSnapshot(token, chunk.snapshot_id, chunk.position, chunk.max_bytes)
            self.waiting.append(Wanted(reply, job, chunk.max_bytes))
            return None
        return Answer(reply.reply_to, response)

    def _records(self, reply: Reply, asked: ReadRange, tail: Tail, token: int) -> Answer | None:
        if self._left > 0:
            data = tail.read(asked.offset, asked.end, asked.max_bytes)
            if data is not None:
                self._left -= len(data)
                return Answer(reply.reply_to, reply.response, data)
        job = ReadLog(token, asked.offset, asked.end, asked.max_bytes)
        self.waiting.append(Wanted(reply, job, max(asked.max_bytes, self._batch)))
        return None

    def give(self, jobs: list[Job]) -> None:
        """Add what the disk may begin now; it comes after every write that is among `jobs`."""
        while self.waiting:
            wanted = self.waiting[0]
            if self.given and self._bytes + wanted.cost > self._budget:
                return
            self.waiting.popleft()
            self._bytes += wanted.cost
            self.given[wanted.job.token] = wanted
            jobs.append(wanted.job)

    def took(self, result: LogRead | SnapshotRead) -> Answer | None:
        """The answer for which this was read; None when nobody waits for it."""
        wanted = self.given.pop(result.token, None)
        if wanted is None:
            return None
        self._bytes -= wanted.cost
        response = wanted.reply.response
        if isinstance(result, SnapshotRead) and isinstance(response, FetchSnapshotResponse):
            response = _chunk_response(response, result)
        return Answer(wanted.reply.reply_to, response, result.data)

    def cut(self) -> list[Answer]:
        """The log loses records, and others take their offsets: whoever waits to read it is
        answered without any.

        Each was decided on the log as it was: with records of another history its epoch and high
        watermark would be a lie. With none it is what Kafka's leader says when there is nothing
        yet; whoever asked asks again, and is told who leads now. What the disk was given is read
        before it truncates. Cleaning needs no such care: it leaves every offset its record or
        none, and a snapshot its bytes or SNAPSHOT_NOT_FOUND, which the disk tells.
        """
        waiting, self.waiting = self.waiting, deque()
        answers: list[Answer] = []
        for wanted in waiting:
            if isinstance(wanted.job, ReadLog):
                answers.append(Answer(wanted.reply.reply_to, wanted.reply.response))
            else:
                self.waiting.append(wanted)
        return answers


def _chunk_response(response: FetchSnapshotResponse, result: SnapshotRead) -> FetchSnapshotResponse:
    """The size of a snapshot is known only to the disk, so two of Kafka's errors arise here."""
    if result.size is None:
        return replace(response, error=ErrorCode.SNAPSHOT_NOT_FOUND, chunk=b"")
    if not 0 <= response.position < result.size:
        return replace(response, error=ErrorCode.POSITION_OUT_OF_RANGE, chunk=b"")
    return replace(response, size=result.size, chunk=b"")
