"""DeleteTopics, by name or by id.

Source: `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.controller.assignments import charge, check_size
from quorate.controller.building import Building, each
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


def _delete_topics(
    head: HeadView, request: DeleteTopicsRequest, context: Context
) -> Steps[DeleteTopicsResponse]:
    image = head.image
    records: list[Message] = []
    results = []
    if not context.config.delete_topic_enable:
        if context.version < 3:
            text = "This version does not support topic deletion."
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        raise ApiError.of(ErrorCode.TOPIC_DELETION_DISABLED)
    for number, wanted in enumerate(_wanted(image, request, context), 1):
        if number % PAUSE_EVERY == 0:
            yield None
        name, topic_id, refused = wanted
        if refused is None:
            try:
                charge(context, len(image.topics.by_id[topic_id].partitions))
                records.append(RemoveTopicRecord(topic_id=topic_id))
            except ApiError as exceeded:
                refused = exceeded
        results.append(_deletion(name, topic_id, refused))
    check_size(records)
    response = DeleteTopicsResponse(responses=results, throttle_time_ms=context.throttle_ms)
    return Result(records, response)


_Deletion = tuple[str | None, Uuid, ApiError | None]
"""Name and id of a topic, and why it is not deleted."""


def _wanted(image: Image, request: DeleteTopicsRequest, context: Context) -> Iterator[_Deletion]:
    """What the request asks for, in the order and with the checks of `ControllerApis.deleteTopics`.

    A topic that is named by id and by name is refused once, and stays.
    """
    names, ids, wrong = _named(request)
    yield from wrong
    once = Counter(names)
    twice = {found: None for found, count in Counter(ids).items() if count > 1}
    for name, count in once.items():
        if count > 1:
            yield name, ZERO_UUID, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    for topic_id in twice:
        yield None, topic_id, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    by_id = dict[Uuid, str]()
    for topic_id in ids:
        if topic_id not in twice:
            yield from _wanted_by_id(image, topic_id, by_id, context)
    for name, count in once.items():
        if count == 1:
            yield from _wanted_by_name(image, name, by_id, twice, context)
    for topic_id, name in by_id.items():
        yield name, topic_id, None


def _named(request: DeleteTopicsRequest) -> tuple[list[str], list[Uuid], list[_Deletion]]:
    """The names and the ids that the request gives, and its entries with neither or both."""
    names, ids, wrong = list(request.topic_names), [], list[_Deletion]()
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            text = "Neither topic name nor id were specified."
            wrong.append((None, ZERO_UUID, ApiError(ErrorCode.INVALID_REQUEST, text)))
        elif topic.name is None:
            ids.append(topic.topic_id)
        elif topic.topic_id == ZERO_UUID:
            names.append(topic.name)
        else:
            text = "You may not specify both topic name and topic id."
            refused = ApiError(ErrorCode.INVALID_REQUEST, text)
            wrong.append((topic.name, topic.topic_id, refused))
    return names, ids, wrong


def _wanted_by_id(
    image: Image, topic_id: Uuid, by_id: dict[Uuid, str], context: Context
) -> Iterator[_Deletion]:
    """Adds the topic to `by_id`, or says why not. Only who may describe a topic gets its name."""
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        yield None, topic_id, ApiError.of(ErrorCode.UNKNOWN_TOPIC_ID)
    elif _may(AclOperation.DELETE, topic.name, context):
        by_id[topic_id] = topic.name
    else:
        shown = topic.name if _may(AclOperation.DESCRIBE, topic.name, context) else None
        yield shown, topic_id, ApiError.of(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _wanted_by_name(
    image: Image, name: str, by_id: dict[Uuid, str], twice: Container[Uuid], context: Context
) -> Iterator[_Deletion]:
    """Do as `_wanted_by_id`. Who may not describe a topic does not learn whether it exists."""
    topic_id = image.topics.ids.get(name)
    denied = ApiError.of(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not _may(AclOperation.DESCRIBE, name, context):
        yield name, ZERO_UUID, denied
    elif topic_id is None:
        yield name, ZERO_UUID, ApiError.of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    elif not _may(AclOperation.DELETE, name, context):
        yield name, ZERO_UUID, denied
    elif topic_id in by_id or topic_id in twice:
        by_id.pop(topic_id, None)
        text = "The provided topic name maps to an ID that was already supplied."
        yield name, topic_id, ApiError(ErrorCode.INVALID_REQUEST, text)
    else:
        by_id[topic_id] = name


def _may(operation: AclOperation, name: str, context: Context) -> bool:
    return context.may_in_cluster(AclOperation.DELETE) or context.may(
        operation, AclResource.TOPIC, name
    )


def _deletion(
    name: str | None, topic_id: Uuid, refused: ApiError | None
) -> DeleteTopicsResponse.DeletableTopicResult:
    return DeleteTopicsResponse.DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if refused is None else refused.error,
        error_message=None if refused is None else str(refused),
    )


def _delete_failed(
    request: DeleteTopicsRequest, error: ErrorCode, message: str | None
) -> Building[DeleteTopicsResponse]:
    """The code alone, without a text."""
    result = DeleteTopicsResponse.DeletableTopicResult
    names = yield from each(
        request.topic_names,
        lambda name: result(name=name, topic_id=ZERO_UUID, error_code=error, error_message=None),
    )
    topics = yield from each(
        request.topics,
        lambda topic: result(
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
)
