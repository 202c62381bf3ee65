"""A broker without data: it registers and heartbeats over sockets, as a real one does (KIP-631)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final

from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import Address, Listener, Uuid
from quorate.broker.lifecycle import (
    BrokerIdentity,
    BrokerLifecycle,
    BrokerState,
    BrokerTimes,
    Response,
)
from quorate.client import ClientError, Connection
from quorate.formats.versions import supported_features
from quorate.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)

_HEARTBEAT_MS: Final = 500
_TIMEOUT_MS: Final = 5_000
_PAUSE_S: Final = 0.01


class QuickstartBroker:
    """One broker; `lifecycle` is that of a real one. Close it, or its connection stays open."""

    def __init__(self, broker_id: int, cluster_id: str, controllers: Sequence[Address]) -> None:
        identity = BrokerIdentity(
            broker_id,
            cluster_id,
            Uuid(secrets.token_bytes(16)),
            (Listener("PLAINTEXT", "127.0.0.1", 9092),),
            supported_features(),
            (Uuid(secrets.token_bytes(16)),),
        )
        self.lifecycle = BrokerLifecycle(identity, BrokerTimes(_HEARTBEAT_MS))
        self._controllers = controllers
        self._next = 0
        self._connection: Connection | None = None

    def step(self, now_ms: int, metadata_offset: Callable[[], int]) -> None:
        """Send what is due, and take the response. `metadata_offset`: see `BrokerLifecycle.poll`."""
        due = self.lifecycle.wake_at_ms
        if due is None or now_ms < due:
            return
        request = self.lifecycle.poll(now_ms, metadata_offset())
        if request is None:
            return
        response: Response
        try:
            connection = self._connected()
            if isinstance(request, BrokerHeartbeatRequest):
                response = connection.call(request, BrokerHeartbeatResponse, _TIMEOUT_MS)
            else:
                response = connection.call(request, BrokerRegistrationResponse, _TIMEOUT_MS)
        except ClientError:
            self._look_elsewhere()
            self.lifecycle.failed(now_ms)
            return
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            self._look_elsewhere()
        self.lifecycle.received(response, now_ms)

    def _connected(self) -> Connection:
        if self._connection is None:
            address = self._controllers[self._next % len(self._controllers)]
            self._connection = Connection(address, "quorate-quickstart", _TIMEOUT_MS)
        return self._connection

    def _look_elsewhere(self) -> None:
        self._next += 1
        self.close()

    def close(self) -> None:
        """Close the connection to a controller."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def run_until(
    brokers: Sequence[QuickstartBroker],
    metadata_offset: Callable[[], int],
    condition: Callable[[], bool],
    timeout_s: float = 30.0,
) -> None:
    """Let the brokers go on until `condition` holds.

    Raises QuorateError when a broker ends that was not asked to, and after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            states = ", ".join(f"{b.lifecycle.state.name}" for b in brokers)
            raise QuorateError(f"the brokers came to {states} in {timeout_s:.0f} s, and no further")
        for broker in brokers:
            broker.step(int(time.monotonic() * 1000), metadata_offset)
        time.sleep(_PAUSE_S)


def start(brokers: Sequence[QuickstartBroker]) -> None:
    """All begin, with nothing to recover."""
    now_ms = int(time.monotonic() * 1000)
    for broker in brokers:
        broker.lifecycle.start(now_ms)
        broker.lifecycle.set_ready(now_ms)


def in_state(brokers: Sequence[QuickstartBroker], state: BrokerState) -> bool:
    """Whether all of them are in the state."""
    return all(broker.lifecycle.state is state for broker in brokers)
