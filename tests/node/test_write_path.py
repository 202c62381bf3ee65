"""The write path of three controllers, through a made-up API: decided, committed, answered, lost."""

import struct
from dataclasses import replace

import pytest

from conformance.marker import kafka_scenario
from node.made_up_api import API, KEY, METRICS, ROW, MadeUpRequest, command
from node.test_apis import envelope
from node.world import World
from quorate.base.errors import ErrorCode
from quorate.base.notes import Fault
from quorate.controller.result import MAX_RECORDS
from quorate.formats.batch import iter_batches
from quorate.node.api_row import BULK_REQUEST_BYTES
from quorate.node.apis import API_TABLE, served
from quorate.node.queued_write import SHUTTING_DOWN
from quorate.node.request_limits import size_refusal
from quorate.raft import inputs
from quorate.security.authorizer import AuthorizerConfig
from quorate.wire.header import decode_response
from quorate.wire.messages import (
    AlterClientQuotasRequest,
    ApiVersionsRequest,
    DescribeClusterRequest,
    EnvelopeResponse,
)
from quorate.wire.registry import APIS

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
NO_CONTROLLER = "No controller appears to be active."


@pytest.fixture(autouse=True)
def _row(monkeypatch):
    known = APIS._known  # type: ignore[attr-defined]  # of each message that was imported
    monkeypatch.setitem(known, KEY, API)
    monkeypatch.setitem(API_TABLE, KEY, ROW)
    served.cache_clear()
    yield
    served.cache_clear()


@pytest.fixture
def world():
    world = World()
    world.run_until(
        lambda: world.active and set(world.active.image.cluster.controllers) == {1, 2, 3}
    )
    world.run(100)
    return world


@pytest.fixture
def leader(world):
    return world.active


@pytest.fixture
def follower(world):
    return next(n for n in world.alive if n is not world.active)


def written(image, name):
    return sum(len(v) for k, v in image.configs.items() if k == (METRICS, name))


def said(response):
    return response.error_code, response.error_message


def cut_off(world, leader):
    world.cut |= {n.node_id for n in world.alive if n is not leader}


def controller(node):
    return node.controller


# -- commit --------------------------------------------------------------------------------------
def test_the_row_alone_makes_it_an_api(world):
    found = [api for api in world.ask(1, HELLO).api_keys if api.api_key == KEY]
    assert [(api.min_version, api.max_version) for api in found] == [(0, 2)]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_of_it_is_served(world, leader, version):
    assert said(world.ask(leader.node_id, command("a"), version)) == (ErrorCode.NONE, "0 before")


def test_the_row_says_how_long_its_requests_may_be():
    frame = struct.pack(">hhi", KEY, 2, 7).ljust(BULK_REQUEST_BYTES + 1, b"\0")
    why = size_refusal(frame, len(frame))
    assert why == "a request of MadeUp has 1048576 bytes at most here, not 1048577"
    assert size_refusal(frame, BULK_REQUEST_BYTES) is None


@pytest.mark.parametrize("forwardable", [True, False])
def test_the_row_says_whether_a_broker_may_forward_it(world, leader, monkeypatch, forwardable):
    monkeypatch.setitem(API_TABLE, KEY, replace(ROW, forwardable=forwardable))
    got = world.ask(leader.node_id, envelope(command("a"), 2))
    if not forwardable:
        assert (got.error_code, got.response_data) == (ErrorCode.INVALID_REQUEST, None)
        return
    assert got.error_code == ErrorCode.NONE
    assert said(decode_response(got.response_data, KEY, 2)[1]) == (ErrorCode.NONE, "0 before")


def test_the_row_says_whom_an_authorizer_lets_in():
    world = World(authorizer=AuthorizerConfig(super_users=frozenset({"User:ANONYMOUS"})))
    world.run_until(
        lambda: world.active and set(world.active.image.cluster.controllers) == {1, 2, 3}
    )
    answer = world.ask(world.leader.node_id, command("a"), principal="User:ann")
    assert said(answer)[0] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert said(world.ask(world.leader.node_id, command("a")))[0] == ErrorCode.NONE


@kafka_scenario("QuorumControllerTest", "delayedConfigurationOperations")
def test_a_write_is_answered_when_it_is_committed(world, leader):
    cut_off(world, leader)
    got = world.call(leader.node_id, command("a", 3))
    world.run(100)
    assert got == []
    assert written(controller(leader).head.image, "a") == 3
    assert written(leader.image, "a") == 0
    assert controller(leader).pending_offset > leader.core.high_watermark
    world.cut.clear()
    world.run_until(lambda: got)
    assert said(got[0]) == (ErrorCode.NONE, "0 before")
    assert written(leader.image, "a") == 3
    world.run_until(lambda: all(written(n.image, "a") == 3 for n in world.alive))


def test_a_write_is_decided_on_those_before_it(world, leader):
    calls = [world.call(leader.node_id, command(name)) for name in "abc"]
    world.run_until(lambda: all(calls))
    assert [said(got[0])[1] for got in calls] == ["0 before", "1 before", "2 before"]


