"""IncrementalAlterConfigs and AlterConfigs.

Source: `ControllerApis.handleIncrementalAlterConfigs`, `handleLegacyAlterConfigs`,
`ConfigurationControlManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.base.java_order import hash_map_order
from quorate.controller.assignments import check_size
from quorate.controller.building import ROWS, Building, at_once, each, parts
from quorate.controller.config_changes import (
    Change,
    changed_configs,
    check_count,
    clear_elr_records,
    replaced_configs,
)
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import (
    MAX_RECORDS,
    PAUSE_EVERY,
    ApiError,
    Permitted,
    Result,
    Steps,
    WriteOperation,
    error_text,
)
from quorate.formats.records import ConfigRecord
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from quorate.security.acl import AclOperation, AclResource
from quorate.security.authorizer import CLUSTER_NAME
from quorate.wire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from quorate.wire.schema import Message

_STORED: Final = frozenset(
    (TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)
)
"""The types of resources whose configs are in the metadata log."""


_LOOKED_AT_ONCE: Final = 1_000
"""Resources, and configs, of a request that any node looks at when it arrives, to answer one that changes
nothing. A longer one is decided, whatever it asks for."""


class Outcome(NamedTuple):
    """What became of one resource; `message` is None without an error."""

    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


_Asked = tuple[dict[ConfigResource, Any], list[Outcome]]
"""The changes by resource, and what is refused to everyone."""


@frozen
class IncrementalAlterConfigs:
    """An IncrementalAlterConfigs request whose loggers the node that was asked has seen to."""

    message: IncrementalAlterConfigsRequest
    loggers: tuple[Outcome, ...] = ()
    """One for each of its resources that stands for loggers."""


_Permitted = Permitted[Any, tuple[ConfigResource, Any]]


def _authorize_incremental(
    request: IncrementalAlterConfigs, context: Context
) -> Building[Result[IncrementalAlterConfigsResponse] | _Permitted]:
    changes, refused = yield from _incremental_changes(request)
    cls = IncrementalAlterConfigsResponse
    row = partial(_fields, cls.AlterConfigsResourceResponse)
    permitted = yield from _authorize(request.message, changes, refused, row, context)
    permitted.rows.extend((yield from each(request.loggers, row)))
    return permitted if permitted.left else Result((), cls(responses=permitted.rows))


def _authorize_replacements(
    request: AlterConfigsRequest, context: Context
) -> Building[Result[AlterConfigsResponse] | _Permitted]:
    configs, refused = yield from _replacements(request)
    cls = AlterConfigsResponse
    row = partial(_fields, cls.AlterConfigsResourceResponse)
    permitted = yield from _authorize(request, configs, refused, row, context)
    return permitted if permitted.left else Result((), cls(responses=permitted.rows))


def _authorize(
    request: Any,
    changes: Mapping[ConfigResource, Any],
    refused: Sequence[Outcome],
    row: Callable[[Outcome], Any],
    context: Context,
) -> Building[_Permitted]:
    """The resources that the requester may change, in the order of the changes. Raises ApiError where it
    asks for too many of one."""
    rows = yield from each(refused, row)
    left: list[tuple[int, tuple[ConfigResource, Any]]] = []
    for number, (resource, change) in enumerate(changes.items(), 1):
        if number % PAUSE_EVERY == 0 or context.has_compared_many():
            yield None
        guarded, name, denied = permission_for(resource)
        if context.may(AclOperation.ALTER_CONFIGS, guarded, name):
            check_count(change)
            left.append((len(rows), (resource, change)))
            rows.append(None)
        else:
            rows.append(row(Outcome(resource, denied, denied.message)))
    return Permitted(request, rows, left)


def _incremental(
    head: HeadView, permitted: _Permitted, context: Context
) -> Steps[IncrementalAlterConfigsResponse]:
    records, results = yield from _decide(
        head.image,
        permitted,
        lambda resource, change: changed_configs(head.image, resource, change, context),
    )
    cls = IncrementalAlterConfigsResponse
    rows = yield from each(results, partial(_fields, cls.AlterConfigsResourceResponse))
    response = cls(responses=permitted.filled(rows))
    return Result(() if permitted.request.validate_only else records, response)


def _replace(
    head: HeadView, permitted: _Permitted, context: Context
) -> Steps[AlterConfigsResponse]:
    records, results = yield from _decide(
        head.image,
        permitted,
        lambda resource, wanted: replaced_configs(head.image, resource, wanted, context),
    )
    cls = AlterConfigsResponse
    rows = yield from each(results, partial(_fields, cls.AlterConfigsResourceResponse))
    response = cls(responses=permitted.filled(rows))
    return Result(() if permitted.request.validate_only else records, response)


def _decide(
    image: Image,
    permitted: _Permitted,
    decide: Callable[[ConfigResource, Any], list[ConfigRecord]],
) -> Generator[None, None, tuple[list[Message], list[Outcome]]]:
    """The records of the resources that are not refused, to be written atomically."""
    records: list[ConfigRecord] = []
    results = []
    for number, (_, (resource, change)) in enumerate(permitted.left, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        try:
            records += decide(resource, change)
        except ApiError as refusal:
            text = error_text(refusal.error, str(refusal))
            results.append(Outcome(resource, refusal.error, text))
        else:
            results.append(Outcome(resource))
    found = [*records, *clear_elr_records(image, records)]
    check_size(found)
    return found, results


def permission_for(resource: ConfigResource) -> tuple[AclResource, str, ErrorCode]:
    """What the permission to see or change these configs is asked of, and the error without it."""
    if resource.type == TOPIC_RESOURCE:
        return AclResource.TOPIC, resource.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource.type == GROUP_RESOURCE:
        return AclResource.GROUP, resource.name, ErrorCode.GROUP_AUTHORIZATION_FAILED
    return AclResource.CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# -- requests ---------------------------------------------------------------------------------------
def _incremental_changes(request: IncrementalAlterConfigs) -> Building[_Asked]:
    return (
        yield from _by_resource(
            (
                asked
                for asked in request.message.resources
                if asked.resource_type != BROKER_LOGGER_RESOURCE
            ),
            lambda one: Change(one.config_operation, one.value),
            _in_kafkas_order,
        )
    )


def _in_kafkas_order(changes: dict[str, Change]) -> dict[str, Change]:
    """Sort by name: of several mistakes the first one is reported."""
    if len(changes) > MAX_RECORDS:
        return changes  # refused unseen
    return {name: changes[name] for name in hash_map_order(changes)}


def _replacements(request: AlterConfigsRequest) -> Building[_Asked]:
    return (yield from _by_resource(request.resources, lambda one: one.value, lambda found: found))


def _by_resource(
    resources: Iterable[Any],
    wanted: Callable[[Any], Any],
    ordered: Callable[[dict[str, Any]], dict[str, Any]],
) -> Building[_Asked]:
    """The changes by resource, and the resources that are refused to everyone. wanted: of one config."""
    changes: dict[ConfigResource, Any] = {}
    twice: set[ConfigResource] = set()
    refused: list[Outcome] = []
    looked_at = 0
    for asked in resources:
        resource = ConfigResource(asked.resource_type, asked.resource_name)
        found: dict[str, Any] = {}
        for part in parts(asked.configs, ROWS):
            looked_at += len(part)
            if looked_at > ROWS:
                yield None
                looked_at = 0
            found.update((one.name, wanted(one)) for one in part)
        change = ordered(found)
        looked_at += ROWS // PAUSE_EVERY
        if looked_at > ROWS:
            yield None
            looked_at = 0
        if resource.type == BROKER_LOGGER_RESOURCE:
            error, text = ErrorCode.INVALID_REQUEST, "Unexpected resource type BROKER_LOGGER."
        elif resource.type not in _STORED:
            error = ErrorCode.UNSUPPORTED_VERSION
            text = f"Unknown resource type {resource.type}."
        elif resource in twice:
            continue
        elif resource in changes:
            error, text = ErrorCode.INVALID_REQUEST, "Duplicate resource."
            del changes[resource]
            twice.add(resource)
        else:
            changes[resource] = change
            continue
        refused.append(Outcome(resource, error, text))
    return changes, refused


# -- responses --------------------------------------------------------------------------------------
def _incremental_response(outcomes: Sequence[Outcome]) -> IncrementalAlterConfigsResponse:
    cls = IncrementalAlterConfigsResponse
    return cls(responses=[_fields(cls.AlterConfigsResourceResponse, one) for one in outcomes])


def _replace_response(outcomes: Sequence[Outcome]) -> AlterConfigsResponse:
    cls = AlterConfigsResponse
    return cls(responses=[_fields(cls.AlterConfigsResourceResponse, one) for one in outcomes])


def _fields(cls: Callable[..., Any], outcome: Outcome) -> Any:
    return cls(
        error_code=outcome.error,
        error_message=outcome.message,
        resource_type=outcome.resource.type,
        resource_name=outcome.resource.name,
    )


def _incremental_failed(
    request: IncrementalAlterConfigs, error: ErrorCode, message: str | None
) -> Building[IncrementalAlterConfigsResponse]:
    """Kafka reports the failure of the loggers too, although they are changed."""
    cls, text = IncrementalAlterConfigsResponse, error_text(error, message)
    responses = yield from each(
        request.message.resources,
        lambda asked: _failed(cls.AlterConfigsResourceResponse, asked, error, text),
    )
    return cls(responses=responses)


def _replace_failed(
    request: AlterConfigsRequest, error: ErrorCode, message: str | None
) -> Building[AlterConfigsResponse]:
    cls, text = AlterConfigsResponse, error_text(error, message)
    responses = yield from each(
        request.resources,
        lambda asked: _failed(cls.AlterConfigsResourceResponse, asked, error, text),
    )
    return cls(responses=responses)


def _failed(cls: Callable[..., Any], asked: Any, error: ErrorCode, text: str | None) -> Any:
    return cls(
        error_code=error,
        error_message=text,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )


def _is_long(resources: Sequence[Any]) -> bool:
    most = _LOOKED_AT_ONCE
    return len(resources) > most or sum(len(asked.configs) for asked in resources) > most


def _incremental_empty(
    request: IncrementalAlterConfigs,
) -> IncrementalAlterConfigsResponse | None:
    if _is_long(request.message.resources):
        return None
    changes, refused = at_once(_incremental_changes(request))
    return None if changes else _incremental_response([*refused, *request.loggers])


def _replace_empty(request: AlterConfigsRequest) -> AlterConfigsResponse | None:
    if _is_long(request.resources):
        return None
    configs, refused = at_once(_replacements(request))
    return None if configs else _replace_response(refused)


INCREMENTAL_ALTER_CONFIGS: Final = WriteOperation(
    "IncrementalAlterConfigs",
    _incremental,
    _incremental_failed,
    _incremental_empty,
    authorize=_authorize_incremental,
)
ALTER_CONFIGS: Final = WriteOperation(
    "AlterConfigs", _replace, _replace_failed, _replace_empty, authorize=_authorize_replacements
)
