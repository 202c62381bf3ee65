"""A load of N outstanding puts, and its results: rate and percentiles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

VALUE = b"v" * 200


class RefusedError(Exception):
    """The system answered a put with an error."""


class Client(Protocol):
    """One client over TCP; `put` may be called again before the first has been answered."""

    async def put(self, key: bytes, value: bytes) -> None:
        """Store durably. Raises OSError when the connection breaks, RefusedError for an error."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Sample:
    """Latencies in seconds of the puts that were confirmed within `seconds`, sorted."""

    latencies: Sequence[float]
    seconds: float

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def percentile_ms(self, share: float) -> float:
        index = min(int(len(self.latencies) * share), len(self.latencies) - 1)
        return self.latencies[index] * 1000


Connect = Callable[[int], Awaitable[list[Client]]]
"""Makes the clients for that many outstanding puts: one each, or one for all."""


async def _one(client: Client, number: int, end: float, latencies: list[float]) -> None:
    count = 0
    while (start := perf_counter()) < end:
        await client.put(b"key-%d-%d" % (number, count % 1000), VALUE)
        latencies.append(perf_counter() - start)
        count += 1


async def put_for(clients: Sequence[Client], outstanding: int, seconds: float) -> Sample:
    """Keep `outstanding` puts in flight for `seconds`."""
    latencies: list[float] = []
    start = perf_counter()
    await asyncio.gather(
        *(
            _one(clients[i % len(clients)], i, start + seconds, latencies)
            for i in range(outstanding)
        )
    )
    return Sample(sorted(latencies), perf_counter() - start)


async def measure(
    connect: Connect, outstanding: int, seconds: float, warm_up: float = 1.0
) -> Sample:
    """Warm up, then measure; every put must be confirmed."""
    clients = await connect(outstanding)
    try:
        await put_for(clients, outstanding, warm_up)
        return await put_for(clients, outstanding, seconds)
    finally:
        for client in clients:
            client.close()
