"""Unmodified Java brokers on Quorate controllers (KIP-631)."""

import pytest

from interop.kafka import Quorum
from interop.test_cold_start import produce_and_consume

pytestmark = pytest.mark.interop


def test_a_broker_serves_clients_on_three_quorate_controllers(tmp_path):
    """The active controller is killed in between; producing goes on."""
    with Quorum(tmp_path, {1: "quorate", 2: "quorate", 3: "quorate"}) as quorum:
        quorum.format()
        quorum.start()
        leader = quorum.leader()
        broker = quorum.add_broker(11)
        assert produce_and_consume(quorum, broker, 100) == messages(100)
        leader.kill()
        quorum.wait_until(lambda v: v.leader not in (-1, leader.id), "another leader")
        assert produce_and_consume(quorum, broker, 50, topic="after") == messages(50)


def messages(count):
    return [f"message {i}".encode() for i in range(count)]
