"""New connections begin a few in each turn of the loop, whatever arrives at once."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial

import pytest

from quorate.controller.connection_rates import Admission
from quorate.security.principal import ANONYMOUS
from quorate.server.authentication import ListenerSecurity
from quorate.server.limits import ConnectionLimits
from quorate.server.listener import Acceptor
from quorate.server.tls_transport import TlsTransport
from quorate.server.turnstile import ENTRIES_PER_TURN, Turnstile
from server.test_authentication import Listener, _frame
from server.test_before_login import SERVER, TlsClient


def test_a_few_enter_in_each_turn_in_the_order_of_arrival():
    turns: list[Callable[[], None]] = []
    entered: list[int] = []
    turnstile = Turnstile(turns.append)
    for number in range(5):
        turnstile.wait(partial(entered.append, number))
    for _ in range(2):
        seen = len(entered)
        turns.pop()()
        assert entered == list(range(seen + ENTRIES_PER_TURN))
    turns.pop()()
    assert entered == [0, 1, 2, 3, 4]
    assert turns == []
    turnstile.wait(lambda: entered.append(5))
    turns.pop()()
    assert entered[-1] == 5


def test_logins_that_come_at_once_leave_turns_of_the_loop_to_others(monkeypatch):
    """The frames of 60 clients are there when the loop looks: others have their turns in between."""

    async def run():
        async with Listener() as listener:
            loop = asyncio.get_running_loop()
            most, answered = 0, []
            begun = listener.acceptor.turnstile
            enter = begun.wait

            def wait(call):
                def answer():
                    answered.append(loop.time())
                    call()

                enter(answer)

            monkeypatch.setattr(begun, "wait", wait)
            peers = [socket.create_connection(("127.0.0.1", listener.port)) for _ in range(60)]
            for peer in peers:
                peer.sendall(_frame(b"hello"))
            while len(answered) < 60:
                before = len(answered)
                await asyncio.sleep(0)
                most = max(most, len(answered) - before)
            assert most == ENTRIES_PER_TURN
            for peer in peers:
                peer.setblocking(False)
                async with asyncio.timeout(5):
                    assert await loop.sock_recv(peer, 100) == _frame(b"ok hello")
                peer.close()

    asyncio.run(run())


def test_a_delayed_connection_is_not_served_before_its_login():
    """A quota of connections delays it; what it sends meanwhile waits for the authenticator."""

    async def run():
        async with Listener() as listener:
            listener.acceptor.admission = lambda *_: Admission(50)
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(_frame(b"request") + _frame(b"open") + _frame(b"request"))
            async with asyncio.timeout(5):
                found = await reader.readexactly(3 * 4 + len(b"ok requestok openserved"))
            writer.close()
            assert found == _frame(b"ok request") + _frame(b"ok open") + _frame(b"served")
            assert listener.served == [("User:127.0.0.1", b"request")]

    asyncio.run(run())


@pytest.mark.parametrize("loop_of", ["asyncio", "uvloop"])
def test_a_handshake_waits_for_its_turn_on_both_loops(loop_of, monkeypatch):
    """uvloop reads once after a pause in `connection_made`: those bytes are kept."""
    factory = asyncio.new_event_loop
    if loop_of == "uvloop":
        factory = pytest.importorskip("uvloop").new_event_loop

    async def run():
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        served = []

        def on_frame(slot, frame):
            served.append(bytes(frame))
            slot.data = _frame(b"served")
            slot.connection.flush()

        acceptor = Acceptor(loop, ConnectionLimits(), on_frame, lambda: True)
        waiting: list[Callable[[], None]] = []
        monkeypatch.setattr(acceptor.turnstile, "wait", waiting.append)
        security = ListenerSecurity(wrap=lambda up: TlsTransport(up, SERVER, lambda _: ANONYMOUS))
        await acceptor.listen("TLS", sock, security)
        client = TlsClient(None)
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        writer.write(client.go_on(b""))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        [enter] = waiting
        enter()
        async with asyncio.timeout(5):
            while not client.is_done:
                writer.write(client.go_on(await reader.read(65536)))
            client.tls.write(_frame(b"request"))
            writer.write(client.out.read())
            await reader.read(65536)
        assert served == [b"request"]
        writer.close()
        acceptor.close()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(run())
