"""What the active controller writes unasked, and when."""

import pytest

from conformance.marker import kafka_scenario
from narrow import not_none
from quorate.base.ids import ZERO_UUID
from quorate.controller.activation import ACTIVATION, NO_OP, Bootstrap
from quorate.controller.context import ControllerConfig
from quorate.controller.elections import ELECT_LEFT_OVER, ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.heartbeats import FENCE_STALE_BROKER
from quorate.controller.liveness import Liveness
from quorate.metadata.image import Image
from quorate.node.apis import API_TABLE
from quorate.node.own_writes import OwnWrites
from quorate.node.registration import Registrant
from quorate.wire.messages import BrokerHeartbeatRequest

IMAGE = Image()
"""Without a metadata.version: no controller registers."""
CONFIG = ControllerConfig(
    1,
    "cluster",
    session_timeout_ms=800,
    unclean_election_interval_ms=250,
    auto_leader_rebalance_enable=False,
    max_idle_ms=0,
)
FENCE_MS, UNCLEAN_MS = 100, 250
BROKER_HEARTBEAT = 63


def own_writes(config=CONFIG):
    return OwnWrites(Registrant(1, ZERO_UUID, ()), Bootstrap(()), config)


def lead(config=CONFIG):
    """What a node that has become active at 0 ms writes, after its first write."""
    writes = own_writes(config)
    writes.lead(0)
    assert due(writes, 0) == [ELECT_LEFT_OVER.name]
    return writes


def due(writes, now_ms, again=False):
    """The names of the tasks that are due; each is done at once."""
    found = [operation for operation, _ in writes.due(now_ms, IMAGE)]
    for operation in found:
        writes.done(operation, again, now_ms)
    return [operation.name for operation in found]


def test_the_activation_comes_first():
    """Then the elections that another leader has left over, once."""
    writes = own_writes()
    assert writes.lead(0) == (ACTIVATION, Bootstrap(()))
    assert due(writes, 0, again=True) == [ELECT_LEFT_OVER.name]
    assert due(writes, 1) == []
    writes.follow()
    writes.lead(5)
    assert due(writes, 5) == [ELECT_LEFT_OVER.name]


@kafka_scenario(
    "PeriodicTaskControlManagerTest",
    "activate",
    "registerTaskWhenActivated",
    "registerTaskAndAdvanceTime",
)
def test_each_task_runs_once_in_its_period():
    writes = lead()
    assert writes.wake_at_ms == FENCE_MS
    found = {at: due(writes, at) for at in range(50, 501, 50)}
    assert {at: names for at, names in found.items() if names} == {
        100: [FENCE_STALE_BROKER.name],
        200: [FENCE_STALE_BROKER.name],
        250: [ELECT_UNCLEAN.name],
        300: [FENCE_STALE_BROKER.name],
        400: [FENCE_STALE_BROKER.name],
        500: [FENCE_STALE_BROKER.name, ELECT_UNCLEAN.name],
    }


@kafka_scenario("PeriodicTaskControlManagerTest", "registerTaskWhenDeactivated")
def test_a_node_that_is_not_active_runs_no_task():
    writes = own_writes()
    writes.add_task(ELECT_PREFERRED, 10)
    assert writes.wake_at_ms is None and due(writes, 1_000_000) == []


@kafka_scenario(
    "PeriodicTaskControlManagerTest", "deactivate", "registerTaskWhenActivatedThenDeactivate"
)
def test_no_task_is_due_after_the_leadership():
    writes = lead()
    writes.follow()
    assert writes.wake_at_ms is None and due(writes, 1_000_000) == []


def test_a_task_that_ends_after_the_leadership_is_not_due_again():
    writes = lead()
    [(operation, _)] = writes.due(FENCE_MS, IMAGE)
    writes.follow()
    writes.done(operation, False, FENCE_MS)
    assert writes.wake_at_ms is None


@kafka_scenario("PeriodicTaskControlManagerTest", "continuation")
def test_a_task_with_more_to_do_runs_again_at_once():
    writes = lead()
    assert due(writes, FENCE_MS, again=True) == [FENCE_STALE_BROKER.name]
    assert due(writes, FENCE_MS + 9) == []
    assert due(writes, FENCE_MS + 10) == [FENCE_STALE_BROKER.name]
    assert due(writes, FENCE_MS + 10 + 99) == []
    assert due(writes, FENCE_MS + 10 + 100) == [FENCE_STALE_BROKER.name]


@kafka_scenario("PeriodicTaskControlManagerTest", "reschedulingAfterFailure")
@pytest.mark.parametrize("operation", [FENCE_STALE_BROKER, ELECT_UNCLEAN])
def test_a_task_that_has_failed_waits_for_its_period(operation):
    """Kafka waits for five minutes; a broker without contact would lead as long (decision 7)."""
    writes = lead()
    writes.due(UNCLEAN_MS, IMAGE)
    writes.done(operation, operation.failed(None, -1, None), UNCLEAN_MS)
    period = FENCE_MS if operation is FENCE_STALE_BROKER else UNCLEAN_MS
    assert writes.wake_at_ms == UNCLEAN_MS + period


def test_a_task_is_not_due_while_it_is_under_way():
    writes = lead()
    assert [one.name for one, _ in writes.due(FENCE_MS, IMAGE)] == [FENCE_STALE_BROKER.name]
    assert due(writes, FENCE_MS + 140) == []


@kafka_scenario("QuorumControllerTest", "noOpRecordWriteAfterTimeout")
@pytest.mark.parametrize(("max_idle_ms", "is_written"), [(30, True), (0, False)])
def test_a_no_op_is_due_each_idle_interval(max_idle_ms, is_written):
    writes = lead(ControllerConfig(1, "cluster", max_idle_ms=max_idle_ms))
    assert due(writes, 29) == []
    for now_ms in (30, 60):
        assert due(writes, now_ms) == ([NO_OP.name] if is_written else [])


@kafka_scenario("ReplicationControlManagerTest", "processExpiredBrokerHeartbeat")
def test_a_heartbeat_counts_as_contact_before_its_turn_comes():
    """It counts although it may time out in the queue."""
    liveness = Liveness(9_000)
    request = BrokerHeartbeatRequest(broker_id=1, broker_epoch=100)
    on_arrival = not_none(API_TABLE[BROKER_HEARTBEAT].on_arrival)
    on_arrival(liveness, request, 5_000)
    assert liveness.has_session(1, 100, 14_000) and not liveness.has_session(1, 100, 14_001)
