"""IncrementalAlterConfigs through a node: its own loggers, beside what the active controller writes."""

import logging

import pytest

from conformance.marker import kafka_scenario
from node.world import World
from quorate.base.errors import ErrorCode
from quorate.controller.config_changes import Operation
from quorate.metadata.image import ConfigResource
from quorate.metadata.resource_types import BROKER_LOGGER_RESOURCE, BROKER_RESOURCE
from quorate.server.logs import LOGGERS, PythonLoggers
from quorate.wire.messages import IncrementalAlterConfigsRequest

SET, DELETE, APPEND, SUBTRACT = Operation


@pytest.fixture
def loggers():
    """The loggers of this process; their levels return afterwards."""
    all_of_them = (*LOGGERS, logging.getLogger())
    before = [logger.level for logger in all_of_them]
    found = PythonLoggers()
    found.set_level("root", "WARN")
    yield found
    for logger, level in zip(all_of_them, before, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="module")
def world():
    world = World()
    world.run_until(lambda: world.active)
    return world


def ask(world, node, *changes, kind=BROKER_LOGGER_RESOURCE, name=None, validate_only=False):
    """Each change is (logger, operation, level). The outcomes, by type of resource."""
    cls = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            cls(
                resource_type=kind,
                resource_name=str(node.node_id) if name is None else name,
                configs=[
                    cls.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    response = world.ask(node.node_id, request)
    [outcome] = response.responses
    return ErrorCode(outcome.error_code), outcome.error_message


@kafka_scenario(
    "RuntimeLoggerManagerTest", "validateSetLogLevelConfig", "validateDeleteLogLevelConfig"
)
@kafka_scenario("RuntimeLoggerManagerTest", "validateSetRootLogLevelConfig")
def test_any_node_changes_its_own_loggers(world, loggers):
    follower = next(node for node in world.alive if node is not world.active)
    for node in (follower, world.active):
        node.controller.loggers = loggers
        assert ask(world, node, ("quorate", SET, "TRACE")) == (ErrorCode.NONE, None)
        assert loggers.levels()["quorate"] == "TRACE"
        assert ask(world, node, ("root", SET, "ERROR"), ("quorate", DELETE, None))[0] == 0
        assert loggers.levels()["quorate"] == loggers.levels()["root"] == "ERROR"
        assert ask(world, node, ("quorate", SET, "INFO"), validate_only=True)[0] == 0
        assert loggers.levels()["quorate"] == "ERROR"
    assert not world.active.image.configs


@kafka_scenario(
    "RuntimeLoggerManagerTest",
    "operationNotAllowed",
    "validateBogusLogLevelNameNotAllowed",
    "validateRemoveRootLogLevelConfigNotAllowed",
)
@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            ("quorate", SET, "BOGUS"),
            ErrorCode.INVALID_CONFIG,
            "Cannot set the log level of quorate to BOGUS as it is not a supported log level. Valid "
            "log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        (("kafka", SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger kafka does not exist!"),
        (("kafka", DELETE, None), ErrorCode.INVALID_CONFIG, "Logger kafka does not exist!"),
        (
            ("root", DELETE, None),
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            ("quorate", APPEND, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            ("quorate", SUBTRACT, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "SUBTRACT operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            ("quorate", 7, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "Unknown operation type 7 is not allowed for the BROKER_LOGGER resource",
        ),
    ],
)
def test_what_is_not_done_to_loggers(world, loggers, change, error, text):
    world.active.controller.loggers = loggers
    before = loggers.levels()
    first = ("quorate", SET, "FATAL")  # nothing is changed where anything is wrong
    assert ask(world, world.active, first, change) == (error, text)
    assert loggers.levels() == before


def test_a_node_has_no_loggers_of_another(world):
    node = world.active
    text = f"Unexpected node id. Expected {node.node_id}, but received 77"
    assert ask(world, node, name="77") == (ErrorCode.INVALID_REQUEST, text)
    text = "Node id must be an integer, but it is: x"
    assert ask(world, node, name="x") == (ErrorCode.INVALID_REQUEST, text)


def test_what_is_stored_is_written_by_the_active_controller(world):
    follower = next(node for node in world.alive if node is not world.active)
    change = ("background.threads", SET, "3")
    error, text = ask(world, follower, change, kind=BROKER_RESOURCE, name="")
    assert error == ErrorCode.NOT_CONTROLLER
    assert text == f"The active controller appears to be node {world.active.node_id}."
    assert ask(world, world.active, change, kind=BROKER_RESOURCE, name="")[0] == 0
    resource = ConfigResource(BROKER_RESOURCE, "")
    assert dict(world.active.image.configs[resource]) == {"background.threads": "3"}
