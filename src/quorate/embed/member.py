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
from quorate.config.node_config import NodeConfig
from quorate.embed.arguments import address_for_others, directory_path, member_key
from quorate.embed.durable import recover, serve
from quorate.embed.errors import (
    EntryTooLargeError,
    InDoubtError,
    MemberStoppedError,
    NotLeaderError,
    OverloadedError,
)
from quorate.embed.founding import LISTENER, member_config, node_id_of
from quorate.embed.machine import (
    BARRIER,
    OpaqueMachine,
    StateMachine,
    check_batch_size,
    encode_entry,
)
from quorate.embed.membership import Answer, change_until_committed
from quorate.embed.node import EmbeddedNode
from quorate.embed.outstanding import Done, Outstanding
from quorate.embed.security import MemberSecurity
from quorate.log_dirs.meta_properties import load_identity
from quorate.node.node_io import NodeInput
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
from quorate.replica.replica import Committed, Replica, Submit
from quorate.server import app, sockets
from quorate.server.driver import is_exit, reraise_exit
from quorate.server.logs import LOG
from quorate.storage.api import Storage

R = TypeVar("R")
_ONLY: Final = itemgetter(0)
_STOPPED: Final = "The member was stopped"


class MemberDriver(Protocol):
    """Runs the node: on files and sockets (`durable`), or in memory (`local`)."""

    def post(self, item: NodeInput) -> None: ...

    def shutdown(self, timeout_ms: int) -> None: ...

    async def close(self) -> bool:
        """Stop and close the storage; returns False when it is still in use."""


