"""What records do to the registrations of brokers and controllers.

Rules: `ClusterDelta`, `BrokerRegistration`, `ControllerRegistration` and the replay methods of
`ClusterControlManager`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from quorate.base.ids import Uuid
from quorate.formats.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)
from quorate.metadata.errors import ReplayError
from quorate.metadata.image import (
    Broker,
    Cluster,
    Controller,
    Endpoint,
    VersionRange,
    uuid_sort_key,
)

SECURITY_PROTOCOLS: Final = range(4)
"""The ids that have a meaning; a record with another one cannot be applied."""
_FENCING: Final[dict[int, bool | None]] = {1: True, 0: None, -1: False}
_SHUTDOWN: Final[dict[int, bool | None]] = {1: True, 0: None}


def register_broker(cluster: Cluster, record: RegisterBrokerRecord) -> Cluster:
    """Set the broker's registration, new or in place of an older one."""
    broker = Broker(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        listeners=_listeners("RegisterBrokerRecord", record.broker_id, record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        is_migrating_zk_broker=record.is_migrating_zk_broker,
        directories=_sorted(record.log_dirs),
        cordoned_directories=_optional(record.cordoned_log_dirs),
    )
    return replace(cluster, brokers=cluster.brokers.set(broker.id, broker))


def unregister_broker(cluster: Cluster, record: UnregisterBrokerRecord) -> Cluster:
    """Forget the broker."""
    _registered(cluster, "UnregisterBrokerRecord", record.broker_id, record.broker_epoch)
    return replace(cluster, brokers=cluster.brokers.delete(record.broker_id))


def fence_broker(cluster: Cluster, record: FenceBrokerRecord) -> Cluster:
    """Fence the broker (written before metadata.version 3.3-IV3)."""
    broker = _registered(cluster, "FenceBrokerRecord", record.id, record.epoch)
    return _with(cluster, broker, replace(broker, fenced=True))


def unfence_broker(cluster: Cluster, record: UnfenceBrokerRecord) -> Cluster:
    """Unfence the broker (written before metadata.version 3.3-IV3)."""
    broker = _registered(cluster, "UnfenceBrokerRecord", record.id, record.epoch)
    return _with(cluster, broker, replace(broker, fenced=False))


def change_broker(cluster: Cluster, record: BrokerRegistrationChangeRecord) -> Cluster:
    """Change what the record names; no log directories, or null cordoned ones, mean no change."""
    name = "BrokerRegistrationChangeRecord"
    broker = _registered(cluster, name, record.broker_id, record.broker_epoch)
    if record.fenced not in _FENCING:
        raise ReplayError(f"{name}: broker {broker.id}: fenced cannot be {record.fenced}")
    if record.in_controlled_shutdown not in _SHUTDOWN:
        raise ReplayError(
            f"{name}: broker {broker.id}: in controlled shutdown cannot be "
            f"{record.in_controlled_shutdown}"
        )
    fenced = _FENCING[record.fenced]
    shutdown = _SHUTDOWN[record.in_controlled_shutdown]
    cordoned = _optional(record.cordoned_log_dirs)
    changed = replace(
        broker,
        fenced=broker.fenced if fenced is None else fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown if shutdown is None else shutdown,
        directories=_sorted(record.log_dirs) or broker.directories,
        cordoned_directories=broker.cordoned_directories if cordoned is None else cordoned,
    )
    return _with(cluster, broker, changed)


def register_controller(cluster: Cluster, record: RegisterControllerRecord) -> Cluster:
    """Set the controller's registration."""
    controller = Controller(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        listeners=_listeners("RegisterControllerRecord", record.controller_id, record.end_points),
        features=_features(record.features),
    )
    return replace(cluster, controllers=cluster.controllers.set(controller.id, controller))


def unregister_controller(cluster: Cluster, record: UnregisterControllerRecord) -> Cluster:
    """Forget the controller, if it is registered (`ClusterDelta` does not ask)."""
    if record.controller_id not in cluster.controllers:
        return cluster
    return replace(cluster, controllers=cluster.controllers.delete(record.controller_id))


def _registered(cluster: Cluster, record: str, broker_id: int, epoch: int) -> Broker:
    broker = cluster.brokers.get(broker_id)
    if broker is None:
        raise ReplayError(f"{record}: broker {broker_id} is not registered")
    if broker.epoch != epoch:
        raise ReplayError(
            f"{record}: broker {broker_id} is registered with epoch {broker.epoch}, "
            f"the record says {epoch}"
        )
    return broker


def _with(cluster: Cluster, before: Broker, after: Broker) -> Cluster:
    if after == before:
        return cluster
    return replace(cluster, brokers=cluster.brokers.set(after.id, after))


def _listeners(
    record: str,
    node_id: int,
    endpoints: Iterable[RegisterBrokerRecord.BrokerEndpoint]
    | Iterable[RegisterControllerRecord.ControllerEndpoint],
) -> tuple[Endpoint, ...]:
    by_name: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        if not endpoint.name and record == "RegisterBrokerRecord":
            raise ReplayError(f"{record}: broker {node_id} has a listener without a name")
        if endpoint.security_protocol not in SECURITY_PROTOCOLS:
            raise ReplayError(
                f"{record}: node {node_id}: listener {endpoint.name} has the unknown security "
                f"protocol {endpoint.security_protocol}"
            )
        by_name[endpoint.name] = Endpoint(
            endpoint.name, endpoint.host, endpoint.port, endpoint.security_protocol
        )
    return tuple(by_name[name] for name in sorted(by_name))


def _features(
    features: Iterable[RegisterBrokerRecord.BrokerFeature]
    | Iterable[RegisterControllerRecord.ControllerFeature],
) -> tuple[VersionRange, ...]:
    by_name = {
        feature.name: VersionRange(
            feature.name, feature.min_supported_version, feature.max_supported_version
        )
        for feature in features
    }
    return tuple(by_name[name] for name in sorted(by_name))


def _sorted(directories: Iterable[Uuid]) -> tuple[Uuid, ...]:
    return tuple(sorted(directories, key=uuid_sort_key))


def _optional(directories: Iterable[Uuid] | None) -> tuple[Uuid, ...] | None:
    return None if directories is None else tuple(directories)
