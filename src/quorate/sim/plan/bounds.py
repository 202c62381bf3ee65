"""The minimum and maximum of each number in a plan."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

MOST: Final = 1 << 62
"""The largest seed and the largest number of any other kind."""
_MOST_INT32: Final = (1 << 31) - 1
_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_MINUTE_US: Final = 60_000_000
_MOST_DRIFT_PPM: Final = 500_000
"""A clock that runs at 0.5 or 1.5 times the rate of the world's clock."""
BOUNDS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "duration_ms": (1, _DAY_MS),
        "timing.election_timeout_ms": (10, _HOUR_MS),
        "timing.fetch_timeout_ms": (10, _HOUR_MS),
        "timing.election_backoff_max_ms": (1, _HOUR_MS),
        "timing.request_timeout_ms": (1, _HOUR_MS),
        "timing.retry_backoff_ms": (1, _HOUR_MS),
        "timing.retry_backoff_max_ms": (0, _HOUR_MS),
        "timing.fetch_max_wait_ms": (0, _HOUR_MS),
        "timing.fetch_max_bytes": (1, _MOST_INT32),
        "timing.snapshot_max_bytes": (1, _MOST_INT32),
        "disk.segment_bytes": (1, MOST),
        "disk.segment_ms": (1, MOST),
        "disk.slice_bytes": (1, MOST),
        "disk.clean_ms": (1, MOST),
        "listeners": (1, 2),
        "disk.sync_us": (1, _MINUTE_US),
        "disk.byte_us": (0, _MINUTE_US),
        "disk.index_interval": (1, MOST),
        "disk.slow_ms": (0, _HOUR_MS),
        "network.delay_us": (0, _MINUTE_US),
        "network.jitter_us": (0, _MINUTE_US),
        "timing.cpu_us": (1, _MINUTE_US),
        "disk.sync_every": (1, MOST),
        "clients.count": (0, 255),
        "clients.keys": (1, 65_536),
        "clients.think_ms": (1, _HOUR_MS),
        "clients.timeout_ms": (1, _HOUR_MS),
        "clients.lists": (1, 1000),
        "clients.padding": (0, 1 << 20),
        "limits.border_window": (1, MOST),
        "limits.batch_bytes": (1, 1 << 30),
        "limits.max_observers": (1, MOST),
        "limits.observer_session_ms": (1, MOST),
        "limits.caught_up_within_ms": (1, MOST),
        "clock.drift_ppm": (0, _MOST_DRIFT_PPM),
        "timing.high_watermark_linger_ms": (0, _HOUR_MS),
        "timing.idle_ms": (0, _HOUR_MS),
        "network.hold_ms": (0, _HOUR_MS),
    }
)
"""(minimum, maximum) of each setting, both inclusive. Other numbers make a world that never ends."""
OF_FAULT_EVENTS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "step_us": (1, _MINUTE_US),
        "sync_ms": (0, 60_000),
        "period_ms": (1, _DAY_MS),
        "count": (0, 10_000),
        "times": (0, 10_000),
    }
)
"""(minimum, maximum) of each argument of a fault event, both inclusive."""
