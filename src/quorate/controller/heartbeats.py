"""BrokerHeartbeat, and the fencing of brokers that send none (KIP-631).

A broker starts fenced. It is unfenced once it has applied its own registration. A controlled
shutdown moves its leaderships away first. A broker without contact is fenced.

Source: `ReplicationControlManager.processBrokerHeartbeat` and `maybeFenceOneStaleBroker`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.base.notes import Warn
from quorate.controller.brokers import check_epoch, metadata_version
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.liveness import (
    ALL_TOPICS,
    UNKNOWN_OFFSET,
    BrokerControl,
    FencingAdvanced,
    FencingEnded,
    HeartbeatDecided,
    LivenessChange,
    PartitionCursor,
    SessionExpired,
    ShutdownAdvanced,
    ShutdownEnded,
)
from quorate.controller.replicas import (
    departing_changes,
    in_directory,
    in_parts,
    leader_and_isr_changes,
    leaderless_places,
    next_elections,
)
from quorate.controller.result import Result, Steps, Turn, WriteOperation, controller_task
from quorate.formats.records import BrokerRegistrationChangeRecord
from quorate.metadata.image import Broker, uuid_sort_key
from quorate.wire.messages import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from quorate.wire.schema import Message

_FENCE: Final = 1
_UNFENCE: Final = -1
_IN_CONTROLLED_SHUTDOWN: Final = 1


_Turns = Generator[Turn, None, list[Message] | None]
"""The records of a change of state, in turns. Returns those of the last turn; None: another write that
was decided in between has ended the work."""


def _heartbeat(
    head: HeadView, request: BrokerHeartbeatRequest, context: Context
) -> Steps[BrokerHeartbeatResponse]:
    """Checks at once; the changes of many partitions are written in turns, others in parts.

    A controlled shutdown moves a part of the partitions, and `CONTINUE_SHUTDOWN` the others.
    """
    image, liveness = head.image, context.liveness
    broker = check_epoch(image, request.broker_id, request.broker_epoch)
    before = liveness.present_state(broker)
    state = liveness.next_state(
        broker,
        want_fence=request.want_fence,
        want_shut_down=request.want_shut_down,
        metadata_offset=request.current_metadata_offset,
        leads=head.index.leads(broker.id) > 0,
        cluster=image.cluster,
    )
    records: list[Message] = []
    changes: list[LivenessChange] = []
    is_new = state is not before and not liveness.is_being_fenced(broker.id)
    moved = PartitionCursor(broker.epoch, ALL_TOPICS)
    if is_new and state is BrokerControl.CONTROLLED_SHUTDOWN:
        records, moved = _begin_shutdown(head, broker, context)
    elif is_new:
        work = _unfence if state is BrokerControl.UNFENCED else _fence
        last = yield from work(head, broker, context)
        if last is None:
            return _overtaken(head, request, context)
        records = last
        if state.is_fenced:
            changes.append(FencingEnded(broker.id))
    present = head.image.cluster.brokers[broker.id]
    version = metadata_version(image)
    if version.directory_assignment:
        failed = _offline(head, present, request.offline_log_dirs, context)
        records.extend((yield from in_parts(failed, context)))
    if version.cordoned_log_dirs:
        records.extend(_cordoned(present, request.cordoned_log_dirs))
    response = BrokerHeartbeatResponse(
        is_caught_up=liveness.is_caught_up(present, request.current_metadata_offset),
        is_fenced=state.is_fenced,
        should_shut_down=state is BrokerControl.SHUTDOWN_NOW,
    )
    # What the broker has applied counts again from the heartbeat after a change of its registration
    # (`ClusterControlManager.replayRegistrationChange`).
    is_changed = present is not broker or any(
        isinstance(record, BrokerRegistrationChangeRecord) for record in records
    )
    offset = UNKNOWN_OFFSET if is_changed else request.current_metadata_offset
    is_moving = not moved.is_over or liveness.is_moving(broker.id)
    changes.append(HeartbeatDecided(broker.id, state, offset, is_moving))
    if not moved.is_over:
        changes.append(ShutdownAdvanced(broker.id, moved))
    return Result(records, response, atomic=False, liveness=tuple(changes))


def _overtaken(
    head: HeadView, request: BrokerHeartbeatRequest, context: Context
) -> Result[BrokerHeartbeatResponse]:
    """The response says what the broker is now. A refusal is not possible: records are written."""
    broker = head.image.cluster.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Result((), _heartbeat_failed(request, ErrorCode.STALE_BROKER_EPOCH, None))
    liveness = context.liveness
    response = BrokerHeartbeatResponse(
        is_caught_up=liveness.is_caught_up(broker, request.current_metadata_offset),
        is_fenced=broker.fenced or liveness.is_being_fenced(broker.id),
    )
    return Result((), response)


def _unfence(head: HeadView, broker: Broker, context: Context) -> _Turns:
    """The broker first: every image in between has leaders that are not fenced."""
    decided = HeartbeatDecided(broker.id, BrokerControl.UNFENCED, UNKNOWN_OFFSET)
    places = leaderless_places(head)
    records: list[Message] = [_change(broker, fenced=_UNFENCE)]
    while True:
        elections, is_over = next_elections(head, places, context, to_add=broker.id)
        records.extend(elections)
        if is_over:
            return records
        yield Turn(records, (decided,))
        is_in_service = _is_in_service(head, broker, context)
        if not is_in_service or _is_shutting_down(head.image.cluster.brokers[broker.id], context):
            return None
        records = []


def _begin_shutdown(
    head: HeadView, broker: Broker, context: Context
) -> tuple[list[Message], PartitionCursor]:
    """The first changes of a controlled shutdown, and how far they go.

    The registration comes first: from then on the broker gets no leadership and no place in an ISR. A
    controller that takes over before the last one begins again with the broker's next heartbeat.
    """
    records: list[Message] = []
    if not broker.in_controlled_shutdown:
        records.append(_change(broker, in_controlled_shutdown=_IN_CONTROLLED_SHUTDOWN))
    changes, moved = departing_changes(head, broker.id, PartitionCursor(broker.epoch), context)
    return records + changes, moved


def _is_in_service(head: HeadView, broker: Broker, context: Context) -> bool:
    """The same incarnation is registered, and neither fenced nor being fenced."""
    present = head.image.cluster.brokers.get(broker.id)
    return (
        present is not None
        and present.epoch == broker.epoch
        and not present.fenced
        and not context.liveness.is_being_fenced(broker.id)
    )


def _is_shutting_down(broker: Broker, context: Context) -> bool:
    return context.liveness.present_state(broker) is BrokerControl.CONTROLLED_SHUTDOWN


def _fence(head: HeadView, broker: Broker, context: Context) -> _Turns:
    """The partitions first: a controller that takes over in between fences the broker again.

    Where its session expires in between, the periodic task goes on from the same place.
    """
    progress: PartitionCursor | None = PartitionCursor(broker.epoch)
    while progress is not None:
        records, progress = departing_changes(head, broker.id, progress, context)
        if progress.is_over:
            return [*records, _change(broker, fenced=_FENCE)]
        yield Turn(records, (FencingAdvanced(broker.id, progress),))
        progress = context.liveness.fencing_of(broker.id)
    return None


def _change(
    broker: Broker, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )


def _offline(
    head: HeadView, broker: Broker, directories: list[Uuid], context: Context
) -> Iterator[Message]:
    """Log directories that failed (KIP-858): the partitions in them, then the remaining ones."""
    failed = [directory for directory in broker.directories if directory in directories]
    if not failed:
        return
    for directory in sorted(failed, key=uuid_sort_key):
        yield from leader_and_isr_changes(
            head.image,
            in_directory(head, broker.id, directory),
            context,
            to_remove=broker.id,
        )
    remaining = [directory for directory in broker.directories if directory not in failed]
    yield BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
    )


def _cordoned(broker: Broker, directories: list[Uuid] | None) -> Iterator[Message]:
    """Log directories that get no new replicas (KIP-1066). None: the broker does not know yet."""
    known = broker.cordoned_directories
    if directories is None or (known is not None and set(directories) == set(known)):
        return
    yield BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, cordoned_log_dirs=list(directories)
    )


def _heartbeat_failed(
    request: BrokerHeartbeatRequest, error: ErrorCode, message: str | None
) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error)


BROKER_HEARTBEAT: Final = WriteOperation("BrokerHeartbeat", _heartbeat, _heartbeat_failed)


# -- fencing -----------------------------------------------------------------------------------
def _fence_stale(head: HeadView, request: None, context: Context) -> Result[bool]:
    """Fence brokers whose session has expired, one at a time, in writes of bounded size.

    1. The fencing begins: the broker gets no leadership, replica or place in an ISR any more.
    2. Each write changes some of its partitions. Other writes come in between.
    3. The last one fences the broker. A controller that takes over before it, also a Java one, finds
       the broker unfenced and without contact, and fences it by the same rules.

    The response: there is more to do.
    """
    liveness, image = context.liveness, head.image
    notes: tuple[str, ...] = ()
    changes: list[LivenessChange] = []
    under_way = liveness.being_fenced()
    if under_way is None:
        expired = liveness.expired(context.monotonic_ms)
        if expired is None:
            return Result((), False)
        broker_id, epoch = expired
        progress = PartitionCursor(epoch)
        changes.append(SessionExpired(broker_id, epoch))
    else:
        broker_id, progress = under_way
    broker = image.cluster.brokers.get(broker_id)
    if broker is None or broker.epoch != progress.epoch or broker.fenced:
        changes.extend(() if under_way is None else (FencingEnded(broker_id),))
        return Result((), True, liveness=tuple(changes))
    if under_way is None:
        text = f"Fencing broker {broker_id} at epoch {epoch}: its session has timed out"
        notes = (Warn(text),)
    records, progress = departing_changes(head, broker_id, progress, context)
    if progress.is_over:
        records.append(_change(broker, fenced=_FENCE))
        decided = HeartbeatDecided(broker_id, BrokerControl.FENCED, UNKNOWN_OFFSET)
        changes.extend((FencingEnded(broker_id), decided))
    else:
        changes.append(FencingAdvanced(broker_id, progress))
    return Result(records, True, atomic=False, notes=notes, liveness=tuple(changes))


FENCE_STALE_BROKER: Final = controller_task("maybeFenceStaleBroker", _fence_stale)


# -- controlled shutdown -----------------------------------------------------------------------
def _continue_shutdown(head: HeadView, request: None, context: Context) -> Result[bool]:
    """Move the next partitions of a broker in a controlled shutdown; other writes come in between.

    The response: there is more to do.
    """
    under_way = context.liveness.shutting_down()
    if under_way is None:
        return Result((), False)
    broker_id, progress = under_way
    broker = head.image.cluster.brokers.get(broker_id)
    if broker is None or broker.epoch != progress.epoch or broker.fenced:
        return Result((), True, liveness=(ShutdownEnded(broker_id),))
    records, progress = departing_changes(head, broker_id, progress, context)
    change = ShutdownEnded(broker_id) if progress.is_over else ShutdownAdvanced(broker_id, progress)
    return Result(records, True, atomic=False, liveness=(change,))


CONTINUE_SHUTDOWN: Final = controller_task("continueControlledShutdown", _continue_shutdown)
