"""Elections that are asked for, come by period or were left over: ElectLeaders, preferred leaders,
unclean ones, those of an unfencing that a former leader began.

Source: `ReplicationControlManager.electLeaders`, `maybeBalancePartitionLeaders` and
`maybeElectUncleanLeaders`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.controller.building import Building, each_group
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.partition_changes import Election, PartitionTarget, change_partition
from quorate.controller.replicas import (
    Parts,
    PlacedPartition,
    elections,
    imbalanced_places,
    in_turns,
    leaderless_places,
    parts_of,
    rules_for,
)
from quorate.controller.result import (
    MAX_RECORDS,
    PAUSE_EVERY,
    ApiError,
    Result,
    Steps,
    Turn,
    WriteOperation,
    controller_task,
    error_text,
)
from quorate.formats.records import PartitionChangeRecord
from quorate.metadata.image import NO_LEADER, Image, Partition
from quorate.wire.messages import ElectLeadersRequest, ElectLeadersResponse
from quorate.wire.schema import Message

PREFERRED: Final = 0
UNCLEAN: Final = 1
"""Election types of an ElectLeaders request."""
MAX_PERIODIC_ELECTIONS: Final = 1_000
"""Of one periodic run; there is another run at once where it found as many."""

_Topic = ElectLeadersResponse.ReplicaElectionResult
_Partition = _Topic.PartitionResult


def _elect_leaders(
    head: HeadView, request: ElectLeadersRequest, context: Context
) -> Steps[ElectLeadersResponse]:
    if request.election_type not in (PREFERRED, UNCLEAN):
        text = f"Unknown election type {request.election_type}"
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    image = head.image
    records: list[Message] = []
    results = []
    seen = 0
    for name, indexes in _wanted(image, request):
        partitions = []
        seen += 1
        if seen % PAUSE_EVERY == 0:
            yield None
        for index in indexes:
            seen += 1
            if seen % PAUSE_EVERY == 0:
                yield None
            refused = _elect(image, name, index, request.election_type, context, records)
            # A request for all partitions gets no result for those that have the leader already.
            if (
                request.topic_partitions is None
                and refused is not None
                and refused.error is ErrorCode.ELECTION_NOT_NEEDED
            ):
                continue
            partitions.append(_partition_result(index, refused))
        results.append(_Topic(topic=name, partition_result=partitions))
    if len(records) > MAX_RECORDS:
        text = "Unable to perform excessively large batch operation."
        raise ApiError(ErrorCode.POLICY_VIOLATION, text)
    return Result(records, ElectLeadersResponse(replica_election_results=results), atomic=False)


def _wanted(image: Image, request: ElectLeadersRequest) -> Iterable[tuple[str, Iterable[int]]]:
    if request.topic_partitions is None:
        return [(topic.name, sorted(topic.partitions)) for topic in image.topics.in_order()]
    return ((topic.topic, topic.partitions) for topic in request.topic_partitions)


def _elect(
    image: Image,
    name: str,
    index: int,
    election_type: int,
    context: Context,
    records: list[Message],
) -> ApiError | None:
    """Why no leader is elected; None: the record is added."""
    topic = image.topics.named(name)
    if topic is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        text = f"No such partition as {name}-{index}"
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    is_preferred = election_type == PREFERRED
    if (is_preferred and partition.leader == partition.preferred_leader) or (
        not is_preferred and partition.leader != NO_LEADER
    ):
        return ApiError.of(ErrorCode.ELECTION_NOT_NEEDED)
    election = Election.PREFERRED if is_preferred else Election.UNCLEAN
    record = _election(image, PlacedPartition(topic, index, partition), election, context)
    if record is None:
        if is_preferred:
            return ApiError.of(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        return ApiError.of(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)
    records.append(record)
    return None


def _election(
    image: Image, found: PlacedPartition, election: Election, context: Context
) -> PartitionChangeRecord | None:
    topic, index, partition = found
    rules = rules_for(image, topic, context)
    return change_partition(topic.id, index, partition, PartitionTarget(election=election), rules)


def _partition_result(index: int, refused: ApiError | None) -> _Partition:
    return _Partition(
        partition_id=index,
        error_code=ErrorCode.NONE if refused is None else refused.error,
        error_message=None if refused is None else str(refused),
    )


def _failed(
    request: ElectLeadersRequest, error: ErrorCode, message: str | None
) -> Building[ElectLeadersResponse]:
    """The code of the whole request; versions below 1 have it for each partition only."""
    text = error_text(error, message)

    def row(index: int) -> _Partition:
        return _Partition(partition_id=index, error_code=error, error_message=text)

    results = yield from each_group(
        request.topic_partitions or (),
        lambda topic: topic.partitions,
        row,
        lambda topic, rows: _Topic(topic=topic.topic, partition_result=rows),
    )
    return ElectLeadersResponse(error_code=error, replica_election_results=results)


def _empty(request: ElectLeadersRequest) -> ElectLeadersResponse | None:
    is_empty = request.topic_partitions is not None and not request.topic_partitions
    return ElectLeadersResponse() if is_empty else None


ELECT_LEADERS: Final = WriteOperation(
    "ElectLeaders",
    _elect_leaders,
    _failed,
    _empty,
    timeout_ms=lambda request: request.timeout_ms,
)


# -- periodic ----------------------------------------------------------------------------------
def _balance(head: HeadView, request: None, context: Context) -> Steps[bool]:
    """The preferred leaders (`auto.leader.rebalance.enable`). The response: run again at once."""

    def changes(found: list[PlacedPartition]) -> Iterator[Message]:
        return _elections(head.image, found, Election.PREFERRED, context)

    places = imbalanced_places(head)
    return _periodic(parts_of(head, places, _is_imbalanced, changes, context))


def _is_imbalanced(partition: Partition) -> bool:
    return partition.leader != partition.preferred_leader


def _unclean(head: HeadView, request: None, context: Context) -> Steps[bool]:
    """Leaders outside the ISR for topics that allow them. The response: run again at once."""

    def changes(found: list[PlacedPartition]) -> Iterator[Message]:
        image, configs = head.image, context.configs
        allowed = [p for p in found if configs.unclean_leader_election(image, p.topic.name)]
        return _elections(image, allowed, Election.UNCLEAN, context)

    places = leaderless_places(head)
    return _periodic(
        parts_of(head, places, lambda found: found.leader == NO_LEADER, changes, context)
    )


def _elections(
    image: Image, found: Iterable[PlacedPartition], election: Election, context: Context
) -> Iterator[Message]:
    records = (_election(image, place, election, context) for place in found)
    return (record for record in records if record is not None)


def _periodic(parts: Parts) -> Steps[bool]:
    """Other writes are decided between the parts."""
    count = 0
    while True:
        records, is_last = next(parts)
        count += len(records)
        if is_last or count >= MAX_PERIODIC_ELECTIONS:
            return Result(records, count >= MAX_PERIODIC_ELECTIONS, atomic=False)
        yield Turn(records)


ELECT_PREFERRED: Final = controller_task("electPreferred", _balance)
ELECT_UNCLEAN: Final = controller_task("electUnclean", _unclean)


# -- left over ---------------------------------------------------------------------------------
def _resume(head: HeadView, request: None, context: Context) -> Steps[bool]:
    """Give a leader to each partition that may have one.

    Where a leadership ends between the turns of an unfencing, the broker is unfenced already: no
    heartbeat of its elects the other leaders.
    """
    last = yield from in_turns(elections(head, context))
    return Result(last or (), False, atomic=False)


ELECT_LEFT_OVER: Final = controller_task("electLeftOver", _resume)
