"""What one change makes of a partition, as in Kafka's unit tests."""

import pytest
from immutables import Map

from conformance.marker import kafka_scenario
from controller.cluster import directory, incarnation
from quorate.base.ids import Uuid
from quorate.controller.partition_changes import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    Election,
    PartitionRules,
    PartitionTarget,
    change_partition,
)
from quorate.formats.records import PartitionChangeRecord
from quorate.formats.versions import MetadataVersion
from quorate.metadata import image
from quorate.metadata.image import NO_LEADER, RECOVERED, RECOVERING, Broker, Partition
from quorate.metadata.interning import Interner
from quorate.metadata.topics import merge

TOPIC_ID = Uuid(b"t" * 16)
V0, V1, V2 = (
    MetadataVersion.IBP_3_7_IV0,
    MetadataVersion.IBP_3_7_IV2,
    MetadataVersion.IBP_4_0_IV1,
)
"""Levels that write the versions 0, 1 and 2 of the record; with the last one ELR is on."""
every_level = pytest.mark.parametrize("level", [V0, V1, V2])

# Each broker has two directories, so that a new replica has none before the broker names it.
NODES = image.Cluster(
    brokers=Map(
        {
            n: Broker(n, 1, incarnation(n), directories=(directory(n), directory(n, 1)))
            for n in range(10)
        }
    )
)


def partition(replicas, isr=None, leader=None, **fields):
    replicas = tuple(replicas)
    given = {
        "replicas": replicas,
        "directories": tuple(map(directory, replicas)),
        "isr": replicas if isr is None else tuple(isr),
        "leader": replicas[0] if leader is None else leader,
        "removing_replicas": (),
        "adding_replicas": (),
        "leader_recovery_state": RECOVERED,
        "leader_epoch": 100,
        "partition_epoch": 200,
    }
    return Partition(**given | fields)


def change(before, level=V2, *, down=(), min_isr=2, **target):
    """The record of the change; None: nothing changes. `down`: brokers that may not lead."""
    rules = PartitionRules(NODES, level, level.elr, lambda n: n not in down, lambda: min_isr)
    return change_partition(TOPIC_ID, 0, before, PartitionTarget(**target), rules)


def changed(*arguments, **options):
    """The fields that the record has beside the names of topic and partition."""
    record = change(*arguments, **options)
    if record is None:
        return {}
    bare = PartitionChangeRecord(topic_id=TOPIC_ID, partition_id=0)
    names = [field.name for field in type(record).schema.fields]
    return {n: getattr(record, n) for n in names if getattr(record, n) != getattr(bare, n)}


def leader_of(before, *arguments, **options):
    """The leader after the change, and whether it was elected at the cost of records."""
    found = changed(before, *arguments, **options)
    return found.get("leader", before.leader), found.get("leader_recovery_state") == RECOVERING


def after(before, record):
    return merge(before, record, Interner())


FOO = partition((2, 1, 3), leader=1)
BAR = partition((1, 2, 3, 4), (1, 2, 3), removing_replicas=(1,), adding_replicas=(4,))
BAZ = partition((2, 1, 3), (1, 3), leader=3)
DOWN = {3}
"""Of FOO and BAR."""


def offline(level):
    if level.elr:
        return partition((2, 1, 3), (), NO_LEADER, elr=(3,), last_known_elr=(2,))
    return partition((2, 1, 3), (3,), NO_LEADER)


# -- elections -----------------------------------------------------------------------------------
@kafka_scenario("PartitionChangeBuilderTest", "electLeader")
@every_level
@pytest.mark.parametrize(
    ("before", "target", "expected"),
    [
        (FOO, {"election": Election.PREFERRED}, (2, False)),
        (FOO, {}, (1, False)),
        (FOO, {"election": Election.UNCLEAN}, (1, False)),
        (FOO, {"isr": (1, 3)}, (1, False)),
        (FOO, {"isr": (1, 3), "election": Election.UNCLEAN}, (1, False)),
        (FOO, {"isr": (3,)}, (NO_LEADER, False)),
        (FOO, {"isr": (3,), "election": Election.UNCLEAN}, (2, True)),
        (BAZ, {"election": Election.PREFERRED, "down": ()}, (3, False)),
        (BAZ, {"down": ()}, (3, False)),
        (BAZ, {"election": Election.UNCLEAN, "down": ()}, (3, False)),
    ],
)
def test_who_leads(before, target, expected, level):
    assert leader_of(before, level, **{"down": DOWN} | target) == expected


