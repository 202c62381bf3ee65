"""A member of a replicated state machine, on the running asyncio loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from operator import itemgetter
from pathlib import Path
from typing import Final, Protocol, Self, TypeVar

from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import Address, Listener, ReplicaKey
from quorate.embed.arguments import address_for_others, directory_path, member_key
from quorate.embed.durable import recover, serve
from quorate.embed.errors import EntryTooLarge, InDoubt, MemberStopped, NotLeader, Overloaded
from quorate.embed.founding import LISTENER, member_config, node_id_of
from quorate.embed.machine import (
    BARRIER,
    OpaqueMachine,
    StateMachine,
    encode_entry,
    refuse_too_large,
)
from quorate.embed.membership import Answer, carry_through
from quorate.embed.node import EmbeddedNode
from quorate.embed.outstanding import Done, Outstanding
from quorate.node.config import NodeConfig
from quorate.node.controller import NodeInput
from quorate.node.ensemble import load_identity
from quorate.node.replica import Committed, Replica, Submit
from quorate.raft.inputs import Resign
from quorate.raft.messages import (
    AddVoterRequest,
    AddVoterResponse,
    RemoveVoterRequest,
    RemoveVoterResponse,
    Request,
    Response,
)
from quorate.raft.ready import Refused
from quorate.server import app, sockets
from quorate.server.driver import is_exit, leave
from quorate.server.logs import LOG
from quorate.storage.api import Storage

R = TypeVar("R")
_ONLY: Final = itemgetter(0)
_STOPPED: Final = "The member was stopped"


class AnyDriver(Protocol):
    """Who steps the node: over files and sockets (`durable`), or in memory (`local`)."""

    def post(self, item: NodeInput) -> None: ...

    def shutdown(self, timeout_ms: int) -> None: ...

    async def close(self) -> bool:
        """End, and the storage with it; False when that is still in use."""


class Member:
    """One member. Start it with `await Member.start(...)`; an async context manager stops it.

    Everything happens on the loop that started it: a call from another thread or loop is a
    QuorateError, and does nothing. `node_id` and `key` name it.
    """

    def __init__(self, key: ReplicaKey) -> None:
        self.node_id = key.id
        self.key = key
        self.node: EmbeddedNode
        self._outstanding = Outstanding()
        self._asked: dict[int, asyncio.Future[Response]] = {}
        self._loop = asyncio.get_running_loop()
        self._driver: AnyDriver | None = None
        self._ended: asyncio.Future[str | None] = self._loop.create_future()
        self._why: str | None = None
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(  # noqa: PLR0913 - settings by their names, one call for a program to make
        cls,
        directory: Path | str,
        machine: StateMachine,
        listen: str,
        *,
        advertise: str | None = None,
        contacts: tuple[str, ...] = (),
        metrics: str | None = None,
        settings: Mapping[str, str] | None = None,
        open_storage: Callable[[NodeConfig], Storage] = app.open_storage,
    ) -> Self:
        """Start the member of a directory that `create` made.

        `listen` is the `host:port` to bind, `advertise` what others connect to when it differs.
        `contacts` are addresses of members, for one that joins. `metrics` is the `host:port` of a
        page for Prometheus, `/healthz` and `/readyz`. `settings` are Kafka's keys
        (`controller.quorum.*`, `metadata.log.*`). `open_storage` makes the storage of a directory,
        for tests with a disk that fails.

        Raises QuorateError: not a member's directory, damaged, in use, or the port is; or a
        founder's that was made again, as the other founders know (asking them takes 2 s at most,
        once). TypeError for an argument of a wrong type, and for a machine that cannot be one.
        """
        opaque = OpaqueMachine(machine)
        path = directory_path(directory)
        config = member_config(
            path,
            node_id_of(path),
            listen,
            advertise=advertise,
            contacts=contacts,
            metrics=metrics,
            settings=settings,
        )
        identity = load_identity(config, member=True)
        with ExitStack() as undo:
            bound = sockets.bind(config)
            undo.callback(bound.close)
            page = sockets.bind_metrics(config)
            if page is not None:
                undo.callback(page.close)
            storage = open_storage(config)
            undo.callback(storage.close)
            replica = await recover(config, identity, bound, storage, opaque)
            member = cls.around(ReplicaKey(config.node_id, identity.directory_id), replica, opaque)
            driver = await serve(member.node, config, bound, page, storage, member._end)
            member.drive(driver)
            driver.start()
            undo.pop_all()
            return member

    @classmethod
    def around(cls, key: ReplicaKey, replica: Replica, machine: OpaqueMachine) -> Self:
        """A member of this replica, to be driven by `drive`."""
        member = cls(key)
        member.node = EmbeddedNode(replica, machine, member._settle, member._answered)
        return member

    def drive(self, driver: AnyDriver) -> None:
        self._driver = driver

    # -- the state machine --------------------------------------------------------------------
    def submit(self, entries: Sequence[bytes], done: Done) -> None:
        """Propose entries as one, in this order: all are committed, or none is.

        `done` is called once, on the loop and as soon as it is known, with the result of each
        entry, or with the error that `propose` raises; with Overloaded (nothing was appended) when
        64 MiB of entries are on the way; with EntryTooLarge (neither) when they do not fit one
        batch together: MAX_ENTRY_BYTES for one entry, and 25 less for each more.
        Raises TypeError, and proposes nothing, when an entry is not bytes.
        """
        self._submit(tuple(map(encode_entry, entries)), done)

    def _submit(self, values: tuple[bytes, ...], done: Done, has_room: bool = False) -> None:
        self._refuse_strangers()
        if not self._is_open:
            done(MemberStopped(self._why or _STOPPED))
        elif not values:
            done([])
        else:
            size = sum(map(len, values))
            try:
                refuse_too_large(values)
                if not has_room:
                    self._outstanding.take(size)
            except (EntryTooLarge, Overloaded) as error:
                done(error)
                return
            assert self._driver is not None
            self._driver.post(Submit(self._outstanding.add(done, size), values))

    def propose_all(self, entries: Sequence[bytes]) -> asyncio.Future[list[object]]:
        """As `submit`, as a future."""
        return self._propose(tuple(map(encode_entry, entries)), list)

    def propose_nowait(self, entry: bytes) -> asyncio.Future[object]:
        """As `propose`, as a future; proposals of one turn of the loop share one sync."""
        return self._propose((encode_entry(entry),), _ONLY)

    def _propose(
        self, values: tuple[bytes, ...], take: Callable[[list[object]], R], has_room: bool = False
    ) -> asyncio.Future[R]:
        """`take` makes the future's result of those of the entries."""
        future: asyncio.Future[R] = self._loop.create_future()

        def done(outcome: list[object] | QuorateError) -> None:
            if future.done():
                return
            if isinstance(outcome, QuorateError):
                future.set_exception(outcome)
            else:
                future.set_result(take(outcome))

        self._submit(values, done, has_room)
        return future

    async def _in_turn(self, value: bytes) -> object:
        self._refuse_strangers()
        refuse_too_large((value,))
        if not self._is_open:
            raise MemberStopped(self._why or _STOPPED)
        await self._outstanding.wait_for(len(value))
        return await self._propose((value,), _ONLY, has_room=True)

    async def propose(self, entry: bytes) -> object:
        """What the machine's `apply` returned, once the entry is durable on a majority.

        Waits its turn while 64 MiB of entries are on the way.
        Raises NotLeader, MemberStopped or EntryTooLarge (more than MAX_ENTRY_BYTES): nothing was
        appended; InDoubt: it may commit or not; TypeError when the entry is not bytes.
        """
        return await self._in_turn(encode_entry(entry))

    async def barrier(self) -> None:
        """Return once everything committed before this call is applied here: linearizable reads.

        Costs a commit of one record, which the machine does not see. Raises as `propose`.
        """
        await self._in_turn(BARRIER)

    # -- the cluster --------------------------------------------------------------------------
    @property
    def leader_id(self) -> int:
        """-1 while none is known."""
        return self.node.replica.core.leader.leader_id

    @property
    def leads(self) -> bool:
        """This member leads and has applied everything of earlier epochs: it takes proposals."""
        return self._is_open and self.node.is_active

    @property
    def members(self) -> tuple[ReplicaKey, ...]:
        """The voters in force."""
        return tuple(voter.key for voter in self.node.control.voters or ())

    @property
    def applied_offset(self) -> int:
        """End offset (exclusive) of what the machine has applied."""
        return self.node.replica.applied.offset

    async def add_member(
        self, key: ReplicaKey | str, address: str, timeout_s: float = 30.0
    ) -> None:
        """Make a started joiner a voter; on the leader. Returns when that is committed, or was.

        `key` is the joiner's; from another process as text, `str(key)`. The joiner must have caught
        up with the log first: it is waited for, and so is another change under way, for
        `timeout_s`. Raises NotLeader (nothing was changed), ChangeFailed, InDoubt or MemberStopped;
        QuorateError or TypeError where key or address cannot be.
        """
        joiner = member_key(key)
        listener = Listener(LISTENER, *address_for_others(address))
        request = AddVoterRequest(None, joiner, (listener,))

        def already(error: ErrorCode, uncertain: bool) -> bool:
            return error == ErrorCode.DUPLICATE_VOTER and joiner in self.members

        await carry_through(lambda: self._change(request), already, timeout_s)

    async def remove_member(self, key: ReplicaKey | str, timeout_s: float = 30.0) -> None:
        """Make a voter an observer; on the leader, which may remove itself.

        Returns when that is committed. Raises as `add_member`.
        """
        request = RemoveVoterRequest(None, member_key(key))

        def already(error: ErrorCode, uncertain: bool) -> bool:
            return uncertain and error == ErrorCode.VOTER_NOT_FOUND

        await carry_through(lambda: self._change(request), already, timeout_s)

    async def _change(self, request: AddVoterRequest | RemoveVoterRequest) -> Answer:
        self._refuse_strangers()
        if self._why is None and self.leader_id != self.node_id:
            raise self._not_leader()
        response = await self._ask(request)
        assert isinstance(response, AddVoterResponse | RemoveVoterResponse)
        if response.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise InDoubt(
                "Leadership was lost with the change on its way: it may or may not commit"
            )
        return response.error, response.message

    def resign(self) -> None:
        """Give up leadership, so that another member takes it."""
        self._refuse_strangers()
        if self._driver is not None:
            self._driver.post(Resign(self.node.replica.core.epoch))

    async def stop(self, timeout_s: float = 5.0) -> None:
        """Leave in good order: the others elect a new leader at once.

        Nothing new is taken. What was proposed may still be answered, and then the others be told:
        both together are given `timeout_s`. Then what is queued for the disk is written, however
        long that takes (10 s at most); the loop goes on meanwhile. Once this returns, the directory
        is free.
        """
        self._refuse_strangers()
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop(timeout_s))
        await asyncio.shield(self._stopping)

    async def _stop(self, timeout_s: float) -> None:
        driver = self._driver
        if driver is None:
            return
        if not self._ended.done():
            until = self._loop.time() + timeout_s
            answered = self._outstanding.close(_STOPPED)
            ends = (answered, self._ended)
            await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            left_s = max(until - self._loop.time(), 0)
            driver.shutdown(int(left_s * 1000))
            await asyncio.wait([self._ended], timeout=left_s + 1)
        self._driver = None
        if not await driver.close():
            LOG.error(
                "The disk of member %d does not answer: its directory stays locked until this "
                "process ends",
                self.node_id,
            )
        self._fail_all(_STOPPED)

    async def wait_stopped(self) -> None:
        """Return when the member stopped; raises MemberStopped when it did so by itself."""
        self._refuse_strangers()
        fault = await asyncio.shield(self._ended)
        if fault is not None:
            raise MemberStopped(fault)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def _is_open(self) -> bool:
        """It runs, and nobody has told it to stop."""
        return self._driver is not None and self._why is None and self._stopping is None

    def _refuse_strangers(self) -> None:
        """Raise QuorateError, before anything was done, unless called on the member's loop."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self._loop:
            raise QuorateError(
                f"Member {self.node_id} is used on the loop that started it alone, and nothing was "
                "done; from another thread: "
                "asyncio.run_coroutine_threadsafe(member.propose(entry), loop).result(), or "
                "loop.call_soon_threadsafe(member.resign)"
            )

    # -- outcomes -----------------------------------------------------------------------------
    def _settle(self, outcome: Committed | Refused) -> None:
        found: list[object] | QuorateError
        if isinstance(outcome, Committed):
            take = self.node.machine.results.pop
            found = [take(at, None) for at in range(outcome.base_offset, outcome.end_offset)]
        else:
            found = self._refusal(outcome)
        done = self._outstanding.settle(outcome.token)
        if done is not None:
            self._tell(done, found)

    def _tell(self, done: Done, found: list[object] | QuorateError) -> None:
        """A program's mistake in `done` is its own: the step in which it is told goes on."""
        try:
            done(found)
        except BaseException as error:
            if is_exit(error):
                self._loop.call_soon(leave, error)
                return
            context = {"message": "An outcome was not taken", "exception": error}
            self._loop.call_exception_handler(context)

    def _refusal(self, outcome: Refused) -> QuorateError:
        if outcome.in_doubt:
            return InDoubt(
                "Leadership was lost with the entry in the log: it may or may not commit"
            )
        if outcome.error in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            return self._not_leader()
        return QuorateError(outcome.message)

    def _not_leader(self) -> NotLeader:
        """Who was elected a moment ago takes nothing yet, and is no better address than nobody."""
        if self.leader_id in (-1, self.node_id):
            return NotLeader(-1, None)
        address = self._leader_address()
        return NotLeader(self.leader_id, str(address) if address else None)

    def _leader_address(self) -> Address | None:
        endpoints = self.node.replica.core.leader_endpoints
        return endpoints[0].address if endpoints else None

    async def _ask(self, request: Request) -> Response:
        if self._driver is None or not self._is_open:
            raise MemberStopped(self._why or _STOPPED)
        received = self.node.ask(request)
        future: asyncio.Future[Response] = self._loop.create_future()
        self._asked[received.reply_to] = future
        self._driver.post(received)
        return await future

    def _answered(self, token: int, response: Response) -> None:
        future = self._asked.pop(token, None)
        if future is not None and not future.done():
            future.set_result(response)

    def _end(self, fault: str | None) -> None:
        self._why = fault or _STOPPED
        self._fail_all(self._why)
        if not self._ended.done():
            self._ended.set_result(fault)

    def _fail_all(self, why: str) -> None:
        proposals, asked = self._outstanding.end(why), list(self._asked.values())
        self._asked.clear()
        for done in proposals:
            self._tell(done, InDoubt(f"{why}; what was on its way may or may not commit"))
        for future in asked:
            if not future.done():
                future.set_exception(InDoubt(f"{why}; a change on its way may or may not commit"))
