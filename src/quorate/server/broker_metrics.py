"""The metrics of an active controller's cluster: brokers, topics, partitions, access control entries.

Source: `ControllerMetadataMetrics`, `BrokerHeartbeatManager`, `StandardAuthorizer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from quorate.metadata.image import Broker
from quorate.server.metric_definition import CONTROLLER, MetricDefinition, Scrape, Value

AUTHORIZER: Final = "kafka.server:type=plugins"
_PREFIX: Final = "kafka_controller_kafka_controller"
_FENCED: Final = 10
_CONTROLLED_SHUTDOWN: Final = 20
_ACTIVE: Final = 30


def _brokers(scrape: Scrape) -> Iterable[Broker]:
    return scrape.controller.image.cluster.brokers.values()


def _state(broker: Broker) -> int:
    """Return the number of `BrokerRegistrationState`."""
    if broker.fenced:
        return _FENCED
    return _CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else _ACTIVE


def _count(state: int) -> Callable[[Scrape], Value]:
    return lambda scrape: sum(_state(broker) == state for broker in _brokers(scrape))


def _states(scrape: Scrape) -> Value:
    found = sorted((broker.id, _state(broker)) for broker in _brokers(scrape))
    return [(str(broker_id), float(state)) for broker_id, state in found]


def _since_contact(scrape: Scrape) -> Value | None:
    """Only the active controller hears heartbeats."""
    liveness = scrape.controller.liveness
    if liveness is None or not scrape.controller.is_active:
        return None
    now_ms = scrape.now.monotonic_ms
    found = sorted((b.id, liveness.since_contact_ms(b, now_ms)) for b in _brokers(scrape))
    return [(str(broker_id), float(ms)) for broker_id, ms in found if ms is not None]


def _gauge(
    name: str, attribute: str, text: str, read: Callable[[Scrape], Value | None], label: str = ""
) -> MetricDefinition:
    return MetricDefinition(f"{_PREFIX}_{name}", "gauge", CONTROLLER, attribute, text, read, label)


def _of_index(read: Callable[[Scrape], Value]) -> Callable[[Scrape], Value | None]:
    """Read a value of the index; None where the node keeps no partitions (a member of quorate.embed)."""
    return lambda scrape: None if scrape.controller.index is None else read(scrape)


def _offline(scrape: Scrape) -> Value:
    index = scrape.controller.index
    return 0 if index is None else index.leaderless


def _imbalanced(scrape: Scrape) -> Value:
    index = scrape.controller.index
    return 0 if index is None else index.imbalanced


def _partitions(scrape: Scrape) -> Value:
    index = scrape.controller.index
    return 0 if index is None else index.partitions


BROKER_METRICS: Final[tuple[MetricDefinition, ...]] = (
    _gauge(
        "active_broker_count",
        "ActiveBrokerCount",
        "Brokers that are neither fenced nor in a controlled shutdown",
        _count(_ACTIVE),
    ),
    _gauge(
        "fenced_broker_count",
        "FencedBrokerCount",
        "Registered brokers that are fenced",
        _count(_FENCED),
    ),
    _gauge(
        "controlled_shutdown_broker_count",
        "ControlledShutdownBrokerCount",
        "Brokers in a controlled shutdown",
        _count(_CONTROLLED_SHUTDOWN),
    ),
    _gauge(
        "broker_registration_state",
        "BrokerRegistrationState",
        "10 fenced, 20 in a controlled shutdown, 30 active",
        _states,
        "broker",
    ),
    _gauge(
        "time_since_last_heartbeat_received_ms",
        "TimeSinceLastHeartbeatReceivedMs",
        "Since the newest heartbeat of each broker; only on the active controller",
        _since_contact,
        "broker",
    ),
    _gauge(
        "global_topic_count",
        "GlobalTopicCount",
        "Topics of the cluster",
        lambda s: len(s.controller.image.topics.by_id),
    ),
    _gauge(
        "global_partition_count",
        "GlobalPartitionCount",
        "Partitions of the cluster",
        _of_index(_partitions),
    ),
    _gauge(
        "offline_partitions_count",
        "OfflinePartitionsCount",
        "Partitions without a leader",
        _of_index(_offline),
    ),
    _gauge(
        "preferred_replica_imbalance_count",
        "PreferredReplicaImbalanceCount",
        "Partitions whose leader is not the preferred one",
        _of_index(_imbalanced),
    ),
    MetricDefinition(
        "kafka_server_plugins_acls_total_count",
        "gauge",
        AUTHORIZER,
        "acls-total-count",
        "Access control entries",
        lambda s: len(s.controller.image.acls),
    ),
)