@kafka_scenario("PartitionChangeBuilderTest", "uncleanLeaderElection")
@every_level
def test_an_unclean_leader_is_the_whole_isr_and_recovers(level):
    won = {"isr": [2], "leader": 2, "leader_recovery_state": RECOVERING}
    unclean = {"election": Election.UNCLEAN}
    assert changed(FOO, level, down=DOWN, isr=(3,), **unclean) == won
    won = {"isr": [1], "leader": 1, "leader_recovery_state": RECOVERING}
    if level.elr:
        won |= {"eligible_leader_replicas": [], "last_known_elr": []}
    for target in ({}, {"isr": (2,)}):
        assert changed(offline(level), level, down={2, 3}, **unclean, **target) == won


@kafka_scenario("PartitionChangeBuilderTest", "changeInLeadershipDoesNotChangeRecoveryState")
def test_a_leader_that_comes_back_is_still_recovering():
    before = partition((1, 2, 3), (1,), leader_recovery_state=RECOVERING)
    gone = change(before, MetadataVersion.IBP_3_3_IV3, down={1, 2, 3}, isr=())
    assert (gone.leader, gone.leader_recovery_state) == (NO_LEADER, -1)
    leaderless = after(before, gone)
    assert (leaderless.isr, leaderless.leader_recovery_state) == ((1,), RECOVERING)
    back = change(leaderless, MetadataVersion.IBP_3_3_IV3)
    assert back.leader_recovery_state == -1
    found = after(leaderless, back)
    assert (found.leader, found.isr, found.leader_recovery_state) == (1, (1,), RECOVERING)


@kafka_scenario("PartitionChangeBuilderTest", "uncleanSetsLeaderRecoveringState")
def test_an_unclean_election_of_a_recovered_partition():
    before = partition((1, 2, 3), (2, 3), NO_LEADER)
    record = change(before, MetadataVersion.IBP_3_3_IV3, down={2, 3}, election=Election.UNCLEAN)
    found = after(before, record)
    assert (found.leader, found.isr, found.leader_recovery_state) == (1, (1,), RECOVERING)


# -- what is written -----------------------------------------------------------------------------
@kafka_scenario(
    "PartitionChangeBuilderTest",
    "changeRecordIsNoOp",
    "noChange",
    "noLeaderEpochBumpIfNothingChanged",
)
@every_level
@pytest.mark.parametrize(
    ("before", "target"),
    [
        (FOO, {"down": DOWN}),
        (FOO, {"down": DOWN, "election": Election.UNCLEAN}),
        (BAR, {"down": DOWN}),
        (BAR, {"down": DOWN, "election": Election.UNCLEAN}),
        (BAZ, {"election": Election.PREFERRED}),
    ],
)
def test_nothing_is_written_where_nothing_changes(before, target, level):
    assert change(before, level, **target) is None


@kafka_scenario("PartitionChangeBuilderTest", "changeRecordIsNoOp")
@pytest.mark.parametrize(
    "target",
    [
        {"isr": (1,)},
        {"removing": (3,)},
        {"adding": (4,)},
        {"recovery_state": RECOVERING},
        {"directories": {1: LOST_DIRECTORY}},
        {"replicas": (1, 2)},
        {"unclean_shutdown": frozenset({4})},
    ],
)
def test_any_field_is_a_change(target):
    assert changed(partition((2, 1, 3, 4), (1, 3), leader=1, elr=(4,)), min_isr=3, **target)


@kafka_scenario(
    "PartitionChangeBuilderTest", "isrChangeDoesntBumpLeaderEpoch", "isrChangeAndLeaderChange"
)
@every_level
def test_a_change_of_the_isr_names_a_leader_only_where_it_changes(level):
    assert changed(FOO, level, down=DOWN, isr=(2, 1)) == {"isr": [2, 1]}
    assert changed(FOO, level, down=DOWN, isr=(2, 3)) == {"isr": [2, 3], "leader": 2}


@kafka_scenario(
    "PartitionChangeBuilderTest", "noLeaderEpochBumpOnIsrShrink", "leaderEpochBumpOnIsrShrink"
)
@pytest.mark.parametrize(("level", "leader"), [(8, 1), (11, 1), (12, None), (17, None), (22, None)])
def test_up_to_3_5_a_smaller_isr_raises_the_leader_epoch(level, leader):
    found = changed(FOO, MetadataVersion(level), down=DOWN, isr=(2, 1))
    assert found.get("leader") == leader and found["isr"] == [2, 1]


@kafka_scenario(
    "PartitionChangeBuilderTest",
    "noLeaderEpochBumpOnIsrExpansion",
    "leaderEpochBumpOnNewReplicaSetDisjoint",
)
@pytest.mark.parametrize("level", [8, 11, 12, 17, 22])
def test_a_replica_that_leaves_the_assignment_raises_the_leader_epoch(level):
    level = MetadataVersion(level)
    assert "leader" not in changed(BAZ, level, isr=(2, 1, 3))
    assert changed(FOO, level, down=DOWN, replicas=(2, 1, 4))["leader"] == 1


