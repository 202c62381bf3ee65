"""The observer of `client` with errors that Spark's jobs understand, and what they tell a stream's user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from quorate.client import leader
from quorate.client.errors import LoginError
from quorate.client.log_fetcher import LogFetcher
from quorate.spark.files.paths import SourceError, TransientError
from quorate.wire.schema import Message

ANOTHER_LOG: Final = (
    "Committed records are lost, or this is another cluster. The rows that were read stay as they "
    "are; find the cause before you start with a new checkpoint"
)


class UnreachableError(leader.LeaderUnreachableError, TransientError):
    """No leader of the quorum answered in time."""


class WrongQuorumError(leader.ForeignQuorumError, SourceError):
    """The node that answered is of another cluster, is a broker, or does not speak Kafka."""


class RefusedError(LoginError, SourceError):
    """The controllers refuse the certificate or the login, or their certificate is refused here."""


class LogDivergedError(leader.LeaderDivergedError, SourceError):
    """The log of the quorum is not the log that the stream has read."""


class StreamFetcher(LogFetcher):
    """Reads the log of one cluster for a stream."""

    client_id = "quorate-spark"
    unreachable: ClassVar[type[leader.LeaderUnreachableError]] = UnreachableError
    wrong_quorum: ClassVar[type[leader.ForeignQuorumError]] = WrongQuorumError
    log_diverged: ClassVar[type[leader.LeaderDivergedError]] = LogDivergedError
    another_log = ANOTHER_LOG
    cluster_id_from = "the checkpoint or the option clusterId names"

    def call_leader(
        self,
        make: Callable[[int], Message],
        kind: type[Any],
        partition_of: Callable[[Any], Any],
        timeout_ms: int | None,
    ) -> Any:
        """Call the leader as the base does, with RefusedError in place of LoginError."""
        try:
            return super().call_leader(make, kind, partition_of, timeout_ms)
        except LoginError as error:
            raise RefusedError(f"controllers {self.controllers}: {error}") from None
