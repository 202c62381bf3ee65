"""VoterSetTest, VoterSetHistoryTest, KRaftControlRecordStateMachineTest."""

from __future__ import annotations

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import InvariantError
from quorate.base.ids import OffsetAndEpoch, ReplicaKey
from quorate.raft.history import ControlHistory, LogHistory
from quorate.raft.values import ControlState, KRaftVersion, RecoveredLog, Voter, Voters
from quorate.raft.voters import VoterSet, address_of
from quorate.sim.scenario.names import key, listeners, voter
from raft.single import recovered

ABC = VoterSet(voter(i) for i in (1, 2, 3))
STATIC = VoterSet(voter(i, known=False) for i in (1, 2, 3))
EMPTY = RecoveredLog(0, 0, (), (), None, ())


# -- VoterSet --------------------------------------------------------------------------------------
@kafka_scenario("VoterSetTest", "emptyVoterSet")
def test_empty_voter_set() -> None:
    """Java builds one only by a special method; here an observer starts with it."""
    empty = VoterSet()
    assert (len(empty), empty.ids, empty.voters) == (0, (), ())
    assert not empty.is_voter(key(1)) and not empty.is_only_voter(key(1))


@kafka_scenario("VoterSetTest", "voterNode", "voterNodes", "voterIds", "endpoints")
def test_voter_nodes() -> None:
    """voterNode, voterNodes, voterIds, endpoints: by id, with their listeners."""
    assert ABC.ids == (1, 2, 3)
    assert ABC.keys == (key(1), key(2), key(3))
    assert ABC.get(2) == voter(2) and ABC.get(4) is None
    assert ABC.listeners(1) == listeners(1) and ABC.listeners(4) == ()
    assert address_of(ABC.listeners(1), "CONTROLLER") == listeners(1)[0].address
    assert address_of(ABC.listeners(1), "MISSING") is None
    assert address_of(ABC.listeners(4), "CONTROLLER") is None


@kafka_scenario("VoterSetTest", "addVoter")
def test_add_voter() -> None:
    assert ABC.add(voter(2)) is None
    assert ABC.add(Voter(key(2, 1), listeners(2))) is None
    added = ABC.add(voter(4))
    assert added is not None and added.ids == (1, 2, 3, 4) and ABC.ids == (1, 2, 3)


@kafka_scenario("VoterSetTest", "removeVoter")
def test_remove_voter() -> None:
    assert ABC.remove(key(4)) is None
    assert ABC.remove(key(3, 1)) is None
    assert ABC.remove(ReplicaKey(3)) is None
    assert ABC.remove(key(3)) == VoterSet([voter(1), voter(2)])


@kafka_scenario("VoterSetTest", "cannotRemoveToEmptyVoterSet")
def test_cannot_remove_to_empty_voter_set() -> None:
    alone = VoterSet([voter(1)])
    assert alone.remove(key(1)) is None
    assert alone.is_voter(key(1))


@kafka_scenario("VoterSetTest", "updateVoter")
def test_update_voter() -> None:
    for unknown in (voter(4), Voter(key(3, 1), listeners(3))):
        assert ABC.update(unknown) is None and not ABC.needs_update(unknown)
    assert not ABC.needs_update(voter(3))
    moved = Voter(key(3), listeners(9), 0, 1)
    for other in (moved, Voter(key(3), listeners(3), 1, 1), Voter(key(3), listeners(3), 0, 0)):
        assert ABC.needs_update(other)
    assert STATIC.needs_update(Voter(key(3), listeners(3), 0, 0)), "its directory id"
    assert ABC.update(moved) == VoterSet([voter(1), voter(2), moved])


@kafka_scenario("VoterSetTest", "updateVoterIgnoringDirectoryId")
def test_update_voter_ignoring_directory_id() -> None:
    assert ABC.update_ignoring_directory(voter(4)) is None
    other = Voter(key(3, 1), listeners(9), 0, 1)
    assert ABC.update_ignoring_directory(other) == VoterSet([voter(1), voter(2), other])
    known = STATIC.update_ignoring_directory(voter(3))
    assert known is not None and known.get(3) == voter(3)
    again = known.update_ignoring_directory(other)
    assert again == VoterSet([*STATIC.voters[:2], other])


