"""The key-value example speaks RESP: answers in the order of the commands, whatever waits."""

import asyncio
import gc
import importlib.util
import sys
from pathlib import Path

import pytest

from quorate.embed import NotLeader, local_cluster

PATH = Path(__file__).resolve().parents[2] / "examples" / "kv.py"


@pytest.fixture(scope="module")
def kv():
    spec = importlib.util.spec_from_file_location("kv_example", PATH)
    module = sys.modules["kv_example"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Wire:
    """The transport of a client: what was written, and whether it was closed."""

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


def with_clients(kv, story):
    """Run a story with a client of the leader and one of a follower."""

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
            await story(*clients)

    asyncio.run(main())


def test_changes_and_reads_are_answered_in_order(kv):
    async def story(client, _):
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

    with_clients(kv, story)


def test_a_read_sees_the_changes_before_it_and_none_after_it(kv):
    async def story(client, _):
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

    with_clients(kv, story)


def test_a_command_may_come_in_pieces(kv):
    async def story(client, _):
        sent = command(b"SET", b"key", b"v" * 300)
        client.data_received(sent[:20])
        await answers(client, sent[20:] + command(b"GET", b"nothing"), b"+OK\r\n$-1\r\n")

    with_clients(kv, story)


def test_a_follower_names_the_leader_for_every_change(kv):
    async def story(client, follower):
        moved = f"-MOVED 0 memory:{client.member.node_id}\r\n".encode()
        await answers(follower, command(b"SET", b"a", b"1") + command(b"DEL", b"a"), moved * 2)

    with_clients(kv, story)


def test_while_no_leader_is_known_a_client_is_told_to_try_again(kv):
    said = kv.answers_to(NotLeader(-1, None), 2)
    assert said == [b"-TRYAGAIN no leader is known\r\n"] * 2


def test_what_is_no_resp_ends_the_connection_after_what_came_before(kv):
    async def story(client, _):
        client.data_received(command(b"PING") + b"GET a\r\n")
        assert client.transport.written.startswith(b"+PONG\r\n-ERR Protocol error")
        assert client.transport.closed

    with_clients(kv, story)


def test_a_snapshot_brings_the_store_back(kv):
    store, copy = kv.Store(), kv.Store()
    for number in range(100):
        store.apply(number, b"S4:k%03dvalue %d" % (number, number))
    copy.restore(store.snapshot())
    assert copy.data == store.data and len(copy.data) == 100


def test_the_garbage_collector_does_not_walk_through_the_store(kv):
    """It did: with half a million keys its pauses cost elections."""
    store = kv.Store()
    for number in range(100):
        store.apply(number, b"S4:k%03dvalue %d" % (number, number))
    assert not gc.is_tracked(store.data)
