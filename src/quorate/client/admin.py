"""Asking a cluster about itself and changing its voters and features.

The counterpart of the parts of Kafka's `KafkaAdminClient` that Kafka's quorum tools use. With
`bootstrap.controllers` (KIP-919) requests go to the active controller, with `bootstrap.servers`
to any broker, which forwards them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from quorate.base.errors import ErrorCode
from quorate.base.ids import METADATA_TOPIC, Address, Listener, ReplicaKey
from quorate.client.answers import (
    Cluster,
    Features,
    Quorum,
    Replica,
    RequestFailed,
    check,
    quorum_of,
)
from quorate.client.connection import (
    ClientError,
    ConnectError,
    Connection,
    NoAnswer,
    UnsupportedVersion,
)
from quorate.wire.messages.cluster import (
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from quorate.wire.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)

__all__ = [
    "Admin",
    "ClientConfig",
    "ClientError",
    "Cluster",
    "ConnectError",
    "Features",
    "NoAnswer",
    "Quorum",
    "Replica",
    "RequestFailed",
    "UnsupportedVersion",
]

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3
T = TypeVar("T")


class NobodyThere(ConnectError):
    """Not one node that could answer can be connected to; names all failures."""


class NotLoaded(ClientError):
    """The node cannot describe the cluster before it knows of something committed."""

    def __init__(self, node: Address) -> None:
        super().__init__(
            f"{node} does not know yet what is committed: no controller leads the quorum (most "
            "voters must be up), or this one has only just started"
        )


class ClientConfig(NamedTuple):
    """How to reach a cluster; times in ms. The names are those of Kafka's client keys."""

    bootstrap: tuple[Address, ...]
    controllers: bool
    """`bootstrap` are controllers, not brokers."""
    client_id: str = "quorate-admin"
    default_api_timeout_ms: int = 60_000
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    connect_timeout_ms: int = 10_000
    unreachable_after_ms: int = 5_000
    """Give up when by then nobody could be connected to; Kafka waits out the api timeout."""
    tell_after_ms: int = 3_000
    """Who waits longer is told what for."""


