"""The loggers of the node that is asked: IncrementalAlterConfigs for resources of type BROKER_LOGGER.

Such a change is not in the metadata log. It ends with the process, and any node makes it for itself.

Source: `RuntimeLoggerManager`, `LoggingController`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from quorate.base.errors import ErrorCode
from quorate.config_definitions.java_text import parse_integer
from quorate.controller.building import Building, parts
from quorate.controller.config_changes import Operation
from quorate.controller.configs import IncrementalAlterConfigs, Outcome
from quorate.controller.result import ApiError
from quorate.metadata.image import ConfigResource
from quorate.metadata.resource_types import BROKER_LOGGER_RESOURCE
from quorate.wire.messages import IncrementalAlterConfigsRequest
from quorate.wire.schema import Message

ROOT_LOGGER: Final = "root"
LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
"""Kafka's levels (`LogLevelConfig`)."""


_CHANGED: Final = 250
"""Resources that are looked at in one step."""


class Loggers(Protocol):
    """The loggers of a process, with Kafka's levels."""

    def levels(self) -> Mapping[str, str]:
        """The level in force of each logger, the root logger among them."""

    def set_level(self, name: str, level: str) -> None:
        """Set the logger's own level."""

    def unset_level(self, name: str) -> None:
        """Take the logger's own level away: that of the root logger counts."""


class NoLoggers:
    """The loggers of a node that logs nothing itself."""

    def levels(self) -> Mapping[str, str]:
        return {}

    def set_level(self, name: str, level: str) -> None:
        """There is no logger to set."""

    def unset_level(self, name: str) -> None:
        """There is no logger to set."""


def change_loggers(
    loggers: Loggers, node_id: int, message: Message, *, is_allowed: bool
) -> Building[IncrementalAlterConfigs]:
    """Change the loggers that the request names, and keep what became of each resource of them.

    `is_allowed`: the requester may do it.
    """
    assert isinstance(message, IncrementalAlterConfigsRequest)
    outcomes: list[Outcome] = []
    for part in parts(message.resources, _CHANGED):
        if len(part) == _CHANGED:
            yield None
        for asked in part:
            if asked.resource_type == BROKER_LOGGER_RESOURCE:
                outcomes.append(
                    _change(loggers, node_id, asked, message.validate_only)
                    if is_allowed
                    else _denied(asked)
                )
    return IncrementalAlterConfigs(message, tuple(outcomes))


_Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


def _denied(asked: _Resource) -> Outcome:
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return Outcome(ConfigResource(asked.resource_type, asked.resource_name), error, error.message)


def _change(loggers: Loggers, node_id: int, asked: _Resource, validate_only: bool) -> Outcome:
    resource = ConfigResource(asked.resource_type, asked.resource_name)
    try:
        _check_node(node_id, asked.resource_name)
        _check_changes(loggers.levels(), asked.configs)
    except ApiError as refusal:
        return Outcome(resource, refusal.error, str(refusal))
    for change in () if validate_only else asked.configs:
        if change.config_operation == Operation.SET:
            assert change.value is not None
            loggers.set_level(change.name, change.value)
        else:
            loggers.unset_level(change.name)
    return Outcome(resource)


def _check_node(node_id: int, name: str) -> None:
    asked = parse_integer(name, 32)
    if asked is None:
        raise _invalid_request(f"Node id must be an integer, but it is: {name}")
    if asked != node_id:
        raise _invalid_request(f"Unexpected node id. Expected {node_id}, but received {asked}")


def _check_changes(levels: Mapping[str, str], changes: Iterable[_Resource.AlterableConfig]) -> None:
    for change in changes:
        match change.config_operation:
            case Operation.SET:
                _check_known(levels, change.name)
                if change.value not in LEVELS:
                    text = (
                        f"Cannot set the log level of {change.name} to {change.value} as it is not a "
                        f"supported log level. Valid log levels are {', '.join(LEVELS)}"
                    )
                    raise ApiError(ErrorCode.INVALID_CONFIG, text)
            case Operation.DELETE:
                _check_known(levels, change.name)
                if change.name == ROOT_LOGGER:
                    text = f"Removing the log level of the {ROOT_LOGGER} logger is not allowed"
                    raise _invalid_request(text)
            case Operation.APPEND | Operation.SUBTRACT as number:
                name = Operation(number).name
                text = f"{name} operation is not allowed for the BROKER_LOGGER resource"
                raise _invalid_request(text)
            case number:
                text = (
                    f"Unknown operation type {number} is not allowed for the BROKER_LOGGER resource"
                )
                raise _invalid_request(text)


def _check_known(levels: Mapping[str, str], name: str) -> None:
    if name not in levels:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def _invalid_request(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