@kafka_scenario("PartitionChangeBuilderTest", "noLeaderEpochBumpOnEmptyTargetIsr")
@pytest.mark.parametrize("level", [8, 11, 12, 17])
def test_an_isr_that_cannot_become_empty_raises_no_leader_epoch(level):
    """The leader is lost, and not named again."""
    assert changed(partition((2,)), MetadataVersion(level), isr=()) == {"leader": NO_LEADER}


# -- directories ---------------------------------------------------------------------------------
@kafka_scenario(
    "PartitionChangeBuilderTest", "updateDirectories", "keepsDirectoriesAfterReassignment"
)
def test_directories_follow_their_replicas():
    given = {3: directory(3, 1), 1: LOST_DIRECTORY}
    found = changed(partition((2, 1, 3)), MetadataVersion.IBP_4_4_IV2, directories=given)
    assert found == {"directories": [directory(2), LOST_DIRECTORY, directory(3, 1)]}
    found = changed(FOO, V1, replicas=(3, 1, 5, 4), directories={5: directory(5, 1)})
    assert found == {
        "leader": 1,
        "replicas": [3, 1, 5, 4],
        "directories": [directory(3), directory(1), directory(5, 1), UNASSIGNED_DIRECTORY],
    }


def with_directories(level, fields, *directories):
    """From version 1 on the record has the directories."""
    return fields if level is V0 else fields | {"directories": list(directories)}


# -- reassignments -------------------------------------------------------------------------------
@kafka_scenario("PartitionChangeBuilderTest", "reassignmentRearrangesReplicas")
@every_level
def test_replicas_are_rearranged(level):
    expected = {"replicas": [3, 2, 1]}
    expected = with_directories(level, expected, directory(3), directory(2), directory(1))
    assert changed(FOO, level, down=DOWN, replicas=(3, 2, 1)) == expected


@kafka_scenario("PartitionChangeBuilderTest", "isrEnlargementCompletesReassignment")
@every_level
def test_the_isr_completes_a_reassignment(level):
    expected = {
        "replicas": [2, 3, 4],
        "isr": [2, 3, 4],
        "leader": 2,
        "removing_replicas": [],
        "adding_replicas": [],
    }
    expected = with_directories(level, expected, directory(2), directory(3), directory(4))
    assert changed(BAR, level, down=DOWN, isr=(1, 2, 3, 4)) == expected


@kafka_scenario("PartitionChangeBuilderTest", "revertReassignment")
@every_level
def test_a_reassignment_is_reverted(level):
    expected = {
        "replicas": [1, 2, 3],
        "leader": 1,
        "removing_replicas": [],
        "adding_replicas": [],
    }
    expected = with_directories(level, expected, directory(1), directory(2), directory(3))
    target = {"replicas": (1, 2, 3), "isr": (1, 2, 3), "removing": (), "adding": ()}
    assert changed(BAR, level, down=DOWN, **target) == expected


@kafka_scenario(
    "PartitionChangeBuilderTest", "removingReplicaReassignment", "addingReplicaReassignment"
)
@every_level
def test_replicas_are_removed_at_once_and_added_when_they_are_in_sync(level):
    expected = {"replicas": [1, 2], "isr": [2, 1], "leader": 1}
    expected = with_directories(level, expected, directory(1), directory(2))
    assert changed(FOO, level, down=DOWN, replicas=(1, 2, 3), removing=(3,)) == expected
    expected = {"replicas": [1, 2, 3, 4], "adding_replicas": [4]}
    places = (*map(directory, (1, 2, 3)), UNASSIGNED_DIRECTORY)
    expected = with_directories(level, expected, *places)
    assert changed(FOO, level, down=DOWN, replicas=(1, 2, 3, 4), adding=(4,)) == expected


@kafka_scenario(
    "PartitionChangeBuilderTest",
    "stoppedLeaderIsDemotedAfterReassignmentCompletesEvenIfNoNewEligibleLeaders",
)
def test_a_removed_leader_leads_no_more_although_nobody_else_may():
    before = partition((2, 3, 0, 1), (0, 1), 0, removing_replicas=(0, 1), adding_replicas=(2, 3))
    expected = {
        "replicas": [2, 3],
        "isr": [2, 3],
        "leader": NO_LEADER,
        "removing_replicas": [],
        "adding_replicas": [],
    }
    level = MetadataVersion.IBP_3_3_IV3
    assert changed(before, level, down=range(4), isr=(0, 1, 2, 3)) == expected


