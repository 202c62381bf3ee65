"""One test for each sentence about the leader's book: rows, high watermark, check quorum (5.6)."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_guarantee, kafka_scenario
from quorate.base.ids import ZERO_UUID, LeaderAndEpoch, ReplicaKey
from quorate.raft.inputs import (
    Propose,
)
from quorate.raft.messages import (
    FetchResponse,
)
from quorate.raft.progress import ProgressTracker
from quorate.raft.values import Voter, Voters
from quorate.raft.voters import VoterSet
from quorate.sim.scenario.names import key, listeners, voter
from raft.leader_scenarios import START, UNKNOWN_REPLICAS, committed, led, snapshotted
from raft.single import (
    END,
    EPOCH,
    LAST_EPOCH,
    fetch,
    leader,
    recovered,
)


# -- the row of the replica, the high watermark --------------------------------------------------
def test_the_high_watermark_needs_a_record_of_the_own_epoch() -> None:
    single = led()
    answer = single.ask(fetch(END, LAST_EPOCH))
    assert answer.high_watermark == -1  # type: ignore[union-attr]
    answer = single.ask(fetch(START, EPOCH + 1, max_wait_ms=0))
    assert answer.high_watermark == START  # type: ignore[union-attr]


def test_the_leader_counts_only_what_is_durable() -> None:
    single = committed()
    single.slow = True
    single.step(Propose(0, EPOCH + 1, 1, 10, "x"))
    single.ask(fetch(START + 1, EPOCH + 1, replica=key(2), max_wait_ms=0))
    assert single.core.high_watermark == START
    single.ask(fetch(START + 1, EPOCH + 1, replica=key(3), max_wait_ms=0))
    assert single.core.high_watermark == START + 1
    single.persist()
    assert single.core.high_watermark == START + 1


@kafka_guarantee("KafkaRaftClientTest", "observerFetchWithNoLocalId")
def test_observers_and_unknown_replicas_do_not_count() -> None:
    single = led()
    for replica in (key(9), key(2, 1), ReplicaKey(2), ReplicaKey(-1, ZERO_UUID)):
        answer = single.ask(fetch(END, LAST_EPOCH, replica=replica, max_wait_ms=0))
        assert isinstance(answer, FetchResponse) and answer.records is not None
        single.ask(fetch(START, EPOCH + 1, replica=replica, max_wait_ms=0))
    assert single.core.high_watermark == -1
    described = single.core.describe(single.now)
    assert described is not None
    assert [row.key for row in described.observers] == [ReplicaKey(2), key(2, 1), key(9)]


def test_the_high_watermark_never_falls() -> None:
    single = committed()
    single.ask(fetch(END, LAST_EPOCH))
    assert single.core.high_watermark == START


@pytest.mark.parametrize("offset", [START + 1, 0])
def test_only_a_fetch_at_a_valid_offset_counts(offset: int) -> None:
    single = snapshotted(cleaned=True)
    single.ask(fetch(offset, EPOCH + 1 if offset else 0, replica=key(3)))
    rows = single.core.describe(single.now).voters  # type: ignore[union-attr]
    assert [row.log_end_offset for row in rows] == [START, START, -1]


def test_caught_up_is_at_the_end_or_at_the_end_of_the_fetch_before() -> None:
    single = committed()
    single.now = 5000
    single.ask(fetch(START, EPOCH + 1, replica=key(3), high_watermark=START))
    single.now = 6000
    single.step(Propose(0, EPOCH + 1, 1, 1, "x"))
    single.now = 7000
    single.ask(fetch(START, EPOCH + 1, replica=key(3)))
    row = single.core.describe(7000).voters[2]  # type: ignore[union-attr]
    assert (row.last_fetch_ms, row.last_caught_up_ms) == (7000, 5000)


def test_a_lagging_replica_has_caught_up_at_the_log_end_of_its_previous_fetch() -> None:
    """So a voter of a busy leader, which never fetches at the very end, has caught up all along."""
    single = led()
    single.now = 5000
    single.ask(fetch(END, LAST_EPOCH, replica=key(3)))
    assert single.core.describe(5000).voters[2].last_caught_up_ms == -1  # type: ignore[union-attr]
    single.step(Propose(0, EPOCH + 1, 1, 1, "x"))
    single.now = 7000
    single.ask(fetch(START, EPOCH + 1, replica=key(3)))
    row = single.core.describe(7000).voters[2]  # type: ignore[union-attr]
    assert (row.last_fetch_ms, row.last_caught_up_ms) == (7000, 5000)


def test_a_replica_below_the_log_end_of_its_previous_fetch_has_not_caught_up() -> None:
    single = led()
    single.step(Propose(0, EPOCH + 1, 1, 1, "x"))
    for offset, last_epoch in ((END, LAST_EPOCH), (START, EPOCH + 1)):
        single.ask(fetch(offset, last_epoch, replica=key(3)))
    row = single.core.describe(single.now).voters[2]  # type: ignore[union-attr]
    assert row.last_caught_up_ms == -1


def test_a_fetch_counts_at_its_arrival_and_not_again_at_its_answer() -> None:
    """Java counts it twice: a follower that hangs would look alive until its answer left."""
    single = committed()
    parked = fetch(START, EPOCH + 1, replica=key(3), max_wait_ms=5000, high_watermark=START)
    assert single.ask(parked) is None
    asked = single.now
    single.wait(2000)
    single.step(Propose(0, EPOCH + 1, 1, 1, "x"))
    assert single.replies[single.asked].records is not None  # type: ignore[union-attr]
    row = single.core.describe(single.now).voters[2]  # type: ignore[union-attr]
    assert (row.last_fetch_ms, row.last_caught_up_ms) == (asked, asked)
    single.wait(1000)
    assert single.core.role == "resigned"


@kafka_scenario(
    "KafkaRaftClientTest", "leaderShouldResignLeadershipIfNotGetFetchRequestFromMajorityVoters"
)
def test_check_quorum() -> None:
    single = led()
    elected = single.now
    single.now = elected + 2900
    single.ask(fetch(START, EPOCH + 1, replica=key(3)))
    single.wait(2999)
    assert single.core.role == "leader"
    single.wait(1)
    assert single.core.role == "resigned"
    assert single.core.leader == LeaderAndEpoch(-1, EPOCH + 1)


@kafka_scenario(
    "KafkaRaftClientTest", "leaderShouldResignLeadershipIfNotGetFetchRequestFromMajorityVoters"
)
def test_observers_do_not_count_for_check_quorum() -> None:
    single = led()
    single.now += 2999
    single.ask(fetch(START, EPOCH + 1, replica=key(9)))
    single.wait(1)
    assert single.core.role == "resigned"


@pytest.mark.parametrize("replica", UNKNOWN_REPLICAS)
def test_a_voters_id_in_another_directory_does_not_count_for_check_quorum(
    replica: ReplicaKey,
) -> None:
    single = led()
    single.now += 2999
    single.ask(fetch(START, EPOCH + 1, replica=replica))
    single.wait(1)
    assert single.core.role == "resigned"


def test_a_voter_of_unknown_directory_counts_for_check_quorum_from_any_directory() -> None:
    """As with kraft.version 0."""
    known = (voter(1), Voter(ReplicaKey(2), listeners(2)), voter(3))
    single = leader(log=recovered(control_records=((4, Voters(known)),)))
    single.now += 2999
    single.ask(fetch(END, LAST_EPOCH, replica=key(2, 1)))
    single.wait(1)
    assert single.core.role == "leader"


def test_a_leader_outside_the_voter_set_does_not_count_itself_for_check_quorum() -> None:
    progress = ProgressTracker(key(2, 1), VoterSet([voter(1), voter(2), voter(3)]))
    assert not progress.update_check_quorum(key(3))
    assert progress.update_check_quorum(key(1))
