"""A client of the leader of a running quorum: it asks controllers until one answers as the leader.

The client remembers the controllers that others name. So it goes on when all controllers of
bootstrap.controllers have been replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self, TypeVar

from quorate.base.errors import ErrorCode, QuorateError
from quorate.base.ids import METADATA_TOPIC, Address
from quorate.client.connection import ClientSecurity, Connection, principal_of
from quorate.client.errors import (
    ClientError,
    LoginError,
    NoResponseError,
    TlsRefusedError,
    UnsupportedVersionError,
)
from quorate.wire.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorate.wire.messages.fetch import FetchResponse, FetchSnapshotResponse
from quorate.wire.schema import Message

_CONTROLLERS: Final = 2
_CONNECT_MS: Final = 5_000
_ANSWER_MS: Final = 30_000
_BACKOFF_S: Final = 0.1
_DESCRIBE_S: Final = 5
"""The client refreshes the list of controllers after this time, s, also while the leader answers: all
of them may be replaced before the client needs another connection."""
_WITH_EPOCHS: Final = 12
"""The first version of Fetch with epochs, snapshot ids and diverging epochs (KIP-595, KIP-630)."""
_NOT_LEADING: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
_DENIED: Final = frozenset(
    {ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)
M = TypeVar("M", FetchResponse, FetchSnapshotResponse)


class LeaderError(QuorateError):
    """The leader cannot be asked."""


class LeaderUnreachableError(LeaderError):
    """No leader of the quorum answered in time; `reasons` names each address and its failure."""

    def __init__(self, what: str, reasons: str) -> None:
        super().__init__(f"{what}: {reasons}")
        self.what, self.reasons = what, reasons

    def __reduce__(self) -> tuple[type[LeaderUnreachableError], tuple[str, str]]:
        return type(self), (self.what, self.reasons)


class ForeignQuorumError(LeaderError):
    """The node that answered is of another cluster, is a broker, or does not speak Kafka."""


class LeaderDivergedError(LeaderError):
    """The log of the quorum is not the log that was read before."""


@dataclass(frozen=True, slots=True)
class Controllers:
    """The controllers of one cluster, as the caller names them; as picklable as `security`."""

    bootstrap: tuple[Address, ...]
    label: str = ""
    cluster_id: str | None = None
    """None until it is known; then the first request asks for it."""
    timeout_ms: int = 60_000
    """How long to wait for a leader."""
    known: tuple[tuple[int, Address], ...] = ()
    """(node id, address) of the controllers that the cluster itself has named."""
    security: ClientSecurity | Callable[[], ClientSecurity | None] | None = None
    """What a connection needs before its first request, or what makes it; None for PLAINTEXT."""

    def __str__(self) -> str:
        named = f"{self.label} " if self.label else ""
        return f"{named}({', '.join(map(str, self.bootstrap))})"

    @property
    def folder(self) -> str:
        """Stands for the log directory in the column `file`."""
        return f"kraft://{','.join(map(str, self.bootstrap))}/{METADATA_TOPIC}-0"


@dataclass(frozen=True, slots=True)
class _OlderLeader:
    """A node that leads an epoch older than the current one; `since`: s of the monotonic clock."""

    leader: Address
    epoch: int
    since: float


class LeaderClient:
    """Sends requests to the leader of one quorum and finds that leader. The caller closes it.

    A subclass may replace the errors by its own subclasses of them.
    """

    client_id: ClassVar[str] = "quorate-observer"
    unreachable: ClassVar[type[LeaderUnreachableError]] = LeaderUnreachableError
    wrong_quorum: ClassVar[type[ForeignQuorumError]] = ForeignQuorumError
    log_diverged: ClassVar[type[LeaderDivergedError]] = LeaderDivergedError
    another_log: ClassVar[str] = (
        "Committed records are lost, or this is another cluster: find the cause, then start again"
    )
    """What a LeaderDivergedError means, and what to do."""
    cluster_id_from: ClassVar[str] = "another of these controllers belongs to"
    """Which other place names the cluster id, in an error."""

    def __init__(
        self,
        controllers: Controllers,
        leader: tuple[Address, int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a connection. `leader`: the address to ask first, and its epoch."""
        self.controllers = controllers
        self.cluster_id = controllers.cluster_id
        given = controllers.security
        self._security = given() if callable(given) else given
        self._now = monotonic
        self._connection: Connection | None = None
        self._address: Address | None = leader[0] if leader else None
        self._epoch = leader[1] if leader else 0
        self._known = dict(controllers.known)
        self._described: float | None = None
        """When the controllers were last described on this connection."""
        self._next = 0
        self._older: _OlderLeader | None = None
        self._failures: dict[Address, str] = {}
        self._refused: set[Address] = set()
        """Where another attempt fails too, since a leader last answered: TLS or a version is refused."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._described = None

    @property
    def leader(self) -> tuple[Address, int] | None:
        """The address of the last known leader, and its epoch."""
        return None if self._address is None else (self._address, self._epoch)

    def known_controllers(self) -> Controllers:
        """The given controllers, with the cluster id and those named since."""
        known = tuple(self._known.items())
        return replace(self.controllers, cluster_id=self.cluster_id, known=known)

    def require_epoch(self, epoch: int) -> None:
        """Accept no response of a leader of an older epoch: it may not know yet that it is deposed."""
        self._epoch = max(self._epoch, epoch)

    def call_leader(
        self,
        make: Callable[[int], Message],
        kind: type[M],
        partition_of: Callable[[Any], Any],
        timeout_ms: int | None,
    ) -> Any:
        """The leader's response for the metadata partition.

        1. Send the request to the last known leader, else to the next candidate.
        2. A node that is not the leader names it, or an error moves on to the next candidate.
        3. After each candidate had its turn, wait `_BACKOFF_S` between attempts, until the timeout.
           Where every candidate refuses TLS or the version of the request, fail at once.

        Raises LeaderUnreachableError, ForeignQuorumError, LeaderDivergedError, LoginError.
        """
        patience = self.controllers.timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._now() + patience / 1000
        tries = 0
        while True:
            try:
                found = self._attempt(make(self._epoch), kind, partition_of)
                if found is not None:
                    return found
            except (TlsRefusedError, UnsupportedVersionError) as error:
                self._drop_connection(error)
                if self._refused.issuperset(self._candidates()):
                    if isinstance(error, TlsRefusedError):
                        raise  # none is left whose certificate could be accepted
                    raise self._refused_error() from None
            except LoginError:
                raise
            except ClientError as error:
                self._drop_connection(error)
            tries += 1
            # +2: the last known leader, and the leader that a candidate names, are asked besides
            if tries > len(self._candidates()) + 2:
                if self._now() >= deadline:
                    raise self._timeout_error(patience)
                time.sleep(_BACKOFF_S)

    def _attempt(
        self, request: Message, kind: type[M], partition_of: Callable[[Any], Any]
    ) -> Any | None:
        connection = self._connect()
        answer = connection.call(
            request, kind, _ANSWER_MS, _WITH_EPOCHS if kind is FetchResponse else 0
        )
        address = connection.address
        if answer.error_code:
            self._handle_error(address, ErrorCode.of(answer.error_code))
            return None
        partition = partition_of(answer)
        if partition is None:
            raise NoResponseError(f"{address} answered for another partition than the metadata log")
        code = ErrorCode.of(partition.error_code)
        if code in (ErrorCode.NONE, ErrorCode.SNAPSHOT_NOT_FOUND):
            self._address, self._older = address, None
            self._failures.clear()
            self._refused.clear()
            self._refresh_controllers(connection)
            return partition
        if code not in _NOT_LEADING:
            self._handle_error(address, code)
            return None
        self._learn_leader(address, partition.current_leader, answer.node_endpoints, code)
        return None

    def _handle_error(self, address: Address, code: ErrorCode) -> None:
        """Raise an error that no other controller can help with; else drop the connection."""
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise self.wrong_quorum(
                f"the controller {address} is not of the cluster {self.cluster_id}, which "
                f"{self.cluster_id_from}"
            )
        if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
            raise self.wrong_quorum(_no_controller(address))
        if code in _DENIED:
            raise self.wrong_quorum(
                f"{address} refuses the request: {code.name} ({self._needs('ClusterAction')})"
            )
        if code == ErrorCode.UNSUPPORTED_VERSION:
            raise UnsupportedVersionError(f"{address} answered {code.name}")
        self._drop_connection(NoResponseError(f"{address} answered {code.name}"))

    def _learn_leader(self, address: Address, leader: Any, endpoints: Any, code: ErrorCode) -> None:
        """Learn the leader and its epoch from a node that is not the leader."""
        self._known |= {node.node_id: Address(node.host, node.port) for node in endpoints}
        found = self._known.get(leader.leader_id)
        self._note_older_leader(address, leader.leader_epoch, found == address)
        newer = leader.leader_epoch > self._epoch
        # An epoch without a leader is only a candidate's: it may never have one, and to demand it
        # would make the client refuse the leader that there is.
        if leader.leader_id >= 0:
            self._epoch = max(self._epoch, leader.leader_epoch)
        if found == address and newer:
            return  # the node leads that newer epoch: ask it again with the epoch that it named
        self._failures[address] = (
            f"{address} does not lead epoch {self._epoch} (it knows epoch {leader.leader_epoch}: "
            f"{code.name})"
        )
        self.close()
        self._address = None
        if found is not None and found != address and leader.leader_epoch == self._epoch:
            self._address = found

    def _note_older_leader(self, address: Address, epoch: int, leads: bool) -> None:
        """Remember a leader of an older epoch while no node knows the current epoch.

        A deposed leader steps down soon, because check quorum bounds how long it leads without
        a majority. The leader of another log does not: `_timeout_error` distinguishes them.
        """
        known = self._older
        if epoch >= self._epoch:
            self._older = None
        elif leads and (known is None or (known.leader, known.epoch) != (address, epoch)):
            self._older = _OlderLeader(address, epoch, self._now())
        elif not leads and known is not None and known.leader == address:
            self._older = None

    def _drop_connection(self, error: ClientError) -> None:
        address = self._address
        if address is not None:
            self._failures[address] = str(error)
            if isinstance(error, TlsRefusedError | UnsupportedVersionError):
                self._refused.add(address)
            if self._older is not None and self._older.leader == address:
                self._older = None
        self.close()
        self._address = None

    def _connect(self) -> Connection:
        if self._connection is None:
            places = self._candidates()
            if self._address is None:
                self._address = places[self._next % len(places)]
                self._next += 1
            connect_ms = min(_CONNECT_MS, self.controllers.timeout_ms)
            connection = Connection(self._address, self.client_id, connect_ms, self._security)
            try:
                self._check_cluster(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _candidates(self) -> list[Address]:
        """The addresses that may know the leader."""
        return list(dict.fromkeys((*self.controllers.bootstrap, *self._known.values())))

    def _refresh_controllers(self, leader: Connection) -> None:
        """Ask the leader which controllers there are, at most every `_DESCRIBE_S`."""
        if self._described is not None and self._now() - self._described < _DESCRIBE_S:
            return
        try:
            self._set_controllers(self._describe(leader))
        except UnsupportedVersionError:
            # KIP-919 is not there: the client knows the leaders that it met, and bootstrap
            self._described = self._now()
        except LoginError:
            raise
        except ClientError:
            self.close()

    def _describe(self, connection: Connection) -> DescribeClusterResponse:
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        return connection.call(request, DescribeClusterResponse, _ANSWER_MS, at_least=1)

    def _set_controllers(self, response: DescribeClusterResponse) -> None:
        """Replace the known controllers; an empty list means that the cluster registers none."""
        found = {node.broker_id: Address(node.host, node.port) for node in response.brokers}
        self._known = found or self._known
        self._described = self._now()

    def _check_cluster(self, connection: Connection) -> None:
        """Learn the cluster id from a node. Raises ForeignQuorumError when it is no controller."""
        if self.cluster_id is not None:
            return
        address = connection.address
        try:
            response = self._describe(connection)
        except UnsupportedVersionError as error:
            raise self.wrong_quorum(_no_controller(address) + f" ({error})") from None
        code = ErrorCode.of(response.error_code)
        if code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise self.wrong_quorum(_no_controller(address))
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise self.wrong_quorum(
                f"{address} refuses DescribeCluster: {code.name} ({self._needs('Alter')}, and for the log "
                "ClusterAction)"
            )
        if code != ErrorCode.NONE:
            raise NoResponseError(
                f"{address} cannot name its cluster yet: {response.error_message or code.name}"
            )
        self.cluster_id = response.cluster_id
        self._set_controllers(response)

    def _refused_error(self) -> LeaderUnreachableError:
        what = f"controllers {self.controllers}: none of them serves the request"
        return self.unreachable(what, "; ".join(self._failures.values()))

    def _needs(self, operation: str) -> str:
        """Which ACL is missing, and for whom."""
        user, note = principal_of(self._security)
        return f"{user or 'the principal of this login'}{note} needs {operation} on Cluster"

    def _timeout_error(self, timeout_ms: int) -> LeaderUnreachableError | LeaderDivergedError:
        older = self._older
        # Half of the timeout: long enough for a deposed leader to step down (see
        # _note_older_leader), so a leader that still leads the older epoch has another log.
        if older is not None and self._now() - older.since >= self.controllers.timeout_ms / 2000:
            return self.log_diverged(
                f"controllers {self.controllers}: {older.leader} leads {self.cluster_id} in epoch "
                f"{older.epoch}, and no controller knows epoch {self._epoch}, which was read "
                f"before. {self.another_log}"
            )
        reasons = "; ".join(self._failures.values()) or "no controller knows a leader"
        what = f"controllers {self.controllers}: no leader answered within {timeout_ms} ms"
        return self.unreachable(what, reasons)


def _no_controller(address: Address) -> str:
    return (
        f"{address} is a broker, or no controller of this quorum: bootstrap.controllers must name "
        "controller listeners"
    )
