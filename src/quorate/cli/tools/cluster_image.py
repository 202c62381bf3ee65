"""The brokers and partitions that controllers know, read from the metadata log of their leader.

No request of Kafka lists brokers through controllers. The log names them, on Kafka's controllers too.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

from quorate.base.errors import QuorateError
from quorate.base.garbage import without_collections
from quorate.client.errors import LoginError
from quorate.client.leader import Controllers, ForeignQuorumError, LeaderError

if TYPE_CHECKING:
    from quorate.client import Admin
    from quorate.metadata.image import Image

MOST_MS: Final = 15_000
"""How long the leader may take to answer."""


class ImageUnreadableError(QuorateError):
    """The metadata log cannot be read. `is_refused`: for a missing permission (ClusterAction on Cluster)."""

    def __init__(self, reason: str, *, is_refused: bool) -> None:
        super().__init__(reason)
        self.is_refused = is_refused


def read_image(admin: Admin, most_ms: int = MOST_MS) -> Image:
    """The committed metadata of the quorum. Raises ImageUnreadableError.

    The leader may take `most_ms` to answer.
    """
    from quorate.shell.following import QuorumFollower
    from quorate.shell.loading import LoadError

    config = admin.config
    patience_ms = min(config.default_api_timeout_ms, most_ms)
    quorum = Controllers(config.bootstrap, timeout_ms=patience_ms, security=config.security)
    try:
        with closing(QuorumFollower(quorum)) as follower, without_collections(freeze=True):
            return follower.catch_up().published.image
    except (LeaderError, LoginError, LoadError) as error:
        is_refused = isinstance(error, ForeignQuorumError) and "AUTHORIZATION" in str(error)
        raise ImageUnreadableError(str(error), is_refused=is_refused) from None


def registered_brokers(admin: Admin) -> frozenset[int] | None:
    """The ids of the registered brokers, alive or not; None where the log may not be read."""
    try:
        return frozenset(read_image(admin).cluster.brokers)
    except ImageUnreadableError:
        return None
