"""Quotas on changes of topics and partitions: `controller_mutation_rate` (KIP-599).

Each user, client id or pair of both that has a quota has a bucket of tokens. It holds `rate` times
`controller.quota.window.num` times `controller.quota.window.size.seconds` tokens at most and is
refilled with `rate` tokens a second. A partition that is created or removed takes one. An empty
bucket refuses strict requests, and throttles the connections of others.

The buckets are soft state of the active controller, as in Kafka. Times are monotonic, ms.

Source: `ControllerMutationQuotaManager`, `TokenBucket`, `ClientQuotaManager.DefaultQuotaCallback`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from quorate.controller.rates import Average, make_room
from quorate.metadata.image import QuotaEntity
from quorate.metadata.settings import Quotas

MUTATION_RATE: Final = "controller_mutation_rate"
_CLIENT: Final = "client-id"
_USER: Final = "user"


class Limit(NamedTuple):
    """The quota of a request, and whom it is shared with."""

    rate: float
    user: str
    """Empty: all users share the bucket."""
    client_id: str
    """Empty: all client ids share it."""


def find_limit(quotas: Quotas, key: str, user: str, client_id: str) -> Limit | None:
    """The most specific quota that is set, in Kafka's order; None: there is none."""
    # Each as `quota_entity` gives it: most requests of a node look here.
    candidates: tuple[tuple[QuotaEntity, str, str], ...] = (
        (((_CLIENT, client_id), (_USER, user)), user, client_id),
        (((_CLIENT, None), (_USER, user)), user, client_id),
        (((_USER, user),), user, ""),
        (((_CLIENT, client_id), (_USER, None)), user, client_id),
        (((_CLIENT, None), (_USER, None)), user, client_id),
        (((_USER, None),), user, ""),
        (((_CLIENT, client_id),), "", client_id),
        (((_CLIENT, None),), "", client_id),
    )
    for entity, of_user, of_client in candidates:
        found = quotas.get(entity)
        if found is not None and key in found:
            return Limit(found[key], of_user, of_client)
    return None


@dataclass(slots=True)
class Bucket:
    """The tokens that clients share."""

    tokens: float
    rate: float
    burst: float
    at_ms: int
    taken: int = 0
    """Partitions that were created and removed, in all."""
    throttled_ms: Average = field(default_factory=Average)
    """Throttle times above 0."""

    def tokens_at(self, now_ms: int) -> float:
        """How many tokens there are; below 0 when it is overdrawn."""
        return min(self.burst, self.tokens + self.rate * (now_ms - self.at_ms) / 1000)

    def refill(self, now_ms: int) -> None:
        self.tokens, self.at_ms = self.tokens_at(now_ms), now_ms


class MutationQuotas:
    """The buckets of one controller."""

    def __init__(self, windows: int = 11, window_s: int = 1) -> None:
        """windows: `controller.quota.window.num`; window_s: `controller.quota.window.size.seconds`."""
        self._seconds = windows * window_s
        self._buckets: dict[tuple[str, str], Bucket] = {}

    def of(
        self, quotas: Quotas, user: str, client_id: str, now_ms: int, *, strict: bool
    ) -> MutationQuota | None:
        """The quota of one request; None: it has none. `user`: the name of the principal."""
        if not quotas:
            return None
        limit = find_limit(quotas, MUTATION_RATE, user, client_id)
        if limit is None:
            return None
        burst = limit.rate * self._seconds
        key = (limit.user, limit.client_id)
        bucket = self._buckets.get(key)
        if bucket is None:
            # A bucket that nobody has used for as long as it takes to fill is as a new one.
            oldest_ms = now_ms - self._seconds * 1000
            make_room(self._buckets, lambda each: each.at_ms, oldest_ms)
            bucket = self._buckets[key] = Bucket(burst, limit.rate, burst, now_ms)
        bucket.rate, bucket.burst = limit.rate, burst
        return MutationQuota(bucket, now_ms, strict)

    def buckets(self) -> Iterator[tuple[tuple[str, str], Bucket]]:
        """((user, client id), its bucket) of each quota that was used. Empty: shared by all."""
        return iter(self._buckets.items())


class MutationQuota:
    """The quota of one request (`StrictControllerMutationQuota`, `PermissiveControllerMutationQuota`)."""

    def __init__(self, bucket: Bucket, now_ms: int, strict: bool) -> None:
        self._bucket = bucket
        self._now_ms = now_ms
        self._strict = strict
        self.throttle_ms = 0
        """How long until the bucket is no more below empty: for the response and the connection."""

    def take(self, permits: int) -> bool:
        """Take a token for each partition that is created or removed.

        False: the bucket was below empty, and the request is strict. The last tokens may be overdrawn
        by any number.
        """
        bucket = self._bucket
        bucket.refill(self._now_ms)
        if self._strict and bucket.tokens < 0:
            self._throttle()
            return False
        bucket.tokens = min(bucket.burst, bucket.tokens - permits)
        bucket.taken += permits
        if not self._strict and bucket.tokens < 0:
            self._throttle()
        return True

    def _throttle(self) -> None:
        bucket = self._bucket
        if not self.throttle_ms:  # a request is throttled once
            bucket.throttled_ms.record(-bucket.tokens / bucket.rate * 1000, self._now_ms)
        self.throttle_ms = int(-bucket.tokens / bucket.rate * 1000 + 0.5)
