"""LeaderStateTest: the replicas that count for the high watermark and for check quorum."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.raft.inputs import Propose, UpgradeKRaftVersion
from quorate.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    VoteResponse,
)
from quorate.raft.progress import ProgressTracker
from quorate.raft.ready import Accepted, Refused
from quorate.raft.values import ControlState, KRaftVersion, Voters
from quorate.raft.voters import VoterSet
from quorate.sim.scenario.names import key, listeners, voter
from raft.conformance.world import (
    OWN,
    SET,
    START,
    STATIC,
    acknowledge,
    add,
    alone,
    committed,
    control_records,
    led,
    remove,
    static,
    update,
    versions,
)
from raft.single import END, EPOCH, LAST_EPOCH, Single, candidate, fetch, leader, vote


def propose(single: Single, count: int = 1) -> None:
    single.step(Propose(0, single.core.epoch, count, count, "x"))


def book(single: Single) -> ProgressTracker:
    return single.core.state.role.progress  # type: ignore[union-attr]


# -- acknowledging -------------------------------------------------------------------------------
@kafka_scenario("LeaderStateTest", "followerAcknowledgement")
def test_follower_acknowledgement() -> None:
    single = led()
    assert not book(single).voters[2].acknowledged
    acknowledge(single, 2)
    assert [book(single).voters[i].acknowledged for i in (1, 2, 3)] == [True, True, False]
    answer = BeginQuorumEpochResponse(ErrorCode.NONE, OWN)
    single.answer(BeginQuorumEpochRequest, answer, to=3)
    assert [book(single).voters[i].acknowledged for i in (1, 2, 3)] == [True, True, True]
    assert single.core.high_watermark == START, "only the Fetch shows how far"


@kafka_scenario("LeaderStateTest", "nonFollowerAcknowledgement")
def test_non_follower_acknowledgement() -> None:
    single = led()
    acknowledge(single, 9)
    assert not any(book(single).voters[i].acknowledged for i in (2, 3))
    assert single.core.high_watermark == -1


# -- the high watermark --------------------------------------------------------------------------
@kafka_scenario("LeaderStateTest", "updateHighWatermarkQuorumSizeOne")
def test_update_high_watermark_quorum_size_one() -> None:
    """Its own log is the majority: what is durable of it, from the epoch's first record on."""
    single = alone(slow=True)
    while single.core.role != "leader":
        single.persist()
    assert single.core.log_end.offset > END and single.core.high_watermark == -1
    single.persist()
    single.slow = False
    end = single.core.log_end.offset
    assert single.core.high_watermark == end
    propose(single, 3)
    assert single.core.high_watermark == end + 3


@kafka_scenario(
    "LeaderStateTest", "updateHighWatermarkQuorumSizeTwo", "updateHighWatermarkQuorumSizeThree"
)
@pytest.mark.parametrize(
    ("voters", "needed"),
    [(SET[:2], [2]), (SET, [2]), ((*SET, voter(4)), [2, 3]), ((*SET, voter(4), voter(5)), [2, 3])],
    ids=["two", "three", "four", "five"],
)
def test_update_high_watermark_quorum_size(voters, needed: list[int]) -> None:
    """Sizes Two and Three of Kafka, and beyond; only with a record of the own epoch."""
    single = led(voters)
    single.ask(fetch(START - 1, LAST_EPOCH, replica=key(needed[-1]), max_wait_ms=0))
    for node_id in needed:
        assert single.core.high_watermark == -1
        acknowledge(single, node_id)
    assert single.core.high_watermark == START
    propose(single)
    propose(single, 3)
    for end in (START + 1, START + 4):
        for node_id in needed:
            assert single.core.high_watermark < end
            acknowledge(single, node_id, end)
        assert single.core.high_watermark == end
    acknowledge(single, needed[0])
    assert single.core.high_watermark == START + 4


@kafka_scenario("LeaderStateTest", "idempotentEndOffsetUpdate")
def test_idempotent_end_offset_update() -> None:
    single = led()
    for _ in range(2):
        acknowledge(single, 2)
    assert single.core.high_watermark == START
    assert single.last.high_watermark is None, "reported once"


@kafka_scenario("LeaderStateTest", "nonMonotonicLocalEndOffsetUpdate")
def test_non_monotonic_local_end_offset_update() -> None:
    """A leader's log never gets shorter: its own row only grows."""
    single = committed(slow=False)
    own = book(single).own
    ends = []
    for _ in range(3):
        propose(single)
        ends.append(own.end_offset)
    assert ends == [START + 1, START + 2, START + 3]


