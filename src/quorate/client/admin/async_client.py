"""The admin client for programs with an event loop: every call of `Admin` as a coroutine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from quorate.client.admin.acls import AclCalls
from quorate.client.admin.aio import AsyncioIo
from quorate.client.admin.client import OpenedByAddresses
from quorate.client.admin.cluster import ClusterCalls
from quorate.client.admin.configs import ConfigCalls
from quorate.client.admin.elections import ElectionCalls
from quorate.client.admin.log_dirs import LogDirCalls
from quorate.client.admin.pool import ClientConfig
from quorate.client.admin.quorum import QuorumCalls
from quorate.client.admin.quotas import QuotaCalls
from quorate.client.admin.reassignments import ReassignmentCalls
from quorate.client.admin.routing import Calls, Router
from quorate.client.admin.security import SecurityCalls
from quorate.client.admin.topics import TopicCalls


class AsyncAdmin(
    OpenedByAddresses,
    QuorumCalls,
    ClusterCalls,
    QuotaCalls,
    TopicCalls,
    ConfigCalls,
    AclCalls,
    SecurityCalls,
    ReassignmentCalls,
    ElectionCalls,
    LogDirCalls,
):
    """A client whose calls may run at the same time, on one event loop.

    A call that is cancelled breaks the connection that it uses; whether its change was made is then
    unknown. One that is cancelled while it waits for another call sends nothing. Calls to one node wait
    for each other, calls to several nodes run side by side.
    """

    def __init__(
        self,
        config: ClientConfig,
        monotonic: Callable[[], float] = time.monotonic,
        on_wait: Callable[[str], None] = lambda reason: None,
        on_resend: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`on_wait` gets the reason once per call that takes longer than `report_after_ms`.

        `on_resend` gets a line about a change that was sent twice, where its result does not show what the
        first attempt may have done.
        """
        OpenedByAddresses.__init__(self, config)
        Calls.__init__(self, Router(config, AsyncioIo(), monotonic, on_wait, on_resend=on_resend))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; a later call opens new ones.

        Calls under way raise ClientClosedError; its `note` says whether a change may have been made.
        """
        self.router.close()
