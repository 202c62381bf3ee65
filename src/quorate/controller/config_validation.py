"""Whether a resource may have these configs, all together.

Source: `ControllerConfigurationValidator`, `LogConfig.validate`, `GroupConfig.validate`,
`ClientMetricsConfigs.validate`, `QuorumController.ConfigResourceExistenceChecker`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.java_order import hash_map_order
from quorate.config_definitions.definition import (
    Definitions,
    broker_configs,
    client_metrics_configs,
    group_configs,
    topic_configs,
)
from quorate.config_definitions.java_text import BLANKS, parse_integer
from quorate.config_definitions.values import ConfigValueError, Value, parse, parse_all
from quorate.controller.context import Context
from quorate.controller.group_bounds import check_bounds
from quorate.controller.result import ApiError
from quorate.controller.topic_names import check_topic_name
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from quorate.security.java_patterns import is_common

REMOTE: Final = "remote.storage.enable"
_INTERVAL: Final = "interval.ms"
_LEAST_INTERVAL_MS, _MOST_INTERVAL_MS = 100, 3_600_000
_MATCHED: Final = frozenset(
    f"client_{what}"
    for what in (
        *("instance_id", "id", "software_name", "software_version"),
        *("source_address", "source_port"),
    )
)
_DERIVED: Final = -2
"""The local retention is the whole retention."""
_NOT_DELETED: Final = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep the "
    "remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote storage "
    "and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)

Configs = Mapping[str, str]


def check_configs(
    image: Image, resource: ConfigResource, before: Configs, after: Configs, context: Context
) -> None:
    """Check the name of a resource, and the configs that it had and shall have. Raises ApiError."""
    try:
        match resource.type:
            case kind if kind == TOPIC_RESOURCE:
                _check_topic_name(resource.name)
                _check_topic(image, before, after, context)
            case kind if kind == BROKER_RESOURCE:
                _check_broker_name(resource.name)
            case kind if kind == CLIENT_METRICS_RESOURCE:
                _check_client_metrics(resource.name, after)
            case kind if kind == GROUP_RESOURCE:
                if not resource.name:
                    raise _invalid_request("Default group resources are not allowed.")
                _check_group(image, after, context)
            case _:
                raise _invalid_request(f"Unknown resource type {resource.type}")
    except ConfigValueError as error:
        raise _invalid_config(str(error)) from None


def check_existence(image: Image, resource: ConfigResource, context: Context) -> None:
    """Check that the topic, broker or controller exists. Raises ApiError."""
    name = resource.name
    if resource.type == TOPIC_RESOURCE and name not in image.topics.ids:
        text = f"The topic '{name}' does not exist."
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if resource.type == BROKER_RESOURCE and name:
        node_id = int(name)
        voters = context.control.voters or ()
        if not (
            node_id in image.cluster.brokers
            or node_id in image.cluster.controllers
            or any(voter.key.id == node_id for voter in voters)
        ):
            text = f"No node with id {node_id} found."
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)


def _invalid_config(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, text)


def _invalid_request(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)


def _first_unknown(names: Collection[str], definitions: Definitions) -> str | None:
    """The first name without a definition, in the order of Kafka's hash map; None: each has one."""
    if all(name in definitions for name in names):
        return None
    return next(name for name in hash_map_order(names) if name not in definitions)


def _check_topic_name(name: str) -> None:
    if not name:
        raise _invalid_request("Default topic resources are not allowed.")
    check_topic_name(name)


def _check_broker_name(name: str) -> None:
    if not name:
        return
    node_id = parse_integer(name, 32)
    if node_id is None:
        raise _invalid_request("Unable to parse broker name as a base 10 number.")
    if node_id < 0:
        raise _invalid_request("Invalid negative broker ID.")


# -- topics ---------------------------------------------------------------------------------------
def _check_topic(image: Image, before: Configs, after: Configs, context: Context) -> None:
    definitions = topic_configs()
    unknown = _first_unknown(after, definitions)
    if unknown is not None:
        raise _invalid_config(f"Unknown topic config name: {unknown}")
    texts = {**context.configs.topic_defaults(image), **after}
    values = parse_all(definitions, texts)
    _check_compaction_lags(values)
    if values[REMOTE]:
        _check_remote_storage(values, _is_remote_storage_on(context))
    elif before.get(REMOTE, "").lower() == "true" and not values["remote.log.delete.on.disable"]:
        raise _invalid_config(_NOT_DELETED)


