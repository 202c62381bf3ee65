"""Metrics of the quotas of clients and of new connections.

Source: `ClientRequestQuotaManager`, `ControllerMutationQuotaManager`, `ConnectionQuotas`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quorate.controller.connection_rates import ListenerRate
from quorate.controller.mutation_quotas import Bucket
from quorate.controller.request_quotas import ClientUse
from quorate.node.client_quotas import ClientQuotas
from quorate.node.controller_node import ControllerNode
from quorate.server.metric_definition import SOCKETS, Labelled, MetricDefinition, Scrape, Value

_REQUEST: Final = "kafka.server:type=Request"
_MUTATION: Final = "kafka.server:type=ControllerMutation"
_CLIENT: Final = ("user", "client_id")
_BY_CLIENT: Final = "by the user and client id of each quota that was used"
Now = int
"""Monotonic, ms."""


def _from(read: Callable[[ClientQuotas, Now], Value]) -> Callable[[Scrape], Value | None]:
    """Read a value of the quotas; None for a node without them: a member of quorate.embed."""

    def value(scrape: Scrape) -> Value | None:
        node = scrape.controller
        if not isinstance(node, ControllerNode):
            return None
        return read(node.client_quotas, scrape.now.monotonic_ms)

    return value


def _used(read: Callable[[ClientUse, Now], float]) -> Callable[[Scrape], Value | None]:
    return _from(lambda q, now: [(who, read(use, now)) for who, use in q.requests.uses()])


def _bucket(read: Callable[[Bucket, Now], float]) -> Callable[[Scrape], Value | None]:
    return _from(lambda q, now: [(who, read(each, now)) for who, each in q.mutations.buckets()])


def _listener(read: Callable[[ListenerRate, Now], float]) -> Callable[[Scrape], Value | None]:
    return _from(lambda q, now: [(n, read(e, now)) for n, e in q.connections.listeners.items()])


def _accepted(quotas: ClientQuotas, now_ms: int) -> Value:
    rates = quotas.connections
    found: Labelled = [((name, ""), each.rate.total) for name, each in rates.listeners.items()]
    return found + [(("", ip), rate.total) for ip, rate in rates.ips.items()]


QUOTA_METRICS: Final[tuple[MetricDefinition, ...]] = (
    MetricDefinition(
        "kafka_server_request_request_time", "gauge", _REQUEST, "request-time",
        f"Work for requests in percent of a processor, {_BY_CLIENT}",
        _used(lambda use, now: use.rate.per_second(now)), _CLIENT,
    ),
    MetricDefinition(
        "kafka_server_request_throttle_time", "gauge", _REQUEST, "throttle-time",
        f"Average of the throttle times above 0 in ms, {_BY_CLIENT}",
        _used(lambda use, now: use.throttled_ms.at(now)), _CLIENT,
    ),
    MetricDefinition(
        "kafka_server_request_exempt_request_time", "gauge", _REQUEST, "exempt-request-time",
        "Work for raft requests and AlterPartition in percent of a processor",
        _from(lambda quotas, now: quotas.requests.exempt.per_second(now)),
    ),
    MetricDefinition(
        "kafka_server_controller_mutation_tokens", "gauge", _MUTATION, "tokens",
        f"Tokens that are left, {_BY_CLIENT}; below 0 when it is exceeded",
        _bucket(lambda each, now: each.tokens_at(now)), _CLIENT,
    ),
    MetricDefinition(
        "kafka_server_controller_mutation_mutation_total", "counter", _MUTATION, "mutation-rate",
        f"Partitions created and removed, {_BY_CLIENT}", _bucket(lambda each, now: each.taken),
        _CLIENT,
    ),
    MetricDefinition(
        "kafka_server_controller_mutation_throttle_time", "gauge", _MUTATION, "throttle-time",
        f"Average of the throttle times above 0 in ms, {_BY_CLIENT}",
        _bucket(lambda each, now: each.throttled_ms.at(now)), _CLIENT,
    ),
    MetricDefinition(
        "kafka_server_socket_server_metrics_broker_connection_accept_total", "counter", SOCKETS,
        "broker-connection-accept-rate", "Accepted connections",
        _from(lambda quotas, now: quotas.connections.node.total),
    ),
    MetricDefinition(
        "kafka_server_socket_server_metrics_connection_accept_total", "counter", SOCKETS,
        "connection-accept-rate",
        "Accepted connections of each listener, and of each address that has a quota",
        _from(_accepted), ("listener", "ip"),
    ),
    MetricDefinition(
        "kafka_server_socket_server_metrics_connection_accept_throttle_time", "gauge", SOCKETS,
        "connection-accept-throttle-time",
        "Average in ms of what connections waited for the rates of the node and of the listener",
        _listener(lambda each, now: each.throttled_ms.at(now)), "listener",
    ),
    MetricDefinition(
        "kafka_server_socket_server_metrics_ip_connection_accept_throttle_time", "gauge",
        SOCKETS, "ip-connection-accept-throttle-time",
        "Average in ms of what connections waited to be closed: the rate of their address",
        _listener(lambda each, now: each.ip_throttled_ms.at(now)), "listener",
    ),
)  # fmt: skip
