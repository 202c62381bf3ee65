"""Counters and timers of events, for the metrics page and `/readyz`.

A node without a metrics listener has none. The driver reports each step. Windows are those of Kafka's
`SampledStat`: two samples of 30 s. Histograms are Prometheus's.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from math import nan
from typing import Final

from quorate.node.node_io import NodeEffects, NodeInput
from quorate.replica.disk_jobs import (
    AppendBatches,
    InstallRefused,
    Job,
    SnapshotFailed,
    SnapshotWritten,
    Write,
)
from quorate.replica.replica import Replica

_SAMPLE_S: Final = 30.0
_SAMPLES: Final = 2
_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)
FAST_S: Final = (*_SECONDS, 1.0, 2.5)
"""Histogram bounds for disk syncs and commits, in s."""
REQUEST_MS: Final = (
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1000.0,
    2500.0,
)


class Histogram:
    """Counts of values up to each bound (inclusive), and above the last bound."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


class Windowed:
    """Average and maximum of the last 30 to 60 s (Kafka's `Avg` and `Max`)."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, list[float]]] = deque(maxlen=_SAMPLES)
        """(start in s, [count, sum, maximum]) of each sample."""

    def record(self, value: float, now_s: float) -> None:
        """Add a value at the time `now_s`, in s."""
        samples = self._samples
        if not samples or now_s - samples[-1][0] >= _SAMPLE_S:
            samples.append((now_s, [0, 0.0, value]))
        sample = samples[-1][1]
        sample[0] += 1
        sample[1] += value
        sample[2] = max(sample[2], value)

    def average(self, now_s: float) -> float:
        """The average; NaN without values."""
        recent = self._recent(now_s)
        count = sum(sample[0] for sample in recent)
        return sum(sample[1] for sample in recent) / count if count else nan

    def maximum(self, now_s: float) -> float:
        """The maximum; NaN without values."""
        return max((sample[2] for sample in self._recent(now_s)), default=nan)

    def _recent(self, now_s: float) -> list[list[float]]:
        oldest = now_s - _SAMPLES * _SAMPLE_S
        return [sample for begun, sample in self._samples if begun > oldest]


class Meters:
    """The meters of one node. Its loop updates them; the disk thread updates `sync_seconds` alone."""

    def __init__(self, replica: Replica, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with zeros. `clock`: monotonic, in s; the same clock as that of the node's steps."""
        self.clock = clock
        self.appended_records = 0
        """Records appended as the leader."""
        self.fetched_records = 0
        self.commit_latency_ms = Windowed()
        """Time per record, as in Kafka: the batch's time divided by its number of records."""
        self.commit_seconds = Histogram(FAST_S)
        """Time per batch."""
        self.commit_ms = Histogram(REQUEST_MS)
        """Time per batch, in KIP-631's unit."""
        self.committed_records = 0
        """Records committed as the leader."""
        self.queued_ms = Histogram(REQUEST_MS)
        """How long writes waited for their decision."""
        self.step_ms = Histogram(REQUEST_MS)
        """Time of each step of the node."""
        self.election_latency_ms = Windowed()
        self.new_leaders = 0
        self.errors = 0
        """Snapshots that could not be written or were damaged."""
        self.snapshot_bytes = 0
        self.snapshot_at_s = clock()
        self.sync_seconds = Histogram(FAST_S)
        self.requests: Counter[int] = Counter()
        """Number of requests by API key."""
        self.request_ms: dict[int, Histogram] = {}
        """By API key: time from the last byte of a request to its response."""
        self.caught_up_at_s: float | None = None
        """When this replica last had applied everything that it knew to be committed."""
        self._replica = replica
        self._pending: dict[int, tuple[int, float]] = {}
        self._role = ""
        self._led_epoch = -1
        self._election_at_s: float | None = None
        self._uncommitted: deque[tuple[int, int, float]] = deque()
        """(end offset, records, appended at) of each uncommitted batch of the own epoch."""

    # -- requests -----------------------------------------------------------------------------
    def request_received(self, token: int, api_key: int) -> None:
        """A request arrived; `request_answered` or `request_dropped` follows."""
        self.requests[api_key] += 1
        self._pending[token] = (api_key, self.clock())

    def request_answered(self, token: int) -> None:
        """The response to this request was passed to its connection."""
        api_key, since = self._pending.pop(token)
        histogram = self.request_ms.get(api_key)
        if histogram is None:
            histogram = self.request_ms[api_key] = Histogram(REQUEST_MS)
        histogram.observe((self.clock() - since) * 1000)

    def request_dropped(self, token: int) -> None:
        """This request gets no response: its connection is closed."""
        del self._pending[token]

    # -- steps --------------------------------------------------------------------------------
    def stepped(
        self, happened: Iterable[NodeInput], effects: NodeEffects, took_s: float | None = None
    ) -> None:
        """The node took these inputs, with these effects; `took_s`: how long, where it is known."""
        core, now_s = self._replica.core, self.clock()
        role = core.role
        if role != self._role:
            self._role_changed(role, now_s)
        if role == "leader":
            self._led_epoch = core.epoch
        if effects.leader is not None and effects.leader.leader_id >= 0:
            self.new_leaders += 1
        if effects.jobs:
            self._count(effects.jobs, now_s)
        self.errors += effects.errors
        for waited in effects.queued_ms:
            self.queued_ms.observe(waited)
        if took_s is not None:
            self.step_ms.observe(took_s * 1000)
        if self._uncommitted:
            self._commit(core.high_watermark, now_s)
        for item in happened:
            if isinstance(item, SnapshotWritten):
                self.snapshot_bytes, self.snapshot_at_s = item.size, now_s
            elif isinstance(item, SnapshotFailed | InstallRefused):
                self.errors += 1
        if self.is_caught_up:
            self.caught_up_at_s = now_s

    @property
    def is_caught_up(self) -> bool:
        """Whether everything known to be committed, here or by the leader, is applied."""
        replica = self._replica
        committed = replica.core.known_committed
        return not replica.is_loading and 0 <= committed <= replica.applied.offset

    def _role_changed(self, role: str, now_s: float) -> None:
        """Time elections as `KafkaRaftClient` does: from each candidacy to a known leader."""
        self._role = role
        if role != "leader":
            self._uncommitted.clear()
        if role in ("prospective", "candidate"):
            self._election_at_s = now_s
        elif role in ("leader", "follower") and self._election_at_s is not None:
            self.election_latency_ms.record((now_s - self._election_at_s) * 1000, now_s)
            self._election_at_s = None

    def _count(self, jobs: Iterable[Job], now_s: float) -> None:
        for job in jobs:
            if not isinstance(job, Write):
                continue
            for write in job.writes:
                if not isinstance(write, AppendBatches):
                    continue
                for batch in write.batches:
                    count = batch.last_offset - batch.base_offset + 1
                    if batch.epoch == self._led_epoch:
                        self.appended_records += count
                        self._uncommitted.append((batch.last_offset + 1, count, now_s))
                    else:
                        self.fetched_records += count

    def _commit(self, high_watermark: int, now_s: float) -> None:
        uncommitted = self._uncommitted
        while uncommitted and uncommitted[0][0] <= high_watermark:
            _, count, since = uncommitted.popleft()
            self.commit_seconds.observe(now_s - since)
            self.commit_ms.observe((now_s - since) * 1000)
            self.committed_records += count
            self.commit_latency_ms.record((now_s - since) * 1000 / count, now_s)
