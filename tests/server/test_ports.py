"""Free ports for nodes that a command starts."""

import socket

import pytest

from quorate.base.errors import QuorateError
from quorate.server import ports
from quorate.server.ports import LOOPBACK, free_ports


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        first = taken.getsockname()[1]
        monkeypatch.setattr(ports, "_RANGE", range(first, first + 1))
        monkeypatch.setattr(ports, "_given", set())
        yield


def test_a_port_in_use_is_not_free():
    with pytest.raises(QuorateError, match="there are no 1 free ports between"):
        free_ports(1)


def test_no_port_is_given_twice(monkeypatch):
    monkeypatch.setattr(ports, "_RANGE", range(20_000, 20_200))
    given = free_ports(5) + free_ports(5)
    assert len(set(given)) == 10


def test_a_failure_to_listen_has_a_reason(monkeypatch):
    monkeypatch.setattr(ports, "LOOPBACK", "192.0.2.1")  # TEST-NET: no machine has it
    with pytest.raises(QuorateError, match=r"cannot listen on 192\.0\.2\.1: Cannot assign"):
        free_ports(1)