def test_head_and_committed_image_are_one_when_nothing_is_outstanding(world, leader):
    world.ask(leader.node_id, command("a", 3))
    head = controller(leader).head
    assert head.outstanding == 0
    assert head.image is head.committed is leader.image
    assert controller(leader).pending_offset == leader.core.high_watermark


def test_standbys_have_the_same_image_and_head(world, leader, follower):
    world.ask(leader.node_id, command("a", 3))
    world.run_until(lambda: follower.image == leader.image)
    assert controller(follower).head.image is follower.image


# -- no records ----------------------------------------------------------------------------------
@pytest.mark.parametrize("request_", [command("known"), command("x", validate_only=True)])
def test_without_records_the_answer_waits_for_what_it_reports(world, leader, request_):
    cut_off(world, leader)
    first = world.call(leader.node_id, command("a", 3))
    world.run(5)
    read = world.call(leader.node_id, request_)
    world.run(100)
    assert (first, read) == ([], [])
    world.cut.clear()
    world.run_until(lambda: first and read)
    assert said(read[0]) == (ErrorCode.NONE, "3 known")


def test_without_records_and_nothing_pending_the_answer_comes_at_once(world, leader):
    cut_off(world, leader)
    got = world.call(leader.node_id, command("known"))
    world.run(2)
    assert [said(one) for one in got] == [(ErrorCode.NONE, "0 known")]


@kafka_scenario("ControllerExceptionsTest", "topicExistsExceptionIsNotTimeoutException")
@kafka_scenario(
    "EventHandlerExceptionInfoTest",
    "topicExistsExceptionInfo",
    "topicExistsExceptionFailureMessage",
)
def test_a_refusal_waits_for_nothing_and_writes_nothing(world, leader):
    cut_off(world, leader)
    world.call(leader.node_id, command("a"))
    got = world.call(leader.node_id, command("refused"))
    world.run(2)
    assert [said(one) for one in got] == [(ErrorCode.POLICY_VIOLATION, "refused")]


@kafka_scenario("QuorumControllerTest", "earlyControllerResults")
def test_an_empty_request_succeeds_at_once_on_every_node(world):
    for node in world.alive:
        assert said(world.ask(node.node_id, MadeUpRequest())) == (ErrorCode.NONE, None)
        assert world.ask(node.node_id, AlterClientQuotasRequest()).entries == []


# -- leadership ----------------------------------------------------------------------------------
@kafka_scenario("ControllerExceptionsTest", "newWrongControllerExceptionWithActiveController")
def test_a_standby_names_the_active_controller(world, leader, follower):
    text = f"The active controller appears to be node {leader.node_id}."
    assert said(world.ask(follower.node_id, command("a"))) == (ErrorCode.NOT_CONTROLLER, text)


@kafka_scenario("ControllerExceptionsTest", "newWrongControllerExceptionWithNoController")
def test_a_node_that_knows_no_leader_says_so(world, leader):
    world.cut.add(leader.node_id)
    world.run_until(lambda: controller(leader).leader_id == -1)
    answer = world.ask(leader.node_id, command("a"))
    assert said(answer) == (ErrorCode.NOT_CONTROLLER, NO_CONTROLLER)


@kafka_scenario("OffsetControlManagerTest", "activateAndDeactivate")
def test_lost_leadership_fails_every_write_and_reverts_the_head(world, leader):
    before = leader.image
    world.cut.add(leader.node_id)
    world.run(600)  # no fetch is parked any more: what is decided now is lost
    wanted = [command("a"), command("known"), command("slow", 100_000)]
    calls = [world.call(leader.node_id, request) for request in wanted]
    world.run(20)
    assert written(controller(leader).head.image, "a") == 1
    world.run_until(lambda: controller(leader).leader_id != leader.node_id or any(calls))
    assert {said(got[0]) for got in calls} == {(ErrorCode.NOT_CONTROLLER, NO_CONTROLLER)}
    assert controller(leader).head.image is leader.image
    assert controller(leader).head.outstanding == 0
    assert leader.image.configs == before.configs
    world.cut.clear()
    world.run_until(lambda: world.active and world.active is not leader)
    world.run(200)
    assert said(world.ask(world.active.node_id, command("known"))) == (ErrorCode.NONE, "0 known")


def test_a_write_in_an_envelope_sends_the_broker_to_the_next_controller(world, leader):
    """As `RequestChannel.buildResponse`: NOT_CONTROLLER anywhere in the inner response."""
    from node.test_controllers_together import quota

    world.cut.add(leader.node_id)
    got = world.call(leader.node_id, envelope(quota("ann", 5.0), 1))
    world.run_until(lambda: got)
    assert isinstance(got[0], EnvelopeResponse)
    assert (got[0].error_code, got[0].response_data) == (ErrorCode.NOT_CONTROLLER, None)


def test_a_resignation_reverts_the_head_at_once(world, leader):
    world.cut.add(leader.node_id)
    world.call(leader.node_id, command("a"))
    world.run(5)
    world.give(leader.node_id, inputs.Resign(leader.core.epoch))
    world.run(1)
    assert not controller(leader).is_active
    assert controller(leader).head.image is leader.image


