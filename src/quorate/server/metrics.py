"""The metrics page: one node in the forms that Prometheus reads.

Imported only where a page is wanted: the Prometheus client costs 7 MB.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus

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

from quorate.node.machine import Now
from quorate.server.meters import Histogram, Meters
from quorate.server.metric_table import (
    DEFINITIONS,
    Callers,
    Definition,
    Labelled,
    Observed,
    Scene,
    Value,
)
from quorate.server.web import Page


class NodeCollector(Collector):
    """Reads one node at each scrape, on the node's loop."""

    def __init__(
        self,
        controller: Observed,
        meters: Meters,
        present: Callable[[], Now],
        callers: Callers,
    ) -> None:
        self._controller = controller
        self._meters = meters
        self._present = present
        self._callers = callers
        self._measured = (time.monotonic(), time.thread_time())

    def describe(self) -> Iterable[Metric]:
        """Nothing: a node that is registered need not be read before it runs."""
        return ()

    def collect(self) -> Iterator[Metric]:
        scene = Scene(
            self._controller,
            self._meters,
            self._present(),
            self._callers,
            self._idle_ratio(),
        )
        for definition in DEFINITIONS:
            value = definition.read(scene)
            if value is not None:
                yield _family(definition, value)

    def _idle_ratio(self) -> float:
        """Since it was last asked; 1 at once after that (Kafka's TimeRatio)."""
        before, self._measured = self._measured, (time.monotonic(), time.thread_time())
        passed = self._measured[0] - before[0]
        worked = self._measured[1] - before[1]
        return max(1 - worked / passed, 0.0) if passed > 0 else 1.0


class MetricsPage:
    """`/metrics`: the text form, or OpenMetrics for those who ask for it."""

    def __init__(self, collector: NodeCollector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)
        ProcessCollector(registry=self.registry)

    def __call__(self, headers: Mapping[str, str]) -> Page:
        encode, content_type = choose_encoder(headers.get("accept", ""))
        return Page(HTTPStatus.OK, content_type, encode(self.registry))


def _family(definition: Definition, value: Value) -> Metric:
    name, text, label = definition.name, definition.help, definition.label
    pairs: Labelled = (
        value if isinstance(value, list) else [("", value)] if value is not None else []
    )
    labels = [label] if label else []
    family: Metric
    if definition.kind == "histogram":
        family = HistogramMetricFamily(name, text, labels=labels)
        for found, histogram in pairs:
            assert isinstance(histogram, Histogram)
            family.add_metric([found] if label else [], _buckets(histogram), histogram.sum)
        return family
    kind = CounterMetricFamily if definition.kind == "counter" else GaugeMetricFamily
    family = kind(name, text, labels=labels)
    for found, number in pairs:
        assert isinstance(number, int | float)
        family.add_metric([found] if label else [], number)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Cumulative, as Prometheus wants them."""
    total, buckets = 0, []
    bounds = [*map(str, histogram.bounds), "+Inf"]
    for bound, count in zip(bounds, list(histogram.counts), strict=True):
        total += count
        buckets.append((bound, float(total)))
    return buckets
