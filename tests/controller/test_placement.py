"""Kafka's own examples of placement, with the random numbers that its unit tests use."""

from collections import Counter

import pytest

from conformance.marker import kafka_scenario
from quorate.base.errors import ErrorCode
from quorate.controller.placement import UsableBroker, by_rack, place
from quorate.controller.result import ApiError

_MASK = (1 << 64) - 1


class KafkasRandom:
    """`MockRandom` of Kafka's tests, with the `nextInt` of `java.util.Random`."""

    def __init__(self):
        self.state = 17

    def next31(self):
        self.state = (self.state * 2862933555777941757 + 3037000493) & _MASK
        return (self.state >> 33) & 0x7FFFFFFF

    def randbytes(self, n):
        raise AssertionError("a placement needs no id")

    def randrange(self, stop):
        given = self.next31()
        if stop & (stop - 1) == 0:
            return (stop * given) >> 31
        while given - given % stop + stop - 1 > 0x7FFFFFFF:
            given = self.next31()
        return given % stop


def placed(partitions, factor, *brokers):
    """brokers: an id, or (id, rack), or (id, rack, fenced)."""
    given = [broker if isinstance(broker, tuple) else (broker,) for broker in brokers]
    found = [UsableBroker(*one, *(None, False)[len(one) - 1 :]) for one in given]
    return list(place(partitions, factor, by_rack(found), KafkasRandom()))


@kafka_scenario("StripedReplicaPlacerTest", "avoidFencedReplicaIfPossibleOnSingleRack")
def test_a_fenced_broker_is_avoided():
    assert placed(5, 4, 3, (1, None, True), 0, 4, 2) == [
        [3, 4, 0, 2],
        [4, 0, 2, 3],
        [0, 2, 3, 4],
        [2, 3, 4, 0],
        [0, 4, 3, 2],
    ]


@kafka_scenario("StripedReplicaPlacerTest", "placementOnFencedReplicaOnSingleRack")
def test_a_fenced_broker_comes_last():
    expected = [[3, 2, 1], [2, 3, 1], [3, 2, 1], [2, 3, 1]]
    assert placed(4, 3, 3, (1, None, True), 2) == expected


@kafka_scenario("StripedReplicaPlacerTest", "multiPartitionTopicPlacementOnSingleUnfencedBroker")
def test_a_single_unfenced_broker_gets_everything():
    assert placed(3, 1, 0, (1, None, True)) == [[0]] * 3


@kafka_scenario("StripedReplicaPlacerTest", "rackListWithMultipleRacks", "brokerList")
def test_replicas_go_from_rack_to_rack():
    brokers = [(11, "1"), (10, "1"), (30, "3"), (31, "3"), (21, "2"), (20, "2", True)]
    assert placed(3, 4, *brokers) == [[11, 21, 31, 10], [21, 30, 10, 20], [31, 11, 21, 30]]


@kafka_scenario("StripedReplicaPlacerTest", "rackListWithInvalidRacks")
def test_a_rack_without_an_unfenced_broker_leads_nothing():
    brokers = [(11, "1"), (10, "1"), (30, "3", True), (31, "3", True)]
    brokers += [(20, "2", True), (21, "2", True), (41, "4"), (40, "4", True)]
    assert placed(3, 4, *brokers) == [[41, 11, 21, 30], [10, 20, 31, 41], [41, 21, 30, 11]]


@kafka_scenario("StripedReplicaPlacerTest", "successfulPlacement", "brokerList")
def test_each_partition_begins_one_broker_further():
    expected = [[2, 3, 0], [3, 0, 1], [0, 1, 2], [1, 2, 3], [1, 0, 2]]
    assert placed(5, 3, 0, 3, 2, 1) == expected


@kafka_scenario("StripedReplicaPlacerTest", "evenDistribution")
def test_every_pair_of_brokers_gets_its_share():
    found = Counter(map(tuple, placed(200, 2, 0, 1, 2, 3)))
    assert found == {
        (0, 1): 14,
        (0, 2): 22,
        (0, 3): 14,
        (1, 0): 17,
        (1, 2): 17,
        (1, 3): 16,
        (2, 0): 13,
        (2, 1): 17,
        (2, 3): 20,
        (3, 0): 20,
        (3, 1): 19,
        (3, 2): 11,
    }


FENCED = "All brokers are currently fenced, or have all their log directories cordoned."


@kafka_scenario(
    "StripedReplicaPlacerTest",
    "allBrokersFenced",
    "notEnoughBrokers",
    "nonPositiveReplicationFactor",
    "rackListAllBrokersFenced",
    "rackListNotEnoughBrokers",
    "rackListNonPositiveReplicationFactor",
)
@kafka_scenario("StripedReplicaPlacerTest", "avoidFencedReplicaIfPossibleOnSingleRack")
@pytest.mark.parametrize(
    ("factor", "brokers", "text"),
    [
        (1, [(11, "1", True), (10, "1", True)], FENCED),
        (3, [(0, None, True), (1, None, True), (2, None, True)], FENCED),
        (
            3,
            [(11, "1"), (10, "1")],
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are "
            "registered or some brokers have all their log directories cordoned.",
        ),
        (0, [11], "Invalid replication factor 0: the replication factor must be positive."),
        (-1, [11], "Invalid replication factor -1: the replication factor must be positive."),
    ],
)
def test_a_placement_that_is_refused(factor, brokers, text):
    with pytest.raises(ApiError) as refused:
        placed(1, factor, *brokers)
    assert refused.value.error == ErrorCode.INVALID_REPLICATION_FACTOR
    assert str(refused.value) == text
