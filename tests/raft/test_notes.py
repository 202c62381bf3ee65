"""The messages of the core to an operator, and their severity."""

from __future__ import annotations

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, LeaderAndEpoch, Listener, OffsetAndEpoch, uuid_to_text
from quorate.base.notes import Fault, Warn
from quorate.raft.inputs import StorageFailed
from quorate.raft.messages import FetchRequest, FetchResponse
from quorate.raft.values import ControlState, ElectionState, Voter, Voters
from quorate.sim.scenario.names import CLUSTER_ID, directory, key, listeners, voter
from raft.single import END, EPOCH, LAST_EPOCH, Single, begin, follower, recovered

MOVED = Voter(key(1, 1), listeners(1), 0, 1)
"""Node 1 with another disk."""


def test_faults_and_warnings_are_distinguished_from_information() -> None:
    single = follower()
    assert not any(isinstance(note, Warn | Fault) for note in single.notes)
    single.step(StorageFailed("no space left"))
    assert single.notes[-1] == "storage failed: no space left"
    assert isinstance(single.notes[-1], Fault)


def test_a_peer_of_another_cluster_is_explained() -> None:
    single = follower()
    answer = FetchResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, LeaderAndEpoch(-1, -1))
    single.answer(FetchRequest, answer)
    assert isinstance(single.notes[-1], Warn)
    assert f"node 2 is of another cluster than {CLUSTER_ID}: check" in single.notes[-1]


def test_a_lost_vote_is_a_warning() -> None:
    single = Single(election=ElectionState(LAST_EPOCH - 1))
    assert isinstance(single.notes[0], Warn) and "log's taken" in single.notes[0]


def test_another_directory_id_in_the_voter_set_is_reported_at_start() -> None:
    control = ControlState(1, tuple(MOVED if i == 1 else voter(i) for i in (1, 2, 3)))
    single = Single(log=recovered(snapshot_control=control))
    theirs, ours = uuid_to_text(directory(1, 1)), uuid_to_text(directory(1))
    (said,) = (note for note in single.notes if isinstance(note, Warn))
    assert f"holds node 1 with directory {theirs}, but this node has {ours}" in said


def test_a_voter_of_a_static_quorum_has_no_directory_id_to_differ() -> None:
    static = tuple(voter(i, known=False) for i in (1, 2, 3))
    single = Single(log=recovered(snapshots=(), snapshot_control=None), static_voters=static)
    assert not any(isinstance(note, Warn) for note in single.notes)


def test_another_directory_id_in_the_voter_set_is_reported_when_learned() -> None:
    changed = Voters((MOVED, voter(2), voter(3)))
    single = Single(log=recovered(control_records=((4, changed),)))
    assert any("holds node 1 with directory" in note for note in single.notes)


# -- what a peer may cause as often as it likes ---------------------------------------------------
MINUTE_MS = 60_000


@pytest.mark.parametrize(
    ("leader", "said"),
    [
        (1, "a message names this node as the leader"),
        (3, "names 3 at host3:9003: ignored"),
    ],
)
def test_a_contradicting_leader_is_reported_once_a_minute(leader: int, said: str) -> None:
    single = follower()
    for _ in range(3):
        single.ask(begin(leader=leader))
    assert sum(said in note for note in single.notes) == 1
    single.now += MINUTE_MS
    single.ask(begin(leader=leader))
    assert sum(said in note for note in single.notes) == 2


def test_a_peer_of_another_cluster_is_reported_once_a_minute() -> None:
    single = follower()
    answer = FetchResponse(ErrorCode.INCONSISTENT_CLUSTER_ID, LeaderAndEpoch(-1, -1))
    for _ in range(3):
        single.now += 1_500
        single.step()
        single.answer(FetchRequest, answer)
    assert sum("of another cluster" in note for note in single.notes) == 1


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ErrorCode.INVALID_REQUEST, "node 2 refuses Fetch: INVALID_REQUEST"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "node 2 refuses Fetch: CLUSTER_AUTHORIZATION_"),
        (
            ErrorCode.INVALID_VOTER_KEY,
            f"the node at host2:9002 has another directory id than voter {key(2)}",
        ),
    ],
)
def test_a_refusal_names_the_replica_and_the_request(error: ErrorCode, said: str) -> None:
    single = follower()
    single.answer(FetchRequest, FetchResponse(error, LeaderAndEpoch(2, EPOCH)))
    assert said in single.notes[-1]
    assert isinstance(single.notes[-1], Warn)


@pytest.mark.parametrize(
    ("contact", "than"),
    [
        (Address("host2", 9002), f"than voter {key(2)}"),
        (Address("elsewhere", 7), "than the voters of this quorum"),
    ],
)
def test_a_foreign_node_that_was_asked_by_address_is_named_by_it(
    contact: Address, than: str
) -> None:
    """A replica without a leader asks its bootstrap servers; one of another quorum refuses."""
    single = Single(4, bootstrap_servers=(contact,))
    while single.sent(FetchRequest, -2) is None:
        single.wait(2_000)
    single.answer(FetchRequest, FetchResponse(ErrorCode.INVALID_VOTER_KEY), -2)
    assert f"the node at {contact} has another directory id {than}" in single.notes


def test_a_leader_that_asks_to_drop_committed_records_is_named_without_a_key() -> None:
    """It may be another replica than the voter of its id."""
    single = follower()
    batch = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), high_watermark=END)
    single.answer(FetchRequest, batch)
    diverging = OffsetAndEpoch(0, 1)
    refused = FetchResponse(ErrorCode.NONE, LeaderAndEpoch(2, EPOCH), diverging=diverging)
    single.answer(FetchRequest, refused)
    assert any("leader 2 at host2:9002 asks to truncate to" in note for note in single.notes)


def test_a_voter_without_an_address_under_our_listener_is_named() -> None:
    """controller.listener.names begins with one that the others lack: no node can be asked."""
    single = Single(listeners=(Listener("CTRL2", "here", 9), *listeners(1)))
    for _ in range(5):
        single.wait(2_000)
    about_2, about_3 = (note for note in single.notes if isinstance(note, Warn))
    assert "voter 2 has no address under CTRL2" in about_2
    assert "but under CONTROLLER: name first" in about_3
