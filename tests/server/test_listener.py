"""Inbound connections: order of responses, limits, garbage and idle clients."""

import asyncio
import logging
import re
import socket

import pytest

from quorate.base.errors import QuorateError
from quorate.config.node_file import load_config
from quorate.controller.connection_rates import Admission
from quorate.server.connections import MAX_REQUESTS_PER_STEP
from quorate.server.limits import ConnectionLimits
from quorate.server.listener import Acceptor
from quorate.server.settings import limits


class Server:
    """An acceptor whose requests the test answers by hand."""

    def __init__(self, limits=None, room=lambda: True, family=socket.AF_INET):
        self.family = family
        self.slots = []
        self.frames = []
        self.room = room
        self.limits = limits or ConnectionLimits()

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        sock = socket.socket(self.family)
        sock.bind(("127.0.0.1" if self.family == socket.AF_INET else "::", 0))
        self.port = sock.getsockname()[1]
        self.acceptor = Acceptor(loop, self.limits, self.on_frame, lambda: self.room())
        await self.acceptor.listen("CONTROLLER", sock)
        return self

    async def __aexit__(self, *_):
        self.acceptor.close()

    def on_frame(self, slot, frame):
        if frame == b"bad":
            raise QuorateError("that is no request")
        self.slots.append(slot)
        self.frames.append(frame)

    def answer(self, index, data):
        self.slots[index].data = data
        self.slots[index].connection.flush()
        self.acceptor.resume_throttled()

    async def connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def wait_for(self, count):
        async with asyncio.timeout(5):
            while len(self.frames) < count:
                await asyncio.sleep(0.001)


def frame(data):
    return len(data).to_bytes(4, "big") + data


async def is_closed(reader):
    async with asyncio.timeout(5):
        return await reader.read() == b""


def test_responses_keep_the_order_of_their_requests():
    async def run():
        async with Server() as server:
            reader, writer = await server.connect()
            writer.write(frame(b"one") + frame(b"two") + frame(b"three"))
            await server.wait_for(3)
            server.answer(2, b"THREE")
            server.answer(1, b"TWO")
            server.answer(0, b"ONE")
            assert await reader.readexactly(11) == b"ONETWOTHREE"
            writer.close()

    asyncio.run(run())


def test_one_connection_does_not_wait_for_anothers_responses():
    async def run():
        async with Server() as server:
            _, first = await server.connect()
            first.write(frame(b"slow"))
            await server.wait_for(1)
            reader, second = await server.connect()
            second.write(frame(b"quick"))
            await server.wait_for(2)
            server.answer(1, b"done")
            assert await reader.readexactly(4) == b"done"
            first.close()
            second.close()

    asyncio.run(run())


def test_requests_split_at_any_byte_arrive_complete():
    async def run():
        async with Server() as server:
            _, writer = await server.connect()
            for byte in frame(b"in pieces") + frame(b"again"):
                writer.write(bytes([byte]))
                await writer.drain()
            await server.wait_for(2)
            assert server.frames == [b"in pieces", b"again"]
            writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7f\xff\xff\xff", "2147483647"),
        (b"\xff\xff\xff\xff", "-1"),
        (b"GET / HTTP/1.1\r\n\r\n", "announced"),
        (frame(b"bad"), "no request"),
    ],
)
def test_garbage_closes_the_connection_and_is_logged(data, why, caplog):
    async def run():
        async with Server() as server:
            reader, writer = await server.connect()
            writer.write(data)
            assert await is_closed(reader)
            writer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    messages = "\n".join(caplog.messages)
    assert why in messages and "127.0.0.1" in messages


def test_a_flood_of_garbage_does_not_flood_the_log(caplog):
    async def run():
        async with Server() as server:
            for _ in range(40):
                reader, writer = await server.connect()
                writer.write(frame(b"bad"))
                assert await is_closed(reader)
                writer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    *lines, last = caplog.messages
    assert len(lines) == 10 and all("127.0.0.1" in line for line in lines)
    assert last == (
        "Closed a connection because of an invalid request (30 more times within a minute: 30 from "
        "127.0.0.1)"
    )


