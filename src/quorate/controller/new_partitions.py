"""CreatePartitions: a topic gets more partitions (KIP-195).

Source: `ReplicationControlManager.createPartitions`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from quorate.base.errors import ErrorCode
from quorate.controller.assignments import (
    BrokerFacts,
    bad_assignment,
    charge,
    check_active,
    check_assignment,
    check_size,
    partition_records,
    placed,
)
from quorate.controller.building import ROWS, Building, each, parts
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
from quorate.formats.records import PartitionRecord
from quorate.metadata.image import Image, Topic
from quorate.security.acl import AclOperation, AclResource
from quorate.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from quorate.wire.schema import Message

_Wanted = CreatePartitionsRequest.CreatePartitionsTopic


def _authorize(
    request: CreatePartitionsRequest, context: Context
) -> Building[Result[CreatePartitionsResponse] | Permitted[CreatePartitionsRequest, _Wanted]]:
    """The topics that are named once and that the requester may alter; a row for each other name."""
    named: dict[str, _Wanted | None] = {}
    for part in parts(request.topics, ROWS):
        if named:
            yield None
        for topic in part:
            named[topic.name] = None if topic.name in named else topic
    rows: list[Any] = []
    left: list[tuple[int, _Wanted]] = []
    for number, (name, wanted) in enumerate(named.items(), 1):
        if number % PAUSE_EVERY == 0 or context.has_compared_many():
            yield None
        if wanted is None:
            refused = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            rows.append(_partitions_result(name, refused))
        elif not context.may(AclOperation.ALTER, AclResource.TOPIC, name):
            refused = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")
            rows.append(_partitions_result(name, refused))
        else:
            left.append((len(rows), wanted))
            rows.append(None)
    if not left:
        return Result((), _response(rows, context))
    return Permitted(request, rows, left)


def _create_partitions(
    head: HeadView, permitted: Permitted[CreatePartitionsRequest, _Wanted], context: Context
) -> Steps[CreatePartitionsResponse]:
    image, brokers = head.image, BrokerFacts(head.image, context)
    records: list[Message] = []
    results = []
    for number, (_, topic) in enumerate(permitted.left, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        refused: ApiError | None = None
        try:
            records.extend((yield from _more_partitions(image, topic, brokers, context)))
        except ApiError as error:
            refused = error
        check_size(records)
        results.append(_partitions_result(topic.name, refused))
    response = _response(permitted.filled(results), context)
    return Result(() if permitted.request.validate_only else records, response)


def _response(rows: list[Any], context: Context) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=rows, throttle_time_ms=context.throttle_ms)


def _more_partitions(
    image: Image,
    wanted: _Wanted,
    brokers: BrokerFacts,
    context: Context,
) -> Generator[None, None, list[PartitionRecord]]:
    topic = image.topics.named(wanted.name)
    if topic is None:
        raise ApiError.of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if wanted.count == present:
        text = f"Topic already has {present} partition(s)."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if wanted.count < present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {wanted.name} currently has {present} partition(s); {wanted.count} would "
            "not be an increase.",
        )
    additional = wanted.count - present
    factor = len(topic.partitions[0].replicas)
    if wanted.assignments is None:
        if additional > MAX_RECORDS:
            text = "Unable to perform excessively large batch operation."
            raise ApiError(ErrorCode.POLICY_VIOLATION, text)
        charge(context, additional)
        assignments = yield from placed(
            brokers, additional, factor, context.rng, of_new_topic=False
        )
    else:
        assignments = _manual_partitions(brokers, topic, wanted, additional, factor, context)
    return (yield from partition_records(brokers, topic.id, present, assignments))


def _manual_partitions(
    brokers: BrokerFacts,
    topic: Topic,
    wanted: _Wanted,
    additional: int,
    factor: int,
    context: Context,
) -> list[list[int]]:
    given = [list(assignment.broker_ids) for assignment in wanted.assignments or ()]
    if len(given) != additional:
        raise bad_assignment(
            f"Attempted to add {additional} additional partition(s), but only {len(given)} "
            "assignment(s) were specified."
        )
    charge(context, additional)
    for number, replicas in enumerate(given):
        check_assignment(brokers.registered, replicas, factor)
        check_active(brokers, replicas, len(topic.partitions) + number)
    return given


def _partitions_result(
    name: str, refused: ApiError | None
) -> CreatePartitionsResponse.CreatePartitionsTopicResult:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=name,
        error_code=ErrorCode.NONE if refused is None else refused.error,
        error_message=None if refused is None else error_text(refused.error, str(refused)),
    )


def _partitions_failed(
    request: CreatePartitionsRequest, error: ErrorCode, message: str | None
) -> Building[CreatePartitionsResponse]:
    text, result = error_text(error, message), CreatePartitionsResponse.CreatePartitionsTopicResult
    results = yield from each(
        request.topics,
        lambda topic: result(name=topic.name, error_code=error, error_message=text),
    )
    return CreatePartitionsResponse(results=results)


def _partitions_empty(request: CreatePartitionsRequest) -> CreatePartitionsResponse | None:
    return None if request.topics else CreatePartitionsResponse()


CREATE_PARTITIONS: Final = WriteOperation(
    "CreatePartitions",
    _create_partitions,
    _partitions_failed,
    _partitions_empty,
    timeout_ms=lambda request: request.timeout_ms,
    authorize=_authorize,
)
