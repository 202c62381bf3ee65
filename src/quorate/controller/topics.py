"""CreateTopics.

Source: `ReplicationControlManager.createTopics`, `ControllerApis`,
`org.apache.kafka.common.internals.Topic`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC
from quorate.controller.assignments import (
    BrokerFacts,
    bad_assignment,
    charge,
    check_active,
    check_assignment,
    check_size,
    new_uuid,
    partition_records,
    placed,
)
from quorate.controller.building import ROWS, Building, each, parts
from quorate.controller.config_changes import (
    Change,
    Operation,
    changed_configs,
    check_count,
    clear_elr_records,
)
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.policies import NewTopic
from quorate.controller.policy_check import ask
from quorate.controller.result import (
    PAUSE_EVERY,
    ApiError,
    Permitted,
    Result,
    Steps,
    WriteOperation,
    error_text,
)
from quorate.controller.topic_names import name_problem
from quorate.formats.records import PartitionRecord, TopicRecord
from quorate.metadata.image import ConfigResource, Image
from quorate.metadata.resource_types import TOPIC_RESOURCE
from quorate.security.acl import AclOperation, AclResource
from quorate.wire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from quorate.wire.schema import Message

MAX_PARTITIONS: Final = 10_000
"""Most partitions that one CreateTopics request may create (`MAX_PARTITIONS_PER_BATCH`)."""
_BY_DEFAULT: Final = -1
_CreatedConfig = CreateTopicsResponse.CreatableTopicResult.CreatableTopicConfigs


_NAMES_IN_ONE_STEP: Final = 10 * PAUSE_EVERY


_Topic = CreateTopicsRequest.CreatableTopic
_Result = CreateTopicsResponse.CreatableTopicResult


class _Wanted(NamedTuple):
    """A topic that the requester may create."""

    topic: _Topic
    shows_configs: bool
    """The requester may see its configs."""


_Permitted = Permitted[CreateTopicsRequest, _Wanted]


def _authorize(
    request: CreateTopicsRequest, context: Context
) -> Building[Result[CreateTopicsResponse] | _Permitted]:
    """The topics that are named once, legally, and that the requester may create; a row for each other
    name. The checks are in Kafka's order. Raises ApiError where the others have too many partitions."""
    named: dict[str, _Topic | None] = {}
    for part in parts(request.topics, ROWS):
        if named:
            yield None
        for topic in part:
            named[topic.name] = None if topic.name in named else topic
    may_create_all = context.may_in_cluster(AclOperation.CREATE)
    rows: list[_Result | None] = []
    left: list[tuple[int, _Wanted]] = []
    total = 0
    for number, (name, wanted) in enumerate(named.items(), 1):
        if number % PAUSE_EVERY == 0 or context.has_compared_many():
            yield None
        refused: ApiError | None = None
        if wanted is None:
            refused = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif name == METADATA_TOPIC:
            text = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
            refused = ApiError(ErrorCode.INVALID_REQUEST, text)
        elif not (may_create_all or context.may(AclOperation.CREATE, AclResource.TOPIC, name)):
            refused = ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
        else:
            total += _partitions(wanted, context.config.num_partitions)
            if (problem := name_problem(name)) is not None:
                text = f"Topic name is invalid: {problem}"
                refused = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
            else:
                left.append((len(rows), _Wanted(wanted, _may_see_configs(name, context))))
        rows.append(None if refused is None else _refused_topic(name, refused))
    if total > MAX_PARTITIONS:
        text = "Excessively large number of partitions per request."
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    if not left:
        return Result((), _response(rows, context))
    return Permitted(request, rows, left)


def _partitions(topic: _Topic, default_partitions: int) -> int:
    """How many partitions the topic asks for."""
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == _BY_DEFAULT:
        return default_partitions
    return max(0, topic.num_partitions)


def _may_see_configs(name: str, context: Context) -> bool:
    return context.may(AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, name, logs_denied=False)


