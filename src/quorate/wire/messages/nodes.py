"""How brokers and controllers make themselves known (KIP-631, KIP-919)."""

from __future__ import annotations

from quorate.base.ids import Uuid
from quorate.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class BrokerRegistrationRequest(Message, kind="request", key=62, versions=(0, 4)):
    """A broker that starts asks for its epoch."""

    class Listener(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Struct):
        name: str = string(key=True)
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: Uuid = uuid()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)
    rack: str | None = string(nullable=0)
    is_migrating_zk_broker: bool = boolean(since=1)
    log_dirs: list[Uuid] = array("uuid", since=2, ignorable=True)
    previous_broker_epoch: int = int64(since=3, default=-1, ignorable=True)


class BrokerRegistrationResponse(Message, kind="response", key=62, versions=(0, 4)):
    """The broker epoch: valid until the broker registers again."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)


class BrokerHeartbeatRequest(Message, kind="request", key=63, versions=(0, 2)):
    """A broker says that it lives, and what it wants."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[Uuid] = array("uuid", since=1, tag=0)
    cordoned_log_dirs: list[Uuid] | None = array("uuid", since=2, nullable=0, tag=1, default=None)


class BrokerHeartbeatResponse(Message, kind="response", key=63, versions=(0, 2)):
    """What the controller has made of the broker."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()


class UnregisterBrokerRequest(Message, kind="request", key=64, versions=(0, 0)):
    """Forgets a broker that will not come back."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Message, kind="response", key=64, versions=(0, 0)):
    """The broker is forgotten, or why not."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


class ControllerRegistrationRequest(Message, kind="request", key=70, versions=(0, 0)):
    """A controller reports its listeners and supported features to the active controller."""

    class Listener(Struct):
        name: str = string(key=True)
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Struct):
        name: str = string(key=True)
        min_supported_version: int = int16()
        max_supported_version: int = int16()

    controller_id: int = int32()
    incarnation_id: Uuid = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(Listener)
    features: list[Feature] = array(Feature)


class ControllerRegistrationResponse(Message, kind="response", key=70, versions=(0, 0)):
    """The registration is taken, or why not."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)


class UnregisterControllerRequest(Message, kind="request", key=94, versions=(0, 0)):
    """Forgets a controller that will not come back (KIP-1312)."""

    controller_id: int = int32()


class UnregisterControllerResponse(Message, kind="response", key=94, versions=(0, 0)):
    """The controller is forgotten, or why not."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable=0)
