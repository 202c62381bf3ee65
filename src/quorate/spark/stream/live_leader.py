"""Who leads a live quorum: its controllers are asked until one answers as the leader.

What they tell of others is remembered, so a query outlives the controllers that it began with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Self, TypeVar

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC, Address
from quorate.client.connection import ClientError, Connection, NoAnswer, UnsupportedVersion
from quorate.spark.files.paths import PassingFault, SourceError
from quorate.wire.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorate.wire.messages.fetch import FetchResponse, FetchSnapshotResponse
from quorate.wire.schema import Message

CLIENT_ID: Final = "quorate-spark"
_CONTROLLERS: Final = 2
_CONNECT_MS: Final = 5_000
_ANSWER_MS: Final = 30_000
_BACKOFF_S: Final = 0.1
_DESCRIBE_S: Final = 5
"""How old what is known of the controllers may be while a leader answers: they may all be others
before the next connection is needed."""
_WITH_EPOCHS: Final = 12
"""The first version of Fetch that tells of epochs, snapshots and divergence."""
_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
M = TypeVar("M", FetchResponse, FetchSnapshotResponse)


class Unreachable(PassingFault):
    """No leader of the quorum answered in time; `reasons`: every address and what came of it."""

    def __init__(self, what: str, reasons: str) -> None:
        super().__init__(f"{what}: {reasons}")
        self.what, self.reasons = what, reasons

    def __reduce__(self) -> tuple[type[Unreachable], tuple[str, str]]:
        return type(self), (self.what, self.reasons)


class WrongQuorum(SourceError):
    """Who answered is not what was asked for: another cluster, a broker, no Kafka at all."""


class Diverged(SourceError):
    """The quorum's log is not the one that was read before."""


ANOTHER_LOG: Final = (
    "Committed records are gone, or this is another cluster. What was read stays as it is; find "
    "out what happened before you start with a new checkpoint"
)


@dataclass(frozen=True, slots=True)
class Controllers:
    """The controllers of one cluster, as the options name them; picklable."""

    bootstrap: tuple[Address, ...]
    label: str = ""
    cluster_id: str | None = None
    """As far as it is known; asked for otherwise."""
    timeout_ms: int = 60_000
    """How long nobody need answer."""
    known: tuple[tuple[int, Address], ...] = ()
    """By id, those that the cluster itself has named."""

    def __str__(self) -> str:
        named = f"{self.label} " if self.label else ""
        return f"{named}({', '.join(map(str, self.bootstrap))})"

    @property
    def folder(self) -> str:
        """What stands for the log directory in the column file."""
        return f"kraft://{','.join(map(str, self.bootstrap))}/{METADATA_TOPIC}-0"


@dataclass(frozen=True, slots=True)
class _Older:
    """Who leads an epoch that is over by what is known; `since`: s of the observer's clock."""

    leader: Address
    epoch: int
    since: float