def test_a_flood_beyond_the_connections_of_a_host_does_not_flood_the_log(caplog):
    async def run():
        async with Server(ConnectionLimits(max_connections_per_ip=1)) as server:
            _, first = await server.connect()
            for _ in range(15):
                reader, writer = await server.connect()
                assert await is_closed(reader)
                writer.close()
            first.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert len(caplog.messages) == 11 and "5 more times" in caplog.messages[-1]


def test_a_burst_of_connections_is_held_while_the_loop_is_busy():
    async def run():
        async with Server() as server:
            address = ("127.0.0.1", server.port)
            # Nothing is accepted here: the loop does not turn. One too many waits for a second.
            held = [socket.create_connection(address, timeout=0.9) for _ in range(120)]
            for connection in held:
                connection.close()

    asyncio.run(run())


def test_an_idle_client_that_reads_no_response_is_closed():
    async def run():
        async with Server(ConnectionLimits(max_idle_ms=100)) as server:
            _, writer = await server.connect()
            writer.write(frame(b"much"))
            await server.wait_for(1)
            server.answer(0, bytes(16 << 20))
            assert server.slots[0].connection.unsent > 0
            await until(lambda: server.acceptor.connection_count == 0)
            writer.close()

    asyncio.run(run())


def test_an_incomplete_frame_is_closed_when_idle():
    async def run():
        async with Server(ConnectionLimits(max_idle_ms=100)) as server:
            reader, writer = await server.connect()
            writer.write(frame(b"half of it")[:6])
            assert await is_closed(reader)
            writer.close()

    asyncio.run(run())


ONE_CONNECTION = {
    "of all": ConnectionLimits(max_connections=1),
    "of an address": ConnectionLimits(
        max_connections_per_ip=0, max_connections_by_ip={"127.0.0.1": 1}
    ),
}


@pytest.mark.parametrize("limits", ONE_CONNECTION.values(), ids=ONE_CONNECTION)
def test_a_connection_over_the_limit_is_closed(limits):
    async def run():
        async with Server(limits) as server:
            _, first = await server.connect()
            first.write(frame(b"counted"))
            await server.wait_for(1)
            reader, second = await server.connect()
            assert await is_closed(reader)
            first.close()
            second.close()

    asyncio.run(run())


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


def test_closed_connections_do_not_count_for_a_host():
    async def run():
        async with Server(ConnectionLimits(max_connections_per_ip=1)) as server:
            for count in range(1, 4):
                _, writer = await server.connect()
                writer.write(frame(b"served"))
                await server.wait_for(count)
                writer.close()
                await until(lambda: server.acceptor.connection_count == 0)

    asyncio.run(run())


def test_one_closed_connection_admits_one_of_the_same_host():
    async def run():
        async with Server(ConnectionLimits(max_connections_per_ip=2)) as server:
            _, kept = await server.connect()
            _, gone = await server.connect()
            await until(lambda: server.acceptor.connection_count == 2)
            gone.close()
            await until(lambda: server.acceptor.connection_count == 1)
            _, again = await server.connect()
            again.write(frame(b"served"))
            await server.wait_for(1)
            reader, refused = await server.connect()
            assert await is_closed(reader)
            for writer in (kept, again, refused):
                writer.close()

    asyncio.run(run())


def test_connections_beyond_the_file_limit_are_closed(caplog):
    async def run():
        async with Server(ConnectionLimits(max_descriptor_connections=1)) as server:
            _, first = await server.connect()
            reader, second = await server.connect()
            assert await is_closed(reader)
            first.close()
            second.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert "1 are open, and the node needs the other file" in caplog.text


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="a machine without IPv6")
def test_an_ipv4_client_of_a_socket_for_both_is_named_as_ipv4(caplog):
    async def run():
        async with Server(
            ConnectionLimits(max_connections_per_ip=0), family=socket.AF_INET6
        ) as server:
            reader, writer = await server.connect()
            assert await is_closed(reader)
            writer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert "Refused the connection from 127.0.0.1:" in caplog.text