# -- faults --------------------------------------------------------------------------------------
def test_a_defect_in_a_decision_is_reported_and_ends_the_leadership(world, leader):
    pending = world.call(leader.node_id, command("a"))
    got = world.call(leader.node_id, command("broken"))
    world.run_until(lambda: got and pending)
    assert said(got[0]) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert said(pending[0]) == (ErrorCode.NOT_CONTROLLER, NO_CONTROLLER)
    assert [n for n in leader.notes if isinstance(n, Fault)] == [
        "MadeUp failed: ZeroDivisionError: a defect; resigning"
    ]
    world.run_until(lambda: world.active and world.active is not leader)
    assert leader.faulted is None
    world.run(3000)
    assert leader.image == world.active.image


# -- sizes ---------------------------------------------------------------------------------------
def test_as_many_records_as_an_atomic_result_may_have(world, leader):
    assert said(world.ask(leader.node_id, command("a", MAX_RECORDS)))[0] == ErrorCode.NONE
    assert written(leader.image, "a") == MAX_RECORDS


@kafka_scenario("QuorumControllerTest", "appendRecordsAtomically")
def test_an_atomic_result_that_is_too_large_is_a_fault(world, leader):
    got = world.ask(leader.node_id, command("a", MAX_RECORDS + 1))
    assert said(got) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "at most 10000 are possible" in next(n for n in leader.notes if isinstance(n, Fault))
    world.run_until(lambda: world.active and world.active is not leader)
    assert written(world.active.image, "a") == 0


@pytest.mark.parametrize("count", [2 * MAX_RECORDS - 1, 2 * MAX_RECORDS, 2 * MAX_RECORDS + 1])
def test_a_result_in_parts_keeps_the_leadership(world, leader, count):
    """Of exactly k x 10,000 records Kafka's controller makes an empty append, and renounces."""
    epoch = leader.core.epoch
    assert said(world.ask(leader.node_id, command("parts", count)))[0] == ErrorCode.NONE
    assert written(leader.image, "parts") == count
    assert (world.active, leader.core.epoch) == (leader, epoch)
    data = leader.storage.read(0, leader.storage.end_offset, 1 << 30)
    views = [v for v in iter_batches(data) if not v.is_control]
    assert sum(v.last_offset - v.base_offset + 1 for v in views) >= count
    assert all(v.last_offset >= v.base_offset for v in views)


# -- decisions in steps --------------------------------------------------------------------------
def test_reads_go_on_while_a_decision_in_steps_holds_the_queue(world, leader):
    slow = world.call(leader.node_id, command("slow", 200))
    world.run(3)
    later = world.call(leader.node_id, command("later"))
    for _ in range(3):
        read = world.call(leader.node_id, DescribeClusterRequest(endpoint_type=2))
        world.run(2)
        assert [one.controller_id for one in read] == [leader.node_id]
    epoch = leader.core.epoch
    assert (slow, later) == ([], [])
    world.run_until(lambda: slow and later)
    assert [said(one[0])[1] for one in (slow, later)] == ["0 before", "200 before"]
    assert leader.core.epoch == epoch


@kafka_scenario("QuorumControllerTest", "timeouts")
def test_a_write_that_waits_too_long_for_its_turn_times_out(world, leader):
    slow = world.call(leader.node_id, command("slow", 2_000))
    world.run(3)
    late = world.call(leader.node_id, command("late"))
    world.run(400)
    assert late == []
    world.run(200)
    assert said(late[0])[0] == ErrorCode.REQUEST_TIMED_OUT and slow == []
    world.run_until(lambda: slow)
    assert written(leader.image, "late") == 0


def test_a_write_that_waits_for_its_turn_fails_when_the_node_shuts_down(world, leader):
    slow = world.call(leader.node_id, command("slow", 2_000))
    world.run(3)
    waiting = world.call(leader.node_id, command("waiting"))
    world.run(3)
    world.give(leader.node_id, inputs.Shutdown())
    world.run_until(lambda: waiting and slow)
    assert said(waiting[0]) == (ErrorCode.REQUEST_TIMED_OUT, SHUTTING_DOWN)
    assert said(slow[0]) == (ErrorCode.NOT_CONTROLLER, NO_CONTROLLER)
    assert written(leader.image, "waiting") == 0


# -- for checkers --------------------------------------------------------------------------------
def test_the_effects_name_what_each_successful_write_reports(world, leader):
    seen = []
    step = controller(leader).step

    def watch(happened, now):
        effects = step(happened, now)
        for token, offset in effects.committed:
            assert token in {answer[0] for answer in effects.answers}
            seen.append((offset, leader.core.high_watermark))
        return effects

    controller(leader).step = watch
    for name in ("a", "b", "known"):
        world.ask(leader.node_id, command(name))
    assert len(seen) == 3
    assert all(0 < offset <= high_watermark for offset, high_watermark in seen)
