"""Which addresses reach the node itself."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from quorate.base.ids import Address, Listener
from quorate.server.own_endpoints import OwnEndpoints
from quorate.server.sockets import BoundSockets

NAMES = {
    "self.test": ["127.0.0.1"],
    "localhost.test": ["::1", "127.0.0.1"],
    "proxy.test": ["192.0.2.7"],
    "proxy-alias.test": ["192.0.2.7"],
    "all.test": ["127.0.0.1", "192.0.2.8"],
    "other.test": ["192.0.2.8"],
}


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        if host not in NAMES:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(0, 0, 0, "", (ip, 0)) for ip in NAMES[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.fixture(params=["127.0.0.1", "0.0.0.0"])
def port_and_own(request: pytest.FixtureRequest) -> Iterator[tuple[int, OwnEndpoints]]:
    with socket.create_server((request.param, 0)) as sock:
        port = sock.getsockname()[1]
        advertised = (Listener("C", "proxy.test", 7001), Listener("C", "gone.test", 7002))
        yield port, OwnEndpoints(BoundSockets({"C": sock}, advertised))


def include(own: OwnEndpoints, host: str, port: int) -> bool:
    return asyncio.run(own.include(Address(host, port)))


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1", "self.test", "localhost.test"])
def test_a_name_of_the_bound_address_is_the_node_itself(
    port_and_own: tuple[int, OwnEndpoints], host: str
) -> None:
    port, own = port_and_own
    assert include(own, host, port)
    assert not include(own, host, port + 1)


@pytest.mark.parametrize("host", ["proxy.test", "proxy-alias.test", "192.0.2.7"])
def test_a_name_of_what_is_advertised_is_the_node_itself(
    port_and_own: tuple[int, OwnEndpoints], host: str
) -> None:
    _, own = port_and_own
    assert include(own, host, 7001)


@pytest.mark.parametrize("host", ["other.test", "all.test", "unknown.test", "192.0.2.8"])
def test_other_nodes_and_a_name_of_several_nodes_are_not(
    port_and_own: tuple[int, OwnEndpoints], host: str
) -> None:
    port, own = port_and_own
    for each in (port, 7001, 7002):
        assert not include(own, host, each)


def test_a_machine_without_ipv6_has_no_such_address(
    port_and_own: tuple[int, OwnEndpoints], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, own = port_and_own

    def without_ipv6(family: int, kind: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return socket.socket(family, kind)

    machine = SimpleNamespace(
        AF_INET=socket.AF_INET,
        AF_INET6=socket.AF_INET6,
        SOCK_DGRAM=socket.SOCK_DGRAM,
        socket=without_ipv6,
    )
    monkeypatch.setattr("quorate.server.own_endpoints.socket", machine)
    assert not asyncio.run(own.include(Address("::2", port)))


def test_another_address_of_this_machine_is_another_node() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        own = OwnEndpoints(BoundSockets({"C": sock}, (Listener("C", "127.0.0.1", port),)))
        assert not include(own, "127.0.0.2", port)
