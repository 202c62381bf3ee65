"""One test for each check of the voter changes (reference 5.9), in its order, with its message."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.base.ids import (
    Listener,
    ReplicaKey,
    Uuid,
)
from quorate.raft.inputs import (
    Propose,
    Resign,
    SendFailed,
    SendFailure,
    Shutdown,
)
from quorate.raft.messages import (
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveVoterResponse,
)
from quorate.raft.values import Voters
from quorate.sim.scenario.names import key, listeners, voter
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    Single,
    fetch,
    follower,
    recovered,
)
from raft.voter_scenarios import (
    NAMELESS,
    NEW,
    SET,
    START,
    TIMED_OUT,
    TWICE,
    add,
    appended,
    committed,
    led,
    remove,
    static,
    update,
    versions,
)


# -- AddRaftVoter --------------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "addVoterWithMissingDefaultListener",
    "addVoterWithoutFencedPreviousLeaders",
    "addVoterWithKraftVersion0",
    "addVoterWithExistingVoter",
    "addVoterWithMissingDirectoryId",
)
@pytest.mark.parametrize(
    ("make", "changes", "error", "text"),
    [
        (committed, {"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID, 'The given id "x"'),
        (follower, {}, ErrorCode.NOT_LEADER_OR_FOLLOWER, None),
        (committed, {"voter": ReplicaKey(-1, Uuid(b"x" * 16))}, ErrorCode.INVALID_REQUEST, "valid"),
        (committed, {"voter": ReplicaKey(4)}, ErrorCode.INVALID_REQUEST, "valid voter"),
        (
            committed,
            {"listeners": (Listener("OTHER", "h", 1),)},
            ErrorCode.INVALID_REQUEST,
            "default listener ListenerName(CONTROLLER)",
        ),
        (committed, {"listeners": NAMELESS}, ErrorCode.INVALID_REQUEST, "listener without a name"),
        (committed, {"listeners": TWICE}, ErrorCode.INVALID_REQUEST, "two listeners of one name"),
        (led, {}, TIMED_OUT, "establish HWM and fence"),
        (static, {}, ErrorCode.UNSUPPORTED_VERSION, "kraft.version feature is 0"),
        (committed, {"voter": key(2)}, ErrorCode.DUPLICATE_VOTER, "already part of the set"),
        (committed, {"voter": key(2, 1)}, ErrorCode.DUPLICATE_VOTER, "already part of the set"),
    ],
)
def test_add_is_refused(make, changes: dict[str, object], error: ErrorCode, text) -> None:
    answer = make().ask(add(**changes))
    assert isinstance(answer, AddVoterResponse)
    assert answer.error == error
    assert answer.message is None if text is None else text in (answer.message or "")


def test_one_change_at_a_time() -> None:
    single = committed()
    assert single.ask(add()) is None
    for request in (add(), remove()):
        answer = single.ask(request)
        assert isinstance(answer, AddVoterResponse | RemoveVoterResponse)
        assert answer.error == TIMED_OUT and "previous voter change" in (answer.message or "")
    assert single.ask(update()).error == TIMED_OUT  # type: ignore[union-attr]


def test_the_last_change_must_be_committed() -> None:
    single = committed()
    single.ask(update())
    for request in (add(), remove()):
        answer = single.ask(request)
        assert isinstance(answer, AddVoterResponse | RemoveVoterResponse)
        assert "latest voter change at Optional[6] with HWM 6" in (answer.message or "")


def test_the_new_voter_is_asked_at_its_default_listener() -> None:
    single = committed()
    single.ask(add())
    send = single.sent(ApiVersionsRequest)
    assert send is not None and (send.to, send.address) == (4, listeners(4)[0].address)


@pytest.mark.parametrize(
    "fail",
    [
        lambda s, send: s.step(SendFailed(send.correlation, SendFailure.DISCONNECTED)),
        lambda s, send: s.step(SendFailed(send.correlation, SendFailure.TIMED_OUT)),
        lambda s, send: s.answer(
            ApiVersionsRequest, ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
        ),
        lambda s, send: s.wait(2000),
    ],
)
def test_a_new_voter_that_does_not_answer(fail) -> None:
    single = committed()
    single.ask(add())
    asked = single.asked
    fail(single, single.sent(ApiVersionsRequest))
    assert single.replies[asked].error == TIMED_OUT


@kafka_scenario("KafkaRaftClientReconfigTest", "addVoterInvalidFeatureVersion")
@pytest.mark.parametrize(
    ("reported", "text"),
    [
        ({"kraft.version": (0, 0)}, "(min: 0, max: 0 "),
        ({"kraft.version": (2, 3)}, "(min: 2, max: 3 "),
        ({"kraft.version": (0, -1)}, "(min: 0, max: -1 "),
        ({"kraft.version": (-1, 1)}, "(min: -1, max: 1 "),
        ({}, "(min: 0, max: 0) "),
    ],
)
def test_a_new_voter_must_support_the_version(
    reported: dict[str, tuple[int, int]], text: str
) -> None:
    """In Kafka's words, which leave the parenthesis open (`AddVoterHandler`)."""
    single = committed()
    single.ask(add())
    single.answer(ApiVersionsRequest, ApiVersionsResponse(ErrorCode.NONE, reported))
    answer = single.replies[single.asked]
    assert isinstance(answer, AddVoterResponse)
    assert answer.error == ErrorCode.INVALID_REQUEST
    assert (answer.message or "").endswith(
        f" since the kraft.version range {text}doesn't support the finalized version 1"
    )