def _create_topics(
    head: HeadView, permitted: _Permitted, context: Context
) -> Steps[CreateTopicsResponse]:
    """A topic that is refused does not affect the others."""
    image, brokers = head.image, BrokerFacts(head.image, context)
    refusals = yield from _known_names(image, (wanted.topic.name for _, wanted in permitted.left))
    records: list[Message] = []
    results = []
    configs_of = _EffectiveConfigs(image, context)
    for number, (_, wanted) in enumerate(permitted.left, 1):
        if number % PAUSE_EVERY == 0:
            yield None
        name = wanted.topic.name
        refused = refusals.get(name)
        if refused is None:
            try:
                made = yield from _create_topic(image, wanted.topic, brokers, context)
            except ApiError as error:
                refused = error
            else:
                records.extend(made)
                check_size(records)
                results.append(_created(wanted, made, configs_of))
                continue
        results.append(_refused_topic(name, refused))
    response = _response(permitted.filled(results), context)
    return Result(() if permitted.request.validate_only else records, response, atomic=True)


def _response(rows: list[Any], context: Context) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=rows, throttle_time_ms=context.throttle_ms)


def _known_names(image: Image, names: Iterable[str]) -> Generator[None, None, dict[str, ApiError]]:
    """Why the names may not be used that are those of known topics, or too much like them."""
    refusals: dict[str, ApiError] = {}
    collisions: dict[str, str] | None = None
    for number, name in enumerate(names, 1):
        if number % _NAMES_IN_ONE_STEP == 0:
            yield None
        if name in image.topics.ids:
            text = f"Topic '{name}' already exists."
            refusals[name] = ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, text)
        elif _has(name):
            if collisions is None:
                collisions = {_unified(known): known for known in image.topics.ids if _has(known)}
            other = collisions.get(_unified(name))
            if other is not None:
                text = f"Topic '{name}' collides with existing topic: {other}"
                refusals[name] = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    return refusals


def _has(name: str) -> bool:
    return "." in name or "_" in name


def _unified(name: str) -> str:
    """Metric names cannot tell `.` from `_`."""
    return name.replace(".", "_")


def _create_topic(
    image: Image,
    topic: _Topic,
    brokers: BrokerFacts,
    context: Context,
) -> Generator[None, None, list[Message]]:
    """TopicRecord, ConfigRecords, PartitionRecords. Raises ApiError where the topic is refused."""
    configs = _configs(image, topic, context)
    assignments = yield from _assignments(topic, brokers, context)
    ask(context.config.create_topic_policy, _new_topic(topic, assignments))
    charge(context, len(assignments))
    topic_id = new_uuid(context.rng)
    partitions = yield from partition_records(brokers, topic_id, 0, assignments)
    return [TopicRecord(name=topic.name, topic_id=topic_id), *configs, *partitions]


def _configs(image: Image, topic: _Topic, context: Context) -> list[Message]:
    """The records of the topic's configs. Raises ApiError where it may not have them."""
    check_count(topic.configs)
    without_value = [config.name for config in topic.configs if config.value is None]
    if without_value:
        text = f"Null value not supported for topic configs: {','.join(without_value)}"
        raise ApiError(ErrorCode.INVALID_CONFIG, text)
    if not topic.configs:
        return []
    changes = {config.name: Change(Operation.SET, config.value) for config in topic.configs}
    resource = ConfigResource(TOPIC_RESOURCE, topic.name)
    records = changed_configs(image, resource, changes, context, is_new=True)
    return [*records, *clear_elr_records(image, records)]


def _new_topic(topic: _Topic, assignments: Sequence[Sequence[int]]) -> NewTopic:
    """What the policy is asked about."""
    is_manual = bool(topic.assignments)
    return NewTopic(
        name=topic.name,
        partitions=None if is_manual else len(assignments),
        replication_factor=None if is_manual else len(assignments[0]),
        assignments=dict(enumerate(assignments)) if is_manual else None,
        configs={config.name: config.value or "" for config in topic.configs},
    )


