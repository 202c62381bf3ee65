"""Quotas on the work for clients, through whole controllers (KIP-124)."""

from typing import Any

import pytest

from node.world import World
from quorate.base.errors import ErrorCode
from quorate.node.apis import API_TABLE
from quorate.node.client_quotas import is_exempt
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    AlterPartitionRequest,
    DescribeClusterRequest,
    DescribeQuorumRequest,
)

ENTRY = AlterClientQuotasRequest.EntryData


def percentage(user, value):
    return AlterClientQuotasRequest(
        entries=[
            ENTRY(
                entity=[ENTRY.EntityData(entity_type="user", entity_name=user)],
                ops=[ENTRY.OpData(key="request_percentage", value=value)],
            )
        ]
    )


@pytest.fixture
def world():
    world = World()
    world.run_until(lambda: world.active)
    world.run(1_000)
    return world


class Busy:
    """The active controller, for which each look at the clock takes 100 ms."""

    def __init__(self, world):
        self.world, self.node, self._ns = world, world.active, 0
        self.throttled: list[Any] = []
        controller, step = self.node.controller, self.node.controller.step
        controller.client_quotas.clock = self.clock

        def stepped(happened, now):
            effects = step(happened, now)
            self.throttled.extend(ms for _, ms in effects.throttled)
            return effects

        controller.step = stepped

    def clock(self):
        self._ns += 100_000_000
        return self._ns

    def ask(self, message, version=None, principal="User:ANONYMOUS"):
        return self.world.ask(self.node.node_id, message, version, principal)


def test_reads_and_writes_of_a_client_beyond_its_percentage_are_throttled(world):
    busy = Busy(world)
    busy.ask(percentage("ANONYMOUS", 0.5))
    busy.throttled.clear()
    read = busy.ask(DescribeClusterRequest(endpoint_type=2))
    written = busy.ask(percentage("other", 1.0))
    assert read.error_code == written.entries[0].error_code == ErrorCode.NONE
    assert read.throttle_time_ms == written.throttle_time_ms == 1_000 == busy.throttled[0]
    assert busy.throttled == [1_000, 1_000]
    others = busy.ask(DescribeClusterRequest(endpoint_type=2), principal="User:free")
    assert others.throttle_time_ms == 0 and len(busy.throttled) == 2


def test_raft_requests_and_alter_partition_are_never_throttled(world):
    busy = Busy(world)
    busy.ask(percentage("ANONYMOUS", 0.001))
    busy.throttled.clear()
    quorum = busy.ask(DescribeQuorumRequest())
    isr = busy.ask(AlterPartitionRequest(broker_id=1, broker_epoch=1))
    assert quorum.error_code == ErrorCode.NONE and isr.throttle_time_ms == 0
    assert busy.throttled == []
    assert busy.node.controller.client_quotas.requests.exempt.total > 0
    exempt = {row.name for row in API_TABLE.values() if is_exempt(row.key)}
    assert exempt == {
        *("Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch"),
        *("DescribeQuorum", "AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter"),
        "AlterPartition",
    }