@kafka_scenario("LeaderStateTest", "nonMonotonicHighWatermarkUpdate")
def test_non_monotonic_high_watermark_update() -> None:
    single = led()
    propose(single)
    acknowledge(single, 2)
    single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    assert book(single).voters[2].end_offset == START
    assert single.core.high_watermark == START + 1


@kafka_scenario("LeaderStateTest", "highWatermarkDoesIncreaseFromNewVoter")
def test_high_watermark_does_increase_from_new_voter() -> None:
    single = committed(SET[:2])
    propose(single, 5)
    acknowledge(single, 4)
    assert single.core.high_watermark == START
    single.ask(add())
    versions(single)
    assert single.core.high_watermark == START + 5, "the new voter has it, and makes a majority"
    acknowledge(single, 4)
    assert single.core.high_watermark == START + 6


@kafka_scenario("LeaderStateTest", "highWatermarkDoesNotDecreaseFromNewVoter")
def test_high_watermark_does_not_decrease_from_new_voter() -> None:
    single = committed()
    propose(single, 5)
    acknowledge(single, 2)
    assert single.core.high_watermark == START + 5
    single.ask(add())
    versions(single)
    assert book(single).majority_end() == START
    assert single.core.high_watermark == START + 5
    acknowledge(single, 4, START + 3)
    acknowledge(single, 3)
    assert single.core.high_watermark == START + 5
    acknowledge(single, 2)
    assert single.core.high_watermark == START + 6


@kafka_scenario("LeaderStateTest", "updateHighWatermarkRemovingFollowerFromVoterStates")
def test_update_high_watermark_removing_follower_from_voter_states() -> None:
    single = committed()
    acknowledge(single, 3)
    propose(single, 3)
    acknowledge(single, 2, START + 1)
    assert single.core.high_watermark == START + 1
    single.ask(remove(2))
    assert single.core.high_watermark == START + 1
    acknowledge(single, 2)
    assert single.core.high_watermark == START + 1, "no voter any more"
    for end in (START, START + 1):
        acknowledge(single, 3, end)
        assert single.core.high_watermark == START + 1
    propose(single)
    assert single.core.high_watermark == START + 1
    acknowledge(single, 3, START + 3)
    assert single.core.high_watermark == START + 3
    acknowledge(single, 3)
    assert single.core.high_watermark == START + 5


@kafka_scenario("LeaderStateTest", "updateHighWatermarkQuorumRemovingLeaderFromVoterStates")
def test_update_high_watermark_quorum_removing_leader_from_voter_states() -> None:
    """A leader that removed itself leads on, but does not count."""
    single = committed()
    single.ask(remove(1))
    propose(single)
    propose(single)
    acknowledge(single, 2)
    for end in (START - 1, START):
        acknowledge(single, 3, end)
        assert single.core.high_watermark == START
    acknowledge(single, 3, START + 2)
    assert single.core.high_watermark == START + 2
    assert single.core.role == "resigned", "the removal is committed"


@kafka_scenario("LeaderStateTest", "updateVotersFromNoDirectoryIdToDirectoryId")
def test_update_voters_from_no_directory_id_to_directory_id() -> None:
    """What a voter has acknowledged under its id alone is not forgotten."""
    single = static()
    acknowledge(single, 3)
    for node_id in (2, 3):
        single.ask(update(node_id, listeners=listeners(node_id)))
    single.step(UpgradeKRaftVersion(7, 1))
    assert [book(single).voters[i].end_offset for i in (2, 3)] == [START, START]
    assert single.core.voters.voters == SET
    acknowledge(single, 3)
    assert single.core.high_watermark == START + 2


# -- check quorum --------------------------------------------------------------------------------
@kafka_scenario("LeaderStateTest", "checkQuorum")
def test_check_quorum_with_five_voters() -> None:
    """Two of the four others, since the last time that two did (checkQuorum)."""
    single = led((*SET, voter(4), voter(5)))
    single.wait(2000)
    acknowledge(single, 2)
    single.wait(900)
    acknowledge(single, 2)
    acknowledge(single, 9)
    acknowledge(single, 3)
    single.wait(2999)
    assert single.core.role == "leader"
    single.wait(1)
    assert single.core.role == "resigned"