class Member:
    """One member. Start it with `await Member.start(...)`; as an async context manager it stops.

    A member belongs to the loop that started it: a call from another thread or loop raises QuorateError
    and does nothing. `node_id` and `key` identify the member.
    """

    def __init__(self, key: ReplicaKey) -> None:
        self.node_id = key.id
        self.key = key
        self.node: EmbeddedNode
        self._outstanding = Outstanding()
        self._asked: dict[int, asyncio.Future[Response]] = {}
        self._loop = asyncio.get_running_loop()
        self._driver: MemberDriver | None = None
        self._ended: asyncio.Future[str | None] = self._loop.create_future()
        self._why: str | None = None
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(  # noqa: PLR0913 - one call, with keyword arguments
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
        """Start the member of a directory that `create` created.

        `listen` is the `host:port` to bind; `advertise` is what others connect to, if different.
        `contacts` are addresses of members: a joining member needs them, a founder asks them at its
        first start. `metrics` is the `host:port` of the pages `/metrics`, `/healthz` and `/readyz`.
        `settings` are Kafka's keys (`controller.quorum.*`, `metadata.log.*`, `ssl.*`, `sasl.*`; the name of
        the listener is CONTROLLER). `open_storage` opens another
        storage, e.g. one with faults in a test.

        Raises QuorateError when the directory is not a member's, damaged or in use, and when the port
        is in use. A founder asks contacts and other founders at its first start, for 2 s at most; it
        raises QuorateError when one answers that it must not be founded again. Raises TypeError for an
        argument of a wrong type and for an invalid machine.
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
        security = MemberSecurity(config)
        identity = load_identity(config, member=True)
        # Sockets and storage are released in reverse order if a later step fails.
        with ExitStack() as undo:
            bound = sockets.bind(config)
            undo.callback(bound.close)
            page = sockets.bind_metrics(config)
            if page is not None:
                undo.callback(page.close)
            storage = open_storage(config)
            undo.callback(storage.close)
            replica = await recover(config, identity, bound, storage, opaque, security)
            member = cls.around(ReplicaKey(config.node_id, identity.directory_id), replica, opaque)
            driver = await serve(
                member.node, config, bound, page, storage, member.driver_ended, security
            )
            member.drive(driver)
            driver.start()
            undo.pop_all()
            return member

    @classmethod
    def around(cls, key: ReplicaKey, replica: Replica, machine: OpaqueMachine) -> Self:
        """A member of this replica; call `drive` next."""
        member = cls(key)
        member.node = EmbeddedNode(replica, machine, member._settle, member._answered)
        return member

    def drive(self, driver: MemberDriver) -> None:
        """Connect the member to its driver."""
        self._driver = driver

    # -- the state machine --------------------------------------------------------------------
    def submit(self, entries: Sequence[bytes], done: Done) -> None:
        """Propose entries as one batch: all are committed, in this order, or none is.

        `done` is called once, on the loop, with the results of the entries or with the error that
        `propose` raises. It gets OverloadedError while 64 MiB of entries are outstanding, and
        EntryTooLargeError when the entries do not fit one batch (see MAX_ENTRY_BYTES); nothing was
        appended then. Raises TypeError when an entry is not bytes.
        """
        self._submit(tuple(map(encode_entry, entries)), done)

    def _submit(self, values: tuple[bytes, ...], done: Done, has_room: bool = False) -> None:
        self._check_loop()
        if not self._is_open:
            done(MemberStoppedError(self._why or _STOPPED))
        elif not values:
            done([])
        else:
            size = sum(map(len, values))
            try:
                check_batch_size(values)
                if not has_room:
                    self._outstanding.take(size)
            except (EntryTooLargeError, OverloadedError) as error:
                done(error)
                return
            assert self._driver is not None
            self._driver.post(Submit(self._outstanding.add(done, size), values))

    def propose_all(self, entries: Sequence[bytes]) -> asyncio.Future[list[object]]:
        """Propose entries as one proposal, like `submit`, with a future instead of a callback."""
        return self._propose(tuple(map(encode_entry, entries)), list)

    def propose_nowait(self, entry: bytes) -> asyncio.Future[object]:
        """Propose an entry without waiting; proposals of one turn of the loop share one sync.

        The future has the result of `propose`, or its error.
        """
        return self._propose((encode_entry(entry),), _ONLY)

    def _propose(
        self, values: tuple[bytes, ...], take: Callable[[list[object]], R], has_room: bool = False
    ) -> asyncio.Future[R]:
        """Submit the values; `take` turns their results into the future's result."""
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
        self._check_loop()
        check_batch_size((value,))
        if not self._is_open:
            raise MemberStoppedError(self._why or _STOPPED)
        await self._outstanding.wait_for(len(value))
        return await self._propose((value,), _ONLY, has_room=True)

    async def propose(self, entry: bytes) -> object:
        """Propose an entry; returns the result of `apply` once a majority has made it durable.

        Waits in turn while 64 MiB of entries are outstanding. When nothing was appended, raises
        NotLeaderError, MemberStoppedError or EntryTooLargeError. Raises InDoubtError when the entry may
        or may not be committed, TypeError when the entry is not bytes.
        """
        return await self._in_turn(encode_entry(entry))

    async def barrier(self) -> None:
        """Wait until everything committed before this call is applied here, for linearizable reads.

        It commits a record that the state machine does not see. Raises as `propose`.
        """
        await self._in_turn(BARRIER)

    # -- the cluster --------------------------------------------------------------------------
    @property
    def leader_id(self) -> int:
        """The leader's id; -1 while none is known."""
        return self.node.replica.core.leader.leader_id

    @property
    def leads(self) -> bool:
        """Whether this member takes proposals: it leads and has applied all earlier epochs."""
        return self._is_open and self.node.is_active

    @property
    def members(self) -> tuple[ReplicaKey, ...]:
        """The keys of the current voters."""
        return tuple(voter.key for voter in self.node.control.voters or ())

    @property
    def applied_offset(self) -> int:
        """End offset (exclusive) of the applied entries."""
        return self.node.replica.applied.offset

    async def add_member(
        self, key: ReplicaKey | str, address: str, timeout_s: float = 30.0
    ) -> None:
        """Make a running member a voter; call it on the leader. Returns once committed.

        `key` is the new member's key, or its text `str(key)`. The call waits up to `timeout_s` until the
        member has caught up with the log and no other change is pending. Raises NotLeaderError
        (nothing changed), MembershipChangeError, InDoubtError or MemberStoppedError; QuorateError or
        TypeError for an invalid key or address.
        """
        joiner = member_key(key)
        listener = Listener(LISTENER, *address_for_others(address))
        request = AddVoterRequest(None, joiner, (listener,))

        def already(error: ErrorCode, uncertain: bool) -> bool:
            return error == ErrorCode.DUPLICATE_VOTER and joiner in self.members

        await change_until_committed(lambda: self._change(request), already, timeout_s)

    async def remove_member(self, key: ReplicaKey | str, timeout_s: float = 30.0) -> None:
        """Make a voter an observer; call it on the leader, which may remove itself.

        Returns once the change is committed. Raises as `add_member`.
        """
        request = RemoveVoterRequest(None, member_key(key))

        def already(error: ErrorCode, uncertain: bool) -> bool:
            return uncertain and error == ErrorCode.VOTER_NOT_FOUND

        await change_until_committed(lambda: self._change(request), already, timeout_s)

    async def _change(self, request: AddVoterRequest | RemoveVoterRequest) -> Answer:
        self._check_loop()
        if self._why is None and self.leader_id != self.node_id:
            raise self._not_leader()
        response = await self._ask(request)
        assert isinstance(response, AddVoterResponse | RemoveVoterResponse)
        if response.error == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            raise InDoubtError(
                "Leadership was lost before the change was committed: it may or may not commit"
            )
        return response.error, response.message

    def resign(self) -> None:
        """Give up leadership; the other members elect a leader."""
        self._check_loop()
        if self._driver is not None:
            self._driver.post(Resign(self.node.replica.core.epoch))

    async def stop(self, timeout_s: float = 5.0) -> None:
        """Shut down gracefully; the others elect a new leader at once.

        1. New proposals are refused.
        2. Outstanding proposals may complete, then the leader hands over (EndQuorumEpoch): together
           within `timeout_s`.
        3. Queued disk writes complete, within 10 s; the loop continues meanwhile.

        The directory is free when this returns, unless the disk hangs.
        """
        self._check_loop()
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop(timeout_s))
        await asyncio.shield(self._stopping)

    async def _stop(self, timeout_s: float) -> None:
        driver = self._driver
        if driver is None:  # unreached: a started member has one, and stops once
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
                "The disk of member %d hangs: its directory stays locked until this process ends",
                self.node_id,
            )
        self._fail_all(_STOPPED)

    async def wait_stopped(self) -> None:
        """Wait until the member has stopped. Raises MemberStoppedError when a fault stopped it."""
        self._check_loop()
        fault = await asyncio.shield(self._ended)
        if fault is not None:
            raise MemberStoppedError(fault)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def _is_open(self) -> bool:
        """Whether it runs and `stop` was not called."""
        return self._driver is not None and self._why is None and self._stopping is None

    def _check_loop(self) -> None:
        """Raise QuorateError unless called on the member's own loop."""
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self._loop:
            raise QuorateError(
                f"Member {self.node_id} belongs to the loop that started it; nothing was done. From "
                "another thread: "
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
        if done is not None:  # unreached: each proposal has one outcome
            self._notify(done, found)

    def _notify(self, done: Done, found: list[object] | QuorateError) -> None:
        """Call `done`. An exception in it must not stop the node's step."""
        try:
            done(found)
        except BaseException as error:
            if is_exit(error):
                self._loop.call_soon(reraise_exit, error)
                return
            context = {"message": "A callback failed", "exception": error}
            self._loop.call_exception_handler(context)

    def _refusal(self, outcome: Refused) -> QuorateError:
        if outcome.in_doubt:
            return InDoubtError(
                "Leadership was lost with the entry in the log: it may or may not commit"
            )
        # unreached: sizes are checked before, so nothing else is refused
        if outcome.error in (ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER):
            return self._not_leader()
        return QuorateError(outcome.message)

    def _not_leader(self) -> NotLeaderError:
        """The error with the leader's address.

        A member that was just elected does not take proposals yet: naming it as the leader would make
        the caller retry in a loop.
        """
        if self.leader_id in (-1, self.node_id):
            return NotLeaderError(-1, None)
        address = self._leader_address()
        # unreached: who knows a leader knows its endpoints
        return NotLeaderError(self.leader_id, str(address) if address else None)

    def _leader_address(self) -> Address | None:
        endpoints = self.node.replica.core.leader_endpoints
        # unreached: who knows a leader knows its endpoints
        return endpoints[0].address if endpoints else None

    async def _ask(self, request: Request) -> Response:
        if self._driver is None or not self._is_open:
            raise MemberStoppedError(self._why or _STOPPED)
        received = self.node.ask(request)
        future: asyncio.Future[Response] = self._loop.create_future()
        self._asked[received.reply_to] = future
        self._driver.post(received)
        return await future

    def _answered(self, token: int, response: Response) -> None:
        future = self._asked.pop(token, None)
        if future is not None and not future.done():
            future.set_result(response)

    def driver_ended(self, fault: str | None) -> None:
        """The driver stopped: fail everything outstanding. `fault` is None after a shutdown."""
        self._why = fault or _STOPPED
        self._fail_all(self._why)
        if not self._ended.done():
            self._ended.set_result(fault)

    def _fail_all(self, why: str) -> None:
        proposals, asked = self._outstanding.end(why), list(self._asked.values())
        self._asked.clear()
        for done in proposals:
            self._notify(done, InDoubtError(f"{why}; outstanding entries may or may not commit"))
        for future in asked:
            if not future.done():
                future.set_exception(InDoubtError(f"{why}; a pending change may or may not commit"))