@kafka_scenario("VoterSetTest", "isVoterWithDirectoryId", "isVoterWithoutDirectoryId")
@pytest.mark.parametrize(
    ("voters", "asked", "answer"),
    [
        (ABC, key(1), True),
        (ABC, key(1, 1), False),
        (ABC, ReplicaKey(1), False),
        (ABC, ReplicaKey(2, key(1).directory_id), False),
        (ABC, ReplicaKey(4, key(1).directory_id), False),
        (ABC, key(4), False),
        (ABC, ReplicaKey(4), False),
        (STATIC, key(1), True),
        (STATIC, key(1, 1), True),
        (STATIC, ReplicaKey(1), True),
        (STATIC, key(4), False),
        (STATIC, ReplicaKey(4), False),
    ],
)
def test_is_voter_with_and_without_directory_id(
    voters: VoterSet, asked: ReplicaKey, answer: bool
) -> None:
    assert voters.is_voter(asked) is answer


@kafka_scenario("VoterSetTest", "isOnlyVoterInStandalone", "isOnlyVoterInNotStandalone")
def test_is_only_voter() -> None:
    alone = VoterSet([voter(1)])
    assert alone.is_only_voter(key(1))
    for other in (key(1, 1), ReplicaKey(1), key(2), ReplicaKey(4, key(1).directory_id)):
        assert not alone.is_only_voter(other)
    assert not any(ABC.is_only_voter(asked) for asked in (key(1), key(4), ReplicaKey(1)))


@kafka_scenario("VoterSetTest", "overlappingMajority", "nonOverlappingMajority")
@pytest.mark.parametrize(
    ("ids", "overlap"),
    [
        ((1, 2, 3), True),
        ((1, 2), True),
        ((1, 2, 3, 4), True),
        ((1,), False),
        ((1, 2, 3, 4, 5), False),
        ((4, 5, 6), False),
    ],
)
def test_overlapping_majority(ids: tuple[int, ...], overlap: bool) -> None:
    other = VoterSet(voter(i) for i in ids)
    assert ABC.overlaps(other) is other.overlaps(ABC) is overlap


@kafka_scenario("VoterSetTest", "overlappingMajority", "nonOverlappingMajority")
def test_overlapping_majority_of_five() -> None:
    """nonOverlappingMajority; and one that is replaced, which Kafka accepts and this does not."""
    five = VoterSet(voter(i) for i in range(1, 6))
    replaced = {i: Voter(key(i, 1), listeners(i), 0, 1) for i in (1, 2)}
    far = [
        VoterSet(voter(i) for i in range(1, 8)),
        VoterSet(voter(i) for i in (3, 4, 5)),
        VoterSet((*replaced.values(), *five.voters[2:])),
        VoterSet((replaced[1], *five.voters[1:])),
    ]
    near = [five, VoterSet(voter(i) for i in range(1, 7)), VoterSet(five.voters[1:])]
    for other in far:
        assert not five.overlaps(other) and not other.overlaps(five)
    for other in near:
        assert five.overlaps(other) and other.overlaps(five)


@kafka_scenario("VoterSetTest", "supportsVersion")
def test_supports_version() -> None:
    assert ABC.supports(0) and ABC.supports(1) and not ABC.supports(2)
    mixed = VoterSet([voter(1), voter(2, known=False)])
    assert mixed.supports(0) and not mixed.supports(1)


# -- VoterSetHistory: static, bootstrap, log -------------------------------------------------------
def controls(*records: tuple[int, VoterSet], static: VoterSet = STATIC) -> ControlHistory:
    made = ControlHistory(static, EMPTY)
    for offset, voters in records:
        assert made.apply(offset, Voters(voters.voters))
    return made


def sets(*ids: int) -> VoterSet:
    return VoterSet(voter(i) for i in ids)


def at(made: ControlHistory, offset: int) -> VoterSet | None:
    """The set written at or before this offset."""
    found = made.at(offset + 1).voters
    return None if found is None else VoterSet(found)


@kafka_scenario("VoterSetHistoryTest", "staticVoterSet")
def test_static_voter_set() -> None:
    made = controls()
    for change in (lambda: None, lambda: made.truncate(100), lambda: made.compact(100)):
        change()
        assert (at(made, 0), at(made, 100), made.voters, made.has_voters) == (
            None,
            None,
            STATIC,
            False,
        )


