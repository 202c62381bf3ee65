"""The key-value example: RESP replies in the order of the commands."""

import asyncio
import gc
import importlib.util
import sys
from pathlib import Path

import pytest

from narrow import not_none
from quorate.embed import NotLeaderError, local_cluster

PATH = Path(__file__).resolve().parents[2] / "examples" / "kv.py"


@pytest.fixture(scope="module")
def kv():
    spec = not_none(importlib.util.spec_from_file_location("kv_example", PATH))
    module = sys.modules["kv_example"] = importlib.util.module_from_spec(spec)
    not_none(spec.loader).exec_module(module)
    return module


class Wire:
    """A client's transport, which records writes and whether it was closed."""

    def __init__(self):
        self.written = b""
        self.closed = False

    def write(self, data):
        self.written += data

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


async def answers(client, data, expected):
    """Send bytes to a client and wait for the answer."""
    before = len(client.transport.written)
    client.data_received(data)
    async with asyncio.timeout(20):
        while len(client.transport.written) - before < len(expected):
            await asyncio.sleep(0.002)
    assert client.transport.written[before:] == expected


def with_clients(kv, scenario):
    """Run a scenario with a client of the leader and one of a follower."""

    async def main():
        stores = []

        def store():
            stores.append(kv.Store())
            return stores[-1]

        async with local_cluster(3, store) as cluster:
            leader = await cluster.leader()
            follower = next(m for m in cluster.members.values() if m is not leader)
            clients = [kv.Client(m, stores[m.node_id - 1]) for m in (leader, follower)]
            for client in clients:
                client.connection_made(Wire())
            await scenario(*clients)

    asyncio.run(main())


def test_writes_and_reads_are_answered_in_order(kv):
    async def scenario(client, _):
        await answers(client, command(b"SET", b"a", b"1"), b"+OK\r\n")
        sent = b"".join(
            (
                command(b"PING"),
                command(b"SET", b"b", b"2"),
                command(b"GET", b"a"),
                command(b"DEL", b"a"),
                command(b"DEL", b"a"),
                command(b"NO"),
            )
        )
        said = b"-ERR unknown command or wrong arguments: NO\r\n"
        await answers(client, sent, b"+PONG\r\n+OK\r\n$1\r\n1\r\n:1\r\n:0\r\n" + said)
        await answers(client, command(b"GET", b"a"), b"$-1\r\n")

    with_clients(kv, scenario)


def test_a_read_sees_exactly_the_writes_before_it(kv):
    async def scenario(client, _):
        sent = b"".join(
            (
                command(b"SET", b"a", b"old"),
                command(b"SET", b"a", b"new"),
                command(b"GET", b"a"),
                command(b"SET", b"a", b"newer"),
                command(b"SYNC"),
                command(b"GET", b"a"),
            )
        )
        said = b"+OK\r\n+OK\r\n$3\r\nnew\r\n+OK\r\n+OK\r\n$5\r\nnewer\r\n"
        await answers(client, sent, said)

    with_clients(kv, scenario)


def test_a_command_may_arrive_in_pieces(kv):
    async def scenario(client, _):
        sent = command(b"SET", b"key", b"v" * 300)
        client.data_received(sent[:20])
        await answers(client, sent[20:] + command(b"GET", b"nothing"), b"+OK\r\n$-1\r\n")

    with_clients(kv, scenario)


def test_a_follower_redirects_every_write_to_the_leader(kv):
    async def scenario(client, follower):
        moved = f"-MOVED 0 memory:{client.member.node_id}\r\n".encode()
        await answers(follower, command(b"SET", b"a", b"1") + command(b"DEL", b"a"), moved * 2)

    with_clients(kv, scenario)


def test_without_a_leader_the_client_gets_tryagain(kv):
    said = kv.answers_to(NotLeaderError(-1, None), 2)
    assert said == [b"-TRYAGAIN no leader is known\r\n"] * 2


def test_invalid_resp_closes_the_connection_after_earlier_commands(kv):
    async def scenario(client, _):
        client.data_received(command(b"PING") + b"GET a\r\n")
        assert client.transport.written.startswith(b"+PONG\r\n-ERR Protocol error")
        assert client.transport.closed

    with_clients(kv, scenario)


def test_a_snapshot_restores_the_store(kv):
    store, copy = kv.Store(), kv.Store()
    for number in range(100):
        store.apply(number, b"S4:k%03dvalue %d" % (number, number))
    copy.restore(store.snapshot())
    assert copy.data == store.data and len(copy.data) == 100


def test_the_garbage_collector_does_not_scan_the_store(kv):
    """It did: with half a million keys its pauses cost elections."""
    store = kv.Store()
    for number in range(100):
        store.apply(number, b"S4:k%03dvalue %d" % (number, number))
    assert not gc.is_tracked(store.data)
