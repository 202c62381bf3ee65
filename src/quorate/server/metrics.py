"""The metrics page: one node in Prometheus's text formats.

Imported only with a metrics listener: the Prometheus client costs 7 MB.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Final

from prometheus_client.core import (
    CollectorRegistry,
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from quorate.replica.state_machine import Now
from quorate.server.broker_metrics import BROKER_METRICS
from quorate.server.certificates import Certificates
from quorate.server.controller_metrics import CONTROLLER_METRICS
from quorate.server.meters import Histogram, Meters
from quorate.server.metric_definition import (
    Labelled,
    ListenerStats,
    MetricDefinition,
    ObservedNode,
    Scrape,
    Value,
)
from quorate.server.metric_table import DEFINITIONS
from quorate.server.quota_metrics import QUOTA_METRICS
from quorate.server.web import Page, Question

ALL_METRICS: Final = (*DEFINITIONS, *BROKER_METRICS, *CONTROLLER_METRICS, *QUOTA_METRICS)


class NodeCollector(Collector):
    """Reads one node at each scrape, on the node's loop."""

    def __init__(
        self,
        controller: ObservedNode,
        meters: Meters,
        present: Callable[[], Now],
        callers: ListenerStats,
        certificates: Callable[[], Certificates] = dict,
    ) -> None:
        self._controller = controller
        self._meters = meters
        self._present = present
        self._callers = callers
        self._certificates = certificates
        self._measured = (time.monotonic(), time.thread_time())

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering a collector must not read a node that does not run yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The current value of every metric."""
        scene = Scrape(
            self._controller,
            self._meters,
            self._present(),
            self._callers,
            self._idle_ratio(),
            self._certificates(),
        )
        for definition in ALL_METRICS:
            value = definition.read(scene)
            if value is not None:
                yield _family(definition, value)

    def _idle_ratio(self) -> float:
        """The idle ratio since the last scrape; 1 without elapsed time (Kafka's `TimeRatio`)."""
        before, self._measured = self._measured, (time.monotonic(), time.thread_time())
        passed = self._measured[0] - before[0]
        worked = self._measured[1] - before[1]
        return max(1 - worked / passed, 0.0) if passed > 0 else 1.0


class MetricsPage:
    """`/metrics`: Prometheus's text format, or OpenMetrics when the client accepts it."""

    def __init__(self, collector: NodeCollector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)
        ProcessCollector(registry=self.registry)

    def __call__(self, question: Question) -> Page:
        encode, content_type = choose_encoder(question.headers.get("accept", ""))
        return Page(HTTPStatus.OK, content_type, encode(self.registry))


def _family(definition: MetricDefinition, value: Value) -> Metric:
    name, text, label = definition.name, definition.help, definition.label
    pairs: Labelled = (
        value if isinstance(value, list) else [("", value)] if value is not None else []
    )
    labels = _texts(label)
    family: Metric
    if definition.kind == "histogram":
        family = HistogramMetricFamily(name, text, labels=labels)
        for found, histogram in pairs:
            assert isinstance(histogram, Histogram)
            family.add_metric(_texts(found), _buckets(histogram), histogram.sum)
        return family
    kind = CounterMetricFamily if definition.kind == "counter" else GaugeMetricFamily
    family = kind(name, text, labels=labels)
    for found, number in pairs:
        assert isinstance(number, int | float)
        family.add_metric(_texts(found), number)
    return family


def _texts(found: str | tuple[str, ...]) -> list[str]:
    """One text or several; none for an empty one."""
    return list(found) if isinstance(found, tuple) else [found] if found else []


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative counts, as Prometheus expects them."""
    total, buckets = 0, []
    bounds = [*map(str, histogram.bounds), "+Inf"]
    for bound, count in zip(bounds, list(histogram.counts), strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets
