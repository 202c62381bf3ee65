"""DeleteTopics, by name or by id.

Source: `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.frozen import frozen
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.controller.assignments import charge, check_size
from quorate.controller.building import ROWS, Building, each, parts
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import PAUSE_EVERY, ApiError, Result, Steps, WriteOperation
from quorate.formats.records import RemoveTopicRecord
from quorate.metadata.image import Image
from quorate.security.acl import AclOperation, AclResource
from quorate.wire.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from quorate.wire.schema import Message

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_Row = DeleteTopicsResponse.DeletableTopicResult


@frozen
class _Permitted:
    """What the requester may delete."""

    rows: list[_Row]
    """Of all else."""
    by_id: dict[Uuid, str]
    """The topics that are named by id: their names."""
    names: list[str]
    twice: Container[Uuid]
    """Ids that are given more than once: a name of such a topic is refused too."""


def _authorize(
    request: DeleteTopicsRequest, context: Context
) -> Building[Result[DeleteTopicsResponse] | _Permitted]:
    """The topics that are named once and that the requester may delete; rows for the others, with the
    checks of `ControllerApis.deleteTopics`. Raises ApiError where topics are not to be deleted."""
    if not context.config.delete_topic_enable:
        if context.version < 3:
            text = "This version does not support topic deletion."
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        raise ApiError.of(ErrorCode.TOPIC_DELETION_DISABLED)
    names, ids, rows = yield from _named(request)
    times_named, times_given = Counter(names), Counter(ids)
    twice = dict.fromkeys(found for found, count in times_given.items() if count > 1)
    repeated = [name for name, count in times_named.items() if count > 1]
    same_name = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    same_id = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    rows += yield from each(repeated, lambda name: _deletion(name, ZERO_UUID, same_name))
    rows += yield from each(list(twice), lambda given: _deletion(None, given, same_id))
    may_delete_all = context.may_in_cluster(AclOperation.DELETE)
    permitted = _Permitted(rows, {}, [], twice)

    def may(operation: AclOperation, name: str) -> bool:
        return may_delete_all or context.may(operation, AclResource.TOPIC, name)

    for number, (topic_id, count) in enumerate(times_given.items(), 1):
        if number % PAUSE_EVERY == 0 or context.has_compared_many():
            yield None
        if count == 1:
            _authorize_id(topic_id, permitted, may, context)
    for number, (name, count) in enumerate(times_named.items(), 1):
        if number % PAUSE_EVERY == 0 or context.has_compared_many():
            yield None
        if count == 1:
            _authorize_name(name, permitted, may, context)
    if not permitted.by_id and not permitted.names:
        return Result((), _response(rows, context))
    return permitted


def _named(request: DeleteTopicsRequest) -> Building[tuple[list[str], list[Uuid], list[_Row]]]:
    """The names and the ids that the request gives, and rows for its entries with neither or both."""
    names, ids, wrong = list(request.topic_names), [], list[_Row]()
    for number, part in enumerate(parts(request.topics, ROWS)):
        if number:
            yield None
        for topic in part:
            if topic.name is None and topic.topic_id == ZERO_UUID:
                text = "Neither topic name nor id were specified."
                refused = ApiError(ErrorCode.INVALID_REQUEST, text)
                wrong.append(_deletion(None, ZERO_UUID, refused))
            elif topic.name is None:
                ids.append(topic.topic_id)
            elif topic.topic_id == ZERO_UUID:
                names.append(topic.name)
            else:
                text = "You may not specify both topic name and topic id."
                refused = ApiError(ErrorCode.INVALID_REQUEST, text)
                wrong.append(_deletion(topic.name, topic.topic_id, refused))
    return names, ids, wrong


_May = Callable[[AclOperation, str], bool]


def _authorize_id(topic_id: Uuid, permitted: _Permitted, may: _May, context: Context) -> None:
    """Add the topic to what is permitted, or a row. Only who may describe a topic gets its name."""
    topic = context.committed().topics.by_id.get(topic_id)
    if topic is None:
        refused = ApiError.of(ErrorCode.UNKNOWN_TOPIC_ID)
        permitted.rows.append(_deletion(None, topic_id, refused))
    elif may(AclOperation.DELETE, topic.name):
        permitted.by_id[topic_id] = topic.name
    else:
        shown = topic.name if may(AclOperation.DESCRIBE, topic.name) else None
        permitted.rows.append(_deletion(shown, topic_id, ApiError.of(_DENIED)))


def _authorize_name(name: str, permitted: _Permitted, may: _May, context: Context) -> None:
    """Do as `_authorize_id`. Who may not describe a topic does not learn whether it exists."""
    error = _DENIED
    if may(AclOperation.DESCRIBE, name):
        if may(AclOperation.DELETE, name):
            permitted.names.append(name)
            return
        if name not in context.committed().topics.ids:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    permitted.rows.append(_deletion(name, ZERO_UUID, ApiError.of(error)))


def _delete_topics(
    head: HeadView, permitted: _Permitted, context: Context
) -> Steps[DeleteTopicsResponse]:
    image = head.image
    records: list[Message] = []
    rows = list(permitted.rows)
    found = dict(permitted.by_id)
    for number, name in enumerate(permitted.names, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        topic_id = image.topics.ids.get(name)
        if topic_id is None:
            refused = ApiError.of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            rows.append(_deletion(name, ZERO_UUID, refused))
        elif topic_id in found or topic_id in permitted.twice:
            # A topic that is named by id and by name is refused once, and stays.
            found.pop(topic_id, None)
            text = "The provided topic name maps to an ID that was already supplied."
            rows.append(_deletion(name, topic_id, ApiError(ErrorCode.INVALID_REQUEST, text)))
        else:
            found[topic_id] = name
    for number, (topic_id, name) in enumerate(found.items(), 1):
        if number % PAUSE_EVERY == 0:
            yield None
        rows.append(_deletion(name, topic_id, _delete(image, topic_id, records, context)))
    check_size(records)
    return Result(records, _response(rows, context))


def _delete(
    image: Image, topic_id: Uuid, records: list[Message], context: Context
) -> ApiError | None:
    """Add the record, or return why the topic is not deleted."""
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        return ApiError.of(ErrorCode.UNKNOWN_TOPIC_ID)  # deleted since the authorization
    try:
        charge(context, len(topic.partitions))
    except ApiError as exceeded:
        return exceeded
    records.append(RemoveTopicRecord(topic_id=topic_id))
    return None


def _response(rows: list[_Row], context: Context) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=rows, throttle_time_ms=context.throttle_ms)


def _deletion(name: str | None, topic_id: Uuid, refused: ApiError | None) -> _Row:
    return _Row(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if refused is None else refused.error,
        error_message=None if refused is None else str(refused),
    )


def _delete_failed(
    request: DeleteTopicsRequest, error: ErrorCode, message: str | None
) -> Building[DeleteTopicsResponse]:
    """The code alone, without a text."""
    names = yield from each(
        request.topic_names,
        lambda name: _Row(name=name, topic_id=ZERO_UUID, error_code=error, error_message=None),
    )
    topics = yield from each(
        request.topics,
        lambda topic: _Row(
            name=topic.name, topic_id=topic.topic_id, error_code=error, error_message=None
        ),
    )
    return DeleteTopicsResponse(responses=[*names, *topics])


def _delete_empty(request: DeleteTopicsRequest) -> DeleteTopicsResponse | None:
    return None if request.topics or request.topic_names else DeleteTopicsResponse()


DELETE_TOPICS: Final = WriteOperation(
    "DeleteTopics",
    _delete_topics,
    _delete_failed,
    _delete_empty,
    timeout_ms=lambda request: request.timeout_ms,
    authorize=_authorize,
)