def test_a_client_that_never_reads_is_throttled():
    async def run():
        async with Server() as server:
            reader, writer = await server.connect()
            writer.write(b"".join(frame(b"%d" % i) for i in range(1000)))
            await server.wait_for(1)
            await asyncio.sleep(0)
            held = len(server.frames)
            assert held < 1000
            answered = 0
            async with asyncio.timeout(5):
                while answered < 1000:
                    if answered < len(server.frames):
                        server.answer(answered, b"x")
                        answered += 1
                    else:
                        await asyncio.sleep(0.001)
            assert await reader.readexactly(1000) == b"x" * 1000
            assert server.frames == [b"%d" % i for i in range(1000)]
            writer.close()

    asyncio.run(run())


def test_unread_responses_close_the_largest_connection(caplog):
    answer = frame(bytes(1 << 20))

    async def run():
        async with Server(ConnectionLimits(max_unsent_bytes=8 << 20)) as server:
            asks, modest = await server.connect()
            modest.write(frame(b"modest"))
            await server.wait_for(1)
            _, greedy = await server.connect()
            greedy.write(b"".join(frame(b"%d" % i) for i in range(40)))
            await server.wait_for(2)
            for index in range(2, 41):  # the first one's answer is the last to come
                await server.wait_for(index + 1)
                server.answer(index, answer)
                if "are unsent" in caplog.text:
                    break
            assert index < 20
            server.answer(0, frame(b"x"))
            assert await asks.readexactly(5) == frame(b"x")
            greedy.close()
            modest.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert "the client does not read its responses, " in caplog.text


def test_a_connection_closed_for_unread_responses_counts_no_more(caplog):
    """In one turn of the loop: the next to be closed is another one."""
    answer = frame(bytes(4 << 20))

    async def run():
        async with Server(ConnectionLimits(max_unsent_bytes=10 << 20)) as server:
            greedy = [(await server.connect())[1] for _ in range(4)]
            for number, writer in enumerate(greedy, 1):
                writer.write(frame(b"one") + frame(b"two"))
                await server.wait_for(2 * number)
            for index in range(1, 8, 2):  # the second answer waits for the first
                server.answer(index, answer)
            taken = [slot.connection for slot in server.slots]
            assert sum(connection.unsent for connection in set(taken)) <= 10 << 20
            for writer in greedy:
                writer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    closed = re.findall(r"127\.0\.0\.1:\d+", caplog.text)
    assert len(closed) == len(set(closed)) == 2


def test_a_full_queue_throttles_all_connections():
    async def run():
        full = True
        async with Server(room=lambda: not full) as server:
            _, writer = await server.connect()
            writer.write(frame(b"wait"))
            async with asyncio.timeout(5):
                while not server.acceptor.throttled:
                    await asyncio.sleep(0.001)
            assert server.frames == []
            full = False
            server.acceptor.resume_throttled()
            await server.wait_for(1)
            writer.close()

    asyncio.run(run())


def test_throttled_connections_take_turns_during_a_flood():
    """Room for two requests a step, and three connections that always want more: the fourth, a
    follower's, comes soon, and no connection is forgotten."""

    async def run():
        taken = 0
        server = Server()
        server.room = lambda: len(server.frames) - taken < 2
        async with server:
            flood = [(await server.connect())[1] for _ in range(3)]
            for number, writer in enumerate(flood):
                writer.write(b"".join(frame(b"%d" % number) for _ in range(40)))
            await until(lambda: len(server.acceptor.throttled) == 3)
            _, follower = await server.connect()
            follower.write(frame(b"a fetch"))
            await until(lambda: len(server.acceptor.throttled) == 4)
            steps = 0
            while len(server.frames) < 121:
                taken = len(server.frames)
                server.acceptor.resume_throttled()
                steps += 1
                assert steps < 200, "a connection is never read again"
            assert server.frames.index(b"a fetch") < 12
            first = [server.frames.index(b"%d" % number) for number in range(3)]
            assert max(first) < 12
            for writer in (*flood, follower):
                writer.close()

    asyncio.run(run())


