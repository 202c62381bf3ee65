"""BrokerHeartbeat, and the fencing of brokers that send none (KIP-631).

A broker starts fenced. It is unfenced once it has applied its own registration. A controlled
shutdown moves its leaderships away first. A broker without contact is fenced.

Source: `ReplicationControlManager.processBrokerHeartbeat` and `maybeFenceOneStaleBroker`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid
from quorate.base.notes import Warn
from quorate.controller.brokers import check_epoch, metadata_version
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.liveness import (
    UNKNOWN_OFFSET,
    BrokerControl,
    BrokerFenced,
    DirectoriesFailed,
    DirectoriesFailing,
    HeartbeatDecided,
    LeavingBegan,
    LivenessChange,
    SessionExpired,
    ShutdownMoved,
)
from quorate.controller.replicas import (
    PlacedPartition,
    departures,
    elections,
    in_turns,
    leader_and_isr_changes,
    parts_of,
    places_on,
)
from quorate.controller.result import Result, Steps, Turn, WriteOperation, controller_task
from quorate.formats.records import BrokerRegistrationChangeRecord
from quorate.metadata.image import Broker, Partition
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
    """Checks at once; the changes of many partitions are written in turns.

    The response waits for the last turn. Other heartbeats of the broker are answered meanwhile.
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
    records: list[Message] | None = []
    ended: list[LivenessChange] = []
    if state is not before and not liveness.is_leaving(broker.id):
        records = yield from _changed(head, broker, state, context)
        if state.is_fenced:
            ended.append(BrokerFenced(broker.id))
        elif state is BrokerControl.CONTROLLED_SHUTDOWN:
            ended.append(ShutdownMoved(broker.id))
    failed = _failed(head, broker, request.offline_log_dirs, context)
    if records is not None and failed:
        seen = head.image
        records = yield from _offline(head, broker, failed, state, records, context)
        ended.append(DirectoriesFailed(broker.id, failed))
        is_same = head.image is seen or _is_still(state, head, broker, context)
        if records is not None and not is_same:
            return _overtaken(head, request, context, records, ended[-1:])
    if records is None:
        return _overtaken(head, request, context)
    present = head.image.cluster.brokers[broker.id]
    if metadata_version(head.image).cordoned_log_dirs:
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
    decided = HeartbeatDecided(broker.id, state, offset)
    return Result(records, response, atomic=False, liveness=(*ended, decided))


def _changed(head: HeadView, broker: Broker, state: BrokerControl, context: Context) -> _Turns:
    """The broker goes over to this state."""
    if state is BrokerControl.UNFENCED:
        return _unfence(head, broker, context)
    if state is BrokerControl.CONTROLLED_SHUTDOWN:
        return _shut_down(head, broker, context)
    return _fence(head, broker, context, is_expired=False)


def _overtaken(
    head: HeadView,
    request: BrokerHeartbeatRequest,
    context: Context,
    records: Sequence[Message] = (),
    changes: Sequence[LivenessChange] = (),
) -> Result[BrokerHeartbeatResponse]:
    """The response says what the broker is now. A refusal is not possible: records are written."""
    broker = head.image.cluster.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return Result((), _heartbeat_failed(request, ErrorCode.STALE_BROKER_EPOCH, None))
    liveness = context.liveness
    response = BrokerHeartbeatResponse(
        is_caught_up=liveness.is_caught_up(broker, request.current_metadata_offset),
        is_fenced=broker.fenced or liveness.is_leaving(broker.id),
    )
    return Result(records, response, atomic=False, liveness=tuple(changes))


def _is_still(state: BrokerControl, head: HeadView, broker: Broker, context: Context) -> bool:
    """No other write has taken a broker in this state out of it."""
    return state.is_fenced or _state_in_service(head, broker, context) is state


def _unfence(head: HeadView, broker: Broker, context: Context) -> _Turns:
    """The broker first: every image in between has leaders that are not fenced.

    A fenced leader that does not return would stay: no session of it expires, and the return of another
    broker elects only where there is no leader (decision 7).
    """
    state = BrokerControl.UNFENCED
    return in_turns(
        elections(head, context, to_add=broker.id),
        [HeartbeatDecided(broker.id, state, UNKNOWN_OFFSET)],
        lambda: _is_still(state, head, broker, context),
        first=[_change(broker, fenced=_UNFENCE)],
    )


def _shut_down(head: HeadView, broker: Broker, context: Context) -> _Turns:
    """The registration first: from then on the broker gets no leadership and no place in an ISR.

    A controller that takes over before the last turn begins again with the broker's next heartbeat.
    """
    state = BrokerControl.CONTROLLED_SHUTDOWN
    first: list[Message] = []
    if not broker.in_controlled_shutdown:
        first.append(_change(broker, in_controlled_shutdown=_IN_CONTROLLED_SHUTDOWN))
    return in_turns(
        departures(head, broker.id, context),
        [HeartbeatDecided(broker.id, state, UNKNOWN_OFFSET)],
        lambda: _is_still(state, head, broker, context),
        first,
    )


