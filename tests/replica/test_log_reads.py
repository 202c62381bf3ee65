"""One test for each sentence about what is read for others."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.messages import FetchResponse, FetchSnapshotResponse, ReadChunk, ReadRange
from quorate.raft.ready import Reply
from quorate.replica.disk_jobs import Job, LogRead, ReadLog, ReadSnapshot, SnapshotRead
from quorate.replica.log_reads import Answer, LogReads
from quorate.replica.tail import Tail
from quorate.storage.api import AppendedBatch

LEADER = LeaderAndEpoch(1, 1)
ID = OffsetAndEpoch(5, 1)
BATCH, BUDGET = 10, 35


def records(reply_to: int, offset: int = 0, max_bytes: int = 10) -> Reply:
    wanted = ReadRange(offset, 99, max_bytes)
    return Reply(reply_to, FetchResponse(ErrorCode.NONE, LEADER, records=wanted))


def chunk(reply_to: int, max_bytes: int = 10) -> Reply:
    wanted = ReadChunk(ID, 0, max_bytes)
    return Reply(reply_to, FetchSnapshotResponse(ErrorCode.NONE, LEADER, ID, 0, 0, wanted))


class Desk:
    """LogReads beside a tail that holds the offsets 50 to 99, a byte each."""

    def __init__(self) -> None:
        self.reads = LogReads(BUDGET, BATCH)
        self.tail = Tail(50)
        self.tail.append(AppendedBatch(at, at, 1, b"t") for at in range(50, 100))
        self.tokens = 0
        self.reads.begin()

    def ask(self, replies: Iterable[Reply]) -> list[Answer]:
        """What is answered at once."""
        answers = []
        for reply in replies:
            self.tokens += 1
            answers.append(self.reads.answer(reply, self.tail, self.tokens))
        return [answer for answer in answers if answer is not None]

    def give(self) -> list[int]:
        """Tokens of what the disk is given now."""
        jobs: list[Job] = []
        self.reads.schedule(jobs)
        return [job.token for job in jobs if isinstance(job, ReadLog | ReadSnapshot)]

    def read(self, token: int) -> int:
        """The requests that get the disk's result."""
        answer = self.reads.complete(LogRead(token, b"data"))
        assert answer is not None and answer.data == b"data"
        return answer.reply_to


def test_what_has_no_bytes_needs_none() -> None:
    response = FetchResponse(ErrorCode.NONE, LEADER)
    assert Desk().ask([Reply(7, response)]) == [Answer(7, response)]


def test_reads_beyond_the_limit_wait_in_order() -> None:
    desk = Desk()
    assert desk.ask(map(records, range(101, 108))) == []
    assert desk.give() == [1, 2, 3]
    assert desk.give() == []
    assert [reply.reply_to for reply in desk.reads.replies] == [*range(101, 108)]
    assert (desk.read(2), desk.give()) == (102, [4])
    assert (desk.read(1), desk.read(3), desk.give()) == (101, 103, [5, 6])
    assert [desk.read(token) for token in (4, 5, 6)] == [104, 105, 106]
    assert (desk.give(), desk.read(7)) == ([7], 107)
    assert desk.reads.replies == []


def test_one_read_is_given_whatever_its_size() -> None:
    desk = Desk()
    desk.ask([records(1, max_bytes=1000), records(2)])
    assert desk.give() == [1]
    assert (desk.read(1), desk.give()) == (1, [2])


def test_a_read_may_return_a_batch_larger_than_the_limit() -> None:
    desk = Desk()
    desk.ask(records(at, max_bytes=0) for at in range(9))
    assert len(desk.give()) == BUDGET // BATCH


def test_a_chunk_of_a_snapshot_has_the_requested_length() -> None:
    desk = Desk()
    desk.ask(chunk(at, max_bytes=5) for at in range(9))
    assert len(desk.give()) == BUDGET // 5
    answer = desk.reads.complete(SnapshotRead(1, None, b""))
    assert answer is not None
    assert isinstance(answer.response, FetchSnapshotResponse)
    assert answer.response.error == ErrorCode.SNAPSHOT_NOT_FOUND


def test_reads_of_the_machine_delay_no_fetch() -> None:
    desk = Desk()
    desk.ask([records(1)])
    desk.give()
    assert desk.reads.complete(LogRead(2, b"")) is None


def test_the_tail_answers_a_limited_size_per_step_and_the_disk_the_remainder() -> None:
    desk = Desk()
    answers = desk.ask(records(at, offset=50) for at in range(9))
    assert [(answer.reply_to, len(answer.data)) for answer in answers] == [
        (0, 10),
        (1, 10),
        (2, 10),
        (3, 10),
    ]
    assert desk.give() == [5, 6, 7]
    desk.reads.begin()
    assert len(desk.ask([records(9, offset=50)])) == 1


def test_a_fetch_of_truncated_records_is_answered_without_records() -> None:
    desk = Desk()
    asked = [records(1), records(2), records(3), records(4), chunk(5), records(6)]
    desk.ask(asked)
    assert desk.give() == [1, 2, 3]
    assert desk.reads.cancel_log_reads() == [
        Answer(4, asked[3].response),
        Answer(6, asked[5].response),
    ]
    assert [desk.read(token) for token in (1, 2, 3)] == [1, 2, 3]
    assert desk.give() == [5]
