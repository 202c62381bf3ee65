"""The listening sockets of a node."""

import contextlib
import socket

import pytest

from quorate.config.node_file import load_config
from quorate.server.sockets import ListenError, bind


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
def test_all_interfaces_means_ipv4_and_ipv6(tmp_path, everywhere):
    with bound(tmp_path, f"CONTROLLER://{everywhere}:0") as port:
        assert answers("127.0.0.1", port)
        assert answers("::1", port)


def test_the_description_names_the_bound_and_the_advertised_address(tmp_path):
    properties = tmp_path / "server.properties"
    properties.write_text(
        "node.id=1\nprocess.roles=controller\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.bootstrap.servers=localhost:1\nlog.dirs={tmp_path}\n"
        "listeners=CONTROLLER://127.0.0.1:0\nadvertised.listeners=CONTROLLER://c1.example:9093\n"
    )
    found = bind(load_config(str(properties)))
    try:
        said = found.description()
        bound = f"CONTROLLER://127.0.0.1:{found.sockets['CONTROLLER'].getsockname()[1]}"
    finally:
        found.close()
    assert said == f"{bound} (advertised as c1.example:9093)"


def test_a_single_address_is_bound_alone(tmp_path):
    with bound(tmp_path, "CONTROLLER://127.0.0.1:0") as port:
        assert answers("127.0.0.1", port)
        assert not answers("127.0.0.2", port)
        if socket.has_dualstack_ipv6():
            assert not answers("::1", port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="a machine without IPv6")
def test_a_name_with_both_kinds_of_addresses_uses_ipv4_as_in_java(tmp_path, monkeypatch):
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
def test_all_interfaces_are_refused_when_one_is_in_use(tmp_path, other):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((other, 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = rf"Cannot listen on 0\.0\.0\.0:{port} \(CONTROLLER\): the port is in use"
        with pytest.raises(ListenError, match=words), bound(tmp_path, f"CONTROLLER://:{port}"):
            pass


def test_the_buffers_of_sockets_are_as_configured(tmp_path):
    sizes = ("socket.send.buffer.bytes=20000", "socket.receive.buffer.bytes=30000")
    with sockets(tmp_path, "CONTROLLER://127.0.0.1:0", *sizes) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (20_000, 40_000)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (30_000, 60_000)


def test_a_foreign_ipv6_address_is_named_with_brackets(tmp_path):
    words = r"Cannot listen on \[2001:db8::1\]:\d+ \(CONTROLLER\): "
    with pytest.raises(ListenError, match=words), bound(tmp_path, "CONTROLLER://[2001:db8::1]:0"):
        pass
