"""CreatePartitions: a topic gets more partitions (KIP-195).

Source: `ReplicationControlManager.createPartitions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Final

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
from quorate.controller.building import Building, each
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.result import (
    MAX_RECORDS,
    PAUSE_EVERY,
    ApiError,
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


def _create_partitions(
    head: HeadView, request: CreatePartitionsRequest, context: Context
) -> Steps[CreatePartitionsResponse]:
    image, brokers = head.image, BrokerFacts(head.image, context)
    named = Counter(topic.name for topic in request.topics)
    records: list[Message] = []
    results = []
    for number, topic in enumerate(request.topics, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        refused: ApiError | None = None
        if named[topic.name] > 1:
            refused = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif not context.may(AclOperation.ALTER, AclResource.TOPIC, topic.name):
            refused = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "")
        else:
            try:
                records.extend((yield from _more_partitions(image, topic, brokers, context)))
            except ApiError as error:
                refused = error
        check_size(records)
        results.append(_partitions_result(topic.name, refused))
    unique = {result.name: result for result in results}
    return Result(
        () if request.validate_only else records,
        CreatePartitionsResponse(
            results=list(unique.values()), throttle_time_ms=context.throttle_ms
        ),
    )


def _more_partitions(
    image: Image,
    wanted: CreatePartitionsRequest.CreatePartitionsTopic,
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
    wanted: CreatePartitionsRequest.CreatePartitionsTopic,
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
)