# -- eligible leader replicas (KIP-966) ----------------------------------------------------------
@kafka_scenario("PartitionChangeBuilderTest", "eligibleLeaderReplicas_IsrShrinkBelowMinISR")
@every_level
def test_below_min_isr_those_that_leave_stay_eligible(level):
    found = changed(partition((1, 2, 3, 4)), level, down=DOWN, min_isr=3, isr=(1, 2))
    eligible = {"eligible_leader_replicas": [3, 4]} if level.elr else {}
    assert found == {"isr": [1, 2]} | eligible


@kafka_scenario("PartitionChangeBuilderTest", "eligibleLeaderReplicas_IsrExpandAboveMinISR")
@every_level
def test_from_min_isr_on_nobody_else_is_eligible(level):
    before = partition((1, 2, 3, 4), (1, 2), elr=(3,), last_known_elr=(4,))
    found = changed(before, level, down=DOWN, min_isr=3, isr=(1, 2, 3))
    assert found["isr"] == [1, 2, 3] and found["eligible_leader_replicas"] == []


@kafka_scenario("PartitionChangeBuilderTest", "eligibleLeaderReplicas_IsrAddNewMemberNotInELR")
@every_level
def test_a_member_that_was_not_eligible_leaves_the_others_eligible(level):
    before = partition((1, 2, 3, 4), (1,), elr=(3,))
    record = change(before, level, down=DOWN, min_isr=3, isr=(1, 4))
    found = after(before, record)
    assert (found.isr, found.elr) == ((1, 4), (3,) if level.elr else ())


@kafka_scenario(
    "PartitionChangeBuilderTest", "eligibleLeaderReplicas_RemoveUncleanShutdownReplicasFromElr"
)
@every_level
def test_who_may_have_lost_records_is_not_eligible(level):
    before = partition((1, 2, 3, 4), (1,), elr=(2, 3))
    found = changed(before, level, down=DOWN, min_isr=3, unclean_shutdown=frozenset({3}))
    assert found["eligible_leader_replicas"] == ([2] if level.elr else [])


@kafka_scenario("PartitionChangeBuilderTest", "eligibleLeaderReplicas_ElrCanBeElected")
def test_an_eligible_replica_is_elected():
    before = partition((1, 2, 3, 4), (1,), elr=(3,))
    found = changed(before, down={1}, min_isr=3, isr=())
    assert found == {"isr": [3], "leader": 3, "eligible_leader_replicas": [1]}


@kafka_scenario(
    "PartitionChangeBuilderTest",
    "eligibleLeaderReplicas_IsrCanShrinkToZero",
    "eligibleLeaderReplicas_lastKnownElrShouldBePopulatedWhenNoLeader",
)
def test_an_empty_isr_remembers_its_last_leader():
    before = partition((1, 2, 3, 4))
    record = change(before, down=range(5), min_isr=3, isr=())
    assert (record.isr, record.leader, record.last_known_elr) == ([], NO_LEADER, [1])
    found = after(before, record)
    assert (found.elr, found.last_known_elr) == ((1, 2, 3, 4), (1,))
    again = change(found, down=range(5), min_isr=3, unclean_shutdown=frozenset({2}))
    assert again.last_known_elr is None and again.eligible_leader_replicas == [1, 3, 4]
    last = partition((1, 2, 3), (1,), elr=(2,))
    record = change(last, down=range(5), min_isr=3, election=Election.PREFERRED)
    assert (record.leader, record.isr, record.last_known_elr) == (NO_LEADER, None, [1])


@kafka_scenario(
    "PartitionChangeBuilderTest",
    "eligibleLeaderReplicas_ElectLastKnownLeader",
    "eligibleLeaderReplicas_ElectLastKnownLeaderShouldFail",
    "eligibleLeaderReplicas_NotEligibleLastKnownLeader",
)
@pytest.mark.parametrize("election", Election)
def test_the_last_known_leader_is_elected_where_nobody_is_eligible(election):
    before = partition((1, 2, 3, 4), (), NO_LEADER, last_known_elr=(1,))
    won = changed(before, min_isr=3, isr=(), election=Election.PREFERRED)
    assert won == {
        "isr": [1],
        "leader": 1,
        "leader_recovery_state": RECOVERING,
        "last_known_elr": [],
    }
    assert changed(before, down=range(5), min_isr=3, isr=(), election=election) == {}
    eligible = before._replace(elr=(3,))
    assert changed(eligible, down={3}, min_isr=3, isr=(), election=Election.PREFERRED) == {}