def _assignments(
    topic: _Topic, brokers: BrokerFacts, context: Context
) -> Generator[None, None, list[list[int]]]:
    """The replicas of each partition: as the request assigns them, or placed."""
    if topic.assignments:
        return _manual_assignments(topic, brokers)
    if topic.replication_factor < _BY_DEFAULT or topic.replication_factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        raise ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if topic.num_partitions < _BY_DEFAULT or topic.num_partitions == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        raise ApiError(ErrorCode.INVALID_PARTITIONS, text)
    config = context.config
    asked, factor = topic.num_partitions, topic.replication_factor
    count = config.num_partitions if asked == _BY_DEFAULT else asked
    factor = config.default_replication_factor if factor == _BY_DEFAULT else factor
    return (yield from placed(brokers, count, factor, context.rng, of_new_topic=True))


def _manual_assignments(topic: _Topic, brokers: BrokerFacts) -> list[list[int]]:
    if topic.replication_factor != _BY_DEFAULT:
        text = (
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    if topic.num_partitions != _BY_DEFAULT:
        text = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    found: dict[int, list[int]] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, list(assignment.broker_ids)
        if index in found:
            raise bad_assignment(
                f"Found multiple manual partition assignments for partition {index}"
            )
        check_assignment(brokers.registered, replicas, factor)
        factor = len(replicas)
        check_active(brokers, replicas, index)
        found[index] = replicas
    if sorted(found) != list(range(len(found))):
        raise bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [found[index] for index in range(len(found))]


class _EffectiveConfigs:
    """The configs in the response for each topic; topics that set none have the same."""

    def __init__(self, image: Image, context: Context) -> None:
        self._image = image
        self._context = context

    def of(self, own: dict[str, str]) -> list[_CreatedConfig]:
        return self._effective(own) if own else self._defaults

    @cached_property
    def _defaults(self) -> list[_CreatedConfig]:
        return self._effective({})

    def _effective(self, own: dict[str, str]) -> list[_CreatedConfig]:
        effective = self._context.configs.effective_topic_configs(self._image, own)
        return [
            _CreatedConfig(name=name, value=found.value, config_source=found.source)
            for name, found in effective.items()
        ]


def _created(wanted: _Wanted, made: Sequence[Message], configs_of: _EffectiveConfigs) -> _Result:
    """The result for a topic that is created. `made`: its records, partitions last."""
    last = made[-1]
    assert isinstance(last, PartitionRecord), "a topic has a partition"
    topic, topic_id = wanted.topic, last.topic_id
    if not wanted.shows_configs:
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return _Result(
            name=topic.name,
            topic_id=topic_id,
            error_message=None,
            topic_config_error_code=error,
        )
    return _Result(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=last.partition_id + 1,
        replication_factor=len(last.replicas),
        configs=configs_of.of({config.name: config.value or "" for config in topic.configs}),
    )


def _refused_topic(name: str, refused: ApiError) -> _Result:
    """Return the result of one topic. The reason of a fault stays in the log (`ApiError.fromThrowable`)."""
    is_fault = refused.error is ErrorCode.UNKNOWN_SERVER_ERROR
    return _Result(
        name=name, error_code=refused.error, error_message=None if is_fault else str(refused)
    )


def _create_failed(
    request: CreateTopicsRequest, error: ErrorCode, message: str | None
) -> Building[CreateTopicsResponse]:
    text = error_text(error, message)
    topics = yield from each(
        request.topics,
        lambda topic: _Result(name=topic.name, error_code=error, error_message=text),
    )
    return CreateTopicsResponse(topics=topics)


def _create_empty(request: CreateTopicsRequest) -> CreateTopicsResponse | None:
    return None if request.topics else CreateTopicsResponse()


CREATE_TOPICS: Final = WriteOperation(
    "CreateTopics",
    _create_topics,
    _create_failed,
    _create_empty,
    timeout_ms=lambda request: request.timeout_ms,
    authorize=_authorize,
)
