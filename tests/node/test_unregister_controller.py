"""UnregisterController (KIP-1312): the checks in Kafka's order, the record, the way back."""

import pytest

from node.test_apis import bootstrap, envelope, registration
from node.world import World
from quorate.base.errors import ErrorCode
from quorate.formats.records import RegisterControllerRecord, UnregisterControllerRecord
from quorate.wire.header import decode_response
from quorate.wire.messages import UnregisterControllerRequest, UnregisterControllerResponse

KEY = 94


def at_level(level):
    world = World(bootstrap=bootstrap(metadata_version=level))
    world.run_until(
        lambda: world.active and set(world.active.image.cluster.controllers) == {1, 2, 3}
    )
    world.run(100)
    return world


@pytest.fixture
def world():
    return at_level(33)


@pytest.fixture
def follower(world):
    return next(n for n in world.alive if n is not world.active)


def unregister(world, controller_id, node_id=None):
    asked = world.active.node_id if node_id is None else node_id
    answer = world.ask(asked, UnregisterControllerRequest(controller_id=controller_id))
    return answer.error_code, answer.error_message


def test_a_controller_that_is_gone_is_unregistered_by_one_record(world):
    world.ask(world.active.node_id, registration(9))
    assert unregister(world, 9) == (ErrorCode.NONE, "")
    world.run_until(lambda: all(9 not in n.image.cluster.controllers for n in world.alive))


@pytest.mark.parametrize("level", [15, 32, 33])
def test_the_active_controller_cannot_unregister_itself(level):
    """Whatever the level: Kafka checks this first."""
    world = at_level(level)
    text = "Controller cannot unregister itself while it is active."
    assert unregister(world, world.active.node_id) == (ErrorCode.INVALID_REQUEST, text)
    assert set(world.active.image.cluster.controllers) == {1, 2, 3}


@pytest.mark.parametrize("controller_id", [2, 9])
def test_below_level_33_nothing_is_unregistered(controller_id):
    """Whether it is registered is checked later."""
    world = at_level(32)
    if controller_id == world.active.node_id:
        controller_id = 3
    text = "The current MetadataVersion is too old to support controller unregistration."
    assert unregister(world, controller_id) == (ErrorCode.UNSUPPORTED_VERSION, text)
    assert set(world.active.image.cluster.controllers) == {1, 2, 3}


@pytest.mark.parametrize("controller_id", [9, -1, 2**31 - 1])
def test_a_controller_that_is_not_registered_is_named(world, controller_id):
    text = f"Controller ID {controller_id} is not currently registered."
    assert unregister(world, controller_id) == (ErrorCode.CONTROLLER_ID_NOT_REGISTERED, text)


def test_only_the_active_controller_unregisters(world, follower):
    error, text = unregister(world, 9, follower.node_id)
    assert error == ErrorCode.NOT_CONTROLLER
    assert text == f"The active controller appears to be node {world.active.node_id}."


def test_a_broker_may_forward_the_request(world):
    inner = UnregisterControllerRequest(controller_id=9)
    answer = world.ask(world.active.node_id, envelope(inner, 0))
    assert answer.error_code == ErrorCode.NONE
    _, response = decode_response(answer.response_data, KEY, 0)
    assert isinstance(response, UnregisterControllerResponse)
    assert response.error_code == ErrorCode.CONTROLLER_ID_NOT_REGISTERED


def test_a_running_voter_is_unregistered_and_registers_the_same_incarnation_again(world, follower):
    """Kafka 4.4.0 asks neither whether it is a voter nor whether it runs (KAFKA-20865).

    `ControllerRegistrationManager` registers again when its registration is removed.
    """
    node_id = follower.node_id
    before = world.active.image.cluster.controllers[node_id]
    asked_at = world.now_ms
    assert unregister(world, node_id) == (ErrorCode.NONE, "")
    world.run_until(lambda: world.active.image.cluster.controllers.get(node_id) == before)
    assert world.now_ms - asked_at < 100
    kinds = [type(record) for record in records_about(world, node_id)]
    assert kinds == [RegisterControllerRecord, UnregisterControllerRecord, RegisterControllerRecord]


def records_about(world, node_id):
    from node.test_controllers_together import values_of
    from quorate.formats.records import decode_record

    records = (decode_record(value)[0] for value in values_of(world.active))
    return [one for one in records if getattr(one, "controller_id", None) == node_id]
