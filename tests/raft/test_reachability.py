"""A leader watches whether somebody answers at the endpoints of the voters (decision 14)."""

from __future__ import annotations

import pytest

from narrow import not_none
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, LeaderAndEpoch, Listener
from quorate.base.notes import Warn
from quorate.raft.inputs import SendFailed, SendFailure, UpgradeKRaftVersion
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    VoteRequest,
)
from quorate.raft.ready import Append, Send
from quorate.raft.values import Voters
from quorate.sim.scenario.names import key
from raft.single import EPOCH, Single, candidate, fetch, granted
from raft.voter_scenarios import START, TIMED_OUT, committed, remove, static, update

LEADER = LeaderAndEpoch(1, EPOCH + 1)


def place(port: int) -> tuple[Listener, ...]:
    return (Listener("CONTROLLER", "moved", port),)


def move(single: Single, voter_id: int, port: int) -> ErrorCode:
    """The voter reports its new endpoint, and all voters have the records of the leader."""
    answer = single.ask(update(voter=key(voter_id), listeners=place(port)))
    assert answer is not None
    keep_fetching(single)
    return answer.error


def keep_fetching(single: Single) -> None:
    end = single.core.log_end.offset
    for voter_id in (2, 3):
        single.ask(fetch(end, EPOCH + 1, max_wait_ms=0, replica=key(voter_id)))


def probe(single: Single, voter_id: int, port: int | None) -> None:
    """Let a period pass; the newest BeginQuorumEpoch to this voter went to the port (None: none)."""
    sent = single.sent(BeginQuorumEpochRequest, voter_id)
    for _ in range(3):
        single.wait(400)
        keep_fetching(single)
    now = single.sent(BeginQuorumEpochRequest, voter_id)
    if port is None:
        assert now is sent
    else:
        assert now is not None and now is not sent
        assert now.address == Address("moved", port)


def fails(
    single: Single, voter_id: int, failure: SendFailure = SendFailure.DISCONNECTED
) -> list[str]:
    """The warnings when no node answers the newest BeginQuorumEpoch."""
    send = single.sent(BeginQuorumEpochRequest, voter_id)
    assert send is not None
    notes = single.step(SendFailed(send.correlation, failure)).notes
    return [note for note in notes if isinstance(note, Warn)]


def answers(single: Single, voter_id: int, error: ErrorCode = ErrorCode.NONE) -> list[str]:
    ready = single.answer(
        BeginQuorumEpochRequest, BeginQuorumEpochResponse(error, LEADER), to=voter_id
    )
    return [note for note in ready.notes if isinstance(note, Warn)]


def warnings(single: Single) -> list[str]:
    return [note for note in single.notes if isinstance(note, Warn)]


def reachable() -> Single:
    """The leader whose voters 2 and 3 fetch, and answered at their endpoints."""
    single = committed()
    for voter_id in (2, 3):
        answers(single, voter_id)
    keep_fetching(single)
    return single


@pytest.mark.parametrize("failure", [SendFailure.DISCONNECTED, SendFailure.TIMED_OUT])
def test_an_unreachable_new_endpoint_is_a_warning(failure):
    single = reachable()
    assert move(single, 2, 7) == ErrorCode.NONE
    probe(single, 2, 7)
    [warning] = fails(single, 2, failure)
    assert "nobody answers" in warning
    assert "at moved:7, the endpoint of voter 2-" in warning and "advertised.listeners" in warning


def test_another_node_at_the_new_endpoint_is_a_warning():
    single = reachable()
    assert move(single, 2, 7) == ErrorCode.NONE
    probe(single, 2, 7)
    warning, _ = answers(single, 2, ErrorCode.INVALID_VOTER_KEY)
    assert warning.startswith("another node answers at moved:7")


def test_a_new_endpoint_that_answers_is_tried_once():
    single = reachable()
    assert move(single, 2, 7) == ErrorCode.NONE
    probe(single, 2, 7)
    assert answers(single, 2) == []
    probe(single, 2, None)
    assert move(single, 3, 8) == ErrorCode.NONE


def test_a_node_that_knows_no_begin_quorum_epoch_is_reachable():
    single = reachable()
    assert move(single, 2, 7) == ErrorCode.NONE
    probe(single, 2, 7)
    assert fails(single, 2, SendFailure.UNSUPPORTED_VERSION) == []
    assert move(single, 3, 8) == ErrorCode.NONE