@kafka_scenario("KafkaRaftClientReconfigTest", "addVoterWithLaggingNewVoter")
@pytest.mark.parametrize(
    ("prepare", "fits"),
    [
        (lambda s: None, False),
        (lambda s: s.ask(fetch(END, LAST_EPOCH, replica=key(4))), False),
        (lambda s: s.ask(fetch(START, EPOCH + 1, replica=key(4), max_wait_ms=0)), True),
        (lambda s: s.ask(fetch(START, EPOCH + 1, replica=key(4, 1), max_wait_ms=0)), False),
    ],
)
def test_a_new_voter_must_have_caught_up(prepare, fits: bool) -> None:
    single = led()
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    prepare(single)
    single.ask(add())
    asked = single.asked
    ready = versions(single)
    assert (ready.writes != ()) is fits
    if not fits:
        answer = single.replies[asked]
        assert isinstance(answer, AddVoterResponse) and answer.error == TIMED_OUT
        assert "lagging behind" in (answer.message or "")


def test_caught_up_is_within_the_last_hour() -> None:
    single = committed()
    for _ in range(3600):
        single.now += 1000
        single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    single.ask(add())
    versions(single)
    assert "lagging" in (single.replies[single.asked].message or "")  # type: ignore[union-attr]


def test_added_at_once_answered_at_commit() -> None:
    single = committed()
    single.ask(add())
    asked = single.asked
    ready = versions(single)
    assert appended(ready) == (*SET, NEW)
    assert single.core.voters.voters == (*SET, NEW)
    assert asked not in single.replies
    single.ask(fetch(START + 1, EPOCH + 1, replica=key(2), max_wait_ms=0))
    assert asked not in single.replies
    single.ask(fetch(START + 1, EPOCH + 1, replica=key(4), max_wait_ms=0))
    assert single.replies[asked] == AddVoterResponse(ErrorCode.NONE)


def test_the_high_watermark_does_not_move_while_the_new_set_has_less() -> None:
    single = committed()
    single.step(Propose(0, EPOCH + 1, 2, 1, "x"))
    single.ask(fetch(START + 2, EPOCH + 1, max_wait_ms=0))
    assert single.core.high_watermark == START + 2
    single.ask(add())
    ready = versions(single)
    assert ready.high_watermark is None
    assert single.core.high_watermark == START + 2


def test_acknowledged_with_the_append() -> None:
    single = committed()
    single.ask(add(ack_when_committed=False))
    versions(single)
    assert single.replies[single.asked] == AddVoterResponse(ErrorCode.NONE)
    assert single.ask(remove()).error == TIMED_OUT  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda s: s.step(Resign(EPOCH + 1)), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (lambda s: s.step(Shutdown()), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (lambda s: s.wait(2000), TIMED_OUT),
    ],
)
@pytest.mark.parametrize("asking", [True, False])
def test_a_change_that_is_not_committed(end, error: ErrorCode, asking: bool) -> None:
    single = committed()
    single.ask(add())
    asked = single.asked
    if not asking:
        versions(single)
    end(single)
    assert error.message is not None
    assert single.replies[asked] == AddVoterResponse(error, error.message)


# -- RemoveRaftVoter -----------------------------------------------------------------------------
@kafka_scenario(
    "KafkaRaftClientReconfigTest",
    "removeVoterWithoutFencedPreviousLeaders",
    "removeVoterWithKraftVersion0",
    "removeVoterWithNoneVoter",
    "removeVoterWithNoneVoterId",
)
@pytest.mark.parametrize(
    ("make", "changes", "error", "text"),
    [
        (committed, {"cluster_id": "x"}, ErrorCode.INCONSISTENT_CLUSTER_ID, 'The given id "x"'),
        (follower, {}, ErrorCode.NOT_LEADER_OR_FOLLOWER, None),
        (committed, {"voter": ReplicaKey(3)}, ErrorCode.INVALID_REQUEST, "valid voter"),
        (led, {}, TIMED_OUT, "establish HWM"),
        (static, {}, ErrorCode.UNSUPPORTED_VERSION, "removing voter"),
        (committed, {"voter": key(9)}, ErrorCode.VOTER_NOT_FOUND, "Cannot remove voter"),
        (committed, {"voter": key(3, 1)}, ErrorCode.VOTER_NOT_FOUND, "Cannot remove voter"),
    ],
)
def test_remove_is_refused(make, changes: dict[str, object], error: ErrorCode, text) -> None:
    answer = make().ask(remove(**changes))
    assert isinstance(answer, RemoveVoterResponse)
    assert answer.error == error
    assert answer.message is None if text is None else text in (answer.message or "")


@kafka_scenario("KafkaRaftClientReconfigTest", "removeVoterToEmptyVoterSet")
def test_the_last_voter_stays() -> None:
    single = Single(log=recovered(control_records=((4, Voters((voter(1),))),)))
    assert single.core.role == "leader"
    assert single.ask(remove(voter=key(1))).error == ErrorCode.VOTER_NOT_FOUND  # type: ignore[union-attr]


def test_removed_at_once_answered_at_commit() -> None:
    single = committed()
    single.ask(remove())
    asked = single.asked
    assert appended(single.last) == SET[:2]
    assert asked not in single.replies
    single.ask(fetch(START + 1, EPOCH + 1, max_wait_ms=0))
    assert single.replies[asked] == RemoveVoterResponse(ErrorCode.NONE)


@pytest.mark.parametrize("late", [False, True])
def test_a_leader_that_removed_itself_resigns_at_commit(late: bool) -> None:
    single = committed()
    single.ask(remove(voter=key(1)))
    if late:
        single.wait(2000)
        single.ask(fetch(START, EPOCH + 1, replica=key(3), max_wait_ms=0))
    single.ask(fetch(START + 1, EPOCH + 1, replica=key(2), max_wait_ms=0))
    assert single.core.role == "leader"
    single.ask(fetch(START + 1, EPOCH + 1, replica=key(3), max_wait_ms=0))
    assert single.core.role == "resigned"
