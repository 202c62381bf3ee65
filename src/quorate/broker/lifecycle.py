"""How a broker deals with the controllers: registers, heartbeats, is fenced, shuts down (KIP-631).

A state machine without sockets, threads or clocks, as the nodes are. There is no broker in it: a test of
controllers, of Kafka's or ours, drives thousands of them.

1. It registers, again and again until it succeeds or `initial_timeout_ms` has passed.
2. STARTING: it heartbeats every 10 ms until it has applied its own registration.
3. RECOVERY: it heartbeats, and asks to be unfenced once `set_ready` was called.
4. RUNNING: it heartbeats every `heartbeat_interval_ms`.
5. PENDING_CONTROLLED_SHUTDOWN: it asks to shut down until a controller allows it.

One request is on its way at a time. The caller sends what `poll` gives to the active controller, and hands
the response to `received`; `failed` says that there is none.

Source: `org.apache.kafka.server.BrokerLifecycleManager`, `BrokerState`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from quorate.base.errors import ErrorCode
from quorate.base.ids import Listener, Uuid
from quorate.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

_STARTING_INTERVAL_MS: Final = 10
"""So that a broker without anything to recover starts soon."""
_FIRST_SHUTDOWN_INTERVAL_MS: Final = 50
UNKNOWN_EPOCH: Final = -1
PLAINTEXT: Final = 0


class BrokerState(Enum):
    """The states of a broker; the numbers are Kafka's."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """What a broker says of itself in every registration of one process."""

    broker_id: int
    cluster_id: str
    incarnation_id: Uuid
    listeners: tuple[Listener, ...]
    features: Mapping[str, tuple[int, int]]
    """Feature -> lowest and highest level (inclusive)."""
    directories: tuple[Uuid, ...]
    rack: str | None = None
    previous_epoch: int = UNKNOWN_EPOCH
    """The epoch that the process before had when it ended cleanly."""
    security_protocols: Mapping[str, int] = field(default_factory=dict)
    """Listener name -> Kafka's number of its protocol; without an entry 0, PLAINTEXT."""


@dataclass(frozen=True, slots=True)
class BrokerTimes:
    """Timers, ms; the defaults are Kafka's."""

    heartbeat_interval_ms: int = 2_000
    """`broker.heartbeat.interval.ms`"""
    initial_timeout_ms: int = 60_000
    """`initial.broker.registration.timeout.ms`"""
    directory_failure_timeout_ms: int = 30_000
    """`log.dir.failure.timeout.ms`: how long no controller may know that a directory failed."""


Request = BrokerRegistrationRequest | BrokerHeartbeatRequest
Response = BrokerRegistrationResponse | BrokerHeartbeatResponse


@dataclass(slots=True)
class _FailedDirectory:
    failed_at_ms: int
    is_sent: bool = False
    """The heartbeat on its way names it."""
    is_known: bool = False
    """A controller has taken it."""