class Admin:
    """Blocking calls; each ends within `default_api_timeout_ms` or raises ClientError.

    Leader changes and lost connections are retried. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        config: ClientConfig,
        monotonic: Callable[[], float] = time.monotonic,
        waiting: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """waiting: told once in a call that takes long, why."""
        self.config = config
        self._now = monotonic
        self._waiting = waiting
        self._open: dict[Address, Connection] = {}
        self._controller: Address | None = None
        self._cluster: Cluster | None = None
        self._in_vain: dict[Address, int] = {}
        """How often a node was asked since something last succeeded: the least is asked next."""

    def __enter__(self) -> Admin:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    # -- questions ------------------------------------------------------------------------
    def describe_cluster(self) -> Cluster:
        """Cluster id, controller and nodes (controllers or brokers, like the bootstrap)."""
        return self._retry(self._describe_cluster)

    def describe_quorum(self) -> Quorum:
        """What the leader knows of all replicas."""
        request = DescribeQuorumRequest(
            topics=[
                DescribeQuorumRequest.TopicData(
                    topic_name=METADATA_TOPIC,
                    partitions=[DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)],
                )
            ]
        )

        def ask() -> Quorum:
            node = self._active()
            answer = node.call(request, DescribeQuorumResponse, self.config.request_timeout_ms)
            return quorum_of(answer)

        return self._retry(ask)

    def describe_features(self, node_id: int | None = None) -> Features:
        """Levels that a node supports (default: whoever answers first), and the finalized ones.

        Raises ClientError when there is no node of that id.
        """

        def ask() -> Features:
            told = (self._active() if node_id is None else self._node(node_id)).features
            return Features(
                {f.name: (f.min_version, f.max_version) for f in told.supported_features},
                {f.name: f.max_version_level for f in told.finalized_features},
                told.finalized_features_epoch,
            )

        return self._retry(ask)

    # -- changes --------------------------------------------------------------------------
    def add_voter(
        self, voter: ReplicaKey, listeners: Sequence[Listener], cluster_id: str | None = None
    ) -> None:
        """Make an observer a voter; returns when that is committed.

        Raises RequestFailed with the leader's reason.
        """
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=self.config.request_timeout_ms,
            voter_id=voter.id,
            voter_directory_id=voter.directory_id,
            listeners=[
                AddRaftVoterRequest.Listener(name=name, host=host, port=port)
                for name, host, port in listeners
            ],
        )

        def send() -> None:
            node = self._active()
            answer = node.call(request, AddRaftVoterResponse, self.config.request_timeout_ms)
            check(answer.error_code, answer.error_message)

        def was_made(refusal: ErrorCode) -> bool:
            return refusal == ErrorCode.DUPLICATE_VOTER and voter in self._voter_keys()

        self._change(send, was_made)

    def remove_voter(self, voter: ReplicaKey, cluster_id: str | None = None) -> None:
        """Make a voter an observer; returns when that is committed.

        Raises RequestFailed with the leader's reason.
        """
        request = RemoveRaftVoterRequest(
            cluster_id=cluster_id, voter_id=voter.id, voter_directory_id=voter.directory_id
        )

        def send() -> None:
            node = self._active()
            answer = node.call(request, RemoveRaftVoterResponse, self.config.request_timeout_ms)
            check(answer.error_code, answer.error_message)

        self._change(send, lambda refusal: refusal == ErrorCode.VOTER_NOT_FOUND)

    def alter_client_quota(
        self, entity: Mapping[str, str | None], quotas: Mapping[str, float | None]
    ) -> None:
        """Set quotas of one entity (None: its default), or remove those that are None.

        Returns when that is committed. Raises RequestFailed with the controller's reason.
        """
        from quorate.wire.messages.quotas import (
            AlterClientQuotasRequest,
            AlterClientQuotasResponse,
        )

        entry = AlterClientQuotasRequest.EntryData
        request = AlterClientQuotasRequest(
            entries=[
                entry(
                    entity=[
                        entry.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity.items()
                    ],
                    ops=[
                        entry.OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in quotas.items()
                    ],
                )
            ]
        )

        def send() -> None:
            node = self._active()
            answer = node.call(request, AlterClientQuotasResponse, self.config.request_timeout_ms)
            for told in answer.entries:
                check(told.error_code, told.error_message)

        self._retry(send)

    def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: int = UPGRADE,
        validate_only: bool = False,
    ) -> Mapping[str, RequestFailed | None]:
        """Set feature levels; the error, or None, of each.

        `upgrade_type` is UPGRADE, SAFE_DOWNGRADE or UNSAFE_DOWNGRADE. Raises RequestFailed when
        the whole request was refused.
        """
        from quorate.wire.messages.quotas import UpdateFeaturesRequest, UpdateFeaturesResponse

        request = UpdateFeaturesRequest(
            timeout_ms=self.config.request_timeout_ms,
            feature_updates=[
                UpdateFeaturesRequest.FeatureUpdateKey(
                    feature=name, max_version_level=level, upgrade_type=upgrade_type
                )
                for name, level in levels.items()
            ],
            validate_only=validate_only,
        )

        def send() -> Mapping[str, RequestFailed | None]:
            node = self._active()
            answer = node.call(
                request,
                UpdateFeaturesResponse,
                self.config.request_timeout_ms,
                at_least=1 if validate_only else 0,
            )
            check(answer.error_code, answer.error_message)
            outcome: dict[str, RequestFailed | None] = dict.fromkeys(levels)
            for result in answer.results:
                if result.error_code:
                    outcome[result.feature] = RequestFailed(result.error_code, result.error_message)
            return outcome

        return self._retry(send)

    # -- finding nodes --------------------------------------------------------------------
    def _voter_keys(self) -> set[ReplicaKey]:
        return {voter.key for voter in self.describe_quorum().voters}

    def _change(self, send: Callable[[], None], was_made: Callable[[ErrorCode], bool]) -> None:
        """Send until it is made; an attempt whose outcome is unknown may have made it.

        Whether it did, the leader's refusal of the next one tells, and `was_made` reads: it looks
        at the voter set only when that is committed (5.9, check 8). DescribeQuorum would tell a
        set that is lost with its leader.
        """
        uncertain = False

        def attempt() -> None:
            nonlocal uncertain
            try:
                send()
            except NoAnswer:
                uncertain = True
                raise
            except RequestFailed as error:
                if uncertain and was_made(error.code):
                    return
                uncertain |= error.is_bare and error.code.retriable
                raise

        self._retry(attempt)

    def _retry(self, attempt: Callable[[], T]) -> T:
        """Repeat what may be repeated until the api timeout."""
        started = self._now()
        told = False
        while True:
            try:
                found = attempt()
                self._in_vain.clear()
                return found
            except (ConnectError, NoAnswer, NotLoaded) as error:
                self._forget()
                failure: ClientError = error
            except RequestFailed as error:
                if not error.code.retriable:
                    raise
                self._controller = None
                failure = error
            elapsed_ms = (self._now() - started) * 1000
            limit = self.config.default_api_timeout_ms
            if isinstance(failure, NobodyThere):
                limit = min(limit, self.config.unreachable_after_ms)
            if elapsed_ms + self.config.retry_backoff_ms >= limit:
                raise failure
            if not told and elapsed_ms >= self.config.tell_after_ms:
                self._waiting(str(failure))
                told = True
            time.sleep(self.config.retry_backoff_ms / 1000)

    def _forget(self) -> None:
        self.close()
        self._controller = None

    def _connect(self, address: Address) -> Connection:
        if address not in self._open:
            self._open[address] = Connection(
                address, self.config.client_id, self.config.connect_timeout_ms
            )
        return self._open[address]

    def _any_node(self) -> Connection:
        """A connection to a node that can be reached, in turn; raises NobodyThere."""
        failures = []
        known = tuple(self._cluster.nodes.values()) if self._cluster else ()
        nodes = dict.fromkeys((*self._open, *self.config.bootstrap, *known))
        for address in sorted(nodes, key=lambda each: self._in_vain.get(each, 0)):
            try:
                connection = self._connect(address)
                self._in_vain[address] = self._in_vain.get(address, 0) + 1
                return connection
            except ClientError as error:
                failures.append(str(error))
        raise NobodyThere("; ".join(failures))

    def _active(self) -> Connection:
        """The active controller, or any broker."""
        if not self.config.controllers:
            return self._any_node()
        if self._controller is None:
            cluster = self._describe_cluster()
            if cluster.controller_id not in cluster.nodes:
                raise RequestFailed(ErrorCode.NOT_CONTROLLER, "No controller is active now")
            self._controller = cluster.nodes[cluster.controller_id]
        return self._connect(self._controller)

    def _node(self, node_id: int) -> Connection:
        nodes = self._describe_cluster().nodes
        if node_id not in nodes:
            known = ", ".join(map(str, sorted(nodes)))
            raise ClientError(f"The cluster has no node {node_id}; it has {known}")
        try:
            return self._connect(nodes[node_id])
        except ConnectError as error:
            raise NobodyThere(str(error)) from None

    def _describe_cluster(self) -> Cluster:
        node = self._any_node()
        request = DescribeClusterRequest(
            endpoint_type=_CONTROLLERS if self.config.controllers else _BROKERS
        )
        answer = node.call(
            request,
            DescribeClusterResponse,
            self.config.request_timeout_ms,
            at_least=1 if self.config.controllers else 0,
        )
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and not _is_loaded(node.features):
            raise NotLoaded(node.address)
        check(answer.error_code, answer.error_message)
        nodes = {n.broker_id: Address(n.host, n.port) for n in answer.brokers}
        self._cluster = Cluster(answer.cluster_id, answer.controller_id, nodes)
        if answer.controller_id in nodes and self.config.controllers:
            self._controller = nodes[answer.controller_id]
        return self._cluster


def _is_loaded(told: ApiVersionsResponse) -> bool:
    """Does the node know the cluster's features? Before, it has no metadata.version to go by."""
    known = any(feature.name == "metadata.version" for feature in told.finalized_features)
    return known and told.finalized_features_epoch >= 0
