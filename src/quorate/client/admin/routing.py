"""Connections of an admin client: whom to ask, when to ask again.

With `bootstrap.controllers` (KIP-919) a request goes to the active controller or to a named one; with
`bootstrap.servers` to any broker, which forwards it, or to a named one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address
from quorate.client.admin.absent_nodes import (
    NoActiveControllerError,
    NoReachableNodeError,
    NotLoadedError,
)
from quorate.client.admin.deadlines import Deadlines, backoff
from quorate.client.admin.io import Io
from quorate.client.admin.outcomes import READS, change_of, is_unknown
from quorate.client.admin.pool import ClientClosedError, ClientConfig, Pool
from quorate.client.admin.sent_again import Lost, lost_attempt, note_lost_attempt
from quorate.client.connection import Connection, Decode, SentRequest
from quorate.client.errors import (
    ClientError,
    ClosedAtFirstRequestError,
    ConnectError,
    NoResponseError,
    RequestNotSentError,
    TlsRefusedError,
)
from quorate.client.results import (
    ClusterDescription,
    NodeDescription,
    RequestFailedError,
    UnsupportedEndpointTypeError,
    check,
    failure_of,
)
from quorate.wire.header import decode_response
from quorate.wire.messages.cluster import (
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from quorate.wire.schema import Message

BROKERS: Final = 1
CONTROLLERS: Final = 2
"""Endpoint types of DescribeCluster."""
SPREAD: Final = 4
"""Connections that share the parts of a large call."""
READ_AGAIN_S: Final = 1.0
"""How long a controller is believed to be the active one without asking again, for reads."""
_CHANGE: Final[ContextVar[int | None]] = ContextVar("change", default=None)
"""The API key of the change that the attempt that runs has sent."""
_SHORT_MS: Final = 100
"""An attempt with less time may fail only because its call gives up."""
M = TypeVar("M", bound=Message)
T = TypeVar("T")


class Router:
    """Open connections, the nodes that are known, and the retries of calls.

    Calls run at the same time only on an Io that has an event loop.
    """

    def __init__(
        self,
        config: ClientConfig,
        io: Io,
        monotonic: Callable[[], float] = time.monotonic,
        on_wait: Callable[[str], None] = lambda reason: None,
        give_up_at: float | None = None,
        on_resend: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`on_wait` gets the reason once per call that takes longer than `report_after_ms`.

        `give_up_at` (monotonic, s) ends all calls; None: each call has its own API timeout. `on_resend`
        gets a line about a change that was sent twice and may have been made twice.
        """
        self.config = config
        self._io = io
        self._now = monotonic
        self.deadlines = Deadlines(monotonic, config.default_api_timeout_ms, give_up_at)
        self._on_wait = on_wait
        self._on_resend = on_resend
        self._pool = Pool(config, io, self.deadlines)
        self._controller: Address | None = None
        self._named_by: Address | None = None
        """The node that named it."""
        self._looked_up_at = float("-inf")
        """When a node named that controller (monotonic, s)."""
        self._cluster: ClusterDescription | None = None
        self._failed_attempts: dict[Address, int] = {}
        """Attempts per node since the last success; the node with the fewest is next."""

    @property
    def asked(self) -> tuple[Address, int] | None:
        """The node of the last request, and its API key."""
        return self._pool.asked

    def close(self) -> None:
        """Close all connections and end the calls under way; a later call opens new ones."""
        self._pool.close()

    # -- requests -----------------------------------------------------------------------------
    async def ask(
        self, connection: Connection, request: Message, answer: type[M], at_least: int = 0
    ) -> M:
        """Send the request; a connection that fails is not used again."""
        if (key := change_of(request)) is not None:
            _CHANGE.set(key)
        return await self._pool.ask(connection, request, answer, at_least)

    async def ask_active(self, request: Message, answer: type[M], at_least: int = 0) -> M:
        """Ask the active controller, or any broker."""
        key = type(request).schema.key
        node = await (self.active_to_read() if key in READS else self.active())
        return await self.ask(node, request, answer, at_least)

    async def ask_spread(
        self, requests: Sequence[Message], answer: type[M], decode: Decode = decode_response
    ) -> list[M]:
        """Ask any node (with controllers: the active one) many things; the responses in order.

        A node takes one request at a time from a connection, and a broker has a pool of threads for
        them. So up to SPREAD connections share the requests.
        """
        node = await self.active_to_read()
        if len(requests) == 1:
            return [await self.ask(node, requests[0], answer)]
        pool = self._pool
        connections: list[Connection] = []
        waiting: deque[tuple[Connection, SentRequest]] = deque()
        found: list[M] = []
        rest = iter(requests)

        async def send(connection: Connection) -> None:
            request = next(rest, None)
            if request is not None:
                sent = await pool.run(connection, partial(connection.send, request))
                waiting.append((connection, sent))

        def receive(connection: Connection, sent: SentRequest) -> Callable[[int], M]:
            return lambda left_ms: connection.receive(sent, answer, decode)

        try:
            # Not `node` itself: another call may use it between a request and its response.
            for _ in range(min(SPREAD, len(requests))):
                connections.append(await pool.add(node.address))
                await send(connections[-1])
            while waiting:
                connection, sent = waiting.popleft()
                found.append(await pool.run(connection, receive(connection, sent)))
                await send(connection)
        finally:
            for connection in connections:
                pool.drop(connection)
        return found

    async def gather(self, jobs: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of calls to several nodes, at the same time where the Io can.

        The nodes are looked up first: a call that looks them up would wait on a connection for a
        call to the node there.
        """
        if len(jobs) > 1 and self._cluster is None:
            await self.retry(self.describe_cluster)
        return await self._io.gather(jobs)

    def refuse_controllers(self, what: str) -> None:
        """Raise UnsupportedEndpointTypeError if the bootstrap list names controllers."""
        if self.config.controllers:
            raise UnsupportedEndpointTypeError(
                ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                f"This Admin API does not support connecting to controllers: {what} is answered by "
                "brokers only. Use --bootstrap-server (bootstrap.servers)",
            )

    # -- retries ------------------------------------------------------------------------------
    async def retry(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Repeat `attempt` while its failure is retriable, until the API timeout.

        A change that an earlier attempt may have made ends with NoResponseError, whatever made the last
        attempt fail. Where the last attempt has a response, its errors have a note (`sent_again`).
        """
        with self.deadlines.one_call() as (started, ends):
            return await self._retry(attempt, started, ends)

    async def _retry(self, attempt: Callable[[], Awaitable[T]], started: float, ends: float) -> T:
        reported = False
        is_refused = True
        attempts = 0
        closings = self._pool.closings
        note = ""
        lost: Lost | None = None
        last: ClientError | None = None
        left_ms = (ends - started) * 1000
        while True:
            try:
                _CHANGE.set(None)
                found = await attempt()
                self._failed_attempts.clear()
                self._note(found, lost)
                return found
            except ClientClosedError as error:
                raise ClientClosedError(error.note or note) from None
            except (ConnectError, NoResponseError, NotLoadedError) as error:
                # 1. The node is unreachable or cannot help: find the controller again.
                failure: ClientError = error
            except RequestFailedError as error:
                # 2. A retriable error, e.g. NOT_CONTROLLER: connections are fine, the controller moved.
                if not error.code.retriable:
                    self._note(error, lost)
                    raise
                failure = error
            lost = lost_attempt(failure, _CHANGE.get()) or lost
            self._controller = None
            note = getattr(failure, "note", "") or note
            self._check_not_closed(closings, note)
            # 3. Give up early when nothing accepts connections, or every one is closed at its first
            #    request, as SASL listeners do without a login: Kafka's tools would wait a minute.
            backoff_ms = backoff(
                attempts, self.config.retry_backoff_ms, self.config.retry_backoff_max_ms
            )
            if attempts == 0 and isinstance(failure, RequestNotSentError):
                backoff_ms = 0.0  # a node closes idle connections: a new one serves at once
            attempts += 1
            elapsed_ms = (self._now() - started) * 1000
            limit = (ends - started) * 1000
            is_refused = is_refused and isinstance(failure, ClosedAtFirstRequestError)
            if is_refused or isinstance(failure, NoReachableNodeError):
                limit = min(limit, self.config.unreachable_after_ms)
            if elapsed_ms + backoff_ms >= limit:
                if isinstance(failure, NoResponseError) and left_ms < _SHORT_MS:
                    failure = last or failure  # the deadline cut this attempt: it says little
                if note and note not in str(failure):
                    raise NoResponseError(f"{failure}; {note}", note) from failure
                raise failure
            last, left_ms = failure, (ends - started) * 1000 - elapsed_ms - backoff_ms
            # 4. Report a long wait once, then back off.
            if not reported and elapsed_ms >= self.config.report_after_ms:
                self._on_wait(str(failure))
                reported = True
            await self._io.pause(backoff_ms / 1000)
            self._check_not_closed(closings, note)

    def _note(self, outcome: object, lost: Lost | None) -> None:
        """Say of an outcome what a lost attempt may have to do with it."""
        line = None if lost is None else note_lost_attempt(outcome, lost)
        if line is not None:
            self._on_resend(line)

    def _check_not_closed(self, closings: int, note: str) -> None:
        """Raise ClientClosedError if the client was closed since the call began."""
        if self._pool.closings != closings:
            raise ClientClosedError(note)

    async def change(
        self,
        send: Callable[[], Awaitable[None]],
        is_done: Callable[[ErrorCode], Awaitable[bool]],
    ) -> None:
        """Send a change until it succeeds, also when an attempt's outcome is unknown.

        1. An attempt without a response may have been committed, and so may one that timed out on
           the leader (REQUEST_TIMED_OUT without a message).
        2. The next attempt is then refused as a duplicate or as unknown. `is_done` decides whether
           that refusal means success.
        3. The refusal is proof enough: the leader evaluates it only once the previous change
           is committed. A description alone is not: it may show a change that is lost with its leader.
        """
        uncertain = False

        async def attempt() -> None:
            nonlocal uncertain
            try:
                await send()
            except RequestFailedError as error:
                if uncertain and await is_done(error.code):
                    return
                uncertain |= is_unknown(error)
                raise
            except ClientError as error:
                uncertain |= is_unknown(error)
                raise

        await self.retry(attempt)

    # -- nodes --------------------------------------------------------------------------------
    async def any_node(self) -> Connection:
        """Connect to the known node with the fewest failed attempts.

        Raises NoReachableNodeError; TlsRefusedError where that is why one of them failed, since another
        attempt fails too.

        Known are open connections first, then the bootstrap list, then the nodes of the last
        DescribeCluster response.
        """
        failures: list[ClientError] = []
        known = [node.address for node in self._cluster.nodes.values()] if self._cluster else ()
        nodes = dict.fromkeys((*self._pool.addresses, *self.config.bootstrap, *known))
        known_first = sorted(nodes, key=lambda each: self._failed_attempts.get(each, 0))
        for number, address in enumerate(known_first):
            try:
                # A silent node leaves time for the others.
                connection = await self._pool.connect(address, len(nodes) - number)
                self._failed_attempts[address] = self._failed_attempts.get(address, 0) + 1
                return connection
            except (ConnectError, NoResponseError, TlsRefusedError) as error:
                failures.append(error)
        reasons = "; ".join(map(str, failures))
        if any(isinstance(each, TlsRefusedError) for each in failures):
            raise TlsRefusedError(reasons)
        kind = "controllers" if self.config.controllers else "brokers"
        raise NoReachableNodeError(
            f"{reasons} (are these addresses of {kind}, and do the {kind} run?)", failures
        )

    async def active(self) -> Connection:
        """Connect to the active controller, or to any broker."""
        if not self.config.controllers:
            return await self.any_node()
        if self._controller is None:
            cluster = await self.describe_cluster()
            if cluster.controller_id not in cluster.nodes:
                raise RequestFailedError(ErrorCode.NOT_CONTROLLER, "No controller is active")
            self._controller = cluster.nodes[cluster.controller_id].address
        named, asked = self._controller, self._named_by
        try:
            return await self._pool.connect(named)
        except ConnectError as error:
            if asked is None or self._cluster is None:
                raise
            nodes = (node.address for node in self._cluster.nodes.values())
            raise NoActiveControllerError(asked, named, error, nodes) from None

    async def active_to_read(self) -> Connection:
        """Connect as `active` does, to a controller that is still the active one.

        A controller that has lost the leadership answers reads from what it has, and says nothing. So
        whether it is active is asked again after READ_AGAIN_S; a leader without a majority resigns
        within the fetch timeout of the quorum.
        """
        if self.config.controllers and self._now() - self._looked_up_at >= READ_AGAIN_S:
            self._controller = None
        return await self.active()

    async def node(self, node_id: int) -> Connection:
        """Connect to a broker or controller, as the bootstrap list is. Raises ClientError."""
        cluster = self._cluster
        if cluster is None or node_id not in cluster.nodes:
            cluster = await self.describe_cluster()
        nodes = cluster.nodes
        if node_id not in nodes:
            known = ", ".join(map(str, sorted(nodes)))
            raise ClientError(f"The cluster has no node {node_id}; it has {known}")
        try:
            return await self._pool.connect(nodes[node_id].address)
        except ConnectError as error:
            self._cluster = None
            raise NoReachableNodeError(str(error), [error]) from None

    async def describe_cluster(self, *, with_fenced: bool = False) -> ClusterDescription:
        """One attempt at DescribeCluster: the brokers or the controllers, as the bootstrap list is.

        `with_fenced` asks for fenced brokers too (KIP-1073).
        """
        node = await self.any_node()
        direct = self.config.controllers
        request = DescribeClusterRequest(
            endpoint_type=CONTROLLERS if direct else BROKERS, include_fenced_brokers=with_fenced
        )
        lowest = 2 if with_fenced else 1 if direct else 0
        answer = await self.ask(node, request, DescribeClusterResponse, lowest)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and not _is_loaded(node.features):
            self._pool.drop(node)
            raise NotLoadedError(node.address)
        check(answer.error_code, answer.error_message)
        nodes = {
            n.broker_id: NodeDescription(Address(n.host, n.port), n.rack, n.is_fenced)
            for n in answer.brokers
        }
        cluster = ClusterDescription(answer.cluster_id, answer.controller_id, nodes)
        if not with_fenced:
            self._cluster = cluster
        if answer.controller_id in nodes and direct:
            self._controller, self._named_by = nodes[answer.controller_id].address, node.address
            self._looked_up_at = self._now()
        return cluster


class Calls:
    """Base of the groups of calls."""

    def __init__(self, router: Router) -> None:
        self.router = router


def item_failure(code: int, message: str | None) -> RequestFailedError | None:
    """The error of one item of a request. Raises RequestFailedError if the controller has moved.

    Then no item was decided, and the request is sent again.
    """
    error = failure_of(code, message)
    if error is not None and error.code == ErrorCode.NOT_CONTROLLER:
        raise error
    return error


def _is_loaded(versions: ApiVersionsResponse) -> bool:
    """Whether the node knows the cluster's features.

    Before that it has no metadata.version, and answers UNSUPPORTED_VERSION.
    """
    known = any(feature.name == "metadata.version" for feature in versions.finalized_features)
    return known and versions.finalized_features_epoch >= 0
