"""Reads of the log and of snapshots for peers and tools: a few at a time go to the disk.

The disk performs its jobs in order, and what it has read stays in memory until the responses are
sent. So many Fetches at once neither delay the writes behind them nor fill the memory.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.raft.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    ReadChunk,
    ReadRange,
    Response,
)
from quorate.raft.ready import Reply
from quorate.replica.disk_jobs import Job, LogRead, ReadLog, ReadSnapshot, SnapshotRead
from quorate.replica.tail import Tail

READ_BYTES: Final = 16 * 1024 * 1024


@frozen
class Answer:
    """A response of the core with the bytes that it refers to: records, or a snapshot's chunk."""

    reply_to: int
    response: Response
    data: bytes = b""


@frozen
class PendingRead:
    """A reply that waits for its bytes, and the job that reads them. `cost`: bytes, at most."""

    reply: Reply
    job: ReadLog | ReadSnapshot
    cost: int


class LogReads:
    """The reads of peers: the disk performs up to `budget` bytes at a time, one read at least.

    The others wait, in order. A batch is read whole, whatever the limit of the Fetch, so a read of
    the log may return `batch_bytes`. The budget also limits what the tail in memory answers in one
    step. Beyond it the disk is read, which has everything in the tail: it was written before.
    """

    def __init__(self, budget: int, batch_bytes: int) -> None:
        self._budget = budget
        self._batch = batch_bytes
        self._left = 0
        """Bytes that the tail may still answer in this step."""
        self._bytes = 0
        """Of what the disk was given."""
        self.given: dict[int, PendingRead] = {}
        """What the disk was given, by token."""
        self.waiting: deque[PendingRead] = deque()

    @property
    def replies(self) -> list[Reply]:
        """All that lack their bytes."""
        return [wanted.reply for wanted in (*self.given.values(), *self.waiting)]

    def begin(self) -> None:
        """A step begins."""
        self._left = self._budget

    def answer(self, reply: Reply, tail: Tail, token: int) -> Answer | None:
        """The answer, if it needs no disk. None: `give` adds a job with this token, and its result
        goes to `took`."""
        response = reply.response
        if isinstance(response, FetchResponse) and response.records is not None:
            return self._records(reply, response.records, tail, token)
        if isinstance(response, FetchSnapshotResponse) and isinstance(response.chunk, ReadChunk):
            chunk = response.chunk
            job = ReadSnapshot(token, chunk.snapshot_id, chunk.position, chunk.max_bytes)
            self.waiting.append(PendingRead(reply, job, chunk.max_bytes))
            return None
        return Answer(reply.reply_to, response)

    def _records(self, reply: Reply, asked: ReadRange, tail: Tail, token: int) -> Answer | None:
        if self._left > 0:
            data = tail.read(asked.offset, asked.end, asked.max_bytes)
            if data is not None:
                self._left -= len(data)
                return Answer(reply.reply_to, reply.response, data)
        job = ReadLog(token, asked.offset, asked.end, asked.max_bytes)
        self.waiting.append(PendingRead(reply, job, max(asked.max_bytes, self._batch)))
        return None

    def schedule(self, jobs: list[Job]) -> None:
        """Add the reads that the disk may begin now, after every write that is among `jobs`."""
        while self.waiting:
            wanted = self.waiting[0]
            if self.given and self._bytes + wanted.cost > self._budget:
                return
            self.waiting.popleft()
            self._bytes += wanted.cost
            self.given[wanted.job.token] = wanted
            jobs.append(wanted.job)

    def complete(self, result: LogRead | SnapshotRead) -> Answer | None:
        """The answer that this was read for; None when there is none."""
        wanted = self.given.pop(result.token, None)
        if wanted is None:
            return None
        self._bytes -= wanted.cost
        response = wanted.reply.response
        if isinstance(result, SnapshotRead) and isinstance(response, FetchSnapshotResponse):
            response = _chunk_response(response, result)
        return Answer(wanted.reply.reply_to, response, result.data)

    def cancel_log_reads(self) -> list[Answer]:
        """The log is about to be truncated: answer the waiting reads of it without records.

        The core decided each response on the log as it was. Other records may take the same
        offsets, and they would contradict the epoch and the high watermark of that response. A
        response without records is what Kafka's leader sends when there is nothing new: the peer
        fetches again and hears of the new leader. Reads that the disk has begun come before the
        truncation. Cleaning needs no such care: an offset keeps its record or loses it, and a
        snapshot that is gone gives SNAPSHOT_NOT_FOUND.
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
    """Only the disk knows the size of a snapshot, so two of Kafka's errors are found here."""
    if result.size is None:
        return replace(response, error=ErrorCode.SNAPSHOT_NOT_FOUND, chunk=b"")
    if not 0 <= response.position < result.size:
        return replace(response, error=ErrorCode.POSITION_OUT_OF_RANGE, chunk=b"")
    return replace(response, size=result.size, chunk=b"")