class Asker:
    """Asks the leader of one cluster's quorum, and finds out who that is. Close it in the end."""

    def __init__(
        self,
        controllers: Controllers,
        leader: tuple[Address, int] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`leader`: whom to ask first, and its epoch."""
        self.controllers = controllers
        self.cluster_id = controllers.cluster_id
        self._now = monotonic
        self._connection: Connection | None = None
        self._address: Address | None = leader[0] if leader else None
        self._epoch = leader[1] if leader else 0
        self._known = dict(controllers.known)
        self._described: float | None = None
        """When this connection was asked for them."""
        self._next = 0
        self._older: _Older | None = None
        self._failures: dict[Address, str] = {}

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
        """Who led when last asked, and in which epoch."""
        return None if self._address is None else (self._address, self._epoch)

    def told(self) -> Controllers:
        """The controllers, with what is known of them now."""
        known = tuple(self._known.items())
        return replace(self.controllers, cluster_id=self.cluster_id, known=known)

    def at_least(self, epoch: int) -> None:
        """Take no answer from a leader of an older epoch: one that has not heard it is deposed."""
        self._epoch = max(self._epoch, epoch)

    def ask(
        self,
        make: Callable[[int], Message],
        kind: type[M],
        partition_of: Callable[[Any], Any],
        patience_ms: int | None,
    ) -> Any:
        """The leader's answer for the one partition; others are asked until it is found."""
        patience = self.controllers.timeout_ms if patience_ms is None else patience_ms
        deadline = self._now() + patience / 1000
        tries = 0
        while True:
            try:
                found = self._attempt(make(self._epoch), kind, partition_of)
                if found is not None:
                    return found
            except ClientError as error:
                self._lost(error)
            tries += 1
            # everybody once before waiting
            if tries > len(self._places()) + 2:
                if self._now() >= deadline:
                    raise self._given_up(patience)
                time.sleep(_BACKOFF_S)

    def _attempt(
        self, request: Message, kind: type[M], partition_of: Callable[[Any], Any]
    ) -> Any | None:
        connection = self._connect()
        answer = connection.call(
            request, kind, _ANSWER_MS, _WITH_EPOCHS if kind is FetchResponse else 0
        )
        where = connection.address
        if answer.error_code:
            self._refused(where, ErrorCode.of(answer.error_code))
            return None
        partition = partition_of(answer)
        if partition is None:
            raise NoAnswer(f"{where} told of another partition than the one asked for")
        code = ErrorCode.of(partition.error_code)
        if code in (ErrorCode.NONE, ErrorCode.SNAPSHOT_NOT_FOUND):
            self._address, self._older = where, None
            self._failures.clear()
            self._look_around(connection)
            return partition
        if code not in _ELSEWHERE:
            self._refused(where, code)
            return None
        self._learn(where, partition.current_leader, answer.node_endpoints, code)
        return None

    def _refused(self, where: Address, code: ErrorCode) -> None:
        """An error that is not about who leads: is it one for good?"""
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            raise WrongQuorum(
                f"the controller {where} is not of the cluster {self.cluster_id}: the checkpoint "
                "or the option clusterId names another cluster than these controllers are of"
            )
        if code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
            raise WrongQuorum(_no_controller(where))
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise WrongQuorum(f"{where} does not allow it: {code.name} (ClusterAction on Cluster)")
        self._lost(NoAnswer(f"{where} answered {code.name}"))

    def _learn(self, where: Address, leader: Any, endpoints: Any, code: ErrorCode) -> None:
        """What a node that refused told of the leader."""
        self._known |= {node.node_id: Address(node.host, node.port) for node in endpoints}
        found = self._known.get(leader.leader_id)
        self._weigh(where, leader.leader_epoch, found == where)
        newer = leader.leader_epoch > self._epoch
        if leader.leader_id >= 0:  # what only a candidate counts up to may never have a leader
            self._epoch = max(self._epoch, leader.leader_epoch)
        if found == where and newer:
            return  # it leads, and now its epoch is known
        self._failures[where] = (
            f"{where} does not lead epoch {self._epoch} (it knows of {leader.leader_epoch}: "
            f"{code.name})"
        )
        self.close()
        self._address = None
        if found is not None and found != where and leader.leader_epoch == self._epoch:
            self._address = found

    def _weigh(self, where: Address, epoch: int, leads: bool) -> None:
        """Note who leads an epoch older than one that has had a leader, as long as nobody tells of
        a newer one: a deposed leader steps down soon, one of another log does not."""
        known = self._older
        if epoch >= self._epoch:
            self._older = None
        elif leads and (known is None or (known.leader, known.epoch) != (where, epoch)):
            self._older = _Older(where, epoch, self._now())
        elif not leads and known is not None and known.leader == where:
            self._older = None

    def _lost(self, error: ClientError) -> None:
        where = self._address
        if where is not None:
            self._failures[where] = str(error)
            if self._older is not None and self._older.leader == where:
                self._older = None
        self.close()
        self._address = None

    def _connect(self) -> Connection:
        if self._connection is None:
            places = self._places()
            if self._address is None:
                self._address = places[self._next % len(places)]
                self._next += 1
            connection = Connection(self._address, CLIENT_ID, _CONNECT_MS)
            try:
                self._check(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _places(self) -> list[Address]:
        """Everybody who may know the leader."""
        return list(dict.fromkeys((*self.controllers.bootstrap, *self._known.values())))

    def _look_around(self, leader: Connection) -> None:
        """Learn which controllers there are now, from a leader that was not asked just before."""
        if self._described is not None and self._now() - self._described < _DESCRIBE_S:
            return
        try:
            self._note(self._describe(leader))
        except UnsupportedVersion:
            self._described = self._now()  # then there are those that lead, and bootstrap
        except ClientError:
            self.close()

    def _describe(self, connection: Connection) -> DescribeClusterResponse:
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        return connection.call(request, DescribeClusterResponse, _ANSWER_MS, at_least=1)

    def _note(self, told: DescribeClusterResponse) -> None:
        """Those that are gone are forgotten; a cluster that names none does not register them."""
        found = {node.broker_id: Address(node.host, node.port) for node in told.brokers}
        self._known = found or self._known
        self._described = self._now()

    def _check(self, connection: Connection) -> None:
        """Learn the cluster's id from a node; WrongQuorum when it is not a controller."""
        if self.cluster_id is not None:
            return
        where = connection.address
        try:
            told = self._describe(connection)
        except UnsupportedVersion as error:
            raise WrongQuorum(_no_controller(where) + f" ({error})") from None
        code = ErrorCode.of(told.error_code)
        if code == ErrorCode.MISMATCHED_ENDPOINT_TYPE:
            raise WrongQuorum(_no_controller(where))
        if code != ErrorCode.NONE:
            raise NoAnswer(
                f"{where} cannot tell its cluster yet: {told.error_message or code.name}"
            )
        self.cluster_id = told.cluster_id
        self._note(told)

    def _given_up(self, patience_ms: int) -> Unreachable | Diverged:
        older = self._older
        if older is not None and self._now() - older.since >= self.controllers.timeout_ms / 2000:
            return Diverged(
                f"controllers {self.controllers}: {older.leader} leads {self.cluster_id} in epoch "
                f"{older.epoch}, and nobody knows of epoch {self._epoch}, which was read before. "
                f"{ANOTHER_LOG}"
            )
        reasons = "; ".join(self._failures.values()) or "nobody knows a leader"
        what = f"controllers {self.controllers}: no leader answered within {patience_ms} ms"
        return Unreachable(what, reasons)


def _no_controller(where: Address) -> str:
    return (
        f"{where} is a broker or no controller of this quorum: bootstrap.controllers must name "
        "listeners of controllers"
    )
