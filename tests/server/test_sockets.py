"""Where a node listens."""

import contextlib
import socket

import pytest

from quorate.node.config import load_config
from quorate.server.sockets import CannotListen, bind


@contextlib.contextmanager
def sockets(tmp_path, listeners, *further):
    properties = tmp_path / "server.properties"
    properties.write_text(
        "node.id=1\nprocess.roles=controller\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.bootstrap.servers=localhost:1\n"
        f"log.dirs={tmp_path}\nlisteners={listeners}\n"
    )
    found = bind(load_config(str(properties), further))
    try:
        yield found.sockets["CONTROLLER"]
    finally:
        found.close()


@contextlib.contextmanager
def bound(tmp_path, listeners):
    with sockets(tmp_path, listeners) as sock:
        yield sock.getsockname()[1]


def answers(host, port):
    try:
        socket.create_connection((host, port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="a machine without IPv6")
@pytest.mark.parametrize("everywhere", ["", "0.0.0.0", "[::]"])
def test_everywhere_is_ipv4_and_ipv6(tmp_path, everywhere):
    with bound(tmp_path, f"CONTROLLER://{everywhere}:0") as port:
        assert answers("127.0.0.1", port)
        assert answers("::1", port)


def test_one_address_is_that_one_alone(tmp_path):
    with bound(tmp_path, "CONTROLLER://127.0.0.1:0") as port:
        assert answers("127.0.0.1", port)
        assert not answers("127.0.0.2", port)
        if socket.has_dualstack_ipv6():
            assert not answers("::1", port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="a machine without IPv6")
def test_a_name_with_addresses_of_both_kinds_is_its_ipv4_as_for_java(tmp_path, monkeypatch):
    """`localhost` is both on most machines, and the resolver names ::1 first."""
    real = socket.getaddrinfo

    def both(host, *args, **more):
        hosts = ("::1", "127.0.0.1") if host == "localhost" else (host,)
        return [found for each in hosts for found in real(each, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    with bound(tmp_path, "CONTROLLER://localhost:0") as port:
        assert answers("127.0.0.1", port)


def test_a_machine_without_ipv6_listens_on_ipv4(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with bound(tmp_path, "CONTROLLER://:0") as port:
        assert answers("127.0.0.1", port)


@pytest.mark.parametrize("other", ["127.0.0.1", "0.0.0.0"])
def test_everywhere_is_refused_where_somebody_listens_on_one(tmp_path, other):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((other, 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = rf"Cannot listen on 0\.0\.0\.0:{port} \(CONTROLLER\): the port is in use"
        with pytest.raises(CannotListen, match=words), bound(tmp_path, f"CONTROLLER://:{port}"):
            pass


def test_the_buffers_of_sockets_are_as_configured(tmp_path):
    sizes = ("socket.send.buffer.bytes=20000", "socket.receive.buffer.bytes=30000")
    with sockets(tmp_path, "CONTROLLER://127.0.0.1:0", *sizes) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (20_000, 40_000)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (30_000, 60_000)


def test_an_ipv6_address_that_is_not_here_is_named_with_brackets(tmp_path):
    words = r"Cannot listen on \[2001:db8::1\]:\d+ \(CONTROLLER\): "
    with pytest.raises(CannotListen, match=words), bound(tmp_path, "CONTROLLER://[2001:db8::1]:0"):
        pass
