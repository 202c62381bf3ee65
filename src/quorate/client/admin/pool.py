"""The connections of an admin client: made when a call needs them, used by one call at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.admin.deadlines import Deadlines
from quorate.client.admin.io import Io
from quorate.client.admin.outcomes import note_of
from quorate.client.connection import ClientSecurity, ConnectAttempt, Connection
from quorate.client.errors import (
    ClientError,
    InvalidValueError,
    NoResponseError,
    UnsupportedVersionError,
)
from quorate.client.results import MismatchedEndpointTypeError
from quorate.wire.schema import Message

_METADATA: Final = 3
M = TypeVar("M", bound=Message)
T = TypeVar("T")


class ClientConfig(NamedTuple):
    """How to reach a cluster; times in ms. The names are those of Kafka's client keys."""

    bootstrap: tuple[Address, ...]
    controllers: bool
    """Whether `bootstrap` names controllers instead of brokers."""
    client_id: str = "quorate-admin"
    default_api_timeout_ms: int = 60_000
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    connect_timeout_ms: int = 10_000
    unreachable_after_ms: int = 5_000
    """Give up after this time without any connection; Kafka waits for the whole API timeout."""
    report_after_ms: int = 3_000
    """Call `on_wait` when a call takes longer."""
    retry_backoff_max_ms: int = 1_000
    """The wait between attempts doubles up to this time (KIP-580)."""
    security: ClientSecurity | None = None
    """What connections need before requests; None for PLAINTEXT."""


class ClientClosedError(ClientError):
    """The client was closed while a call was under way.

    `note` says what a change may have done; it is empty where the change was not sent.
    """

    def __init__(self, note: str = "") -> None:
        super().__init__(f"The client was closed during the call{'; ' if note else ''}{note}")
        self.note = note


class Pool:
    """One open connection for each node, and those that a large call adds."""

    def __init__(self, config: ClientConfig, io: Io, deadlines: Deadlines) -> None:
        self._config = config
        self._io = io
        self._deadlines = deadlines
        self._open: dict[Address, Connection] = {}
        self._added: set[Connection] = set()
        """Of large calls: they are in no other call's way."""
        self._attempts: set[ConnectAttempt] = set()
        """Connections that are being made."""
        self._in_use: set[Connection] = set()
        """A call sends on it, or waits for its response."""
        self.closings = 0
        """How often the pool was closed: a call that began before a closing ends."""
        self.asked: tuple[Address, int] | None = None
        """The node of the last request, and its API key."""

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The nodes with an open connection."""
        return tuple(self._open)

    def close(self) -> None:
        """Close all connections, and end the calls on them; a later call opens new ones."""
        self.closings += 1
        for attempt in tuple(self._attempts):  # another thread may have the call
            attempt.abort()
        for connection in (*self._open.values(), *self._added):
            if connection in self._in_use:
                connection.abort()  # its call closes it
            else:
                connection.close()
        self._open.clear()

    # -- requests -----------------------------------------------------------------------------
    async def run(self, connection: Connection, work: Callable[[int], T]) -> T:
        """Run `work` on the connection when it is free. Its argument: the time it has, ms.

        Raises RequestNotSentError where the connection was closed meanwhile, or is not free in time. A
        connection whose work fails is not used again, unless the request was not sent. Work that is
        cancelled while it waits leaves the connection to the work in progress.
        """
        left_ms = self._deadlines.countdown(self._config.request_timeout_ms)
        is_begun = False

        def begin() -> T:
            nonlocal is_begun
            is_begun = True
            self._in_use.add(connection)
            try:
                return work(left_ms())
            finally:
                self._in_use.discard(connection)

        try:
            return await self._io.run(connection, begin, wait_s=left_ms() / 1000)
        except (UnsupportedVersionError, InvalidValueError):
            raise  # before anything was sent
        except BaseException:
            if is_begun:
                self.drop(connection)
            raise
        finally:
            # `close` leaves a connection in use to its work. A thread of cancelled work does the same.
            if not connection.is_usable and connection not in self._in_use:
                connection.release()

    async def ask(
        self, connection: Connection, request: Message, answer: type[M], at_least: int = 0
    ) -> M:
        """Send the request and return the response.

        Raises NoResponseError with a note where a change may have been applied. KeyboardInterrupt gets
        that note, too.
        """
        self.asked = connection.address, type(request).schema.key or 0
        try:
            return await self.run(
                connection, lambda left_ms: connection.call(request, answer, left_ms, at_least)
            )
        except NoResponseError as error:
            note = note_of(request)
            if note is None:
                raise
            raise type(error)(f"{error}; {note}", note) from None
        except KeyboardInterrupt as interrupt:
            if (note := note_of(request)) is not None:
                interrupt.add_note(note)  # for people; the program may print it
            raise

    # -- connections --------------------------------------------------------------------------
    async def connect(self, address: Address, shares: int = 1) -> Connection:
        """The open connection to the node, or a new one, in a share of the time that is left."""
        found = self._open.get(address)
        if found is not None and found.is_usable:
            return found
        made = await self._made(address, shares)
        if not self._config.controllers and not made.serves(_METADATA):
            made.close()
            raise MismatchedEndpointTypeError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                f"{address} is a controller, but a broker was expected. Use --bootstrap-controller "
                "(bootstrap.controllers) to connect to controllers",
            )
        kept = self._open.get(address)
        if kept is not None and kept.is_usable:  # another call connected meanwhile
            made.close()
            return kept
        self._open[address] = made
        return made

    async def add(self, address: Address) -> Connection:
        """Connect once more to a node. The caller gives it back with `drop`."""
        made = await self._made(address)
        self._added.add(made)
        return made

    def drop(self, connection: Connection) -> None:
        """Close the connection and forget it."""
        connection.close()
        self._added.discard(connection)
        if self._open.get(connection.address) is connection:
            del self._open[connection.address]

    async def _made(self, address: Address, shares: int = 1) -> Connection:
        config, closings = self._config, self.closings
        timeout_ms = self._deadlines.left_ms(config.connect_timeout_ms, shares)
        attempt = ConnectAttempt()
        self._attempts.add(attempt)
        try:
            made = await self._io.run(
                None,
                lambda: Connection(address, config.client_id, timeout_ms, config.security, attempt),
                attempt.abort,
            )
        finally:
            self._attempts.discard(attempt)
        if self.closings != closings:
            made.close()
            raise ClientClosedError
        return made