def _state_in_service(head: HeadView, broker: Broker, context: Context) -> BrokerControl | None:
    """The state of the same incarnation; None where it is registered no more, or on its way out."""
    present = head.image.cluster.brokers.get(broker.id)
    if present is None or present.epoch != broker.epoch or context.liveness.is_leaving(broker.id):
        return None
    return context.liveness.present_state(present)


def _fence(head: HeadView, broker: Broker, context: Context, *, is_expired: bool) -> _Turns:
    """The partitions first: a controller that takes over in between fences the broker again.

    is_expired: as in `LeavingBegan`.
    """
    began = LeavingBegan(broker.id, is_expired)
    last = yield from in_turns(departures(head, broker.id, context), [began])
    return None if last is None else [*last, _change(broker, fenced=_FENCE)]


def _change(
    broker: Broker, *, fenced: int = 0, in_controlled_shutdown: int = 0
) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
    )


def _failed(
    head: HeadView, broker: Broker, offline: Iterable[Uuid], context: Context
) -> frozenset[Uuid]:
    """Log directories that have failed since the broker's last heartbeat (KIP-858)."""
    present = context.liveness.without_failing(head.image.cluster).brokers.get(broker.id)
    if present is None or not metadata_version(head.image).directory_assignment:
        return frozenset()
    return frozenset(offline) & frozenset(present.directories)


def _offline(
    head: HeadView,
    broker: Broker,
    failed: frozenset[Uuid],
    state: BrokerControl,
    first: list[Message],
    context: Context,
) -> _Turns:
    """The partitions in the failed directories leave the broker; then its registration changes.

    The registration last: a controller that takes over in between finds the directories in it, and
    begins again with the broker's next heartbeat.
    """

    def changes(found: list[PlacedPartition]) -> Iterator[Message]:
        return leader_and_isr_changes(head.image, found, context, to_remove=broker.id)

    def is_wanted(partition: Partition) -> bool:
        return not failed.isdisjoint(partition.directories)

    def is_registered() -> bool:
        present = head.image.cluster.brokers.get(broker.id)
        return present is not None and present.epoch == broker.epoch

    began = (
        HeartbeatDecided(broker.id, state, UNKNOWN_OFFSET),
        DirectoriesFailing(broker.id, failed),
    )
    parts = parts_of(head, places_on(head, broker.id), is_wanted, changes, context)
    last = yield from in_turns(parts, began, is_registered, first)
    if last is None:
        return None
    directories = head.image.cluster.brokers[broker.id].directories
    remaining = [one for one in directories if one not in failed]
    record = BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, log_dirs=remaining
    )
    return [*last, record]


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


def _heartbeat_expired(
    head: HeadView, request: BrokerHeartbeatRequest
) -> tuple[LivenessChange, ...]:
    """What the broker has applied counts (`processExpiredBrokerHeartbeat`)."""
    broker = head.image.cluster.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return ()
    state = BrokerControl.FENCED if broker.fenced else BrokerControl.UNFENCED
    return (HeartbeatDecided(broker.id, state, request.current_metadata_offset),)


BROKER_HEARTBEAT: Final = WriteOperation(
    "BrokerHeartbeat", _heartbeat, _heartbeat_failed, expired=_heartbeat_expired
)


# -- fencing -----------------------------------------------------------------------------------
def _fence_stale(head: HeadView, request: None, context: Context) -> Steps[bool]:
    """Fence a broker whose session has expired.

    1. The fencing begins: the broker gets no leadership, replica or place in an ISR any more.
    2. Each turn changes some of its partitions. Other writes come in between.
    3. The last one fences the broker. A controller that takes over before it, also a Java one, finds
       the broker unfenced and without contact, and fences it by the same rules.

    The response: there may be another one.
    """
    now_ms = context.monotonic_ms
    found = context.liveness.expired(now_ms)
    if found is None:
        return Result((), False)
    broker_id, epoch = found
    expired = SessionExpired(broker_id, epoch, now_ms)
    broker = head.image.cluster.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch or broker.fenced:
        return Result((), True, liveness=(expired,))
    records = yield from _fence(head, broker, context, is_expired=True)
    assert records is not None, "no other decision takes the broker out of service"
    text = f"Fencing broker {broker_id} at epoch {epoch}: its session has timed out"
    decided = HeartbeatDecided(broker_id, BrokerControl.FENCED, UNKNOWN_OFFSET)
    changes = expired, BrokerFenced(broker_id), decided
    return Result(records, True, atomic=False, notes=(Warn(text),), liveness=changes)


FENCE_STALE_BROKER: Final = controller_task("maybeFenceStaleBroker", _fence_stale)