@kafka_scenario("VoterSetHistoryTest", "TestNoStaticVoterSet")
def test_no_static_voter_set() -> None:
    made = controls(static=VoterSet())
    assert made.voters == VoterSet() and at(made, 0) is None and made.voters_offset is None


@kafka_scenario("VoterSetHistoryTest", "addAt")
def test_add_at() -> None:
    with pytest.raises(InvariantError):
        controls((-2, ABC))
    made = controls((100, ABC), (200, sets(1, 2, 3, 4)), (300, ABC))
    assert at(made, 99) is None
    assert at(made, 100) == at(made, 199) == ABC
    assert at(made, 200) == at(made, 299) == sets(1, 2, 3, 4)
    assert at(made, 300) == made.voters == ABC


@kafka_scenario("VoterSetHistoryTest", "bootstrapAddAt")
def test_bootstrap_add_at() -> None:
    """What the bootstrap snapshot holds stands at offset -1."""
    made = ControlHistory(VoterSet(), recovered(end_offset=0, epochs=(), batch_ends=()))
    assert (made.voters, made.voters_offset, at(made, -1)) == (ABC, -1, ABC)
    assert at(made, -2) is None
    made.apply(100, Voters(sets(1, 2, 3, 4).voters))
    assert at(made, 99) == ABC and at(made, 100) == sets(1, 2, 3, 4)
    made.apply(200, Voters(ABC.voters))
    assert at(made, 199) == sets(1, 2, 3, 4) and at(made, 200) == made.voters == ABC


@kafka_scenario("VoterSetHistoryTest", "addAtNonOverlapping", "nonoverlappingFromStaticVoterSet")
@pytest.mark.parametrize("static", [VoterSet(), STATIC], ids=["none", "static"])
def test_add_at_non_overlapping(static: VoterSet) -> None:
    """A log may hold such a jump (Kafka's own tools write some): it rules all the same."""
    made = controls((100, ABC), (200, sets(3)), (300, ABC), static=static)
    assert (at(made, 100), at(made, 200), made.voters) == (ABC, sets(3), ABC)


@kafka_scenario("VoterSetHistoryTest", "truncateTo")
def test_truncate_to() -> None:
    made = controls((100, ABC), (200, sets(1, 2)))
    assert not made.truncate(201) and made.voters == sets(1, 2)
    assert made.truncate(200) and made.voters == ABC
    assert not made.truncate(101) and made.voters == ABC
    assert made.truncate(100) and made.voters == STATIC


@kafka_scenario("VoterSetHistoryTest", "trimPrefixTo")
def test_trim_prefix_to() -> None:
    made = controls((100, ABC), (200, sets(1, 2)))
    for start, oldest in ((99, ABC), (100, ABC), (199, ABC), (200, None), (201, None)):
        made.compact(start)
        assert at(made, 150) == oldest
        assert at(made, 200) == made.voters == sets(1, 2)


@kafka_scenario("VoterSetHistoryTest", "clear")
def test_clear() -> None:
    history: LogHistory[int] = LogHistory()
    history.add(100, 1)
    history.clear()
    assert (history.last(), history.at(100), len(history)) == (None, None, 0)
    made = controls((100, ABC))
    made.reset(OffsetAndEpoch(200, 3), ControlState(0, None))
    assert made.voters == STATIC, "a snapshot without voters: the configured ones"


# -- KRaftControlRecordStateMachine ----------------------------------------------------------------
def snapshot_log(control: ControlState | None, *records: tuple[int, object]) -> RecoveredLog:
    """A log that starts at a snapshot (10, 1)."""
    return RecoveredLog(
        10,
        20,
        ((1, 10),),
        (OffsetAndEpoch(10, 1),),
        control,
        records,  # type: ignore[arg-type]
    )


@kafka_scenario(
    "KRaftControlRecordStateMachineTest", "emptyPartition", "emptyPartitionWithNoStaticVoters"
)
def test_empty_partition() -> None:
    assert (ControlHistory(STATIC, EMPTY).voters, ControlHistory(STATIC, EMPTY).version) == (
        STATIC,
        0,
    )
    assert ControlHistory(VoterSet(), EMPTY).voters == VoterSet(), (
        "emptyPartitionWithNoStaticVoters"
    )