def test_one_connection_gets_a_limited_number_of_requests_per_step():
    """Kafka takes one request of a connection at a time; a few cost no more and are as fair."""

    async def run():
        async with Server() as server:
            _, greedy = await server.connect()
            greedy.write(b"".join(frame(b"again") for _ in range(100)))
            await server.wait_for(1)
            _, follower = await server.connect()
            follower.write(frame(b"a fetch"))
            await server.wait_for(MAX_REQUESTS_PER_STEP + 1)
            assert sorted(server.frames) == [b"a fetch"] + [b"again"] * MAX_REQUESTS_PER_STEP
            for turn in range(2, 5):
                server.acceptor.resume_throttled()
                assert len(server.frames) == 1 + turn * MAX_REQUESTS_PER_STEP
            greedy.close()
            follower.close()

    asyncio.run(run())


def test_only_forwarding_connections_are_closed_when_the_leader_changes():
    async def run():
        async with Server() as server:
            gone, broker = await server.connect()
            kept, peer = await server.connect()
            broker.write(frame(b"an envelope"))
            await server.wait_for(1)
            server.slots[0].connection.forwards = True
            peer.write(frame(b"a fetch"))
            await server.wait_for(2)
            server.acceptor.close_forwarding()
            assert await is_closed(gone)
            server.answer(1, b"records")
            assert await kept.readexactly(7) == b"records"
            broker.close()
            peer.close()

    asyncio.run(run())


@pytest.mark.parametrize("full", [False, True])
def test_held_requests_are_bounded_and_peers_continue(full, caplog):
    """Each may be as large as it is; all together may not, and the largest is given up."""
    limit, request = 8 << 20, frame(bytes((1 << 20) - 1))
    room = True

    async def run():
        nonlocal room
        async with Server(ConnectionLimits(max_incoming_bytes=limit), room=lambda: room) as server:
            acceptor = server.acceptor
            asks, peer = await server.connect()
            peer.write(frame(b"a fetch")[:8])
            await until(lambda: acceptor.incoming == 4)
            flood = [(await server.connect())[1] for _ in range(12)]
            for writer in flood:
                writer.write(request[:-1])
            kept = 8 * len(request[4:-1]) + 4
            await until(lambda: (acceptor.connection_count, acceptor.incoming) == (9, kept))
            if full:  # what has come whole waits all the same until there is room
                room = False
                for writer in flood:
                    writer.write(request[-1:])
                await until(lambda: acceptor.incoming == 8 * len(request[4:]) + 4)
            peer.write(frame(b"a fetch")[8:])
            if full:
                await until(lambda: acceptor.incoming == 8 * len(request[4:]) + 7)
                room = True
                acceptor.resume_throttled()
            await server.wait_for(9 if full else 1)
            server.answer(server.frames.index(b"a fetch"), b"records")
            assert await asks.readexactly(7) == b"records"
            for writer in flood:
                writer.close()
            await until(lambda: acceptor.connection_count == 1)
            assert acceptor.incoming == 0
            peer.close()

    with caplog.at_level(logging.WARNING, "quorate"):
        asyncio.run(run())
    assert len(caplog.messages) == 4
    for line in caplog.messages:
        assert re.search(
            r"from 127.0.0.1:\d+ on CONTROLLER: \d+ bytes of requests are incomplete", line
        )


