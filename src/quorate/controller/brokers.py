"""Brokers come and go: BrokerRegistration, UnregisterBroker (KIP-631).

Source: `ClusterControlManager.registerBroker`, `ReplicationControlManager.handleBrokerShutdown` and
`unregisterBroker`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Uuid, is_reserved_directory, uuid_to_text
from quorate.controller.context import Context
from quorate.controller.head_view import HeadView
from quorate.controller.liveness import BrokerRegistered, BrokerUnregistered, LeavingBegan
from quorate.controller.registration import listener_problem
from quorate.controller.replicas import Parts, departures, in_turns
from quorate.controller.result import MAX_RECORDS, ApiError, Result, Steps, Turn, WriteOperation
from quorate.formats.records import RegisterBrokerRecord, UnregisterBrokerRecord
from quorate.formats.versions import KRAFT_VERSION, METADATA_VERSION, MetadataVersion
from quorate.metadata.image import Broker, Image
from quorate.wire.messages import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from quorate.wire.schema import Message

_SHUTDOWN_DETECTION: Final = 3
"""The version of BrokerRegistration from which it names the previous broker epoch."""


def check_epoch(image: Image, broker_id: int, epoch: int) -> Broker:
    """The registered broker. Raises ApiError (STALE_BROKER_EPOCH) where it is another incarnation."""
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        text = f"No broker registration found for broker id {broker_id}"
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, text)
    if broker.epoch != epoch:
        text = f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, text)
    return broker


def metadata_version(image: Image) -> MetadataVersion:
    """The level in force. The activation records come before every other write, so there is one."""
    version = image.features.metadata_version
    assert version is not None
    return version


# -- registration ------------------------------------------------------------------------------
def _register(
    head: HeadView, request: BrokerRegistrationRequest, context: Context
) -> Steps[BrokerRegistrationResponse]:
    """The checks in Kafka's order, then:

    1. A new incarnation: the partitions leave the old one, cleanly or not, in turns with other writes.
    2. RegisterBrokerRecord comes last: where the controller changes in between, the broker asks the
       next one, which does the rest.
    """
    image = head.image
    broker_id = request.broker_id
    if request.cluster_id != context.config.cluster_id:
        raise ApiError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {context.config.cluster_id}, but got cluster ID "
            f"{request.cluster_id}",
        )
    if broker_id < 0:
        # As the leader of a partition, -1 stands for none and -2 for no change.
        raise ApiError(ErrorCode.INVALID_REGISTRATION, f"Invalid negative broker ID {broker_id}")
    existing = image.cluster.brokers.get(broker_id)
    is_new = existing is None or existing.incarnation_id != request.incarnation_id
    if is_new:
        _check_session(broker_id, existing, context)
    if request.is_migrating_zk_broker:
        text = "Controller does not support registering ZK brokers."
        raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
    version = metadata_version(image)
    if version.directory_assignment:
        _check_directories(image, broker_id, request.log_dirs)
    _check_features(image, request, context)
    _check_listeners(request)
    records: list[Message] = []
    if is_new:
        epoch = None if existing is None else existing.epoch
        parts = _leave(head, epoch, request, context)
        records = (yield from in_turns(parts, [LeavingBegan(broker_id)])) or []
    record = _registration_record(request, existing if not is_new else None, context)
    if version.directory_assignment:
        record.log_dirs = list(request.log_dirs)
    records.append(record)
    return Result(
        records,
        BrokerRegistrationResponse(broker_epoch=record.broker_epoch),
        atomic=False,
        liveness=(BrokerRegistered(broker_id, is_new),),
    )


def _check_session(broker_id: int, existing: Broker | None, context: Context) -> None:
    """The old incarnation is silent, and no other decision takes the broker out of service.

    Two at a time would not see each other's records. It ends soon, and the broker asks again.
    """
    liveness, now_ms = context.liveness, context.monotonic_ms
    is_alive = existing is not None and liveness.has_session(existing.id, existing.epoch, now_ms)
    if is_alive or liveness.is_leaving(broker_id):
        raise ApiError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted "
            "this should self-resolve once the heartbeat manager expires the broker's session.",
        )


def _check_directories(image: Image, broker_id: int, directories: list[Uuid]) -> None:
    refused = ErrorCode.INVALID_REGISTRATION
    if not directories:
        raise ApiError(refused, "No directories specified in request")
    if any(is_reserved_directory(directory) for directory in directories):
        raise ApiError(refused, "Reserved directory ID in request")
    given = set(directories)
    if len(given) != len(directories):
        raise ApiError(refused, "Duplicate directory ID in request")
    for other in image.cluster.brokers.values():
        if other.id != broker_id and not given.isdisjoint(other.directories):
            directory = next(one for one in directories if one in other.directories)
            owner = f"Broker {other.id} is already registered with directory"
            raise ApiError(refused, f"{owner} {uuid_to_text(directory)}")


def _check_listeners(request: BrokerRegistrationRequest) -> None:
    """Kafka answers UNKNOWN_SERVER_ERROR; an empty name ends its controller."""
    for listener in request.listeners:
        problem = listener_problem(listener) if listener.name else "Broker listeners must be named"
        if problem:
            raise ApiError(ErrorCode.INVALID_REGISTRATION, problem)


def _check_features(image: Image, request: BrokerRegistrationRequest, context: Context) -> None:
    """Every finalized level must be in the broker's range; a feature that it does not name has the
    range 0 to 0."""
    finalized = {
        METADATA_VERSION: int(metadata_version(image)),
        KRAFT_VERSION: context.control.kraft_version,
        **image.features.levels,
    }
    for feature in request.features:  # each time that it is named
        level = finalized.get(feature.name, 0)
        _check_level(
            feature.name, level, feature.min_supported_version, feature.max_supported_version
        )
    named = {feature.name for feature in request.features}
    if METADATA_VERSION not in named:
        text = f"Request features do not contain '{METADATA_VERSION}'"
        raise ApiError(ErrorCode.INVALID_REGISTRATION, text)
    for name, level in finalized.items():
        if level and name not in named:
            _check_level(name, level, 0, 0)


def _check_level(name: str, level: int, low: int, high: int) -> None:
    if not low <= level <= high:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} of "
            f"{name}. The broker wants a version between {low} and {high}, inclusive.",
        )


def _leave(
    head: HeadView, epoch: int | None, request: BrokerRegistrationRequest, context: Context
) -> Parts:
    """The partitions of the previous incarnation, which had `epoch` (`BrokerShutdownHandler`).

    None: the broker is not registered. It may have been, and be eligible for partitions that it has lost.
    """
    names_epoch = context.version >= _SHUTDOWN_DETECTION
    is_clean = names_epoch and epoch == request.previous_broker_epoch
    is_unclean = head.image.features.elr_enabled and not is_clean
    return departures(
        head, request.broker_id, context, is_unclean=is_unclean, of_eligible=is_unclean
    )


def _registration_record(
    request: BrokerRegistrationRequest, same: Broker | None, context: Context
) -> RegisterBrokerRecord:
    """Make the record of a registration. `same`: the present one, where this incarnation amends it."""
    cls = RegisterBrokerRecord
    return cls(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=context.next_offset if same is None else same.epoch,
        end_points=[
            cls.BrokerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in {one.name: one for one in request.listeners}.values()
        ],
        features=[
            cls.BrokerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
        rack=request.rack,
        fenced=True if same is None else same.fenced,
        in_controlled_shutdown=False if same is None else same.in_controlled_shutdown,
    )


def _registration_failed(
    request: BrokerRegistrationRequest, error: ErrorCode, message: str | None
) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error)


BROKER_REGISTRATION: Final = WriteOperation("BrokerRegistration", _register, _registration_failed)


# -- unregistration ----------------------------------------------------------------------------
def _unregister(
    head: HeadView, request: UnregisterBrokerRequest, context: Context
) -> Steps[UnregisterBrokerResponse]:
    """The partitions leave the broker, in turns with other writes; UnregisterBrokerRecord comes last.

    A controller that takes over in between finds the broker registered: the request is to be sent again.
    """
    while True:
        while context.liveness.is_leaving(request.broker_id):
            yield Turn(())  # the decision that has begun with it ends first
        broker = head.image.cluster.brokers.get(request.broker_id)
        if broker is None:
            text = f"Broker ID {request.broker_id} is not currently registered"
            raise ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        yield from _check_size(head, broker.id, context)
        is_same = head.image.cluster.brokers.get(broker.id) is broker
        if is_same and not context.liveness.is_leaving(broker.id):
            break
    parts = departures(head, broker.id, context, of_eligible=True)
    records = (yield from in_turns(parts, [LeavingBegan(broker.id)])) or []
    records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    return Result(
        records, UnregisterBrokerResponse(), atomic=False, liveness=(BrokerUnregistered(broker.id),)
    )


def _check_size(head: HeadView, broker_id: int, context: Context) -> Generator[Turn, None, None]:
    """Raise ApiError where there are too many records (`BoundedListTooLongException`).

    Nothing is written yet. Most brokers have too few partitions for it.
    """
    count = 1  # of the registration
    if head.index.has(broker_id) + count <= MAX_RECORDS:
        return
    for records, is_last in departures(head, broker_id, context, of_eligible=True):
        count += len(records)
        if count > MAX_RECORDS:
            text = "Unable to perform excessively large batch operation."
            raise ApiError(ErrorCode.POLICY_VIOLATION, text)
        if not is_last:
            yield Turn(())


def _unregistration_failed(
    request: UnregisterBrokerRequest, error: ErrorCode, message: str | None
) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error, error_message=message)


UNREGISTER_BROKER: Final = WriteOperation("UnregisterBroker", _unregister, _unregistration_failed)