def _check_compaction_lags(values: Mapping[str, Value | None]) -> None:
    least, most = "min.compaction.lag.ms", "max.compaction.lag.ms"
    if _number(values, least) > _number(values, most):
        raise _invalid_config(
            f"conflict topic config setting {least} ({values[least]}) > {most} ({values[most]})"
        )


def _is_remote_storage_on(context: Context) -> bool:
    definition = broker_configs()["remote.log.storage.system.enable"]
    text = context.config.file.get(definition.name, definition.default)
    return parse(definition, text) is True


def _check_remote_storage(values: Mapping[str, Value | None], is_on: bool) -> None:
    if not is_on:
        raise _invalid_config(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
    if values["cleanup.policy"] not in ((), ("delete",)):
        raise _invalid_config(
            "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy "
            "being an empty list."
        )
    _check_local_retention(values, "retention.bytes", "local.retention.bytes")
    _check_local_retention(values, "retention.ms", "local.retention.ms")
    if values["remote.log.copy.disable"]:
        _check_no_copies(values, "local.retention.bytes", "retention.bytes")
        _check_no_copies(values, "local.retention.ms", "retention.ms")


def _check_local_retention(values: Mapping[str, Value | None], whole: str, local: str) -> None:
    most, kept = _number(values, whole), _number(values, local)
    # A size below -1 is no limit, a time below -1 is none that a topic may have.
    if most <= -1 or kept == _DERIVED:
        return
    start = f"Invalid value {kept} for configuration {local}: Value must not be"
    if kept == -1:
        raise _invalid_config(f"{start} -1 as {whole} value is set as {most}.")
    if kept > most:
        raise _invalid_config(f"{start} more than {whole} property value: {most}")


def _check_no_copies(values: Mapping[str, Value | None], local: str, whole: str) -> None:
    if values[local] not in (_DERIVED, values[whole]):
        raise _invalid_config(
            f"When `remote.log.copy.disable` is set to true, the `{local}` and `{whole}` must be set "
            "to the identical value because there will be no more logs copied to the remote storage."
        )


def _number(values: Mapping[str, Value | None], name: str) -> int:
    value = values[name]
    assert isinstance(value, int)
    return value


# -- groups and client metrics --------------------------------------------------------------------
def _check_group(image: Image, after: Configs, context: Context) -> None:
    definitions = group_configs()
    unknown = _first_unknown((*definitions, *after), definitions)
    if unknown is not None:
        raise _invalid_config(f"Unknown group config name: {unknown}")
    defaults = context.configs.group_defaults(image)
    values = parse_all(definitions, {**defaults, **after})
    problem = check_bounds(values, after, context.configs.node_configs(image))
    if problem is not None:
        raise _invalid_config(problem)


def _check_client_metrics(subscription: str, after: Configs) -> None:
    if not subscription:
        raise _invalid_request("Subscription name can't be empty")
    definitions = client_metrics_configs()
    unknown = _first_unknown(after, definitions)
    if unknown is not None:
        raise _invalid_request(f"Unknown client metrics configuration: {unknown}")
    values = parse_all(definitions, after)
    interval = values[_INTERVAL]
    assert isinstance(interval, int)
    if not _LEAST_INTERVAL_MS <= interval <= _MOST_INTERVAL_MS:
        raise _invalid_request(
            f"Invalid value {interval} for {_INTERVAL}, interval must be between 100 and 3600000 "
            "(1 hour)"
        )
    patterns = values["match"]
    assert isinstance(patterns, tuple)
    _check_patterns(patterns)


def _check_patterns(patterns: Sequence[str]) -> None:
    """Check items of `name=regular expression`. Brokers read it with Java. One that only Java or only
    Python can read is refused."""
    for pattern in patterns:
        parts = pattern.split("=")
        while parts and not parts[-1]:  # Java's `split` drops empty strings at the end
            parts.pop()
        is_right = len(parts) == 2 and parts[0].strip(BLANKS) in _MATCHED
        if not is_right or not is_common(parts[1].strip(BLANKS)):
            raise _invalid_config(f"Illegal client matching pattern: {pattern}")
