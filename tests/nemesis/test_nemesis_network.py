"""The proxy between nodes: it knows who opened a connection, holds one direction, and resets."""

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quorate.nemesis.proxy import LinkRule, ProxyNetwork
from quorate.nemesis.watchdog import Watchdog
from quorate.server.ports import LOOPBACK as HOST
from quorate.server.ports import free_ports
from quorate.wire.header import encode_request
from quorate.wire.messages.cluster import ApiVersionsRequest

REQUESTS = frozenset({(2, 1)})
RESPONSES = frozenset({(1, 2)})


class EchoConnection:
    """A connection of node 2, or of another client, to an echo behind the proxy of node 1."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def echo(self, word=b"hello"):
        self.writer.write(word)
        return await asyncio.wait_for(self.reader.readexactly(len(word)), 5)


@asynccontextmanager
async def proxied():
    arrived: asyncio.Queue[Any] = asyncio.Queue()

    async def answer(reader, writer):
        while data := await reader.read(1000):
            arrived.put_nowait(data)
            writer.write(data)

    network, (behind, before) = ProxyNetwork(), free_ports(2)
    server = await asyncio.start_server(answer, HOST, behind)
    await network.serve(1, HOST, before, behind)
    writers = []

    async def connect(client_id="raft-client-2"):
        reader, writer = await asyncio.open_connection(HOST, before)
        writers.append(writer)
        link = EchoConnection(reader, writer)
        await link.echo(encode_request(ApiVersionsRequest(), 3, 0, client_id))
        while not arrived.empty():
            arrived.get_nowait()
        return link

    try:
        yield network, connect, arrived
    finally:
        for writer in writers:
            writer.transport.abort()
        await network.close()
        server.close()


def runs(test):
    """The test is a coroutine function."""

    def run():
        asyncio.run(test())

    run.__name__ = test.__name__
    return run


@runs
async def test_bytes_pass():
    async with proxied() as (_, connect, _):
        assert await (await connect()).echo() == b"hello"


@runs
async def test_held_requests_arrive_when_the_rule_is_removed():
    async with proxied() as (network, connect, arrived):
        link = await connect()
        rule = network.add_rule(LinkRule(REQUESTS, held=True))
        echo = asyncio.create_task(link.echo())
        assert await (await connect("another client")).echo(b"other") == b"other"
        assert arrived.get_nowait() == b"other" and arrived.empty()
        network.remove_rule(rule)
        assert await echo == b"hello"


@runs
async def test_held_responses_arrive_when_the_rule_is_removed():
    async with proxied() as (network, connect, arrived):
        link = await connect()
        rule = network.add_rule(LinkRule(RESPONSES, held=True))
        echo = asyncio.create_task(link.echo())
        assert await arrived.get() == b"hello"
        assert not echo.done()
        network.remove_rule(rule)
        assert await echo == b"hello"


@runs
async def test_a_cut_resets_open_connections_and_closes_new_ones():
    async with proxied() as (network, connect, _):
        link = await connect()
        rule = network.add_rule(LinkRule(REQUESTS | RESPONSES, cut=True))
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await link.echo()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await connect()
        assert await (await connect("raft-client-3")).echo() == b"hello"
        network.remove_rule(rule)
        assert await (await connect()).echo() == b"hello"


@runs
async def test_a_reset_connection_ends_with_an_error():
    async with proxied() as (network, connect, _):
        link = await connect()
        assert network.reset(RESPONSES) == 1
        with pytest.raises(ConnectionResetError):
            await link.reader.read()


@runs
async def test_a_delay_applies_to_each_direction():
    async with proxied() as (network, connect, _):
        link = await connect()
        network.add_rule(LinkRule(REQUESTS | RESPONSES, delay_s=0.05))
        start = asyncio.get_running_loop().time()
        await link.echo()
        assert asyncio.get_running_loop().time() - start >= 0.1


def test_the_watchdog_kills_the_processes_that_are_still_listed():
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    watched, forgotten = subprocess.Popen(sleep), subprocess.Popen(sleep)
    dog = Watchdog()
    try:
        for process in (watched, forgotten):
            dog.watch(process.pid)
        dog.forget(forgotten.pid)
        dog.close()
        assert watched.wait(10) == -9
        assert forgotten.poll() is None
    finally:
        forgotten.kill()
        forgotten.wait()