@kafka_scenario("LeaderStateTest", "checkQuorumAfterVoterSetChanges")
def test_check_quorum_after_voter_set_changes() -> None:
    single = committed()
    single.ask(remove(1))
    single.wait(2900)
    acknowledge(single, 2)
    single.wait(99)
    assert single.core.role == "leader"
    single.wait(1)
    assert single.core.role == "resigned", "one of two others is no majority without the leader"


@kafka_scenario("LeaderStateTest", "checkQuorumAfterVoterSetChanges")
def test_check_quorum_after_a_voter_was_added() -> None:
    """Also checkQuorumAfterVoterSetChanges: of four the leader needs two others, not one."""
    single = committed()
    single.wait(1500)
    acknowledge(single, 2)
    single.ask(add())
    versions(single)
    single.wait(2000)
    acknowledge(single, 2)
    single.wait(500)
    acknowledge(single, 2)
    acknowledge(single, 4)
    single.wait(2900)
    acknowledge(single, 2)
    single.wait(99)
    assert single.core.role == "leader"
    single.wait(1)
    assert single.core.role == "resigned"


@kafka_scenario("LeaderStateTest", "checkQuorumWithOneVoter")
def test_check_quorum_with_one_voter() -> None:
    single = alone()
    single.wait(10_000_000)
    assert single.core.role == "leader"
    acknowledge(single, 9)
    single.wait(10_000_000)
    assert single.core.role == "leader"


# -- further cases ------------------------------------------------------------------------------------
@kafka_scenario("LeaderStateTest", "getNonLeaderFollowersByFetchOffsetDescending")
def test_get_non_leader_followers_by_fetch_offset_descending() -> None:
    progress = ProgressTracker(key(1), VoterSet((*SET, voter(4))))
    for node_id, end in ((2, 5), (3, 9), (4, -1)):
        progress.voters[node_id].end_offset = end
    assert progress.by_descending_end() == (key(3), key(2), key(4))


@kafka_scenario("LeaderStateTest", "leaderEndpoints")
def test_leader_endpoints() -> None:
    single = leader()
    assert single.core.leader_endpoints == listeners(1)


@kafka_scenario("LeaderStateTest", "grantVote")
@pytest.mark.parametrize("pre_vote", [False, True])
@pytest.mark.parametrize("up_to_date", [False, True])
def test_grant_vote(pre_vote: bool, up_to_date: bool) -> None:
    single = leader()
    place = {"end": 99, "last_epoch": EPOCH} if up_to_date else {"end": 1, "last_epoch": 1}
    answer = single.ask(vote(EPOCH + 1, pre_vote=pre_vote, **place))
    assert answer == VoteResponse(ErrorCode.NONE, OWN, False, listeners(1))


@kafka_scenario("LeaderStateTest", "volatileVoters")
def test_volatile_voters() -> None:
    """At kraft.version 0 the leader knows itself, and remembers what the others report."""
    single = static()
    role = single.core.state.role
    assert role.volatile_voters == VoterSet((voter(1), *STATIC[1:]))  # type: ignore[union-attr]
    single.ask(update(2, listeners=listeners(2)))
    assert role.volatile_voters == VoterSet((*SET[:2], STATIC[2]))  # type: ignore[union-attr]
    assert single.core.voters.voters == STATIC


@kafka_scenario("LeaderStateTest", "maybeAppendUpgradedKRaftVersion")
def test_maybe_append_upgraded_kraft_version() -> None:
    single = static()
    for node_id in (2, 3):
        single.ask(update(node_id, listeners=listeners(node_id)))
    validated = single.step(UpgradeKRaftVersion(7, 1, True))
    assert isinstance(validated.proposals[0], Accepted) and validated.writes == ()
    ready = single.step(UpgradeKRaftVersion(8, 1))
    assert control_records(ready) == (KRaftVersion(1), Voters(SET))
    assert single.core.voters == ControlState(1, SET)
    again = single.step(UpgradeKRaftVersion(9, 1))
    assert isinstance(again.proposals[0], Accepted) and again.writes == ()


@kafka_scenario("LeaderStateTest", "invalidMaybeAppendUpgradedKRaftVersion")
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (static, ErrorCode.INVALID_UPDATE_VERSION),
        (candidate, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_invalid_maybe_append_upgraded_kraft_version(make, error: ErrorCode) -> None:
    single = make()
    if make is candidate:
        single = static(candidate)
    (proposal,) = single.step(UpgradeKRaftVersion(7, 1)).proposals
    assert isinstance(proposal, Refused) and proposal.error == error
