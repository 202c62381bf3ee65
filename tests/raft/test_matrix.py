"""Every role meets every input. The whole table is in matrix.txt (QUORATE_REWRITE=1 writes it).

A line: role, input, then role and epoch after it, and the answer's error. Whatever comes, the
replica never faults, never raises, and answers what is asked of it, at once or in its time.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import LeaderAndEpoch, OffsetAndEpoch
from quorate.raft.inputs import (
    Answered,
    CleanTo,
    ConnectionLost,
    Event,
    InstallFailed,
    Persisted,
    Propose,
    Received,
    Resign,
    SendFailed,
    SendFailure,
    Shutdown,
    SnapshotCreated,
    SnapshotInstalled,
    StorageFailed,
    UpgradeKRaftVersion,
)
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    Request,
    Response,
    UpdateVoterRequest,
    UpdateVoterResponse,
    VoteResponse,
)
from quorate.raft.values import Batch, ControlState
from quorate.sim.scenario.names import CLUSTER_ID, key, listeners, voter
from raft.single import END, LAST_EPOCH, ROLES, Single, begin, fetch, vote

TABLE = Path(__file__).parent / "matrix.txt"
EPOCHS = {"lower": -1, "same": 0, "higher": 2}


def requests(epoch: int) -> dict[str, Request]:
    """One request of each kind in this epoch, from node 3."""
    leader = LeaderAndEpoch(3, epoch)
    last = min(LAST_EPOCH, epoch - 1)
    return {
        "Vote": vote(epoch, 3, end=END + 9, last_epoch=epoch - 1),
        "PreVote": vote(epoch, 3, end=END + 9, last_epoch=epoch - 1, pre_vote=True),
        "BeginQuorumEpoch": begin(epoch, 3),
        "EndQuorumEpoch": EndQuorumEpochRequest(CLUSTER_ID, leader, (key(1),)),
        "Fetch": fetch(END, last, epoch=epoch, replica=key(3), max_wait_ms=0),
        "FetchSnapshot": FetchSnapshotRequest(
            CLUSTER_ID, key(3), epoch, OffsetAndEpoch(3, 3), 0, 10
        ),
        "UpdateVoter": UpdateVoterRequest(CLUSTER_ID, epoch, key(3), listeners(3), 0, 1),
    }


def answers(leader: LeaderAndEpoch, error: ErrorCode) -> list[Response]:
    """Answers of every kind, whatever was asked."""
    where = listeners(max(leader.leader_id, 2))
    snapshot = OffsetAndEpoch(9, 3)
    batch = Batch(END, END, LAST_EPOCH, 10, (), "x")
    return [
        VoteResponse(error, leader, True, where),
        VoteResponse(error, leader, False, where),
        BeginQuorumEpochResponse(error, leader, where),
        EndQuorumEpochResponse(error, leader, where),
        FetchResponse(error, leader, 1, 0, leader_endpoints=where),
        FetchResponse(error, leader, 1, 0, batches=(batch,), leader_endpoints=where),
        FetchResponse(error, leader, 1, 0, OffsetAndEpoch(3, 3), leader_endpoints=where),
        FetchResponse(error, leader, 1, 0, None, snapshot, leader_endpoints=where),
        FetchSnapshotResponse(error, leader, snapshot, 5, 0, b"12345", where),
        AddVoterResponse(error),
        RemoveVoterResponse(error),
        UpdateVoterResponse(error, leader, where),
        ApiVersionsResponse(error, {"kraft.version": (0, 1)}),
    ]


def events() -> dict[str, Event]:
    """One event of each kind that is not a message."""
    snapshot = OffsetAndEpoch(3, LAST_EPOCH)
    return {
        "ConnectionLost(2)": ConnectionLost(2),
        "ConnectionLost(3)": ConnectionLost(3),
        "Propose": Propose(1, 5, 1, 1, "x"),
        "UpgradeKRaftVersion": UpgradeKRaftVersion(1, 1),
        "Persisted": Persisted(1),
        "SnapshotInstalled": SnapshotInstalled(1, snapshot, ControlState(1, (voter(1),))),
        "InstallFailed": InstallFailed(1, snapshot, "damaged"),
        "SnapshotCreated": SnapshotCreated(snapshot),
        "CleanTo": CleanTo(snapshot),
        "Resign": Resign(5),
        "Shutdown": Shutdown(),
        "StorageFailed": StorageFailed("broken"),
    }


def line(role: str, what: str, single: Single, answer: Response | None = None) -> str:
    after = f"{single.core.role} {single.core.epoch}"
    if single.last.faulted:
        after += " FAULTED"
    if single.last.stopped:
        after += " stopped"
    response = ""
    if answer is not None:
        response = answer.error.name
        if isinstance(answer, VoteResponse) and not answer.error:
            response = "granted" if answer.granted else "refused"
    return f"{role:13} {what:28} {after:24} {response}".rstrip()


def lines() -> list[str]:
    lines = []
    for role, make in ROLES.items():
        for name, shift in EPOCHS.items():
            for kind in requests(5):
                single = make()
                request = requests(single.core.epoch + shift)[kind]
                lines.append(line(role, f"{kind} {name}", single, single.ask(request)))
        for request in (
            AddVoterRequest(CLUSTER_ID, key(4), listeners(4)),
            RemoveVoterRequest(CLUSTER_ID, key(3)),
            ApiVersionsRequest(),
        ):
            single = make()
            lines.append(line(role, type(request).__name__, single, single.ask(request)))
        for name in events():
            single = make()
            single.step(events()[name])
            lines.append(line(role, name, single))
    return lines


def test_the_table() -> None:
    now = "\n".join(lines()) + "\n"
    if os.environ.get("QUORATE_REWRITE"):
        TABLE.write_text(now)
    assert now == TABLE.read_text()


def test_only_a_failed_disk_faults() -> None:
    faulted = [text for text in TABLE.read_text().splitlines() if "FAULTED" in text]
    assert len(faulted) == len(ROLES)
    assert all("StorageFailed" in text for text in faulted)


ERRORS = [
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.SNAPSHOT_NOT_FOUND,
    ErrorCode.POSITION_OUT_OF_RANGE,
    ErrorCode.INVALID_VOTER_KEY,
]


@pytest.mark.parametrize("role", list(ROLES))
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.name)
def test_no_answer_breaks_a_replica(role: str, error: ErrorCode) -> None:
    """Every answer, right or wrong kind, with every error, any leader and any epoch."""
    for shift in EPOCHS.values():
        for leader_id in (-1, 1, 2, 3, 9):
            single = ROLES[role]()
            leader = LeaderAndEpoch(leader_id, single.core.epoch + shift)
            for response in answers(leader, error):
                flights = list(single.core.state.requests.by_correlation)
                ready = single.step(*(Answered(c, response) for c in flights))
                assert ready.faulted is None, (response, ready.faulted)
                single.wait(25)
                assert single.last.faulted is None


@pytest.mark.parametrize("role", list(ROLES))
@pytest.mark.parametrize("failure", list(SendFailure))
def test_no_failed_send_breaks_a_replica(role: str, failure: SendFailure) -> None:
    single = ROLES[role]()
    for send in list(single.sends):
        assert single.step(SendFailed(send.correlation, failure)).faulted is None
    assert single.wait(5000).faulted is None


@pytest.mark.parametrize("role", list(ROLES))
@pytest.mark.parametrize("shift", list(EPOCHS.values()))
def test_every_request_is_answered_before_its_deadline(role: str, shift: int) -> None:
    single = ROLES[role]()
    single.slow = True
    asked = requests(single.core.epoch + shift)
    single.step(*(Received(100 + i, request) for i, request in enumerate(asked.values())))
    single.step(Persisted(1_000_000))
    single.step(Persisted(1_000_000))
    missing = [kind for i, kind in enumerate(asked) if 100 + i not in single.replies]
    assert missing == []
