"""Which controllers the reader of a quorum asks, and when it calls a log foreign; with fake nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from quorate.base.errors import ErrorCode
from quorate.base.ids import Address, OffsetAndEpoch
from quorate.client import leader as leader_module
from quorate.client.errors import ConnectError
from quorate.client.leader import Controllers
from quorate.spark.stream.live import LogDivergedError, StreamFetcher, UnreachableError
from quorate.spark.stream.live_feed import LiveFeed
from quorate.wire.messages.cluster import DescribeClusterRequest, DescribeClusterResponse
from quorate.wire.messages.fetch import FetchRequest, FetchResponse
from quorate.wire.schema import Message

BEGIN = OffsetAndEpoch(0, 0)
NOBODY = -1


def address(node: int) -> Address:
    return Address("node", 9000 + node)


@dataclass
class Cluster:
    """What each node answers. `belief`: the leader and the epoch that it knows of."""

    belief: dict[int, tuple[int, int]]
    registered: set[int] = field(default_factory=set)
    described: int = 0
    now: float = 0.0

    def controllers(self, *bootstrap: int, timeout_ms: int = 10_000) -> Controllers:
        return Controllers(tuple(map(address, bootstrap)), timeout_ms=timeout_ms)

    def observer(self, *bootstrap: int) -> StreamFetcher:
        return StreamFetcher(self.controllers(*bootstrap), monotonic=lambda: self.now)

    def feed(self, *bootstrap: int) -> LiveFeed:
        return LiveFeed(self.controllers(*bootstrap), lambda: self.now)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class MadeUp:
    """A connection to a node of the cluster, for what a reader asks."""

    def __init__(self, cluster: Cluster, to: Address) -> None:
        self.address, self._cluster, self._node = to, cluster, to.port - 9000
        self._refuse_when_gone()

    def close(self) -> None:
        pass

    def call(self, request: Message, kind: type, timeout_ms: int, at_least: int = 0) -> Message:
        self._refuse_when_gone()
        if isinstance(request, DescribeClusterRequest):
            return self._described()
        assert isinstance(request, FetchRequest) and kind is FetchResponse
        return self._fetched(request.topics[0].partitions[0].current_leader_epoch)

    def _refuse_when_gone(self) -> None:
        if self._node not in self._cluster.belief:
            raise ConnectError(f"Cannot connect to {self.address}: Connection refused")

    def _described(self) -> DescribeClusterResponse:
        self._cluster.described += 1
        node = DescribeClusterResponse.DescribeClusterBroker
        return DescribeClusterResponse(
            cluster_id="cluster-a",
            brokers=[
                node(broker_id=id, host="node", port=9000 + id) for id in self._cluster.registered
            ],
        )

    def _fetched(self, asked: int) -> FetchResponse:
        leader, epoch = self._cluster.belief[self._node]
        code = ErrorCode.NONE
        if asked != epoch:
            code = ErrorCode["UNKNOWN_LEADER_EPOCH" if asked > epoch else "FENCED_LEADER_EPOCH"]
        elif leader != self._node:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        topic, end = FetchResponse.FetchableTopicResponse, FetchResponse.NodeEndpoint
        partition = topic.PartitionData(
            error_code=code,
            high_watermark=10,
            current_leader=topic.PartitionData.LeaderIdAndEpoch(
                leader_id=leader, leader_epoch=epoch
            ),
        )
        known = [end(node_id=leader, host="node", port=9000 + leader)] if leader != NOBODY else []
        return FetchResponse(
            responses=[topic(partitions=[partition])], node_endpoints=known if code else []
        )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    found = Cluster({1: (1, 1)}, {1})
    monkeypatch.setattr(leader_module, "time", SimpleNamespace(sleep=found.sleep))
    monkeypatch.setattr(leader_module, "Connection", lambda to, *_: MadeUp(found, to))
    yield found


def gone(cluster: Cluster, *nodes: int) -> None:
    for node in nodes:
        del cluster.belief[node]


def test_controllers_that_never_led_are_known_when_all_others_are_gone(cluster: Cluster):
    with cluster.observer(1) as observer:
        observer.fetch(0)
        cluster.registered |= {2, 3}  # they join while the connection stays
        cluster.now += 60
        observer.fetch(0)
        gone(cluster, 1)
        cluster.belief |= {2: (3, 2), 3: (3, 2)}
        assert observer.fetch(0).leader_id == 3


def test_controllers_are_asked_for_on_a_new_connection_though_the_cluster_is_named(
    cluster: Cluster,
):
    cluster.registered |= {2}
    named = Controllers((address(1),), cluster_id="cluster-a", timeout_ms=10_000)
    with StreamFetcher(named, monotonic=lambda: cluster.now) as observer:
        observer.fetch(0)
        gone(cluster, 1)
        cluster.belief[2] = (2, 2)
        assert observer.fetch(0).leader_id == 2


def test_controllers_are_not_asked_for_with_every_question(cluster: Cluster):
    with cluster.observer(1) as observer:
        for _ in range(50):
            observer.fetch(0)
    assert cluster.described <= 2


def test_controllers_that_are_gone_from_the_cluster_are_forgotten(cluster: Cluster):
    cluster.registered |= {2, 3}
    with cluster.observer(1) as observer:
        observer.fetch(0)
        cluster.registered -= {3}
        cluster.now += 60
        observer.fetch(0)
        assert dict(observer.known_controllers().known) == {1: address(1), 2: address(2)}


def test_a_task_knows_the_controllers_that_the_driver_knows(cluster: Cluster):
    cluster.registered |= {2}
    feed = cluster.feed(1)
    feed.identify(0)
    (part,) = feed.parts(BEGIN, OffsetAndEpoch(10, 1), 100)
    gone(cluster, 1)
    cluster.belief[2] = (2, 2)
    with StreamFetcher(part.controllers, part.leader, lambda: cluster.now) as observer:
        assert observer.fetch(0).leader_id == 2


def test_a_quorum_formatted_again_is_foreign_although_its_epochs_are_older(cluster: Cluster):
    feed = cluster.feed(1)
    with pytest.raises(
        LogDivergedError, match=r"node:9001 leads cluster-a in epoch 1.*epoch 4"
    ) as raised:
        feed.log_bounds(OffsetAndEpoch(1416, 4), 10_000)
    assert "new checkpoint" in str(raised.value)


def test_so_it_is_to_one_that_asks_now_and_then(cluster: Cluster):
    feed = cluster.feed(1)
    for _ in range(5):
        with pytest.raises(UnreachableError):
            feed.log_bounds(OffsetAndEpoch(1416, 4), 0)
        cluster.now += 1
    cluster.now += 5
    with pytest.raises(LogDivergedError):
        feed.log_bounds(OffsetAndEpoch(1416, 4), 0)


def test_a_deposed_leader_is_not_foreign_while_a_node_knows_its_successor(
    cluster: Cluster,
):
    cluster.belief |= {2: (NOBODY, 4)}
    feed = cluster.feed(1, 2)
    with pytest.raises(UnreachableError, match="node:9001 does not lead epoch 4"):
        feed.log_bounds(OffsetAndEpoch(1416, 4), 10_000)


def test_a_deposed_leader_that_steps_down_is_not_foreign(cluster: Cluster):
    feed = cluster.feed(1)
    with pytest.raises(UnreachableError):
        feed.log_bounds(OffsetAndEpoch(1416, 4), 0)
    cluster.belief[1] = (NOBODY, 1)
    cluster.now += 60
    with pytest.raises(UnreachableError):
        feed.log_bounds(OffsetAndEpoch(1416, 4), 0)


def test_a_candidate_without_votes_deposes_no_leader(cluster: Cluster):
    """One that is cut off from the others counts its own epochs up."""
    cluster.belief |= {2: (NOBODY, 7)}
    with cluster.observer(2, 1) as observer:
        assert observer.fetch(0).leader_id == 1
