"""Changes to the configs of one resource: the records, and the checks before they are written.

Source: `ConfigurationControlManager`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from enum import IntEnum
from typing import Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.config_definitions.definition import (
    ConfigType,
    Definition,
    broker_configs,
    topic_configs,
)
from quorate.config_definitions.java_text import BLANKS, COMMA
from quorate.controller.config_validation import check_configs, check_existence
from quorate.controller.configs_in_force import MIN_ISR, NO_CONFIGS, known_configs
from quorate.controller.context import Context
from quorate.controller.policies import ConfigChange
from quorate.controller.policy_check import ask
from quorate.controller.result import MAX_RECORDS, ApiError
from quorate.formats.records import ClearElrRecord, ConfigRecord
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.wire.schema import Message

CORDONED: Final = "cordoned.log.dirs"
MAX_VALUE: Final = 32_767
"""Longest value of a config, in bytes of UTF-8: a record holds no longer text."""


class Operation(IntEnum):
    """What to do with a config (`AlterConfigOp.OpType`, KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """An operation on one config; DELETE needs no value, and SET to None is DELETE."""

    operation: int
    value: str | None


def check_count(configs: Sized) -> None:
    """Refuse more configs of one resource than a result may have records, whatever they are.

    Looking at each of a hundred thousand would hold the loop. Raises ApiError (POLICY_VIOLATION).
    """
    if len(configs) > MAX_RECORDS:
        text = "Unable to perform excessively large batch operation."
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)


def changed_configs(
    image: Image,
    resource: ConfigResource,
    changes: Mapping[str, Change],
    context: Context,
    *,
    is_new: bool = False,
) -> list[ConfigRecord]:
    """The records of an incremental change. `is_new`: the resource is about to be created.

    Raises ApiError where the resource would be wrong then; nothing of it is changed.
    """
    current = image.configs.get(resource, NO_CONFIGS)
    records = []
    for name, change in changes.items():
        before = current.get(name)
        after = _changed(resource, name, before, change)
        # Brokers read their files again where a value is set anew (KAFKA-14136).
        if after != before or resource.type == BROKER_RESOURCE:
            records.append(_record(resource, name, after))
    _check(image, resource, records, (), context, is_new)
    return records


def replaced_configs(
    image: Image, resource: ConfigResource, configs: Mapping[str, str | None], context: Context
) -> list[ConfigRecord]:
    """The records that leave the resource with these configs. Raises ApiError as above."""
    current = known_configs(image, resource)
    explicit = [
        _record(resource, name, value)
        for name, value in configs.items()
        if value != current.get(name) or resource.type == BROKER_RESOURCE
    ]
    implicit = [_record(resource, name, None) for name in current if name not in configs]
    _check(image, resource, explicit, implicit, context, is_new=False)
    return explicit + implicit


def clear_elr_records(image: Image, records: Iterable[ConfigRecord]) -> list[Message]:
    """What follows from changes of min.insync.replicas: eligible leader replicas were found with the
    old value, so they are forgotten (KIP-966)."""
    if not image.features.elr_enabled:
        return []
    return [
        ClearElrRecord(
            topic_name=record.resource_name if record.resource_type == TOPIC_RESOURCE else ""
        )
        for record in records
        if record.name == MIN_ISR
    ]


def _record(resource: ConfigResource, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(
        resource_type=resource.type, resource_name=resource.name, name=name, value=value
    )


# -- values ---------------------------------------------------------------------------------------
def _changed(resource: ConfigResource, name: str, before: str | None, change: Change) -> str | None:
    match change.operation:
        case Operation.SET:
            return change.value
        case Operation.DELETE:
            return None
        case Operation.APPEND | Operation.SUBTRACT as number:
            operation = Operation(number)
        case unknown:
            text = f"Unknown operation type {unknown} for key {name}."
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
    definition = _definition(resource, name)
    if definition is None or definition.type is not ConfigType.LIST:
        text = f"Can't {operation.name} to key {name} because its type is not LIST."
        raise ApiError(ErrorCode.INVALID_CONFIG, text)
    if change.value is None:
        text = f"Null value not supported to {operation.name} to key {name}."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    start = definition.default if before is None else before
    parts = [part for part in (start or "").split(",") if part]
    given = _java_split(change.value)
    if operation is Operation.APPEND:
        # A value of a megabyte has half a million parts: they are looked up in a set.
        known = set(parts)
        new = (part for part in dict.fromkeys(given) if part not in known)
        return ",".join((*parts, *new))
    removed = Counter(given)
    kept = []
    for part in parts:
        if removed[part]:
            removed[part] -= 1
        else:
            kept.append(part)
    return ",".join(kept)


def _definition(resource: ConfigResource, name: str) -> Definition | None:
    """Kafka's controller knows the lists of topics and brokers only (`KafkaRaftServer.configSchema`)."""
    if resource.type == TOPIC_RESOURCE:
        return topic_configs().get(name)
    return broker_configs().get(name) if resource.type == BROKER_RESOURCE else None


def _java_split(text: str) -> list[str]:
    """Split as Java's `String.split(",")`: it drops empty strings at the end, but not the only one."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts[0] or len(parts) > 1 or not text else []


# -- checks ---------------------------------------------------------------------------------------
def _check(
    image: Image,
    resource: ConfigResource,
    explicit: Sequence[ConfigRecord],
    implicit: Sequence[ConfigRecord],
    context: Context,
    is_new: bool,
) -> None:
    """Check the changes. Raises ApiError for the first problem, in Kafka's order."""
    before = known_configs(image, resource)
    after = dict(before)
    for record in (*explicit, *implicit):
        _check_record(image, record, before.get(CORDONED), context)
        if record.value is None:
            after.pop(record.name, None)
        else:
            after[record.name] = record.value
    check_configs(image, resource, before, after, context)
    if not is_new:
        check_existence(image, resource, context)
    named = {record.name: record.value for record in explicit}
    ask(context.config.alter_config_policy, ConfigChange(resource.type, resource.name, named))


def _check_record(
    image: Image, record: ConfigRecord, cordoned: str | None, context: Context
) -> None:
    of_brokers = record.resource_type == BROKER_RESOURCE
    if of_brokers and record.name == MIN_ISR and image.features.elr_enabled:
        if record.resource_name:
            raise _refused(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
        if record.value is None:
            raise _refused(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")
    if of_brokers and record.name == CORDONED:
        _check_cordoned(image, record.value, cordoned, context)
    # Kafka counts UTF-16 code units. A value of fewer units and more bytes ends its leadership.
    if record.value is not None and len(record.value.encode()) > MAX_VALUE:
        raise _refused(
            "The configuration value cannot be added because it exceeds the maximum value size of "
            f"{MAX_VALUE} bytes."
        )


def _check_cordoned(
    image: Image, value: str | None, cordoned: str | None, context: Context
) -> None:
    """A controller does not know the paths of a broker's directories: unless that broker has checked
    the value, it may only leave paths out (KIP-1066)."""
    version = image.features.metadata_version
    if version is None or not version.cordoned_log_dirs:
        raise _refused(
            f"The {CORDONED} configuration value cannot be set because it requires "
            "metadata.version >= 4.3-IV0"
        )
    if context.is_forwarded or value is None or not value.strip(BLANKS):
        return
    known = [] if cordoned is None else COMMA.split(cordoned.strip(BLANKS))
    if not set(COMMA.split(value.strip(BLANKS))) <= set(known):
        raise _refused(
            f"When updating {CORDONED} via controllers,  the new value must be a subset of the "
            "current configuration value."
        )


def _refused(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, text)
