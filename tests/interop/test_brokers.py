"""Unmodified Java brokers on Quorate controllers (KIP-631)."""

import pytest

from interop.kafka import HOST, Quorum
from interop.test_cold_start import produce_and_consume
from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.connection import Connection
from quorate.wire import messages as m

pytestmark = pytest.mark.interop


def test_a_broker_serves_clients_on_three_quorate_controllers(tmp_path):
    """The active controller is killed in between; producing goes on."""
    with Quorum(tmp_path, {1: "quorate", 2: "quorate", 3: "quorate"}) as quorum:
        quorum.format()
        quorum.start()
        leader = quorum.leader()
        broker = quorum.add_broker(11)
        assert produce_and_consume(quorum, broker, 100) == messages(100)
        assert_learns_the_limit(broker)
        leader.kill()
        quorum.wait_until(lambda v: v.leader not in (-1, leader.id), "another leader")
        assert produce_and_consume(quorum, broker, 50, topic="after") == messages(50)


def assert_learns_the_limit(broker):
    """The broker forwards more than a controller takes, and passes the refusal on to its client."""
    names = [f"topic-{number:0240}" for number in range(5_000)]
    topics = [m.CreateTopicsRequest.CreatableTopic(name=name) for name in names]
    with Connection(Address(HOST, broker.port), "long", 30_000) as connection:
        request = m.CreateTopicsRequest(topics=topics)
        found = connection.call(request, m.CreateTopicsResponse, 30_000).topics
    assert found and [topic.name for topic in found] == names[: len(found)]
    assert {topic.error_code for topic in found} == {ErrorCode.POLICY_VIOLATION}
    assert all("1048576 bytes at most here" in (topic.error_message or "") for topic in found)


def messages(count):
    return [f"message {i}".encode() for i in range(count)]
