"""Duties without a deadline, and upper bounds: each check fails once by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, Listener, Listeners, OffsetAndEpoch
from quorate.raft.inputs import Answered, Received
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ReadRange,
    Request,
    Response,
)
from quorate.raft.ready import AbandonSnapshot, Send, SnapshotChunk
from quorate.raft.roles import Follower, Resigned, SnapshotDownload
from quorate.raft.values import RaftLimits, Voters
from quorate.replica.disk_jobs import AppendBatches, SnapshotFailed, Write
from quorate.replica.replica import Answer
from sim.fake import Node, key, voters
from sim.test_checks_core import broken
from sim.test_checks_leader_duties import leading

pytestmark = pytest.mark.interpreted


# -- a Fetch -----------------------------------------------------------------------------------
IN_TIME = "Fetch deadline"
NO_MORE = "Fetch size limit"
SNAPSHOT = OffsetAndEpoch(3, 1)


def fetch(max_wait_ms: int = 500, max_bytes: int = 100) -> FetchRequest:
    return FetchRequest(None, key(2), 1, 3, 1, max_wait_ms, max_bytes, 3)


def chunk(max_bytes: int) -> FetchSnapshotRequest:
    return FetchSnapshotRequest(None, key(2), 1, SNAPSHOT, 0, max_bytes)


def asked(request: Request, wake_at_ms: int | None = 500) -> Node:
    """A leader whose election is durable takes this at 0 ms, and has no answer yet."""
    _, leader = leading()
    for waiting in leader.fake.checks.fetch_responses._waiting.values():
        waiting.clear()  # of the peer that was heard before
    leader.state.durable.election_is_durable = True
    leader.step([Received(77, request)], wake_at_ms=wake_at_ms)
    return leader


def answered(leader: Node, response: Response, data: bytes = b"") -> None:
    leader.step(answers=[Answer(77, response, data)])


RECORDS = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), 3, 0, None, None, None, (), ())
CHUNK = FetchSnapshotResponse(ErrorCode.NONE, LeaderAndEpoch(1, 1), SNAPSHOT, 200, 0, b"", ())


def test_a_fetch_may_wait_until_its_deadline() -> None:
    leader = asked(fetch())
    leader.state.now = 499
    leader.step(wake_at_ms=500)
    leader.state.now = 500
    answered(leader, RECORDS)
    leader.state.now = 9000
    leader.step()


def test_a_fetch_without_an_answer_at_its_deadline() -> None:
    leader = asked(fetch())
    leader.state.now = 500
    with broken(IN_TIME, "within 0 ms"):
        leader.step(wake_at_ms=900)


@pytest.mark.parametrize("wake_at_ms", [501, None])
def test_a_leader_that_sleeps_longer_than_a_fetch_may_wait(wake_at_ms: int | None) -> None:
    with broken(IN_TIME, "to be answered within 500 ms from now"):
        asked(fetch(), wake_at_ms)


def test_a_fetch_of_which_the_disk_is_asked_waits_for_the_disk() -> None:
    _, leader = leading()
    leader.state.durable.election_is_durable = True
    leader.fake.checks.fetch_responses._waiting[1].clear()
    leader.replica.reads.replies.append(SimpleNamespace(reply_to=77))
    leader.step([Received(77, chunk(100))])
    leader.replica.reads.replies.clear()
    with broken(IN_TIME, "FetchSnapshotRequest"):
        leader.step()


def test_a_fetch_waits_for_a_leader_whose_epoch_is_not_durable() -> None:
    leader = asked(fetch())
    leader.state.durable.election_is_durable = False
    leader.state.now = 9000
    leader.step([Received(78, fetch())])


def test_a_former_leader_keeps_no_request_waiting() -> None:
    leader = asked(fetch())
    leader.state.role = Resigned(9000, set())
    with broken(IN_TIME, "does not lead"):
        leader.step()


@pytest.mark.parametrize("how", [{"stopped": True}, {"faulted": "storage failed: no space"}])
def test_a_stopping_replica_keeps_no_request_waiting(how: dict[str, Any]) -> None:
    leader = asked(fetch())
    with broken(IN_TIME, "node 1 (incarnation 1) stops and has not answered FetchRequest"):
        leader.step(**how)


def test_a_stopping_replica_may_have_a_pending_read() -> None:
    leader = asked(fetch())
    leader.replica.reads.replies.append(SimpleNamespace(reply_to=77))
    leader.step(stopped=True)


def test_more_bytes_than_were_asked_for() -> None:
    batch = (60).to_bytes(12, "big") + bytes(60)
    answered(asked(fetch(max_bytes=144)), RECORDS, 2 * batch)
    with broken(NO_MORE, "with 144 bytes; the limit is 143"):
        answered(asked(fetch(max_bytes=143)), RECORDS, 2 * batch)


def test_the_first_batch_is_sent_whatever_its_size() -> None:
    answered(asked(fetch(max_bytes=1)), RECORDS, (60).to_bytes(12, "big") + bytes(60))


def test_a_chunk_of_a_snapshot_is_no_longer_than_was_asked_for() -> None:
    leader = asked(fetch(max_wait_ms=1), wake_at_ms=1)
    leader.state.now = 1
    answered(leader, RECORDS)
    leader.replica.reads.replies.append(SimpleNamespace(reply_to=77))
    leader.step([Received(77, chunk(99))])
    with broken(NO_MORE, "with 100 bytes; the limit is 99"):
        answered(leader, CHUNK, bytes(100))


# -- what is new, and what is true -------------------------------------------------------------
TOO_EARLY = "Fetch long poll"
AT_ONCE = "Fetch returns new data at once"
TRUE = "Fetch response fields"


def test_an_empty_answer_before_the_deadline() -> None:
    leader = asked(fetch())
    leader.state.now = 499
    with broken(TOO_EARLY, "after 499 ms without new data"):
        answered(leader, RECORDS)


@pytest.mark.parametrize(
    "said",
    [
        {"diverging": OffsetAndEpoch(1, 1)},
        {"snapshot_id": SNAPSHOT},
        {"records": ReadRange(3, 4, 100)},
        {"error": ErrorCode.NOT_LEADER_OR_FOLLOWER},
    ],
)
def test_an_answer_with_content_may_be_sent_at_once(said: dict[str, Any]) -> None:
    answered(asked(fetch()), replace(RECORDS, **said))


def test_an_answer_of_a_former_leader_is_empty() -> None:
    leader = asked(fetch())
    leader.state.role = Resigned(9000, set())
    answered(leader, RECORDS)


@pytest.mark.parametrize("what", ["records", "high watermark"])
def test_an_answer_after_an_event_may_be_empty(what: str) -> None:
    """A replica that fetches beyond the log end, or knows a higher high watermark."""
    leader = asked(replace(fetch(), offset=99, high_watermark=99))
    if what == "records":
        leader.batches.append(batch := leader.made())
        more = {"jobs": [Write(leader.seq + 1, (AppendBatches((batch,)),))]}
    else:
        leader.state.role = replace(leader.state.role, high_watermark=3)
        more = {}
    leader.step(answers=[Answer(77, RECORDS)], **more)


def test_records_for_which_a_fetch_waits() -> None:
    leader = asked(fetch())
    with broken(AT_ONCE, "has [3, 4) of epoch 1, and leaves FetchRequest"):
        leader.append(leader.made())


@pytest.mark.parametrize("linger", [0, 20])
def test_a_high_watermark_for_which_a_fetch_waits(linger: int) -> None:
    leader = asked(fetch())
    leader.state.config.high_watermark_linger_ms = linger
    leader.state.role = replace(leader.state.role, high_watermark=4)
    if linger:
        leader.step(wake_at_ms=20)
        leader.state.now = 20
    with broken(AT_ONCE, "within 0 ms from now"):
        leader.step(wake_at_ms=500)


def test_a_leader_that_sleeps_on_a_high_watermark() -> None:
    leader = asked(fetch())
    leader.state.config.high_watermark_linger_ms = 20
    leader.state.role = replace(leader.state.role, high_watermark=4)
    with broken(AT_ONCE, "sleeps for 21 ms"):
        leader.step(wake_at_ms=21)


@pytest.mark.parametrize("start", [-1, 0, 1, 2, 3])
def test_an_answer_has_the_log_start_offset(start: int) -> None:
    """It was cleaned meanwhile: what it said while the disk was asked may come late."""
    leader = asked(fetch())
    leader.state.log.start_offset = 1
    leader.step(wake_at_ms=500)
    leader.step([Received(78, fetch())], wake_at_ms=500)
    leader.state.log.start_offset = 2
    leader.state.now = 500
    said = Answer(78, replace(RECORDS, log_start_offset=start))
    if start in (1, 2):
        leader.step(answers=[said, Answer(77, RECORDS)])
        return
    with broken(TRUE, f"log start offset {start}, its log starts at 2"):
        leader.step(answers=[said])


HERE = (Listener("CONTROLLER", "host", 9093),)


@pytest.mark.parametrize(
    ("error", "leader_id", "endpoints", "is_true"),
    [
        (ErrorCode.NONE, 1, HERE, True),
        (ErrorCode.NONE, 1, (), False),
        (ErrorCode.NONE, 2, HERE, False),
        (ErrorCode.FENCED_LEADER_EPOCH, 1, (), False),
        (ErrorCode.FENCED_LEADER_EPOCH, 2, (), True),
        (ErrorCode.FENCED_LEADER_EPOCH, 2, HERE, True),
        (ErrorCode.FENCED_LEADER_EPOCH, -1, (), True),
        (ErrorCode.FENCED_LEADER_EPOCH, -1, HERE, False),
    ],
)
def test_an_answer_names_the_leader_and_its_endpoint(
    error: ErrorCode, leader_id: int, endpoints: Listeners, is_true: bool
) -> None:
    leader = asked(fetch())
    leader.state.config.listeners = HERE
    leader.state.now = 500
    said = LeaderAndEpoch(leader_id, 1)
    response = replace(RECORDS, error=error, leader=said, leader_endpoints=endpoints)
    if is_true:
        answered(leader, response)
        return
    with broken(TRUE, f"sends node {leader_id} as the leader"):
        answered(leader, response)


# -- a new voter -------------------------------------------------------------------------------
@pytest.mark.parametrize("now_ms", [2999, 3000])
def test_a_new_voter_that_had_caught_up_more_than_an_hour_ago(now_ms: int) -> None:
    fake, leader = leading()
    leader.state.config.limits = RaftLimits(caught_up_within_ms=3000)
    leader.state.now = now_ms
    leader.hear(2, 3)
    fake.rule(leader, 1, 2, 3, 4)
    batch = leader.control(Voters(voters(1, 2, 3, 4)))
    if now_ms < 3000:
        leader.append(batch)
        return
    with broken("a new voter has caught up", "has not fetched since 3000 ms"):
        leader.append(batch)


# -- auto join ---------------------------------------------------------------------------------
def joining() -> Node:
    """Node 4 follows node 1 from 0 ms on, and is to join its three voters."""
    fake, leader = leading()
    node = fake[4]
    node.state.config.auto_join = True
    fake.rule(node, 1, 2, 3)
    fake.replicate(leader, 4)
    node.state.role = Follower((), 9000, 9000)
    node.state.leader_id = 1
    node.step()
    return node


def send(node: Node, request: object, to: int = 1) -> None:
    node.step(sends=[Send(0, to, ("host", 9093), request, 0)])  # type: ignore[arg-type]


def a_fetch_of_it() -> FetchRequest:
    return FetchRequest(None, key(4), 1, 3, 1, 0, 0, -1)


TO_JOIN = AddVoterRequest(None, key(4), (), 1000, False)
JOINS = "auto-join request in time"


def test_a_joining_observer_that_never_sends_add_raft_voter() -> None:
    node = joining()
    node.state.now = 2000
    send(node, a_fetch_of_it())
    node.state.now = 2001
    send(node, a_fetch_of_it(), to=-2)
    with broken(JOINS, "it has fetched for 2001 ms from node 1"):
        send(node, a_fetch_of_it())


@pytest.mark.parametrize("how", ["asks", "is answered", "follows anew"])
def test_a_joining_observer_sends_one_request_per_fetch_timeout(how: str) -> None:
    node = joining()
    node.state.now = 2000
    if how == "asks":
        send(node, TO_JOIN)
    elif how == "is answered":
        node.step([Answered(5, AddVoterResponse(ErrorCode.REQUEST_TIMED_OUT))])
    else:
        node.state.role = replace(node.state.role)
        node.step()
    node.state.now = 4000
    send(node, a_fetch_of_it())
    node.state.now = 4001
    with broken(JOINS):
        send(node, a_fetch_of_it())


@pytest.mark.parametrize("why", ["auto_join", "can_be_voter"])
def test_an_observer_without_auto_join_sends_no_request(why: str) -> None:
    node = joining()
    setattr(node.state.config, why, False)
    node.state.now = 9000
    send(node, a_fetch_of_it())


# -- what is left on a disk --------------------------------------------------------------------
LEFT = "orphan snapshots are removed"
PART = "00000000000000000003-0000000001-1.checkpoint.part"


def downloading() -> Node:
    fake, leader = leading()
    node = fake[4]
    fake.replicate(leader, 4)
    node.state.role = Follower((), 9000, 9000, download=SnapshotDownload(SNAPSHOT))
    node.write(SnapshotChunk(SNAPSHOT, 0, b"a"))
    node.files.append(PART)
    return node


def test_a_download_that_is_given_up_is_abandoned() -> None:
    node = downloading()
    node.state.role.download = None
    node.write(AbandonSnapshot(SNAPSHOT))


@pytest.mark.parametrize("other", [None, SnapshotDownload(OffsetAndEpoch(9, 1))])
def test_a_download_that_is_given_up_and_stays(other: SnapshotDownload | None) -> None:
    node = downloading()
    node.state.role.download = other
    with broken(LEFT, "no longer fetches snapshot (3, 1)"):
        node.step()


def test_a_download_of_a_node_that_stops() -> None:
    node = downloading()
    node.state.role.download = None
    node.step(stopped=True)


def test_a_snapshot_that_failed_leaves_no_file() -> None:
    node = downloading()
    node.step([SnapshotFailed(SNAPSHOT, "the disk is full")])
    node.files.append(PART.replace("-1.", "-2."))
    with broken(LEFT, "1 of these are in progress"):
        node.step([SnapshotFailed(SNAPSHOT, "the disk is full")])


def test_recovery_leaves_no_such_file() -> None:
    node = downloading()
    with broken(LEFT, f"has {PART} on its disk"):
        node.start()