@pytest.mark.parametrize("is_known", [True, False])
def test_a_second_wrong_endpoint_is_refused_while_the_first_is_unreachable(is_known):
    """Also before the first request to the first endpoint has failed."""
    single = reachable()
    assert move(single, 2, 7) == ErrorCode.NONE
    if is_known:
        probe(single, 2, 7)
        fails(single, 2)
    before = len(warnings(single))
    assert move(single, 3, 8) == TIMED_OUT
    assert len(warnings(single)) == before, "somebody may answer at the new endpoint"
    for _ in range(3):
        probe(single, 3, 8)
        fails(single, 3)
        fails(single, 2)
        assert move(single, 3, 8) == TIMED_OUT
    [warning] = [text for text in warnings(single) if "is not written" in text]
    assert "the endpoint moved:8 of voter 3-" in warning
    assert "nobody answers at moved:8, " in warning and "at moved:7 of voter 2" in warning
    assert ("advertised.listeners of voter 3 and voter 2," in warning) is is_known
    assert not_none(single.core.voters.voters)[2].listeners != place(8)
    # the first is corrected, and answers: the second is written
    assert move(single, 2, 9) == ErrorCode.NONE
    probe(single, 2, 9)
    answers(single, 2)
    assert move(single, 3, 8) == ErrorCode.NONE


def test_a_second_endpoint_that_answers_is_written_while_the_first_is_unreachable():
    single = reachable()
    move(single, 2, 7)
    assert move(single, 3, 8) == TIMED_OUT
    probe(single, 3, 8)
    answers(single, 3)
    assert move(single, 3, 8) == ErrorCode.NONE
    probe(single, 3, None)


def test_a_change_of_versions_alone_is_written_while_an_endpoint_is_unreachable():
    single = reachable()
    move(single, 2, 7)
    same = not_none(single.core.voters.voters)[2].listeners
    answer = single.ask(update(voter=key(3), listeners=same, max_kraft_version=2))
    assert answer is not None and answer.error == ErrorCode.NONE


def test_an_abandoned_endpoint_is_not_probed_again():
    single = reachable()
    move(single, 2, 7)
    move(single, 3, 8)
    probe(single, 3, 8)
    fails(single, 3)
    for _ in range(12):
        single.wait(1000)
        keep_fetching(single)
    probe(single, 3, None)


def begins(single: Single, voter_id: int) -> Send:
    """Let time pass, the voters fetching, until the leader sends the voter one more request."""
    before = single.sent(BeginQuorumEpochRequest, voter_id)
    for _ in range(20):
        single.wait(100)
        keep_fetching(single)
        sent = single.sent(BeginQuorumEpochRequest, voter_id)
        if sent is not None and sent is not before:
            return sent
    raise AssertionError(f"no BeginQuorumEpoch to {voter_id}")


def test_a_new_leader_learns_from_its_first_requests_which_voters_cannot_be_reached():
    single = committed()
    answers(single, 3)
    assert fails(single, 2) == [], "it may have ended since its last fetch"
    begins(single, 2)
    [warning] = fails(single, 2)
    assert "the endpoint of voter 2-" in warning, (
        "it has fetched since the first failure, so it is up"
    )
    assert move(single, 3, 8) == TIMED_OUT


def test_a_new_leader_tries_a_voter_that_fetches_before_its_first_request():
    """The Fetch comes while the election is not durable yet."""
    single = candidate()
    single.slow = True
    single.answer(VoteRequest, granted(EPOCH + 1), to=2)
    assert single.core.role == "leader" and single.sent(BeginQuorumEpochRequest, 3) is None
    single.ask(fetch(START - 1, EPOCH + 1, max_wait_ms=0, replica=key(3)))
    single.slow = False
    single.persist()
    begins(single, 3)
    fails(single, 3)
    begins(single, 3)
    [warning] = fails(single, 3)
    assert "the endpoint of voter 3-" in warning
    assert move(single, 2, 8) == TIMED_OUT


