"""What a metric is: its names, and how its value is read from a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from quorate.controller.counts import ControllerCounts
from quorate.controller.liveness import Liveness
from quorate.controller.partition_index import PartitionIndex
from quorate.metadata.image import Image
from quorate.metadata.topics import ElectionCounts
from quorate.raft.core import RaftCore
from quorate.raft.values import ControlState
from quorate.replica.replica import Replica
from quorate.replica.state_machine import Now
from quorate.server.certificates import Certificates
from quorate.server.meters import Histogram, Meters

RAFT: Final = "kafka.server:type=raft-metrics"
CONTROLLER: Final = "kafka.controller:type=KafkaController"
LOADER: Final = "kafka.server:type=MetadataLoader"
EMITTER: Final = "kafka.server:type=SnapshotEmitter"
SOCKETS: Final = "kafka.server:type=socket-server-metrics"
MEMORY: Final = "kafka.network:type=SocketServer"
REQUESTS: Final = "kafka.network:type=RequestMetrics"
OURS: Final = ""
"""Kafka's MBeans; empty for a metric of ours."""


class ObservedNode(Protocol):
    """The node that the metrics describe: a controller, or a member of quorate.embed."""

    replica: Replica
    cluster_id: str
    unstable_features: bool

    @property
    def image(self) -> Image: ...

    @property
    def applied_control(self) -> ControlState: ...

    @property
    def is_active(self) -> bool: ...

    @property
    def snapshots_loaded(self) -> int:
        """Snapshots loaded at the start or from a leader."""

    @property
    def index(self) -> PartitionIndex | None:
        """The index of partitions; None for a node that keeps none."""

    @property
    def elections(self) -> ElectionCounts | None:
        """The elections of partitions; None for a node that keeps none."""

    @property
    def counts(self) -> ControllerCounts | None:
        """The counts of the write queue; None for a node without one."""

    @property
    def liveness(self) -> Liveness | None:
        """The liveness of brokers; None for a node that has none."""


class ListenerStats(Protocol):
    """The statistics of a node's listeners: an Acceptor."""

    @property
    def connection_count(self) -> int: ...

    @property
    def incoming(self) -> int:
        """Bytes of requests that are incomplete or not yet processed."""

    @property
    def max_incoming(self) -> int:
        """The limit for `incoming`."""

    @property
    def failed_authentications(self) -> Mapping[str, int]:
        """The number of connections that failed TLS or SASL, by secured listener."""


class Scrape(NamedTuple):
    """One node at the time of a scrape."""

    controller: ObservedNode
    meters: Meters
    now: Now
    callers: ListenerStats
    idle_ratio: float
    certificates: Certificates

    @property
    def core(self) -> RaftCore:
        return self.controller.replica.core

    @property
    def leads(self) -> bool:
        return self.core.role == "leader"


Labelled = list[tuple[str | tuple[str, ...], float | Histogram]]
Value = float | Labelled | Histogram
"""One value, or one per value of the label or labels."""


class MetricDefinition(NamedTuple):
    """A metric. `source` and `attribute` are Kafka's names; `source` is empty for our own metrics."""

    name: str
    kind: str
    source: str
    attribute: str
    help: str
    read: Callable[[Scrape], Value | None]
    """Returns None while the metric has no value."""
    label: str | tuple[str, ...] = ""
