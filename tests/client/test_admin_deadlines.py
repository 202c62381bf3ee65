"""One deadline for a call, and threads that belong to the client alone."""

import asyncio
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from client.fake_node import HANG_UP, SILENCE, FakeNode
from client.test_admin import cluster
from client.test_admin_calls import config, open_admin
from quorate.client import Admin, AsyncAdmin, ClientError


@pytest.fixture
def silent():
    """Three nodes that accept connections and say nothing."""
    with ExitStack() as stack:
        yield [stack.enter_context(FakeNode({"ApiVersionsRequest": [SILENCE]})) for _ in range(3)]


def test_one_deadline_covers_all_addresses_and_steps(silent):
    began = time.monotonic()
    with pytest.raises(ClientError), open_admin(*silent, default_api_timeout_ms=300) as admin:
        admin.describe_cluster()
    assert 0.2 < time.monotonic() - began < 0.6


def test_silent_addresses_leave_time_for_one_that_answers(silent):
    with FakeNode({}) as node:
        node.answers["DescribeClusterRequest"] = [cluster(node)]
        with open_admin(*silent, node, default_api_timeout_ms=1000) as admin:
            assert admin.describe_cluster().controller_id == 1


def test_a_command_has_one_deadline_for_all_its_calls():
    with FakeNode({"DescribeClusterRequest": [SILENCE]}) as node:
        began = time.monotonic()
        limits = config(node, default_api_timeout_ms=10_000)
        with Admin(limits, give_up_at=began + 0.2) as admin:
            for _ in range(3):
                with pytest.raises(ClientError):
                    admin.describe_cluster()
        assert time.monotonic() - began < 0.6


def test_silent_nodes_do_not_take_the_threads_of_the_program(silent):
    async def main():
        admins = [AsyncAdmin(config(*silent, default_api_timeout_ms=10_000)) for _ in range(40)]
        calls = [asyncio.create_task(each.describe_cluster()) for each in admins]
        await asyncio.sleep(0)
        await asyncio.wait_for(asyncio.to_thread(lambda: None), 5)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(main())


def test_a_cancelled_connect_is_closed_and_its_thread_ends():
    accepted = threading.Event()
    closed = threading.Event()

    def serve(server):
        connection, _ = server.accept()
        accepted.set()
        with connection:
            connection.settimeout(10)
            while connection.recv(65536):
                pass
        closed.set()

    async def main(address):
        admin = AsyncAdmin(config(address, default_api_timeout_ms=60_000))
        call = asyncio.create_task(admin.describe_cluster())
        while not accepted.is_set():
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        asyncio.run(main(FakeAddress(server)))
        assert closed.wait(5)
        for each in threading.enumerate():
            if each.name == "quorate-admin":
                each.join(5)
                assert not each.is_alive()


class FakeAddress:
    def __init__(self, server):
        from quorate.base.ids import Address

        self.address = Address(*server.getsockname()[:2])


def test_the_loop_gets_the_error_of_a_thread():
    async def main(node):
        async with AsyncAdmin(config(node, default_api_timeout_ms=50)) as admin:
            with pytest.raises(ClientError):
                await admin.describe_cluster()

    with FakeNode({"DescribeClusterRequest": [HANG_UP]}) as node:
        asyncio.run(main(node))