@pytest.mark.parametrize(
    ("queued", "largest", "limit"),
    [(-1, 100 << 20, 256 << 20), (-1, 1 << 30, 1 << 30), (5000, 4000, 5000)],
)
def test_the_limit_on_held_requests_is_kafkas_key_and_at_least_one_request(
    queued, largest, limit, tmp_path
):
    text = f"queued.max.request.bytes={queued}\nsocket.request.max.bytes={largest}\n"
    assert limits(config(tmp_path, text)).max_incoming_bytes == limit


def test_limits_for_hosts_apply_to_their_addresses(tmp_path):
    key = "max.connections.per.ip.overrides"
    found = limits(config(tmp_path, f"{key}=127.0.0.1:5 , 0:0::1:6\n"))
    assert found.max_connections_by_ip == {"127.0.0.1": 5, "0:0:0:0:0:0:0:1": 6}
    assert found.max_connections_of("0:0:0:0:0:0:0:1%2") == 6
    with pytest.raises(QuorateError, match=f"{key} names the host a..b: [^\\[]*$"):
        limits(config(tmp_path, f"{key}=a..b:5\n"))
    for text in (":5", "127.0.0.1:6, :5"):
        with pytest.raises(QuorateError, match=f"{key} has a limit without a host: "):
            limits(config(tmp_path, f"{key}={text}\n"))


def test_a_limit_for_a_host_applies_to_each_of_its_addresses(tmp_path, monkeypatch):
    def resolve(host, port):
        ips = {"many": ("10.0.0.1", "10.0.0.2", "fd00::1"), "one": ("10.0.0.2",)}[host]
        return [(None, None, 6, "", (ip, 0)) for ip in ips for _ in range(2)]

    monkeypatch.setattr("socket.getaddrinfo", resolve)
    found = limits(config(tmp_path, "max.connections.per.ip.overrides=many:5,one:6\n"))
    assert found.max_connections_by_ip == {"10.0.0.1": 5, "10.0.0.2": 6, "fd00:0:0:0:0:0:0:1": 5}


def config(folder, text):
    file = folder / "server.properties"
    file.write_text(
        "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://:0\n"
        f"controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=a:1\n{text}"
    )
    return load_config(file)


def test_a_muted_connection_is_read_again_when_its_time_is_over():
    async def run():
        async with Server() as server:
            reader, writer = await server.connect()
            writer.write(frame(b"one"))
            await server.wait_for(1)
            server.slots[0].connection.mute(0.15)
            begun = asyncio.get_running_loop().time()
            server.answer(0, b"ONE")
            assert await reader.readexactly(3) == b"ONE", "the response goes out at once"
            writer.write(frame(b"two"))
            await server.wait_for(2)
            assert asyncio.get_running_loop().time() - begun >= 0.14
            writer.close()

    asyncio.run(run())


def test_connections_wait_for_their_admission_or_are_closed_unread():
    async def run():
        async with Server() as server:
            # The refused one is closed long after its bytes have arrived, also on a busy machine.
            admissions = [Admission(0), Admission(150), Admission(500, True)]
            asked = []

            def admission(listener, host):
                asked.append((listener, host))
                return admissions[len(asked) - 1]

            server.acceptor.admission = admission
            clients = []
            for name in (b"at once", b"late", b"refused"):
                reader, writer = await server.connect()
                writer.write(frame(name))
                clients.append((reader, writer))
            begun = asyncio.get_running_loop().time()
            await server.wait_for(1)
            assert server.frames == [b"at once"]
            server.acceptor.resume_throttled()
            await server.wait_for(2)
            assert asyncio.get_running_loop().time() - begun >= 0.1
            with pytest.raises(ConnectionResetError):  # what it sent was never read
                await clients[2][0].read()
            assert server.frames == [b"at once", b"late"]
            assert asked == [("CONTROLLER", "127.0.0.1")] * 3
            assert server.acceptor.connection_count == 2
            for _, writer in clients:
                writer.close()

    asyncio.run(run())
