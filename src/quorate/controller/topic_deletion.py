"""DeleteTopics, by name or by id.

Source: `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import ZERO_UUID, Uuid
from quorate.controller.assignments import charge, check_size
from quorate.controller.context import Context
from quorate.controller.head import Head
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
    head: Head, request: DeleteTopicsRequest, context: Context
) -> Steps[DeleteTopicsResponse]:
    image = head.image
    records: list[Message] = []
    results = []
    if not context.config.delete_topic_enable:
        if context.version < 3:
            text = "This version does not support topic deletion."
            raise ApiError(ErrorCode.INVALID_REQUEST, text)
        raise ApiError.of(ErrorCode.TOPIC_DELETION_DISABLED)
    for number, wanted in enumerate(_wanted(image, request), 1):
        if number % PAUSE_EVERY == 0:
            yield None
        name, topic_id, refused = _permitted(wanted, context)
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


def _permitted(wanted: _Deletion, context: Context) -> _Deletion:
    """A requester that may not describe a topic does not learn the name of its id."""
    name, topic_id, refused = wanted
    if refused is not None or name is None or context.may_in_cluster(AclOperation.DELETE):
        return wanted
    if context.may(AclOperation.DELETE, AclResource.TOPIC, name):
        return wanted
    may_describe = context.may(AclOperation.DESCRIBE, AclResource.TOPIC, name)
    return (
        name if may_describe else None,
        topic_id,
        ApiError.of(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    )


_Deletion = tuple[str | None, Uuid, ApiError | None]
"""Name and id of a topic, and why it is not deleted."""


def _wanted(image: Image, request: DeleteTopicsRequest) -> Iterator[_Deletion]:
    """Every topic that the request names, once (`ControllerApis.deleteTopics`)."""
    names = [*request.topic_names, *(topic.name for topic in request.topics if topic.name)]
    ids = [topic.topic_id for topic in request.topics if topic.topic_id != ZERO_UUID]
    both_names: set[str] = set()
    both_ids = {ZERO_UUID}
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            text = "Neither topic name nor id were specified."
            yield None, ZERO_UUID, ApiError(ErrorCode.INVALID_REQUEST, text)
        elif topic.name is not None and topic.topic_id != ZERO_UUID:
            text = "You may not specify both topic name and topic id."
            yield topic.name, topic.topic_id, ApiError(ErrorCode.INVALID_REQUEST, text)
            both_names.add(topic.name)
            both_ids.add(topic.topic_id)
    by_id: set[Uuid] = set()
    for topic_id, count in Counter(ids).items():
        if topic_id in both_ids:
            continue
        if count > 1:
            refused = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
            yield None, topic_id, refused
            continue
        topic_ = image.topics.by_id.get(topic_id)
        if topic_ is None:
            yield None, topic_id, ApiError.of(ErrorCode.UNKNOWN_TOPIC_ID)
        else:
            by_id.add(topic_id)
            yield topic_.name, topic_id, None
    for name, count in Counter(names).items():
        if name not in both_names:
            yield _wanted_by_name(image, name, count, by_id)


def _wanted_by_name(image: Image, name: str, count: int, by_id: set[Uuid]) -> _Deletion:
    if count > 1:
        return name, ZERO_UUID, ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    topic_id = image.topics.ids.get(name)
    if topic_id is None:
        return name, ZERO_UUID, ApiError.of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic_id in by_id:
        text = "The provided topic name maps to an ID that was already supplied."
        return name, topic_id, ApiError(ErrorCode.INVALID_REQUEST, text)
    return name, topic_id, None


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
) -> DeleteTopicsResponse:
    """The code alone, without a text."""
    result = DeleteTopicsResponse.DeletableTopicResult
    names = [
        result(name=name, topic_id=ZERO_UUID, error_code=error, error_message=None)
        for name in request.topic_names
    ]
    topics = [
        result(name=topic.name, topic_id=topic.topic_id, error_code=error, error_message=None)
        for topic in request.topics
    ]
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