@dataclass
class BrokerLifecycle:
    """One process of a broker. Times are monotonic, ms."""

    identity: BrokerIdentity
    times: BrokerTimes = BrokerTimes()
    state: BrokerState = BrokerState.NOT_RUNNING
    epoch: int = UNKNOWN_EPOCH
    """The broker epoch of the newest registration."""
    is_fenced: bool = True
    """As of the newest heartbeat."""
    ended: str = ""
    """Why the state is SHUTTING_DOWN."""
    wake_at_ms: int | None = None
    """When to call `poll` at the latest; None: when something happens."""
    _is_registered: bool = False
    _has_registered: bool = False
    _is_ready: bool = False
    _in_flight: bool = False
    _at_once: bool = False
    """The request after the one on its way is sent without a pause."""
    _began_ms: int = 0
    _asked_to_end: bool = False
    _failed: dict[Uuid, _FailedDirectory] = field(default_factory=dict)
    _cordoned: tuple[Uuid, ...] = ()

    # -- what the broker does -------------------------------------------------------------------
    def start(self, now_ms: int) -> None:
        """The process begins."""
        self.state = BrokerState.STARTING
        self._began_ms = self.wake_at_ms = now_ms

    def set_ready(self, now_ms: int) -> None:
        """The broker has recovered its logs, and wants to be unfenced."""
        self._is_ready = True
        self._communicate(now_ms)

    def register_again(self, now_ms: int) -> None:
        """metadata.version crossed a level at which the registration says more."""
        self._is_registered = False
        self._communicate(now_ms)

    def directory_failed(self, directory: Uuid, now_ms: int) -> None:
        """A log directory is offline."""
        self._failed.setdefault(directory, _FailedDirectory(now_ms))
        if self._is_registered:
            self._communicate(now_ms)

    def cordon(self, directories: Iterable[Uuid], now_ms: int) -> None:
        """These log directories get no new replicas (`cordoned.log.dirs`)."""
        self._cordoned = tuple(directories)
        if self._is_registered:
            self._communicate(now_ms)

    def begin_shutdown(self, now_ms: int) -> None:
        """End in an orderly way: the leaderships move first. A broker that does not run ends at once."""
        if self.state is BrokerState.RUNNING:
            self.state = BrokerState.PENDING_CONTROLLED_SHUTDOWN
            self._communicate(now_ms)
        elif self.state is not BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            self._end("the broker was not running")

    # -- the controller -------------------------------------------------------------------------
    def poll(self, now_ms: int, metadata_offset: int) -> Request | None:
        """The request to send now. `metadata_offset`: the last one (inclusive) that the broker applied."""
        self._check_timers(now_ms)
        if self._in_flight or self.wake_at_ms is None or now_ms < self.wake_at_ms:
            return None
        self._in_flight, self.wake_at_ms = True, self._next_timer()
        return self._heartbeat(metadata_offset) if self._is_registered else self._registration()

    def received(self, response: Response, now_ms: int) -> None:
        """The controller's response to what `poll` gave."""
        self._in_flight = False
        if self.state is BrokerState.SHUTTING_DOWN:
            return
        if response.error_code != ErrorCode.NONE:
            self._after_failure(now_ms)
        elif isinstance(response, BrokerRegistrationResponse):
            self.epoch = response.broker_epoch
            self._is_registered = self._has_registered = True
            self._schedule(now_ms, 0)
        else:
            self._after_heartbeat(response, now_ms)

    def failed(self, now_ms: int) -> None:
        """No response came: the caller looks for the active controller, and asks again later."""
        self._in_flight = False
        self._after_failure(now_ms)

    def _registration(self) -> BrokerRegistrationRequest:
        cls, own = BrokerRegistrationRequest, self.identity
        return cls(
            broker_id=own.broker_id,
            cluster_id=own.cluster_id,
            incarnation_id=own.incarnation_id,
            listeners=[
                cls.Listener(
                    name=name,
                    host=host,
                    port=port,
                    security_protocol=own.security_protocols.get(name, PLAINTEXT),
                )
                for name, host, port in own.listeners
            ],
            features=[
                cls.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in own.features.items()
            ],
            rack=own.rack,
            log_dirs=sorted(own.directories),
            previous_broker_epoch=own.previous_epoch,
        )

    def _heartbeat(self, metadata_offset: int) -> BrokerHeartbeatRequest:
        for failed in self._failed.values():
            failed.is_sent = True
        # A broker that starts does not know its configs yet: null says so.
        knows_configs = self.state is not BrokerState.STARTING
        return BrokerHeartbeatRequest(
            broker_id=self.identity.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=metadata_offset,
            want_fence=not self._is_ready,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=list(self._failed),
            cordoned_log_dirs=list(self._cordoned) if knows_configs else None,
        )

    def _after_heartbeat(self, response: BrokerHeartbeatResponse, now_ms: int) -> None:
        # Kafka marks what has failed meanwhile, too: then `log.dir.failure.timeout.ms` never ends it.
        for failed in self._failed.values():
            failed.is_known = failed.is_sent
        self.is_fenced = response.is_fenced
        interval_ms = self.times.heartbeat_interval_ms
        if self.state is BrokerState.STARTING:
            if response.is_caught_up:
                self.state = BrokerState.RECOVERY
            interval_ms = _STARTING_INTERVAL_MS
        elif self.state is BrokerState.RECOVERY:
            if not response.is_fenced:
                self.state = BrokerState.RUNNING
        elif self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN:
            if response.should_shut_down:
                self._end("the controller allows the shutdown")
                return
            if not self._asked_to_end:
                interval_ms = _FIRST_SHUTDOWN_INTERVAL_MS
            self._asked_to_end = True
        self._schedule(now_ms, interval_ms)

    def _after_failure(self, now_ms: int) -> None:
        self._at_once = False  # never at once after a failure
        self._schedule(now_ms, self.times.heartbeat_interval_ms)

    # -- timers ---------------------------------------------------------------------------------
    def _communicate(self, now_ms: int) -> None:
        """Send the next request as soon as none is in flight."""
        if self._in_flight:
            self._at_once = True
        elif self.state is not BrokerState.NOT_RUNNING:
            self._schedule(now_ms, 0)

    def _schedule(self, now_ms: int, interval_ms: int) -> None:
        wait_ms = 0 if self._at_once else interval_ms
        self._at_once = False
        timer = self._next_timer()
        at_ms = now_ms + wait_ms
        self.wake_at_ms = at_ms if timer is None else min(at_ms, timer)

    def _next_timer(self) -> int | None:
        times = [
            failed.failed_at_ms + self.times.directory_failure_timeout_ms
            for failed in self._failed.values()
            if not failed.is_known
        ]
        if not self._has_registered:
            times.append(self._began_ms + self.times.initial_timeout_ms)
        return min(times, default=None)

    def _check_timers(self, now_ms: int) -> None:
        if self.state in (BrokerState.NOT_RUNNING, BrokerState.SHUTTING_DOWN):
            return
        if not self._has_registered and now_ms >= self._began_ms + self.times.initial_timeout_ms:
            self._end("no controller registered the broker in time")
        limit_ms = self.times.directory_failure_timeout_ms
        for failed in self._failed.values():
            if not failed.is_known and now_ms >= failed.failed_at_ms + limit_ms:
                self._end("no controller took the failure of a log directory in time")

    def _end(self, why: str) -> None:
        self.state, self.ended, self.wake_at_ms = BrokerState.SHUTTING_DOWN, why, None
