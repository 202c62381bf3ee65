"""The quotas of a node's clients: on their requests, their changes and their connections.

Source: `RequestHandlerHelper`, `ControllerMutationQuotaManager.newQuotaFor`, `ConnectionQuotas`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from quorate.controller.connection_rates import Admission, ConnectionRates, rate_limits
from quorate.controller.context import ControllerConfig
from quorate.controller.mutation_quotas import MutationQuota, MutationQuotas
from quorate.controller.request_quotas import RequestQuotas
from quorate.metadata.image import Image
from quorate.node.apis import API_TABLE
from quorate.node.requests import Call
from quorate.wire.schema import Message


def is_exempt(api_key: int) -> bool:
    """Raft requests and AlterPartition are never throttled: the cluster depends on them."""
    row = API_TABLE.get(api_key)
    return row is None or not row.throttled


class ClientQuotas:
    """What the clients of one node use of their quotas. Times are monotonic, ms."""

    def __init__(self, config: ControllerConfig) -> None:
        self.clock: Callable[[], int] = int
        """ns. Where time is simulated, work takes none."""
        self.requests = RequestQuotas(config.quota_windows, config.quota_window_s)
        self.connections = ConnectionRates(config.quota_windows, config.quota_window_s)
        self.mutations = MutationQuotas(
            config.mutation_quota_windows, config.mutation_quota_window_s
        )
        self._configs = config.configs

    def work_ns(self) -> int:
        """The time now, to measure work with."""
        return self.clock()

    def throttle(
        self, call: Call, message: Message, image: Image, work_ns: int, now_ms: int, *, denied: bool
    ) -> int:
        """Record the work for a call, and write into its response how long the client is throttled.

        Returns how long to read nothing from the connection. A broker throttles its own clients, so
        that the connection of an Envelope is read on; `denied`: a requester without the permission on
        the cluster is throttled in any case (`sendErrorResponseMaybeThrottle`).
        """
        if is_exempt(call.request.api_key) and not denied:
            self.requests.record_exempt(call.work_ns + work_ns, now_ms)
            return 0
        answer = cast(Any, message)
        throttle_ms: int = getattr(answer, "throttle_time_ms", 0)
        if image.client_quotas:
            asked_ms = self.requests.throttle_ms(
                image.client_quotas, *_client(call), call.work_ns + work_ns, now_ms
            )
            if asked_ms > throttle_ms:
                throttle_ms = asked_ms
                if hasattr(answer, "throttle_time_ms"):
                    answer.throttle_time_ms = asked_ms
        return throttle_ms if denied or call.envelope is None else 0

    def encoded(self, call: Call, image: Image, work_ns: int, now_ms: int) -> None:
        """Record the time that it took to encode the response to a call."""
        if is_exempt(call.request.api_key):
            self.requests.record_exempt(work_ns, now_ms)
        elif image.client_quotas:
            self.requests.record(image.client_quotas, *_client(call), work_ns, now_ms)

    def on_mutations(self, call: Call | None, image: Image, now_ms: int) -> MutationQuota | None:
        """The quota of a request on changes of topics and partitions; None: it has none."""
        row = None if call is None else API_TABLE.get(call.request.api_key)
        if call is None or row is None or row.strict_since is None:
            return None
        strict = call.request.version >= row.strict_since
        return self.mutations.of(image.client_quotas, *_client(call), now_ms, strict=strict)

    def admit(self, image: Image, listener: str, host: str, now_ms: int) -> Admission:
        """What to do with a new connection."""
        limits = rate_limits(image, self._configs, listener, host)
        return self.connections.admit(listener, host, limits, now_ms)


def _client(call: Call) -> tuple[str, str]:
    """User and client id."""
    return call.principal.partition(":")[2], call.request.client_id or ""
