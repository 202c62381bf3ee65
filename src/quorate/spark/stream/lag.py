"""How far a stream is behind the committed logs of its clusters.

Spark reports both offsets of a source in its progress: `endOffset`, up to which a micro-batch has
read, and `latestOffset`, the newest one that the source knew then. Spark has no source metrics for a
data source in Python, so what follows from the two is computed here.

    meter = LagMeter()

    class Listener(StreamingQueryListener):
        def onQueryProgress(self, event):
            for cluster_id, lag in meter.update(event.progress).items():
                print(cluster_id, lag.records, lag.ms)
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

_SAMPLES: Final = 10_000
"""Observations that are kept of a cluster. Beyond them, `ms` of an older delay is a lower bound."""


class StreamLag(NamedTuple):
    """How far a stream is behind one cluster."""

    records: int
    """Committed records that it has not read."""
    ms: int
    """The time since it was first seen to lack one of them, ms; 0 while it lacks none."""


class LagMeter:
    """Computes the lag of a query from its progress reports; for one query at a time.

    clock: gives seconds that never go back
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, deque[tuple[float, int]]] = {}
        """By cluster: when which newest offset was first seen, of those that are not read."""

    def update(self, progress: Any) -> dict[str, StreamLag]:
        """The lag of each cluster after a report: a StreamingQueryProgress, or its JSON as a dict.

        A cluster of which nothing was ever read counts from offset 0. Sources of other formats are
        left out.
        """
        now = self._clock()
        return {
            cluster_id: self._lag(cluster_id, read, newest, now)
            for cluster_id, (read, newest) in offsets_in(progress).items()
        }

    def _lag(self, cluster_id: str, read: int, newest: int, now: float) -> StreamLag:
        seen = self._seen.setdefault(cluster_id, deque(maxlen=_SAMPLES))
        while seen and seen[0][1] <= read:
            seen.popleft()
        if newest > (seen[-1][1] if seen else read):
            seen.append((now, newest))
        since = round((now - seen[0][0]) * 1000) if seen else 0
        return StreamLag(max(newest - read, 0), since)


def offsets_in(progress: Any) -> dict[str, tuple[int, int]]:
    """Return, by cluster, the end of what was read and of what was committed, both exclusive."""
    found: dict[str, tuple[int, int]] = {}
    for source in _get(progress, "sources") or ():
        read = dict(_places(_get(source, "endOffset")))
        newest = dict(_places(_get(source, "latestOffset")))
        for cluster_id in sorted({*read, *newest}):
            here = read.get(cluster_id, 0)
            found[cluster_id] = (here, max(newest.get(cluster_id, here), here))
    return found


def _get(report: Any, name: str) -> Any:
    return report.get(name) if isinstance(report, Mapping) else getattr(report, name, None)


def _places(offsets: Any) -> Iterator[tuple[str, int]]:
    """(cluster, offset) of an offset of a stream, which Spark gives as text or as JSON."""
    if isinstance(offsets, str):
        try:
            offsets = json.loads(offsets)
        except ValueError:
            return
    if isinstance(offsets, Mapping):
        for cluster_id, at in offsets.items():
            if isinstance(at, Mapping) and isinstance(at.get("offset"), int):
                yield cluster_id, at["offset"]