@kafka_scenario("KRaftControlRecordStateMachineTest", "updateWithoutSnapshot")
def test_update_without_snapshot() -> None:
    records = ((0, KRaftVersion(1)), (1, Voters(sets(4, 5, 6).voters)))
    made = ControlHistory(STATIC, RecoveredLog(0, 2, ((1, 0),), (), None, records))
    assert (made.version, made.voters) == (1, sets(4, 5, 6))
    assert made.at(0) == ControlState(0, None)
    assert made.at(1) == ControlState(1, None)
    assert made.at(2) == ControlState(1, sets(4, 5, 6).voters)


@kafka_scenario("KRaftControlRecordStateMachineTest", "updateWithEmptySnapshot")
@pytest.mark.parametrize("control", [None, ControlState(0, None)])
def test_update_with_empty_snapshot(control: ControlState | None) -> None:
    voters = sets(4, 5, 6)
    log = snapshot_log(control, (10, KRaftVersion(1)), (11, Voters(voters.voters)))
    made = ControlHistory(STATIC, log)
    assert (made.version, made.voters) == (1, voters)
    assert made.at(10) == ControlState(0, None)


@kafka_scenario("KRaftControlRecordStateMachineTest", "updateWithSnapshot")
def test_update_with_snapshot() -> None:
    held = ControlState(1, sets(4, 5, 6).voters)
    made = ControlHistory(STATIC, snapshot_log(held))
    assert (made.version, made.voters, made.at(10)) == (1, sets(4, 5, 6), held)


def test_voter_sets_before_the_snapshot_are_not_in_force() -> None:
    held = ControlState(1, sets(4, 5, 6).voters)
    older, newer = (3, Voters(sets(1, 2).voters)), (12, Voters(sets(4, 5).voters))
    ids = (OffsetAndEpoch(10, 1),)
    for records, voters in (((older,), sets(4, 5, 6)), ((older, newer), sets(4, 5))):
        made = ControlHistory(STATIC, RecoveredLog(0, 20, ((1, 0),), ids, held, records))
        assert (made.voters, made.at(10)) == (voters, held)


@kafka_scenario("KRaftControlRecordStateMachineTest", "updateWithSnapshotAndLogOverride")
def test_update_with_snapshot_and_log_override() -> None:
    held = ControlState(1, sets(4, 5, 6).voters)
    newer = sets(4, 5, 6, 7)
    made = ControlHistory(STATIC, snapshot_log(held, (12, Voters(newer.voters))))
    assert made.voters == newer
    assert made.at(12) == held and made.at(13) == ControlState(1, newer.voters)


@kafka_scenario("KRaftControlRecordStateMachineTest", "truncateTo")
def test_control_records_truncate_to() -> None:
    records = ((0, KRaftVersion(1)), (1, Voters(ABC.voters)), (2, Voters(sets(1, 2).voters)))
    made = ControlHistory(STATIC, RecoveredLog(0, 3, ((1, 0),), (), None, records))
    expected = [(3, sets(1, 2), 1), (2, ABC, 1), (1, STATIC, 1), (0, STATIC, 0)]
    for end, voters, version in expected:
        made.truncate(end)
        assert (made.voters, made.version) == (voters, version)
        assert made.has_voters is (end > 1), (
            "else the configured voters count, and that is reported"
        )


@kafka_scenario("KRaftControlRecordStateMachineTest", "trimPrefixTo")
def test_control_records_trim_prefix_to() -> None:
    """What rules stays, however far the log's start moves."""
    records = ((0, KRaftVersion(1)), (1, Voters(ABC.voters)), (2, Voters(sets(1, 2).voters)))
    made = ControlHistory(STATIC, RecoveredLog(0, 3, ((1, 0),), (), None, records))
    for start in (1, 2, 3, 99):
        made.compact(start)
        assert (made.voters, made.version) == (sets(1, 2), 1)
        assert at(made, 1) == (ABC if start < 2 else None)
        assert made.at(1).kraft_version == 1 and at(made, 2) == sets(1, 2)
    assert made.at(3) == ControlState(1, sets(1, 2).voters)