def test_a_voter_that_restarts_is_not_warned_of():
    single = committed()
    answers(single, 3)
    assert fails(single, 2) == []
    # It is back: it fetches again, and answers the next request.
    begins(single, 2)
    assert answers(single, 2) == []
    assert not [note for note in single.notes if isinstance(note, Warn)]


def test_a_request_from_before_the_voter_was_back_is_no_sign():
    """The host of the voter drops packets for a while. The request fails when the voter fetches again."""
    single = committed()
    answers(single, 3)
    assert fails(single, 2) == []
    for _ in range(4):
        single.wait(500)
        single.ask(fetch(START, EPOCH + 1, max_wait_ms=0, replica=key(3)))
    keep_fetching(single)
    assert fails(single, 2, SendFailure.TIMED_OUT) == []
    begins(single, 2)
    assert answers(single, 2) == []


def test_a_voter_that_does_not_fetch_is_down_and_not_warned_of():
    single = committed()
    fails(single, 3)
    for _ in range(8):
        single.wait(700)
        single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
        if (send := single.sent(BeginQuorumEpochRequest, 3)) is not None:
            notes = single.step(SendFailed(send.correlation, SendFailure.DISCONNECTED)).notes
            assert not any(isinstance(note, Warn) for note in notes)


def test_a_voter_that_is_down_is_no_reason_to_warn_of_another_one_that_moves():
    """Its endpoint is right: the move waits until somebody answers at the new one."""
    single = committed()
    fails(single, 3)
    answers(single, 2)
    assert move_alone(single, 2, 7) == TIMED_OUT
    answers(single, 2)
    assert move_alone(single, 2, 7) == ErrorCode.NONE
    assert warnings(single) == []


def test_the_advice_names_no_voter_that_is_merely_down():
    single = committed()
    fails(single, 3)
    answers(single, 2)
    assert move_alone(single, 2, 7) == TIMED_OUT
    fails(single, 2)
    assert move_alone(single, 2, 7) == TIMED_OUT
    [warning] = warnings(single)
    assert "nobody answers at moved:7, nor at " in warning
    assert "of voter 3, which does not fetch: it is down or cut off" in warning
    assert "Correct advertised.listeners of voter 2, and restart" in warning


def test_an_endpoint_that_was_not_asked_yet_is_named_as_such():
    single = committed()
    answers(single, 2)
    answers(single, 3)
    assert move(single, 3, 7) == ErrorCode.NONE
    assert move_alone(single, 2, 8) == TIMED_OUT
    fails(single, 2)
    assert move_alone(single, 2, 8) == TIMED_OUT
    [warning] = warnings(single)
    assert "nobody answers at moved:8, nobody has answered yet at moved:7 of voter 3" in warning


def move_alone(single: Single, voter_id: int, port: int) -> ErrorCode:
    """The voter reports its new endpoint while only it fetches; one request goes there."""
    answer = single.ask(update(voter=key(voter_id), listeners=place(port)))
    assert answer is not None
    for _ in range(4):
        single.wait(700)
        end = single.core.log_end.offset
        single.ask(fetch(end, EPOCH + 1, max_wait_ms=0, replica=key(voter_id)))
    return answer.error


def test_a_failure_of_the_old_endpoint_does_not_count_for_the_new_one():
    single = committed()
    assert move(single, 2, 7) == ErrorCode.NONE
    assert fails(single, 2) == [], "it was sent to the old one"
    probe(single, 2, 7)
    assert fails(single, 2) != []


def test_a_removed_voter_blocks_nothing():
    single = reachable()
    move(single, 2, 7)
    single.ask(remove(voter=key(2)))
    keep_fetching(single)
    assert move(single, 3, 8) == ErrorCode.NONE


def test_the_upgrade_to_version_1_tries_the_endpoints_that_it_writes():
    single = static()
    answers(single, 2)
    for voter_id in (2, 3):
        single.ask(update(voter=key(voter_id, 0), listeners=place(voter_id)))
    ready = single.step(UpgradeKRaftVersion(1, 1))
    [append] = [write for write in ready.writes if isinstance(write, Append)]
    assert any(isinstance(record, Voters) for record in append.batches[0].control)
    keep_fetching(single)
    probe(single, 2, 2)
    [warning] = fails(single, 2)
    assert f"at moved:2, the endpoint of voter {key(2)} in" in warning
