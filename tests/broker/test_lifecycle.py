"""The states of a broker, one rule after the other, against scripted responses."""

from dataclasses import replace

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Listener, Uuid
from quorate.broker.lifecycle import BrokerIdentity, BrokerLifecycle, BrokerState
from quorate.wire.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

DIRECTORY = Uuid(b"d" * 16)
IDENTITY = BrokerIdentity(
    7, "cluster", Uuid(b"i" * 16), (Listener("PLAINTEXT", "h", 9092),), {}, (DIRECTORY,)
)


class Broker:
    """A lifecycle on a clock of its own. Each step sends what is due and takes the response."""

    def __init__(self):
        self.lifecycle = BrokerLifecycle(IDENTITY)
        self.now_ms = 0
        self.lifecycle.start(0)

    def due(self):
        """The next request, and how long the broker waited for it."""
        began = self.now_ms
        assert self.lifecycle.wake_at_ms is not None
        self.now_ms = max(self.now_ms, self.lifecycle.wake_at_ms)
        request = self.lifecycle.poll(self.now_ms, 100)
        return request, self.now_ms - began

    def registered(self, error=ErrorCode.NONE):
        request, waited = self.due()
        assert isinstance(request, BrokerRegistrationRequest)
        response = BrokerRegistrationResponse(error_code=error, broker_epoch=55)
        self.lifecycle.received(response, self.now_ms)
        return request, waited

    def heartbeat(self, **fields):
        request, waited = self.due()
        assert isinstance(request, BrokerHeartbeatRequest)
        self.lifecycle.received(BrokerHeartbeatResponse(**fields), self.now_ms)
        return request, waited

    def run(self):
        self.registered()
        self.heartbeat(is_caught_up=True)
        self.lifecycle.set_ready(self.now_ms)
        self.heartbeat(is_fenced=False)
        assert self.lifecycle.state is BrokerState.RUNNING


@pytest.fixture
def broker():
    return Broker()


def test_it_registers_at_once_and_again_after_a_refusal(broker):
    assert broker.registered(ErrorCode.DUPLICATE_BROKER_REGISTRATION)[1] == 0
    request, waited = broker.registered()
    assert waited == 2_000 and broker.lifecycle.epoch == 55
    assert (request.broker_id, request.log_dirs) == (7, [DIRECTORY])


def test_it_gives_up_when_nobody_registers_it_in_time(broker):
    while broker.lifecycle.state is BrokerState.STARTING:
        broker.due()
        broker.lifecycle.failed(broker.now_ms)
    assert broker.now_ms == 60_000
    assert broker.lifecycle.ended == "no controller registered the broker in time"


def test_it_heartbeats_often_until_it_has_caught_up(broker):
    broker.registered()
    assert broker.heartbeat()[1] == 0
    request, waited = broker.heartbeat(is_caught_up=True)
    assert waited == 10
    assert (request.broker_epoch, request.want_fence, request.cordoned_log_dirs) == (55, True, None)
    assert broker.lifecycle.state is BrokerState.RECOVERY
    assert broker.heartbeat()[0].cordoned_log_dirs == []


def test_it_runs_once_it_is_ready_and_unfenced(broker):
    broker.registered()
    broker.heartbeat(is_caught_up=True)
    broker.lifecycle.set_ready(broker.now_ms)
    assert not broker.heartbeat(is_fenced=True)[0].want_fence
    assert broker.lifecycle.state == BrokerState.RECOVERY
    broker.heartbeat(is_fenced=False)
    assert broker.lifecycle.state == BrokerState.RUNNING
    assert broker.heartbeat(is_fenced=False)[1] == 2_000


def test_one_request_is_on_its_way_at_a_time_and_the_next_one_follows_at_once(broker):
    broker.registered()
    broker.due()
    broker.lifecycle.set_ready(broker.now_ms)
    assert broker.lifecycle.poll(broker.now_ms, 100) is None
    broker.lifecycle.received(BrokerHeartbeatResponse(is_caught_up=True), broker.now_ms)
    assert broker.heartbeat(is_fenced=False)[1] == 0


def test_a_controlled_shutdown_asks_until_it_is_allowed(broker):
    broker.run()
    broker.lifecycle.begin_shutdown(broker.now_ms)
    request, waited = broker.heartbeat()
    assert request.want_shut_down and waited == 0
    assert broker.heartbeat()[1] == 50
    assert broker.heartbeat(should_shut_down=True)[1] == 2_000
    assert broker.lifecycle.state is BrokerState.SHUTTING_DOWN
    assert broker.lifecycle.poll(broker.now_ms + 10_000, 100) is None


def test_a_broker_that_does_not_run_ends_at_once(broker):
    broker.registered()
    broker.lifecycle.begin_shutdown(broker.now_ms)
    assert broker.lifecycle.state is BrokerState.SHUTTING_DOWN


def test_a_failed_directory_is_named_until_a_controller_knows_it_or_the_broker_ends(broker):
    broker.run()
    broker.lifecycle.directory_failed(DIRECTORY, broker.now_ms)
    request, waited = broker.heartbeat(is_fenced=False)
    assert request.offline_log_dirs == [DIRECTORY] and waited == 0
    other = Uuid(b"o" * 16)
    broker.lifecycle.directory_failed(other, broker.now_ms)
    failed_at = broker.now_ms
    while broker.lifecycle.state is BrokerState.RUNNING:
        broker.due()
        broker.lifecycle.failed(broker.now_ms)
    assert broker.now_ms == failed_at + 30_000


def test_a_directory_that_fails_after_the_request_is_not_known_by_its_response(broker):
    """Kafka's broker takes the response for all failures, and its timer never ends it."""
    broker.run()
    broker.lifecycle.directory_failed(DIRECTORY, broker.now_ms)
    broker.due()
    other = Uuid(b"o" * 16)
    broker.lifecycle.directory_failed(other, broker.now_ms)
    broker.lifecycle.received(BrokerHeartbeatResponse(is_fenced=False), broker.now_ms)
    failed_at = broker.now_ms
    request, waited = broker.due()
    assert request.offline_log_dirs == [DIRECTORY, other] and waited == 0
    for _ in range(20):
        if broker.lifecycle.state is BrokerState.RUNNING:
            broker.lifecycle.failed(broker.now_ms)
            broker.due()
    assert broker.now_ms == failed_at + 30_000


def test_each_listener_is_registered_with_its_security_protocol():
    listeners = (Listener("INTERNAL", "h", 9092), Listener("CLIENTS", "h", 9093))
    identity = replace(IDENTITY, listeners=listeners, security_protocols={"CLIENTS": 3})
    lifecycle = BrokerLifecycle(identity)
    lifecycle.start(0)
    request = lifecycle.poll(0, 0)
    assert isinstance(request, BrokerRegistrationRequest)
    found = {each.name: each.security_protocol for each in request.listeners}
    assert found == {"INTERNAL": 0, "CLIENTS": 3}


def test_it_registers_again_with_the_same_incarnation(broker):
    broker.run()
    broker.lifecycle.register_again(broker.now_ms)
    request, waited = broker.registered()
    assert waited == 0 and request.incarnation_id == IDENTITY.incarnation_id
    assert broker.lifecycle.state is BrokerState.RUNNING
