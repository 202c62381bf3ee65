"""How members stop, without delaying others."""

import asyncio
import gc
import threading
from pathlib import Path

import pytest

from embed.test_guarantees import Journal, Trio, free_address, run, until
from quorate.base.errors import QuorateError
from quorate.embed import Member, MemberStoppedError, create
from quorate.server.listener import Acceptor
from quorate.server.web import WebServer
from quorate.storage.disk import sync_file
from quorate.storage.disk_storage import FileStorage
from quorate.storage.log import LogOptions

LONG_TIMEOUT = {"controller.quorum.fetch.timeout.ms": "600000"}
"""A fetch timeout longer than any test: followers do not time out."""


class Gate:
    """A disk whose syncs wait while it is shut; `entered`: one does."""

    def __init__(self):
        self.open, self.entered = threading.Event(), threading.Event()
        self.open.set()

    def sync(self, fd):
        if not self.open.is_set():
            self.entered.set()
            self.open.wait()
        sync_file(fd)

    def storage(self, config):
        options = LogOptions(needs_vote=True)
        return FileStorage(Path(config.metadata_log_dir), options, sync=self.sync)


def test_the_loop_continues_while_a_member_stops_with_a_busy_disk(tmp_path):
    async def scenario():
        gate = Gate()
        async with Trio(tmp_path, opened={3: gate.storage}) as trio:
            leader = await trio.leader_but(3)
            await leader.propose(b"x")
            gate.open.clear()
            try:
                await leader.propose(b"y")
                await until(gate.entered.is_set)
                stopping = asyncio.ensure_future(trio.members[3].stop(0.1))
                await until(lambda: trio.members[3]._driver is None)
                assert await leader.propose(b"z") == 3
                assert not stopping.done()
            finally:
                gate.open.set()
            await stopping

    run(scenario)


def test_a_cancelled_stop_releases_everything(tmp_path):
    async def scenario():
        gate = Gate()
        async with Trio(tmp_path, count=1, opened={1: gate.storage}) as trio:
            member = await trio.leader()
            gate.open.clear()
            try:
                lost = member.propose_nowait(b"x")
                await until(gate.entered.is_set)
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(member.stop(0.1), 0.2)
            finally:
                gate.open.set()
            await member.stop()
            await asyncio.gather(lost, return_exceptions=True)
            await trio.start(1)
            assert (await trio.leader()) is trio.members[1]

    run(scenario)


def test_a_cancelled_start_releases_everything(tmp_path):
    """The disk is still at it then, and the directory is free only after that."""
    began, may_go_on = threading.Event(), threading.Event()

    class Slow:
        """Around a storage and not below it: a compiled class has no interpreted subclasses."""

        def __init__(self, storage):
            self.storage = storage

        def __getattr__(self, name):
            return getattr(self.storage, name)

        def open(self):
            began.set()
            may_go_on.wait()
            return self.storage.open()

    def slow(config):
        return Slow(FileStorage(Path(config.metadata_log_dir), LogOptions(needs_vote=True)))

    async def scenario():
        address = free_address()
        create(tmp_path / "1", 1, "one", {1: address})
        journal = Journal()
        starting = asyncio.ensure_future(
            Member.start(tmp_path / "1", journal, address, open_storage=slow)
        )
        try:
            await until(lambda: began.is_set() or starting.done())
            starting.cancel()
            for _ in range(5):
                await asyncio.sleep(0)
            assert not starting.done()
        finally:
            may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        async with await Member.start(tmp_path / "1", journal, address) as member:
            await until(lambda: member.leads)
            assert await member.propose(b"x") == 1

    run(scenario)


class FailingJournal(Journal):
    """Fails at the entry b"bad", if enabled."""

    stumbles = False

    def apply(self, offset, entry):
        if self.stumbles and entry == b"bad":
            raise ValueError("only here")
        return super().apply(offset, entry)


def test_a_failed_member_closes_its_connections_and_the_others_elect_at_once(tmp_path):
    async def scenario():
        async with Trio(tmp_path, settings=LONG_TIMEOUT, machine=FailingJournal) as trio:
            old = await trio.leader()
            await old.propose(b"good")
            trio.journals[old.node_id].stumbles = True
            with pytest.raises(QuorateError):
                await old.propose(b"bad")
            with pytest.raises(MemberStoppedError):
                await old.wait_stopped()
            host, _, port = trio.addresses[old.node_id].rpartition(":")
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(host, int(port))
            new = await trio.leader()
            assert new is not old
            assert await new.propose(b"more") == 3

    run(scenario)


def test_a_failing_storage_leaves_no_socket_open(tmp_path, recwarn):
    def unavailable(config):
        raise QuorateError("no such storage")

    async def scenario():
        create(tmp_path / "1", 1, "alone", {1: "127.0.0.1:9093"})
        with pytest.raises(QuorateError, match="no such storage"):
            await Member.start(tmp_path / "1", Journal(), free_address(), open_storage=unavailable)

    gc.collect()  # what earlier tests left in cycles warns before, not within
    recwarn.clear()
    run(scenario)
    gc.collect()
    assert not [w for w in recwarn if issubclass(w.category, ResourceWarning)]


def test_a_failing_listener_leaves_no_metrics_page(tmp_path, monkeypatch):
    pages = []
    serve_page = WebServer.listen

    async def remembered(self, *what):
        pages.append(self)
        await serve_page(self, *what)

    async def fails(self, *what):
        raise OSError("no room for sockets")

    monkeypatch.setattr(WebServer, "listen", remembered)
    monkeypatch.setattr(Acceptor, "listen", fails)

    async def scenario():
        address = free_address()
        create(tmp_path / "1", 1, "alone", {1: address})
        with pytest.raises(OSError, match="no room for sockets"):
            await Member.start(tmp_path / "1", Journal(), address, metrics=free_address())
        assert [page._server.is_serving() for page in pages] == [False]

    run(scenario)
